"""mGPU pods are lifted only while some node has room for them, everything that is under way counted."""

from collections.abc import Collection, Container, Mapping
from typing import Any

import pytest

from core import reasons
from core.mgpu.allocation import any_placement
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.filter import fits
from core.objects.node_rules import NodeRules
from core.plan import share_nodes, share_search
from core.plan.admitted import AdmittedNodes
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.room import ShareRoom
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.steps import Steps
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.core.plan.stepping import stepped

NODE = a_node("m1").mgpu(2, memory=16384)


def share(name: str, core: int = 60, *, second: int = 0) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=2048).gated().created(f"2024-01-01T00:00:{second:02}Z")


def books(*nodes: NodeBuilder) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("default").view())
    for node in nodes:
        ledger.put_node(node.view())
    return ledger


def run(ledger: Ledger, planner: Planner, *pods: PodBuilder) -> dict[str, bool]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return {decision.pod.name: isinstance(decision, Lift) for decision in planner.decide("default")}


def bound(name: str, card: int, core: int = 60, *, node: str = "m1") -> PodBuilder:
    pod = a_pod(name).mgpu(core=core, memory=2048).bound_to(node)
    return pod.annotation("vke.volcengine.com/gpu-index-container-main", str(card))


def test_only_as_many_are_lifted_as_cards_take() -> None:
    ledger = books(NODE)
    pods = [share(f"p{i}", second=i) for i in range(4)]
    assert run(ledger, Planner(ledger), *pods) == {"p0": True, "p1": True, "p2": False, "p3": False}


def test_the_sum_of_free_shares_is_not_room() -> None:
    ledger = books(NODE)
    ledger.put_pod(bound("a", 0).view())
    ledger.put_pod(bound("b", 1).view())
    assert run(ledger, Planner(ledger), share("p", 60)) == {"p": False}


def test_room_comes_back_when_a_pod_ends_and_wakes_the_queue() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, bound("a", 0), bound("b", 1), share("p")) == {"p": False}
    ledger.wakeups.take_queues()
    ledger.put_pod(bound("a", 0).phase("Succeeded").view())
    assert set(ledger.wakeups.pending) == {"default"}
    assert run(ledger, planner) == {"p": True}


def test_a_terminating_pod_still_has_its_cards() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, bound("a", 0).terminating(), bound("b", 1), share("p")) == {"p": False}


def test_a_lifted_pod_that_goes_gives_its_tentative_room_back() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, share("a", second=1), share("b", second=2), share("c", second=3)) == {
        "a": True,
        "b": True,
        "c": False,
    }
    ledger.drop_pod("uid-ml-a")
    assert run(ledger, planner) == {"c": True}


def test_a_lifted_pod_counts_on_its_node_once_it_is_bound() -> None:
    ledger = books(NODE, a_node("m2").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a")) == {"a": True}
    ledger.put_pod(bound("a", 0, node="m2").view())
    assert run(ledger, planner, share("b", 100 - 60), share("c", 60, second=1), share("d", 60, second=2)) == {
        "b": True,
        "c": True,
        "d": True,
    }


@pytest.mark.parametrize(
    ("node", "pod", "words"),
    [
        (a_node("cpu"), share("p"), "no node serves"),
        (NODE.cordoned(), share("p"), "no node serves"),
        (NODE.not_ready(), share("p"), "no node serves"),
        (NODE, share("p").selects("zone", "moon"), "no node serves"),
        (a_node("m1").mgpu(2, memory=16384, policy="native-burst-share"), share("p"), "compute policy"),
        (NODE, a_pod("p").mgpu(core=300).gated(), "asks for 3 cards"),
        (NODE, a_pod("p").mgpu(core=10, memory=20000).gated(), "no room for container"),
    ],
)
def test_the_reason_is_that_of_the_node_that_comes_closest(
    node: NodeBuilder, pod: PodBuilder, words: str
) -> None:
    ledger = books(node)
    ledger.put_pod(pod.view())
    (decision,) = Planner(ledger).decide("default")
    assert isinstance(decision, Hold)
    assert decision.why.code == reasons.NO_FREE_CARD
    assert words in decision.why.message


def test_it_is_told_for_whom_the_room_is_booked_at_most_three_by_name() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, share("a", 25)) == {"a": True}
    assert run(ledger, planner, *(share(f"b{n}", 5, second=n) for n in range(3))) == dict.fromkeys(
        ("b0", "b1", "b2"), True
    )
    late = a_pod("late").mgpu(core=200).gated().created("2024-01-01T00:00:09Z").view()
    ledger.put_pod(late)
    (hold,) = planner.decide("default")
    assert isinstance(hold, Hold)
    end = "; room there is booked for ml/a, ml/b0, ml/b1 and 1 more, on the way to a node"
    assert hold.why.message.endswith(end)
    assert "node m1" in hold.why.message
    ledger.put_pod(bound("a", 0, 25, node="m1").view())
    (hold,) = planner.decide("default")
    assert isinstance(hold, Hold)
    assert hold.why.message.endswith("; room there is booked for ml/b0, ml/b1, ml/b2, on the way to a node")


