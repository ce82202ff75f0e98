"""mGPU gangs in Volcano's scheduler, which takes the nodes that refuse one pod of a task for refused to all of them.

What is lifted is what the planner lifts, with the very patch; a stand-in for the scheduler chooses nodes by sums, and the bind
is decided as the hook does.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import names
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.mgpu.destination import led_to
from core.objects import pod as pods
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.task_nodes import TaskNodes, nodes_of_tasks
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.fakes.volcano_cycle import VolcanoCycle
from tests.unit.core.plan.patching import patched

RECORD = "vke.volcengine.com/gpu-index-container-main"


def host(name: str, cards: int = 2) -> NodeBuilder:
    return a_node(name).mgpu(cards, memory=16384).label(names.HOSTNAME_LABEL, name)


def taken(name: str, node: str, card: int, core: int) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=1024).bound_to(node).annotation(RECORD, str(card))


def member(name: str, core: int, task: str = "w") -> PodBuilder:
    built = a_pod(name).mgpu(core=core, memory=1024).in_group("g").task(task).scheduler("volcano")
    return built.created(f"2024-01-01T00:00:{int(name[1:]):02}Z").gated()


class Cluster:
    """Objects as they are stored, and a ledger that sees every change."""

    def __init__(self, minimum: int, *nodes: NodeBuilder) -> None:
        self.ledger, self.nodes, self.stored = Ledger(Settings()), nodes, dict[str, dict[str, Any]]()
        self.group = a_group("g").in_queue("q").min_member(minimum)
        self.ledger.put_queue(a_queue("q").view())
        self.ledger.put_group(self.group.view())
        for node in nodes:
            self.ledger.put_node(node.view())
        self.planner = Planner(self.ledger)
        self.binder = Binder(
            self.ledger, guest_book((), (), self.ledger.settings), self.ledger.settings, lambda: None
        )
        self.denied = Counter[str]()
        self.held: dict[str, Hold] = {}

    def put(self, *built: PodBuilder) -> None:
        for each in built:
            self.store(each.view().name, each.build())

    def store(self, name: str, raw: dict[str, Any]) -> None:
        self.stored[name] = raw
        self.ledger.put_pod(pods.project(raw))

    def lift(self) -> dict[str, str]:
        """One pass, and its writes: to which node each pod is led that is lifted."""
        decisions = self.planner.decide("q")
        lifts = [each for each in decisions if isinstance(each, Lift)]
        self.held = {each.pod.name: each for each in decisions if isinstance(each, Hold)}
        for each in lifts:
            raw = patched(self.stored[each.pod.name], each.patch)
            if names.NOMINATED_ANNOTATION in each.records:
                node = each.records[names.NOMINATED_ANNOTATION]
                raw = {**raw, "status": {**raw.get("status", {}), "nominatedNodeName": node}}
            self.store(each.pod.name, raw)
        return {each.pod.name: each.records.get(names.NODE_ANNOTATION, "") for each in lifts}

    def nominated(self) -> dict[str, str]:
        """For which node each pod is nominated."""
        return {
            name: node
            for name, raw in self.stored.items()
            if (node := raw.get("status", {}).get("nominatedNodeName"))
        }

    def cycles(self, count: int = 5, *, nominations: bool = True) -> dict[str, str]:
        """Who has which node after some cycles."""
        scheduler = VolcanoCycle(nominations=nominations)
        for _ in range(count):
            nodes = [node.build() for node in self.nodes]
            for name, node in scheduler.run(nodes, [self.group.build()], list(self.stored.values())).items():
                pod = pods.project(self.stored[name])
                answer = self.binder.decide(pod, node)
                if isinstance(answer, Refusal):
                    self.denied[name] += 1
                    continue
                booked = self.binder.book(pod, node, answer)
                self.stored[name]["spec"]["nodeName"] = node
                self.stored[name]["metadata"]["annotations"] |= booked.annotations
                self.ledger.put_pod(pods.project(self.stored[name]))
        return {
            name: raw["spec"]["nodeName"] for name, raw in self.stored.items() if raw["spec"].get("nodeName")
        }


def test_a_task_is_led_to_the_node_that_has_room_for_all_of_it() -> None:
    """By sums the first node has room for one of them, by cards for none: its bind would be refused for ever."""
    cluster = Cluster(2, host("m0"), host("m1"))
    cluster.put(taken("x", "m0", 0, 40), taken("y", "m0", 1, 40))
    cluster.put(member("p0", 80), member("p1", 80))
    assert cluster.lift() == {"p0": "m1", "p1": "m1"}
    bound = cluster.cycles()
    assert (bound["p0"], bound["p1"]) == ("m1", "m1")
    assert cluster.denied == Counter()


def test_what_would_be_filled_up_first_does_not_part_a_task_that_another_node_takes_whole() -> None:
    """Binpack has room for one of them on the first node."""
    cluster = Cluster(4, host("m0"), host("m1"), host("m2"))
    cluster.put(taken("x", "m0", 0, 40))
    cluster.put(*(member(f"p{n}", 80, task="w" if n < 2 else "v") for n in range(4)))
    assert cluster.lift() == {"p0": "m1", "p1": "m1", "p2": "m2", "p3": "m2"}
    assert len(cluster.cycles()) == 5
    assert cluster.denied == Counter()


def test_tasks_are_led_each_to_a_node_of_its_own() -> None:
    cluster = Cluster(4, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 50, task="w" if n < 2 else "v") for n in range(4)))
    found = cluster.lift()
    assert found["p0"] == found["p1"] != found["p2"] == found["p3"]
    assert len(cluster.cycles()) == 4


def test_a_task_that_takes_several_nodes_is_not_led_and_starts() -> None:
    cluster = Cluster(4, *(host(f"m{n}", 1) for n in range(4)))
    cluster.put(*(member(f"p{n}", 80) for n in range(4)))
    assert cluster.lift() == {f"p{n}": "" for n in range(4)}
    assert all(names.HOSTNAME_LABEL not in str(raw["spec"]) for raw in cluster.stored.values())
    assert {*cluster.nominated().values()} == {"m0", "m1", "m2", "m3"}
    assert cluster.cycles() == cluster.nominated()
    assert cluster.denied == Counter()


def in_parts(*others: NodeBuilder) -> Cluster:
    """By sums the first node has room for one pod of 80, by cards for none."""
    cluster = Cluster(2, host("m0"), *others)
    cluster.put(taken("x", "m0", 0, 40), taken("y", "m0", 1, 40))
    return cluster


def test_members_of_a_task_that_takes_several_nodes_go_each_where_its_room_is() -> None:
    """Without a word about it the scheduler would send one of them to the first node again and again."""
    cluster = in_parts(host("m1", 1), host("m2", 1))
    cluster.put(member("p0", 80), member("p1", 80))
    assert cluster.lift() == {"p0": "", "p1": ""}
    assert {*cluster.nominated().values()} == {"m1", "m2"}
    assert {*cluster.cycles(1).items()} >= {*cluster.nominated().items()}
    assert cluster.denied == Counter()


def test_pods_of_unlike_sizes_go_each_where_its_room_is() -> None:
    """By sums the little one could go to either node, and would take from the others what they need."""
    cluster = Cluster(3, host("m0", 1), host("m1", 2))
    cluster.put(taken("x", "m1", 0, 60))
    cluster.put(member("p0", 30), member("p1", 95), member("p2", 80))
    assert [*cluster.lift()] == ["p0", "p1", "p2"]
    assert {*cluster.cycles(1).items()} >= {*cluster.nominated().items()}
    assert len(cluster.nominated()) == 3
    assert cluster.denied == Counter()


def test_who_is_nominated_may_go_elsewhere_when_the_node_does_not_take_it() -> None:
    cluster = Cluster(2, host("m1", 1), host("m2", 1), host("m3", 1))
    cluster.put(member("p0", 80), member("p1", 80))
    cluster.lift()
    gone = cluster.nominated()["p0"]
    cluster.nodes = tuple(node for node in cluster.nodes if node.view().name != gone)
    cluster.ledger.drop_node(gone)
    bound = cluster.cycles(1)
    assert {*bound.values()} == {"m1", "m2", "m3"} - {gone}
    assert cluster.denied == Counter()


def test_a_scheduler_that_looks_at_no_nomination_may_change_the_places_of_a_task() -> None:
    """Whoever of the task comes first may have the place of another one, so nobody waits for his own."""
    cluster = Cluster(4, *(host(f"m{n}", 1) for n in range(4)))
    cluster.put(*(member(f"p{n}", 80) for n in range(4)))
    cluster.lift()
    cluster.nodes = cluster.nodes[::-1]
    bound = cluster.cycles(1, nominations=False)
    assert len(bound) == 4
    assert bound != cluster.nominated()
    assert cluster.denied == Counter()


def test_where_somebody_has_to_be_displaced_nobody_of_the_gang_is_nominated() -> None:
    """Of a gang with nominations Volcano's scheduler has no pod displace others whose own node has room."""
    hosts = [host(name, 1).allocatable("cpu", 8).allocatable("pods", 10) for name in ("m0", "m1")]
    members = [member(f"p{n}", 80).limit("cpu", 2).put("spec", "priority", value=6) for n in range(2)]
    cluster = Cluster(2, *hosts)
    cluster.put(a_pod("cpu").request("cpu", 7).put("spec", "priority", value=5).bound_to("m0"), *members)
    assert cluster.lift() == {"p0": "", "p1": ""}
    assert cluster.nominated() == {}


