"""Gangs that were cut in half anywhere: with `unfinishedAfter` they come to rest whole, and none waits that would fit."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.unfinished import UnfinishedGangs
from core.queues.group_minimum import counts
from core.queues.ledger import Ledger
from core.settings import ReservationSettings, Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue

SECOND = 10**6
AFTER_S = 4

halves = st.tuples(st.integers(2, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 2))
"""Members, of which so many are bound, so many lifted without a node, and the priority; the rest waits."""


class Cluster:
    """What runs, and owners that make anew what is deleted."""

    def __init__(self, gangs: list[tuple[int, int, int, int]], quota: int) -> None:
        self.ledger = Ledger(Settings())
        self.ledger.put_node(a_node("n").card("A", 64).view())
        self.ledger.put_queue(a_queue("q").cards({"A": quota}).view())
        self.pods: dict[str, Pod] = {}
        self.since: dict[str, int] = {}
        self.sizes = {f"g{number}": size for number, (size, *_) in enumerate(gangs)}
        self.made, self.now = 0, 0
        for number, (size, bound, lifted, priority) in enumerate(gangs):
            group = a_group(f"g{number}").in_queue("q").min_member(size)
            self.ledger.put_group(group.created(f"2024-01-01T00:00:{number:02}Z").view())
            for place in range(size):
                self.make(f"g{number}", priority, size, bound=place < bound, lifted=place < bound + lifted)
        settings = ReservationSettings(unfinished_after_s=AFTER_S)
        self.gangs = UnfinishedGangs(self.ledger, settings, self.since.get)
        self.planner = Planner(self.ledger)

    def make(
        self, gang: str, priority: int, size: int = 0, *, bound: bool = False, lifted: bool = False
    ) -> None:
        self.made += 1
        pod = a_pod(f"{gang}-{self.made}").gpu(1).card("A").in_group(gang).owned_by("Job", gang)
        pod = pod.priority(priority)
        if lifted:
            pod = pod.assigned({"A": 1}).charged("q").together(size)
            pod = pod.bound_to("n") if bound else pod
        self.put(pod.view() if lifted else pod.gated().view())

    def put(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        if not pod.gated:
            self.since.setdefault(pod.uid, self.now)
        self.ledger.put_pod(pod)

    def second(self) -> None:
        """One second: a pass, its writes, a scheduler that starts whole gangs alone, and who is given back."""
        for decision in list(self.planner.decide("q")):
            if isinstance(decision, Lift):
                pod = decision.pod
                self.put(replace(pod, gates=(), annotations={**pod.annotations, **decision.records}))
        for gang, size in self.sizes.items():
            if self.in_(gang) >= size:
                for pod in [pod for pod in self.pods.values() if pod.group_name == gang and not pod.gated]:
                    self.put(replace(pod, node_name="n", phase="Running"))
        self.now += SECOND
        finish(self.gangs.look(self.now))
        for pod in finish(self.gangs.take_condemned(self.now)):
            if self.gangs.condemned(pod.uid) is not None:
                del self.pods[pod.uid]
                self.ledger.drop_pod(pod.uid)
                self.make(pod.group_name, pod.priority)

    def in_(self, gang: str) -> int:
        return sum(counts(pod, self.ledger.stages) for pod in self.pods.values() if pod.group_name == gang)


@given(st.lists(halves, min_size=1, max_size=5), st.integers(4, 10))
def test_gangs_cut_anywhere_come_to_rest_whole(gangs: list[tuple[int, int, int, int]], quota: int) -> None:
    """As many as fit. What has a node stays: a gang that has some of it keeps only that."""
    cluster = Cluster(gangs, quota)
    for _ in range((len(gangs) + 1) * (2 * AFTER_S + 4)):
        cluster.second()
    bound = {
        gang: sum(pod.bound for pod in cluster.pods.values() if pod.group_name == gang)
        for gang in cluster.sizes
    }
    for gang, size in cluster.sizes.items():
        assert cluster.in_(gang) in {bound[gang], size}, "nobody holds quota without a node for half a gang"
    left = quota - cluster.ledger.used("q", "A") // 1000
    for gang, size in cluster.sizes.items():
        if cluster.in_(gang) < size:
            assert size - bound[gang] > left, f"{gang} waits though it would fit"


@given(st.integers(2, 4))
def test_of_two_halves_that_hold_each_other_up_the_older_one_runs(size: int) -> None:
    """The quota suffices for one of them, and a part of the other one."""
    half = size - 1
    cluster = Cluster([(size, 0, half, 0), (size, 0, half, 0)], max(2 * half, size))
    for _ in range(2 * (2 * AFTER_S + 4)):
        cluster.second()
    assert cluster.in_("g0") == size
    assert cluster.in_("g1") in {0, size}