def test_members_of_a_gang_are_not_told_that_room_is_booked_for_each_other() -> None:
    ledger = books(NODE)
    ledger.put_group(a_group("g").min_member(3).view())
    for number in range(3):
        ledger.put_pod(share(f"g{number}", 60).in_group("g").view())
    holds = Planner(ledger).decide("default")
    assert len(holds) == 3
    assert all(isinstance(hold, Hold) and "booked" not in hold.why.message for hold in holds)


def test_the_closest_of_several_nodes_is_told() -> None:
    ledger = books(a_node("cpu"), a_node("full").mgpu(1, memory=16384), a_node("zz"))
    ledger.put_pod(bound("a", 0, 90, node="full").view())
    ledger.put_pod(share("p").view())
    (decision,) = Planner(ledger).decide("default")
    assert isinstance(decision, Hold)
    assert "node full" in decision.why.message


def test_a_new_node_lets_the_pod_in() -> None:
    ledger = books()
    planner = Planner(ledger)
    assert run(ledger, planner, share("p")) == {"p": False}
    ledger.wakeups.take_queues()
    ledger.put_node(NODE.view())
    assert set(ledger.wakeups.pending) == {"default"}
    assert run(ledger, planner) == {"p": True}
    ledger.drop_node("m1")
    assert run(ledger, planner, share("q")) == {"q": False}


def test_share_limits_of_the_queue_come_before_room() -> None:
    ledger = books(NODE)
    ledger.put_queue(a_queue("default").shares(core=100).view())
    ledger.put_pod(share("a", second=1).view())
    ledger.put_pod(share("b", second=2).view())
    first, second = Planner(ledger).decide("default")
    assert isinstance(first, Lift)
    assert isinstance(second, Hold)
    assert second.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA


def test_a_lifted_mgpu_pod_is_narrowed_to_nodes_of_its_kind() -> None:
    ledger = books(NODE)
    ledger.put_pod(share("fresh").view())
    ledger.put_pod(share("termed", 20).needs_node("zone", "a").selects("x", "y").view())
    ledger.put_node(NODE.label("zone", "a").label("x", "y").view())
    patches = {d.pod.name: d.patch for d in Planner(ledger).decide("default") if isinstance(d, Lift)}
    (fresh,) = [op["value"] for op in patches["fresh"] if op["path"] == "/spec/affinity"]
    terms = fresh["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [[e["operator"] for e in term["matchExpressions"]] for term in terms] == [
        ["In", "In"],
        ["In", "DoesNotExist"],
    ]
    added = [op["value"] for op in patches["termed"] if op["path"].endswith("/matchExpressions/-")]
    assert [(e["key"], e["operator"]) for e in added] == [
        ("vke.node.gpu.schedule", "In"),
        ("vke.volcengine.com/mgpu-compute-policy", "NotIn"),
    ]


def test_a_bind_that_was_assumed_and_taken_back_gives_its_room_back() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a")) == {"a": True}
    ledger.put_pod(a_pod("a").mgpu(core=60, memory=2048).view())
    ledger.assume(bound("a", 0).view())
    assert run(ledger, planner, share("b")) == {"b": False}
    ledger.forget("uid-ml-a")
    ledger.drop_pod("uid-ml-a")
    assert run(ledger, planner) == {"b": True}


def test_the_node_of_a_bind_taken_back_is_counted_anew_while_the_pod_still_waits_for_one() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384), a_node("m2").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a", 100 - 1)) == {"a": True}
    ledger.put_pod(a_pod("a").mgpu(core=99, memory=2048).view())
    ledger.assume(bound("a", 0, 99, node="m2").view())
    assert run(ledger, planner, share("b", 99)) == {"b": True}
    ledger.forget("uid-ml-a")
    assert run(ledger, planner, share("c", 99, second=1)) == {"c": False}, "a and b need both nodes"


def test_a_lifted_pod_whose_node_vanishes_is_expected_on_another_one() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a").host_port(80), share("b", second=1)) == {"a": True, "b": False}
    ledger.put_node(a_node("m2").mgpu(1, memory=16384).view())
    ledger.drop_node("m1")
    assert run(ledger, planner) == {"b": False}


class Asked:
    """Counts how often a node, or a kind of nodes, is asked whether a pod fits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0

        def asked(*question: Any) -> Refusal | None:
            self.times += 1
            return fits(*question)

        monkeypatch.setattr(share_search, "fits", asked)


def test_nodes_alike_are_one_question_and_pods_alike_get_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eighty nodes in two states, thirty waiting pods of two sizes: four questions, and a dozen more when a card is freed."""
    nodes = [a_node(f"m{n:02}").mgpu(1, memory=16384) for n in range(80)]
    ledger = books(*nodes)
    for number in range(80):
        ledger.put_pod(bound(f"b{number:02}", 0, 90 + number % 2, node=f"m{number:02}").view())
    pods = [share(f"p{n:02}", 60 + n % 2, second=n) for n in range(30)]
    planner, asked = Planner(ledger), Asked(monkeypatch)
    assert set(run(ledger, planner, *pods).values()) == {False}
    assert asked.times == 4
    assert set(run(ledger, planner).values()) == {False}
    assert asked.times == 4
    ledger.drop_pod("uid-ml-b07")
    assert list(run(ledger, planner).values()).count(True) == 1
    assert asked.times <= 4 + 12