def test_nobody_else_gets_the_place_of_a_task() -> None:
    cluster = Cluster(2, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 80) for n in range(2)))
    cluster.lift()
    cluster.put(a_pod("forced").mgpu(core=30, memory=1024).in_queue("q"))
    answer = cluster.binder.decide(pods.project(cluster.stored["forced"]), "m0")
    assert isinstance(answer, Refusal)
    assert "booked for a pod" in answer.message


def test_room_is_counted_for_those_who_are_not_led_too() -> None:
    cluster = Cluster(2, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 80) for n in range(2)))
    assert cluster.lift() == {"p0": "", "p1": ""}
    cluster.put(a_pod("alone").mgpu(core=30, memory=1024).in_queue("q").gated())
    assert cluster.lift() == {}
    assert "alone" in cluster.held


def test_a_member_that_is_made_anew_follows_those_of_its_task_that_have_no_node_yet() -> None:
    """Led elsewhere, it would be refused by their node and they by its: none would ever start."""
    cluster = Cluster(2, host("m0"), host("m1"))
    full = [taken("x", "m0", 0, 40), taken("y", "m0", 1, 40)]
    cluster.put(*full, member("p0", 80), member("p1", 80))
    assert cluster.lift() == {"p0": "m1", "p1": "m1"}
    del cluster.stored["p1"]
    cluster.ledger.drop_pod("uid-ml-p1")
    # With one of these gone binpack prefers the other node.
    del cluster.stored["x"]
    cluster.ledger.drop_pod("uid-ml-x")
    cluster.put(member("p2", 80))
    assert cluster.lift() == {"p2": "m1"}
    assert {*cluster.cycles().items()} >= {("p0", "m1"), ("p2", "m1")}
    assert cluster.denied == Counter()


