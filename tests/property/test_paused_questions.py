"""Questions about room that are paused everywhere, given up anywhere, and met by changes of the ledger at every pause."""

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.filter import fits
from core.names import MGPU_RESOURCES
from core.objects import Pod
from core.plan.admitted import AdmittedNodes
from core.plan.room import ShareRoom
from core.plan.stock import FreeCards
from core.queues import occupants
from core.queues.entry import ShareKey
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Steps, finish
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder
from tests.fakes.node_rules import admits

T = TypeVar("T")
Change = Callable[[Ledger], None] | None
"""None gives the question up, to be asked anew."""

NAMES = ("m1", "m2", "m3", "m4")


@pytest.fixture(autouse=True, scope="module")
def _nodes_are_forgotten_as_they_go() -> Iterator[None]:
    """As if a thousand others had gone since."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occupants, "_GONE_KEPT", 0)
        yield


@st.composite
def a_node_change(draw: st.DrawFn) -> Change:
    name = draw(st.sampled_from(NAMES))
    node: NodeBuilder = a_node(name).mgpu(draw(st.integers(1, 2)), memory=8192)
    node = node.label("zone", draw(st.sampled_from("abc"))).card("AB"[draw(st.integers(0, 1))], 2)
    node = draw(st.sampled_from([node, node, node, node.cordoned(), node.not_ready()]))
    put: Change = lambda ledger: ledger.put_node(node.view())  # noqa: E731
    drop: Change = lambda ledger: ledger.drop_node(name)  # noqa: E731
    return draw(st.sampled_from([put, put, put, drop]))


@st.composite
def a_pod_change(draw: st.DrawFn) -> Change:
    """A pod is lifted, bound or goes; of mGPU shares, of which it asks for the same all its life, or of cards."""
    name = draw(st.sampled_from("pqrstu"))
    if name in "pqrs":
        core = draw(st.sampled_from([40, 60, 100]))
        pod = a_pod(f"{name}{core}").mgpu(core=core, memory=1000)
        pod = draw(st.sampled_from([pod, pod.selects("zone", "a"), pod.needs_node("zone", "a", "b")]))
        pod = draw(st.sampled_from([pod, pod.led_to("m1"), pod.led_to("m2")]))
    else:
        pod = a_pod(name).gpu(draw(st.integers(1, 2))).card(draw(st.sampled_from("AB"))).assigned({"A": 1})
    bound = pod.bound_to(draw(st.sampled_from(NAMES)))
    now = draw(st.sampled_from([pod, pod, bound, bound.phase("Succeeded")])).view()
    put: Change = lambda ledger: ledger.put_pod(now)  # noqa: E731
    drop: Change = lambda ledger: ledger.drop_pod(now.uid)  # noqa: E731
    return draw(st.sampled_from([put, put, put, drop]))


CHANGES = st.lists(st.one_of(a_node_change(), a_pod_change()), max_size=12)
DURING = st.lists(st.one_of(st.none(), a_node_change(), a_pod_change()), max_size=30)
CARDS = a_pod("asking").gpu(1)
SHARES = a_pod("asking").mgpu(core=60, memory=2048)
PODS = [
    view
    for kind in (CARDS, SHARES)
    for view in (
        kind.view(),
        kind.selects("zone", "a").view(),
        kind.needs_node("zone", "a").needs_node("zone", "c").view(),
        kind.needs_node("zone", "b").selects("zone", "a").view(),
    )
]


def answer(
    ledger: Ledger, question: Callable[[], Steps[T]], during: Iterator[Change], check: Callable[[], None]
) -> T:
    """The answer to a question before which, and at each pause of which, the next change happens."""
    happens(ledger, during)
    steps = question()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
        check()
        if not happens(ledger, during):
            steps.close()
            steps = question()


def happens(ledger: Ledger, during: Iterator[Change]) -> bool:
    """The next change, if any is left; whether the question goes on."""
    change = next(during, lambda _: None)
    if change is not None:
        change(ledger)
    return change is not None


def started(before: list[Change]) -> Ledger:
    ledger = Ledger(Settings())
    for change in before:
        if change is not None:
            change(ledger)
    return ledger


def paused_everywhere(nodes: AdmittedNodes) -> AdmittedNodes:
    nodes._pace.step = nodes._looked_at.step = 1
    return nodes


def nothing() -> None:
    """What is found out leaves no tables that could be wrong meanwhile."""


@given(CHANGES, DURING)
def test_admitted_nodes_are_those_of_the_moment(before: list[Change], during: list[Change]) -> None:
    ledger = started(before)
    nodes, left = paused_everywhere(AdmittedNodes(ledger)), iter(during)
    for pod in (*PODS, *PODS):
        found = answer(ledger, lambda: nodes.admitted(pod.node_rules, NAMES), left, nothing)  # noqa: B023
        assert [name for name in ledger.nodes if name in found] == [
            name for name, node in ledger.nodes.items() if admits(pod, node)
        ]


@given(CHANGES, DURING)
def test_stock_is_that_of_the_moment(before: list[Change], during: list[Change]) -> None:
    ledger = started(before)
    nodes = paused_everywhere(AdmittedNodes(ledger))
    stock, left = FreeCards(ledger, nodes), iter(during)
    stock._counted.step = 1
    for pod in (*PODS, *PODS):
        rules = pod.node_rules
        for card in "AB":
            for milli in (1000, 2000, 3000):
                asked = answer(ledger, lambda: stock.available(rules, card, milli), left, nothing)  # noqa: B023
                fresh = FreeCards(ledger, AdmittedNodes(ledger))
                assert (
                    asked
                    is finish(fresh.available(rules, card, milli))
                    is has_stock(ledger, pod, card, milli)
                )
                assert finish(stock.admits_any(rules, card)) is bool(carriers(ledger, pod, card))


def carriers(ledger: Ledger, pod: Pod, card: str) -> list[str]:
    return [name for name in ledger.inventory.nodes_with(card) if admits(pod, ledger.nodes[name])]


def has_stock(ledger: Ledger, pod: Pod, card: str, milli: int) -> bool:
    free = []
    for name in carriers(ledger, pod, card):
        node = ledger.nodes[name]
        if node.ready and not node.unschedulable:
            used = sum(on.requests.get("nvidia.com/gpu", 0) for on in ledger.pods_on(name))
            free.append(max(0, node.allocatable["nvidia.com/gpu"] - used))
    return max(free, default=-1) >= milli and sum(free) - ledger.reserved(card) >= milli


def in_agreement(room: ShareRoom) -> None:
    """The tables of the room say the same, and nothing is given away twice."""
    nodes = room._nodes
    rooms = nodes._rooms
    listed = {name: kind for kind in nodes.kinds for name in kind.nodes}
    assert listed.keys() == set(nodes.open) == {name for name, each in rooms.items() if each.open}
    assert all(kind.nodes for kind in nodes.kinds)
    for name, kind in listed.items():
        assert (kind.model, kind.state) == (rooms[name].model, rooms[name].state)
    assert {(key, name) for key, led in nodes.expected.items() for name in led} == {
        (key, name) for name, each in rooms.items() for key in each.expected
    }
    assert all(len(led) == 1 or led_to(key) for key, led in nodes.expected.items())
    for each in rooms.values():
        if each.open:
            taken = sum(card.instances for card in each.state.cards) - sum(
                card.instances for card in each.base.cards
            )
            assert taken == len(each.expected)
    waiting = {(key, name) for name, evicted in room._evicted.items() for key in evicted}
    assert all(name not in nodes.expected.get(key, ()) for key, name in waiting)
    unled = {key for key in nodes.expected.keys() | {key for key, _ in waiting} if not led_to(key)}
    assert not any(key in room._homeless for key in unled)
    assert room._stranded.keys().isdisjoint(nodes.expected)


def led_to(key: ShareKey) -> list[str]:
    """The nodes on which room is booked for a lifted pod."""
    return [key[1]] if key[1] else []


def bound_past_the_cards() -> list[Change]:
    """A node with one card on which two pods are that do not fit it together: the second one is on no card."""
    shares = {"p40": 40, "q100": 100}
    pods = [a_pod(name).mgpu(core=core, memory=1000).bound_to("m1").view() for name, core in shares.items()]
    put_node: Change = lambda ledger: ledger.put_node(a_node("m1").mgpu(1, memory=8192).view())  # noqa: E731
    return [put_node, *(lambda ledger, pod=pod: ledger.put_pod(pod) for pod in pods)]


@given(CHANGES, DURING)
@example(before=bound_past_the_cards(), during=[])
def test_room_for_shares_is_that_of_the_moment(before: list[Change], during: list[Change]) -> None:
    ledger = started(before)
    room, left = ShareRoom(ledger, paused_everywhere(AdmittedNodes(ledger))), iter(during)
    for pod in (*PODS[4:], *PODS[4:]):
        ask = mgpu_ask(pod)
        assert isinstance(ask, MgpuAsk)
        question = lambda: room.shortfall(pod, ask, "q")  # noqa: B023, E731
        short = answer(ledger, question, left, lambda: in_agreement(room))
        in_agreement(room)
        assert (short is None) is has_room(ledger, room, pod, ask)
        for key, entry in ledger.reserved_shares.items():
            wanted = entry.demand.mgpu
            assert wanted is not None
            missing = set(led_to(key)) - room._nodes.expected.get(key, {}).keys()
            if not led_to(key):
                missing = set() if key in room._nodes.expected else {*NAMES}
            assert not has_room(ledger, room, entry.pod, wanted, missing)


def has_room(ledger: Ledger, room: ShareRoom, pod: Pod, ask: MgpuAsk, names: Collection[str] = NAMES) -> bool:
    return any(
        fits(ask, kind.model, kind.state, ledger.settings) is None
        for kind in room._nodes.kinds
        for name in kind.nodes
        if name in names and admits(pod, ledger.nodes[name]) and enough_by_sums(ledger, room, pod, name)
    )


def enough_by_sums(ledger: Ledger, room: ShareRoom, pod: Pod, name: str) -> bool:
    """Whether a node has enough as schedulers count: who is on no card, for others were there before it, counts all the same."""
    counted = [*ledger.pods_on(name), *room._nodes.pods_expected(name), pod]
    allocatable = ledger.nodes[name].allocatable
    return all(
        sum(each.requests.get(key, 0) for each in counted) <= allocatable[key] for key in MGPU_RESOURCES
    )
