"""mGPU pods led to nodes: what was promised is kept in whatever order they are bound, and nobody waits who would fit."""

from collections.abc import Iterator
from itertools import combinations, product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from core import names
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.destination import have_room, led_to
from core.mgpu.node import Card, canonical, model_of
from core.mgpu.occupancy import occupancy
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import MgpuSettings, Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.fakes.node_rules import admits
from tests.unit.core.binding.led_crowd import ANY, TENS, Crowd, Sizes

MEMORY = 10_000
CPU = 4


@st.composite
def a_host(draw: st.DrawFn, name: str) -> NodeBuilder:
    """A node of one or two cards, some without a label of their own."""
    node = (
        a_node(name).mgpu(draw(st.integers(1, 2)), memory=MEMORY).label("zone", draw(st.sampled_from("ab")))
    )
    node = node.allocatable("cpu", draw(st.integers(1, CPU)))
    return node.label(names.HOSTNAME_LABEL, draw(st.sampled_from([name, name, name, "same"])))


@st.composite
def a_share(draw: st.DrawFn, name: str) -> PodBuilder:
    core = draw(st.sampled_from([20, 30, 40, 50, 60, 70, 100]))
    pod = a_pod(name).mgpu(core=core, memory=None if core == 100 else draw(st.sampled_from([1000, 5000])))
    pod = pod.limit("cpu", draw(st.integers(0, 1))).gated()
    return draw(st.sampled_from([pod, pod, pod.selects("zone", "a"), pod.needs_node("zone", "b")]))


@st.composite
def a_cluster(draw: st.DrawFn) -> Ledger:
    mgpu = MgpuSettings(policy=draw(st.sampled_from(["binpack", "spread"])))
    ledger = Ledger(Settings(mgpu=mgpu))
    ledger.put_queue(a_queue("default").view())
    for number in range(draw(st.integers(1, 4))):
        ledger.put_node(draw(a_host(f"m{number}")).view())
    return ledger


def lift(ledger: Ledger, planner: Planner) -> list[Lift]:
    return [decision for decision in planner.decide("default") if isinstance(decision, Lift)]


def lifted_and_stored(lifts: list[Lift]) -> Iterator[Pod]:
    for each in lifts:
        yield each.lifted


def never_too_much(ledger: Ledger) -> None:
    """What is bound and what is booked fits each node at once, by the rules for one card alone."""
    for name, node in ledger.nodes.items():
        model = model_of(node)
        found = occupancy(model, ledger.pods_on(name), ledger.settings.mgpu)
        assert found.irregularities == ()
        promised = [ask for entry in ledger.led_to(name).values() if (ask := entry.demand.mgpu)]
        assert have_room(promised, model, found.state, ledger.settings.mgpu)
        pods = [*ledger.pods_on(name), *(entry.pod for entry in ledger.led_to(name).values())]
        assert sum(pod.requests.get("cpu", 0) for pod in pods) <= node.allocatable["cpu"]


def fits_by_brute_force(ledger: Ledger, pod: Pod) -> bool:
    """Whether a node has room, of those where nobody is on the way."""
    ask = mgpu_ask(pod)
    assert isinstance(ask, MgpuAsk)
    for name, node in ledger.nodes.items():
        taken = sum(each.requests.get("cpu", 0) for each in ledger.pods_on(name))
        if ledger.led_to(name) or taken + pod.requests.get("cpu", 0) > node.allocatable["cpu"]:
            continue
        state = canonical(occupancy(model_of(node), ledger.pods_on(name), ledger.settings.mgpu).state)
        if admits(pod, node) and any_way(ask, list(state.cards)):
            return True
    return False


def any_way(ask: MgpuAsk, cards: list[Card]) -> bool:
    for choice in product(*(combinations(range(len(cards)), part.cards) for part in ask.parts)):
        left = [list(card) for card in cards]
        for part, numbers in zip(ask.parts, choice, strict=True):
            for number in numbers:
                left[number][0] -= part.core
                left[number][1] -= MEMORY if part.memory is None else part.memory
                left[number][2] += 1
        if all(core >= 0 and memory >= 0 for core, memory, _ in left):
            return True
    return False