def test_a_member_above_the_minimum_waits_until_those_before_it_have_their_node() -> None:
    cluster = Cluster(2, host("m0"), host("m1"))
    cluster.put(*(member(f"p{n}", 80) for n in range(3)))
    assert cluster.lift() == {"p0": "m0", "p1": "m0"}
    assert "node m0 has none for it" in cluster.held["p2"].why.message
    cluster.cycles(1)
    assert cluster.lift() == {"p2": "m1"}
    assert len(cluster.cycles()) == 3


def test_a_member_above_the_minimum_is_not_held_for_those_of_another_task() -> None:
    """Both ask for the same, but nobody of its own task is on the way."""
    cluster = Cluster(2, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 50) for n in range(3)), member("p3", 50, task="v"))
    lifted = cluster.lift()
    assert (lifted["p0"], lifted["p1"], lifted["p3"]) == ("m0", "m0", "m1")
    assert "node m0 has none for it" in cluster.held["p2"].why.message
    assert {*cluster.cycles()} == {"p0", "p1", "p3"}


def test_nobody_is_led_beside_members_that_are_not() -> None:
    cluster = Cluster(3, host("m0", 1), host("m1", 1), host("m2", 1))
    cluster.put(*(member(f"p{n}", 80) for n in range(3)))
    assert cluster.lift() == dict.fromkeys(("p0", "p1", "p2"), "")
    del cluster.stored["p2"]
    cluster.ledger.drop_pod("uid-ml-p2")
    cluster.put(member("p3", 80))
    assert cluster.lift() == {"p3": ""}
    assert len(cluster.cycles()) == 3


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano"])
def test_pods_that_start_alone_and_other_schedulers_are_led_each_to_its_node(scheduler: str) -> None:
    minimum = 2 if scheduler == "default-scheduler" else 1
    cluster = Cluster(minimum, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 80).scheduler(scheduler) for n in range(2)))
    assert cluster.lift() == {"p0": "m0", "p1": "m1"}


