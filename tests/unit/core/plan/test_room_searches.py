"""What a search for room for mGPU pods costs: nodes and pods alike are asked about once, and each search is a step."""

import gc
from collections.abc import Collection, Container, Mapping
from typing import Any

import pytest

from core.mgpu import filter as node_filter
from core.mgpu.allocation import any_placement, feasible
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.filter import fits
from core.mgpu.kept import ABOUT_MANY, FEW_CONTAINERS
from core.objects.node_rules import NodeRules
from core.plan import effort, share_nodes, share_search
from core.plan.admitted import AdmittedNodes
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.room import ShareRoom
from core.refusal import Refusal
from core.steps import Steps
from tests.builders import a_group, a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.unit.core.plan.shares import books, bound, of_containers, run, share
from tests.unit.core.plan.stepping import stepped


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


def test_what_a_gang_was_told_about_nodes_is_not_asked_again_when_it_is_begun_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each member asks for other shares, on as many nodes in other states, which are as they were when all was given back."""
    size = 12
    ledger = books(*(a_node(f"m{n:02}").mgpu(2, memory=16384) for n in range(size)))
    for number in range(size):
        ledger.put_pod(bound(f"b{number:02}", 0, 30 + number, node=f"m{number:02}").view())
    ledger.put_group(a_group("g").min_member(size).in_queue("default").view())
    for number in range(size):
        ledger.put_pod(share(f"p{number:02}", 60 + number).in_group("g").view())
    monkeypatch.setattr(effort, "OF_A_PASS", 4 * size)
    asked, cut, tried = Asked(monkeypatch), effort.Cuts._cut, 0

    def counted(*of: Any) -> None:
        nonlocal tried
        tried += 1
        cut(*of)

    monkeypatch.setattr(effort.Cuts, "_cut", counted)
    planner, lifted = Planner(ledger), 0
    while queues := ledger.wakeups.take_queues():
        lifted += sum(isinstance(decision, Lift) for decision in planner.run(queues))
    assert lifted == size
    assert tried
    assert asked.times <= size * size


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
    # Each node, and the one expression for all of them.
    assert (free.nodes.evaluations, bound_to_zone.nodes.evaluations) == (0, 60 + 1)


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


def test_pods_of_very_many_containers_that_wait_cost_no_search_when_a_share_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have more of them than a node has places."""
    ledger = books(*(a_node(f"m{n}").mgpu(2, memory=16384) for n in range(5)))
    for number in range(5):
        ledger.put_pod(bound(f"b{number}", 0, 50 + number, node=f"m{number}").view())
    searches = 0

    def searched(*question: Any, **more: Any) -> bool | None:
        nonlocal searches
        searches += 1
        return feasible(*question, **more)

    monkeypatch.setattr(node_filter, "feasible", searched)
    planner = Planner(ledger)
    assert set(run(ledger, planner, *(of_containers(f"p{n}", 300) for n in range(3))).values()) == {False}
    ledger.drop_pod("uid-ml-b3")
    assert set(run(ledger, planner).values()) == {False}
    assert searches == 0


def asks_of(*pods: str) -> int:
    """How many asks of these pods are in memory, judged by the name of the first container."""
    firsts = {f"{name}-0" for name in pods}
    return sum(ask.parts[0].container in firsts for ask in gc.get_objects() if isinstance(ask, MgpuAsk))


@pytest.mark.parametrize(
    ("containers", "kept"),
    [(33, 0), (FEW_CONTAINERS + 1, ABOUT_MANY)],
    ids=["more than a node has places", "many"],
)
def test_what_is_asked_by_pods_that_are_gone_is_let_go(containers: int, kept: int) -> None:
    """But for a few answers about who could have had room; and the one that was asked about last."""
    ledger = books(a_node("m1").mgpu(2, memory=16384))
    for card in (0, 1):
        ledger.put_pod(bound(f"b{card}", card, 95).view())
    planner, pods = Planner(ledger), [f"gone-{number}" for number in range(ABOUT_MANY + 10)]
    for name in pods:
        assert run(ledger, planner, of_containers(name, containers)) == {name: False}
        ledger.drop_pod(f"uid-ml-{name}")
    run(ledger, planner)
    assert asks_of(*pods) <= kept + 1