@given(a_cluster(), st.data())
def test_every_bind_to_a_node_that_a_pod_was_led_to_is_granted_and_nobody_waits_who_fits(
    ledger: Ledger, data: st.DataObject
) -> None:
    """Pods come in waves; those that were lifted are bound in any order to any of their nodes, some end."""
    planner = Planner(ledger)
    binder = Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)
    under_way: dict[str, Pod] = {}
    running: dict[str, Pod] = {}
    for wave in range(data.draw(st.integers(1, 4))):
        for number in range(data.draw(st.integers(0, 5))):
            ledger.put_pod(data.draw(a_share(f"p{wave}-{number}")).view())
        for each in lift(ledger, planner):
            nodes = led_to(each.lifted)
            assert nodes
            assert all(admits(each.pod, ledger.nodes[name]) for name in nodes)
            under_way[each.pod.uid] = each.lifted
            ledger.put_pod(each.lifted)
            never_too_much(ledger)
            for name in nodes:
                assert not isinstance(binder.decide(each.lifted, name), Refusal)
        for entry in ledger.waiting("default"):
            assert not fits_by_brute_force(ledger, entry.pod), entry.pod.name
        for uid in data.draw(st.permutations(sorted(under_way)).flatmap(parts_of)):
            pod = under_way.pop(uid)
            name = data.draw(st.sampled_from(led_to(pod)))
            answer = binder.decide(pod, name)
            assert not isinstance(answer, Refusal), answer
            running[uid] = binder.book(pod, name, answer)
            ledger.put_pod(running[uid])
            never_too_much(ledger)
        if data.draw(st.booleans()):
            # Another leader takes over: it knows what is stored, and no more.
            planner = Planner(ledger)
        for uid in data.draw(st.permutations(sorted(running)).flatmap(parts_of)):
            del running[uid]
            ledger.drop_pod(uid)


def parts_of(items: list[str]) -> st.SearchStrategy[list[str]]:
    return st.integers(0, len(items)).map(lambda count: items[:count])


@given(a_cluster(), st.data())
def test_whoever_was_not_led_takes_no_room_that_is_booked(ledger: Ledger, data: st.DataObject) -> None:
    """Pods that never passed the gate are bound wherever they like: those that were led find their room all the same."""
    planner = Planner(ledger)
    binder = Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)
    for number in range(data.draw(st.integers(1, 5))):
        ledger.put_pod(data.draw(a_share(f"p{number}")).view())
    lifts = lift(ledger, planner)
    for pod in lifted_and_stored(lifts):
        ledger.put_pod(pod)
    for number in range(data.draw(st.integers(0, 6))):
        stranger = data.draw(
            a_share(f"s{number}").map(lambda pod: pod.put("spec", "schedulingGates", value=[]))
        )
        name = data.draw(st.sampled_from(sorted(ledger.nodes)))
        ledger.put_pod(stranger.view())
        answer = binder.decide(stranger.view(), name)
        if not isinstance(answer, Refusal):
            binder.book(stranger.view(), name, answer)
    for pod in data.draw(st.permutations(list(lifted_and_stored(lifts)))):
        name = data.draw(st.sampled_from(led_to(pod)))
        answer = binder.decide(pod, name)
        assert not isinstance(answer, Refusal), answer
        binder.book(pod, name, answer)
    for name, node in ledger.nodes.items():
        assert not occupancy(model_of(node), ledger.pods_on(name), ledger.settings.mgpu).irregularities


@given(st.sampled_from([1, 2, 4, 16]), st.sampled_from([TENS, ANY]), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_on_a_crowded_node_nobody_who_was_led_there_is_refused_in_whatever_order_they_are_bound(
    cards: int, sizes: Sizes, random: Random
) -> None:
    crowd = Crowd(cards, sizes, random)
    crowd.come(8 * cards)
    assert crowd.bind(len(crowd.under_way)) == []