def looked_up(extra: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many entries of members are gone through in a pass that lifts `extra` members beside 20 that are bound."""
    cluster = Cluster(2, host("m0", 20))
    cluster.put(*(member(f"b{n}", 10).bound_to("m0").annotation(RECORD, str(n)) for n in range(20)))
    cluster.put(*(member(f"p{n}", 10 + n, task="v") for n in range(extra)))
    gone_through = 0

    def counted(ledger: Ledger, group: str) -> list[Entry]:
        nonlocal gone_through
        found = [entry for uid in ledger.members_of(group) if (entry := ledger.entry(uid)) is not None]
        gone_through += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "entries_of", counted)
        assert len(cluster.lift()) == extra
    return gone_through


def test_nobody_goes_through_all_members_for_each_of_those_above_the_minimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = (looked_up(extra, monkeypatch) for extra in (2, 20))
    assert many <= few + 2 * 18, "the work of a pass grows with the square of the members"


def on_the_way(ledger: Ledger) -> dict[str, TaskNodes]:
    """What `nodes_of_tasks` says, found by looking at each member."""
    led: dict[str, set[str]] = {}
    for entry in ledger.entries_of("ml/g"):
        if entry.holds_share:
            led.setdefault(entry.pod.task, set()).update(led_to(entry.pod) or ("",))
    return {task: TaskNodes(tuple(sorted(nodes - {""})), "" not in nodes) for task, nodes in led.items()}


def kept(ledger: Ledger) -> dict[str, TaskNodes]:
    found = nodes_of_tasks(ledger, member("p0", 1).view())
    return {task: replace(nodes, within=tuple(sorted(nodes.within))) for task, nodes in found.items()}


@given(st.data())
def test_gangs_that_are_led_start_and_no_bind_of_theirs_is_refused(data: st.DataObject) -> None:
    hosts = [host(f"m{n}", data.draw(st.integers(1, 3))) for n in range(data.draw(st.integers(1, 3)))]
    size = data.draw(st.integers(2, 5))
    cluster = Cluster(data.draw(st.integers(2, size)), *hosts)
    cluster.put(
        *(
            taken(f"x{n}", f"m{n}", 0, data.draw(st.sampled_from([10, 40, 70])))
            for n in range(len(hosts))
            if data.draw(st.booleans())
        )
    )
    for number in range(size):
        core = data.draw(st.sampled_from([30, 50, 60, 80]))
        cluster.put(member(f"p{number}", core, task=data.draw(st.sampled_from("wv"))))
    for _ in range(size):
        lifts = cluster.lift()
        assert kept(cluster.ledger) == on_the_way(cluster.ledger)
        for task in "wv":
            led = [
                raw["metadata"]["annotations"].get(names.NODE_ANNOTATION, "")
                for raw in cluster.stored.values()
                if not raw["spec"].get("nodeName")
                and not raw["spec"].get("schedulingGates")
                and raw["metadata"]["annotations"].get(names.TASK_SPEC_ANNOTATION) == task
            ]
            assert len({*led}) <= 1, "all of a task to one node, or none to any"
        bound = cluster.cycles(2)
        assert {*lifts} <= bound.keys()
        assert kept(cluster.ledger) == {}
    assert cluster.denied == Counter()