def test_a_cordoned_node_gives_up_the_pods_that_were_expected_there() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384), a_node("m2").mgpu(1, memory=16384))
    planner = Planner(ledger)
    huge = a_pod("huge").mgpu(core=10, memory=20000).gated()
    assert run(ledger, planner, share("a").host_port(80), huge) == {"a": True, "huge": False}
    ledger.put_node(a_node("m1").mgpu(1, memory=16384).cordoned().view())
    assert run(ledger, planner, share("b", second=1)) == {"b": False, "huge": False}, "a needs m2"


class Searches:
    """A gang's worth of lifts of one kind of pod, and what they cost in searches and in evaluations of node rules."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pod: PodBuilder, nodes: int = 60) -> None:
        self.ledger = books(
            *(a_node(f"m{n:02}").mgpu(8, memory=16384).label("zone", "a") for n in range(nodes))
        )
        self.nodes = AdmittedNodes(self.ledger)
        self.room = ShareRoom(self.ledger, self.nodes)
        self.pods = [pod.uid(f"uid-{n}") for n in range(400)]
        self.made = 0
        self.at_once = 0

        def search(*question: Any, cap: int) -> Mapping[str, tuple[int, ...]] | None:
            self.made += 1
            self._in_this_step += 1
            self.at_once = max(self.at_once, self._in_this_step)
            return any_placement(*question, cap=cap)

        monkeypatch.setattr(share_nodes, "any_placement", search)

    def lift(self, pod: PodBuilder) -> None:
        view = pod.view()
        self.ledger.put_pod(view.ungated(view.annotations))

    def ask(self, pod: PodBuilder) -> Refusal | None:
        view = pod.view()
        ask = mgpu_ask(view)
        assert isinstance(ask, MgpuAsk)
        self.paused()
        return stepped(self.room.shortfall(view, ask, "q"), self.paused)

    def run(self) -> None:
        for pod in self.pods:
            assert self.ask(pod) is None
            self.lift(pod)

    def paused(self) -> None:
        self._in_this_step = 0


def test_a_gang_with_node_rules_costs_what_one_without_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    free = Searches(monkeypatch, share("p"))
    free.run()
    bound_to_zone = Searches(monkeypatch, share("p").needs_node("zone", "a", "b").selects("zone", "a"))
    asked = Asked(monkeypatch)
    bound_to_zone.run()
    assert bound_to_zone.made == free.made == 399
    assert asked.times <= 400, "each lift makes one more kind of nodes"
    # The selector, the keys of the term and its one expression.
    assert (free.nodes.evaluations, bound_to_zone.nodes.evaluations) == (0, 3 * 60)


def test_each_search_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader finds many that are lifted; then a node of theirs changes."""
    searches = Searches(monkeypatch, share("p"), nodes=1)
    for pod in searches.pods[:7]:
        searches.lift(pod)
    assert searches.ask(searches.pods[7]) is None
    assert (searches.made, searches.at_once) == (7, 1)
    searches.ledger.put_node(a_node("m00").mgpu(8, memory=16384).label("zone", "b").view())
    assert searches.ask(searches.pods[7]) is None
    assert (searches.made, searches.at_once) == (14, 1)


def test_a_pod_is_not_expected_any_more_on_a_node_that_its_rules_do_not_admit() -> None:
    ledger = books(NODE.label("zone", "a"), a_node("m2").mgpu(1, memory=16384).label("zone", "a"))
    planner = Planner(ledger)
    huge = share("huge", 99).selects("zone", "a")
    assert run(ledger, planner, huge) == {"huge": True}
    assert run(ledger, planner, share("b", 99, second=1).selects("zone", "b")) == {"b": False}
    ledger.put_node(NODE.label("zone", "b").view())
    assert run(ledger, planner) == {"b": True}
    ledger.put_node(a_node("m3").mgpu(1, memory=16384).label("zone", "b").view())
    more = [share(f"c{n}", 99, second=2 + n).selects("zone", "b") for n in range(3)]
    assert list(run(ledger, planner, *more).values()) == [True, True, False], "huge is expected on m2 now"


def test_pods_that_fit_nowhere_are_looked_at_once_for_all_that_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = books(*(a_node(f"m{n}").mgpu(1, memory=16384, policy="native-burst-share") for n in range(3)))
    for number in range(50):
        ledger.put_pod(a_pod(f"lifted{number}").mgpu(core=60, memory=2048).view())
    asked, looked = Asked(monkeypatch), []
    admitted = AdmittedNodes.admitted

    def look(self: AdmittedNodes, rules: NodeRules, names: Collection[str]) -> Steps[Container[str]]:
        looked.append(rules)
        return admitted(self, rules, names)

    monkeypatch.setattr(AdmittedNodes, "admitted", look)
    assert run(ledger, Planner(ledger), share("p")) == {"p": False}
    assert asked.times == len(looked) == 1
