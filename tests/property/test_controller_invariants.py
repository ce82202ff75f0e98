"""The controller's books and decisions under any order of events, against the API objects alone.

Pods are seen late; queues, groups, namespaces and nodes at once, and so is what nobody keeps back (pods without cards),
for what a controller cannot know yet it cannot respect.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from core import names
from core.objects import Group, Namespace, Node, Pod, Queue
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_namespace, a_node, a_pod, a_queue
from tests.property.stored_pods import LateWatch

QUEUES = ("red", "blue")
CHOICES = ("A", "B", "A|B", "B|A")
NODES = {
    "a1": a_node("a1").card("A", 4).allocatable("cpu", 6).view(),
    "a2": a_node("a2").card("A", 2).allocatable("cpu", 2).view(),
    "b1": a_node("b1").card("B", 4).allocatable("cpu", 4).view(),
}
HOME = {"A": "a1", "B": "b1"}
JOB = "batch.volcano.sh/v1alpha1"

queues = st.sampled_from(QUEUES)
amounts = st.integers(0, 5)


class Controller(LateWatch):
    """What the API server stores, and a controller that follows it and is killed now and then."""

    settings = Settings()

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, Group] = {}
        self.nodes: dict[str, Node] = dict(NODES)
        self.namespace: Namespace = a_namespace().view()
        self.queues: dict[str, Queue] = {}
        self.serial = 0
        for queue in QUEUES:
            self.queues[queue] = a_queue(queue).cards({"A": 2, "B": 1}).capability(cpu=4).view()
        self.restart()

    def listed(self, pods: Collection[Pod] | None = None) -> Ledger:
        """A ledger that has listed what is stored, or these pods in place of those, and knows nothing else."""
        ledger = Ledger(self.settings)
        ledger.put_namespace(self.namespace)
        for queue in self.queues.values():
            ledger.put_queue(queue)
        for group in self.groups.values():
            ledger.put_group(group)
        for pod in self.stored.values() if pods is None else pods:
            ledger.put_pod(pod)
        for node in self.nodes.values():
            ledger.put_node(node)
        return ledger

    @rule()
    def restart(self) -> None:
        self.ledger = self.listed()
        self.unseen.clear()
        self.planner = Planner(self.ledger)
        self.holds: dict[str, Hold] = {}
        self.ledger.wakeups.look_at(*self.ledger.accounts)

    # -- what users and schedulers do ------------------------------------------------------------------------

    def store(self, pod: Pod, *, seen: bool = False) -> None:
        super().store(pod)
        if seen:
            self.ledger.put_pod(self.stored[self.unseen.pop()])

    def name(self) -> str:
        self.serial += 1
        return f"p{self.serial}"

    @rule(
        queue=queues | st.none(),
        choice=st.sampled_from(CHOICES),
        count=st.integers(0, 3),
        cpu=st.integers(0, 3),
    )
    def create_pod(self, queue: str | None, choice: str, count: int, cpu: int) -> None:
        pod = a_pod(self.name()).gpu(count).request("cpu", cpu).card(choice).gated()
        self.store((pod if queue is None else pod.in_queue(queue)).view())

    @rule(
        queue=queues,
        minimum=st.integers(0, 3),
        choices=st.lists(st.sampled_from(CHOICES), min_size=1, max_size=3),
        declared=st.none() | st.dictionaries(st.sampled_from(CHOICES), st.integers(0, 4), max_size=2),
    )
    def create_group(
        self, queue: str, minimum: int, choices: list[str], declared: dict[str, int] | None
    ) -> None:
        name = f"g-{self.name()}"
        group = a_group(name).in_queue(queue).min_member(minimum)
        if declared is not None:
            group = group.cards(declared).owned_by("Job", name, api_version=JOB)
        self.groups[name] = group.view()
        self.ledger.put_group(self.groups[name])
        for choice in choices:
            self.store(a_pod(self.name()).gpu(1).request("cpu", 1).card(choice).in_group(name).gated().view())

    @rule(queue=queues, cpu=st.integers(1, 3))
    def run_a_pod_without_cards(self, queue: str, cpu: int) -> None:
        pod = a_pod(self.name()).container("main").request("cpu", cpu).in_queue(queue).bound_to("a1")
        self.store(pod.view(), seen=True)

    @rule(data=st.data(), how=st.sampled_from(("bind", "finish", "terminate", "vanish")))
    def move_on(self, data: st.DataObject, how: str) -> None:
        running = sorted(uid for uid, pod in self.stored.items() if not pod.gated and not pod.terminal)
        if not running:
            return
        pod = self.stored[data.draw(st.sampled_from(running))]
        match how:
            case "bind" if pod.bound:
                return
            case "bind":
                record = pod.annotations.get(names.ASSIGNED_ANNOTATION, '"A"')
                self.store(replace(pod, node_name=HOME["B" if '"B"' in record else "A"], phase="Running"))
            case "finish":
                self.store(replace(pod, phase="Succeeded"))
            case "terminate":
                self.store(replace(pod, deleting=True))
            case _:
                del self.stored[pod.uid]
                self.unseen.append(pod.uid)

    # -- what admins do --------------------------------------------------------------------------------------

    @rule(
        queue=queues,
        cards=st.dictionaries(st.sampled_from("AB"), amounts),
        cpu=st.none() | amounts,
        guaranteed=amounts,
        fifo=st.booleans(),
        state=st.sampled_from(("", "Open", "Open", "Closed")),
    )
    def change_queue(
        self, queue: str, cards: dict[str, int], cpu: int | None, guaranteed: int, fifo: bool, state: str
    ) -> None:
        changed = a_queue(queue).cards(cards).guarantee(cpu=guaranteed).state(state)
        changed = changed if cpu is None else changed.capability(cpu=cpu)
        self.queues[queue] = (changed.fifo() if fifo else changed).view()
        self.ledger.put_queue(self.queues[queue])

    @rule(queue=queues)
    def delete_queue(self, queue: str) -> None:
        self.queues.pop(queue, None)
        self.ledger.drop_queue(queue)

    @rule(data=st.data(), queue=queues)
    def change_the_queue_of_a_group(self, data: st.DataObject, queue: str) -> None:
        if self.groups:
            name = data.draw(st.sampled_from(sorted(self.groups)))
            self.groups[name] = replace(self.groups[name], queue=queue)
            self.ledger.put_group(self.groups[name])

    @rule(data=st.data(), minimum=st.integers(0, 3))
    def change_the_minimum_of_a_group(self, data: st.DataObject, minimum: int) -> None:
        if self.groups:
            name = data.draw(st.sampled_from(sorted(self.groups)))
            self.groups[name] = replace(self.groups[name], min_member=minimum)
            self.ledger.put_group(self.groups[name])

    @rule(data=st.data())
    def delete_a_group(self, data: st.DataObject) -> None:
        """Its pods stay, and are looked at one by one."""
        if self.groups:
            name = data.draw(st.sampled_from(sorted(self.groups)))
            self.ledger.drop_group(self.groups.pop(name).key)

    @rule(queue=queues)
    def change_the_queue_of_the_namespace(self, queue: str) -> None:
        self.namespace = a_namespace().in_queue(queue).view()
        self.ledger.put_namespace(self.namespace)

    @rule(name=st.sampled_from(sorted(NODES)), ready=st.booleans())
    def change_node(self, name: str, ready: bool) -> None:
        self.nodes[name] = replace(NODES[name], ready=ready)
        self.ledger.put_node(self.nodes[name])

    @rule(name=st.sampled_from(sorted(NODES)))
    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.ledger.drop_node(name)

    # -- what the controller does ----------------------------------------------------------------------------

    @rule(shown=st.integers(1, 8))
    def watch(self, shown: int) -> None:
        """The watch shows a prefix of what happened."""
        self.show(shown)

    @rule(data=st.data())
    def quota_pass(self, data: st.DataObject) -> None:
        """One pass over what changed; each of its writes goes through or is refused."""
        self.decide(lambda: data.draw(st.booleans()))

    def decide(self, accepted: Callable[[], bool]) -> bool:
        dirty, lifted = self.ledger.wakeups.take_queues(), False
        for queue in self.planner.order(dirty):
            self.holds = {uid: hold for uid, hold in self.holds.items() if hold.queue != queue}
            for decision in self.planner.decide(queue):
                if isinstance(decision, Hold):
                    self.holds[decision.pod.uid] = decision
                else:
                    lifted = True
                    self.write(decision, accepted())
        return lifted or bool(self.ledger.wakeups.pending)

    def write(self, lift: Lift, accepted: bool) -> None:
        stored = self.stored.get(lift.pod.uid)
        if not accepted or stored is None or stored.resource_version != lift.pod.resource_version:
            self.ledger.forget(lift.pod.uid)
            return
        self.store(replace(stored, gates=(), annotations={**stored.annotations, **lift.records}))
        self.is_within_quota(lift)

    def is_within_quota(self, lift: Lift) -> None:
        truth, queue = self.listed(), lift.queue
        assert truth.queues[queue].open
        for card, count in lift.assigned.items():
            limit = truth.limits[queue].cards.get(card, 0)
            assert count == 0 or truth.used(queue, card) <= limit, (queue, card)
        cpu = truth.capacity.limit(queue).get("cpu")
        free = self.settings.cards.unlimited_cpu_memory
        if lift.pod.requests.get("cpu") and cpu is not None and not free:
            assert truth.cpu_memory.used(queue, "cpu") <= cpu, queue

    # -- what always holds -----------------------------------------------------------------------------------

    @precondition(lambda self: not self.unseen)
    @invariant()
    def nothing_leaks(self) -> None:
        truth = self.listed()
        assert figures(self.ledger) == figures(truth)

    def teardown(self) -> None:
        """Everything is shown and every write goes through: then a plan of the stored objects has nothing to add."""
        self.watch(len(self.unseen))
        while self.decide(lambda: True):
            self.watch(len(self.unseen))
        offline = plan(self.listed(), self.stored.values())
        for pod in self.stored.values():
            planned = offline.pods[pod.key]
            assert planned.decision != "lift", (pod.key, self.holds.get(pod.uid))
            if planned.decision == "hold":
                # The reason may be another one by now: what takes more away wakes nobody.
                held = self.holds.get(pod.uid)
                assert held is not None, (pod.key, planned)
                assert held.queue == planned.queue


def figures(ledger: Ledger) -> dict[str, Any]:
    return {
        queue: (
            ledger.accounts[queue].allocated if queue in ledger.accounts else {},
            ledger.accounts[queue].reserved if queue in ledger.accounts else {},
            ledger.accounts[queue].waiting if queue in ledger.accounts else {},
            ledger.cpu_memory.used(queue, "cpu"),
            ledger.capacity.limit(queue),
        )
        for queue in (*QUEUES, "default")
    }


class Uniform(Controller):
    """The same with one card for each gang, and card pods free of CPU."""

    settings = Settings.model_validate({"cards": {"multiCardJob": "uniform", "unlimitedCpuMemory": True}})


TestController = Controller.TestCase
TestUniform = Uniform.TestCase
