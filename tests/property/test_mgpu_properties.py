"""Placement of shares: the search against brute force, and what must never change an answer."""

from dataclasses import replace
from itertools import combinations, product
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import names
from core.binding.shares import Granted, decide
from core.mgpu import records
from core.mgpu.allocation import Policy, allocate, combination, feasible, node_score
from core.mgpu.ask import NATIVE_BURST_SHARE, CardCountsError, MgpuAsk, Part, mgpu_ask, parse_counts
from core.mgpu.bounds import greatest_loss, least_loss
from core.mgpu.filter import fits, preference
from core.mgpu.node import Card, NodeModel, NodeState, after, idle_card, idle_state
from core.mgpu.occupancy import occupancy
from core.mgpu.rules import judge
from core.objects import pod as pods
from core.objects.draft import Draft
from core.refusal import Refusal
from core.settings import MgpuSettings, Settings
from core.violations import Findings
from tests.builders import a_node, a_pod

Cards = tuple[tuple[int, ...], ...]


def up_to(most: int) -> st.SearchStrategy[int]:
    """1 to `most`, as often large as small, which lists are not."""
    return st.sampled_from(range(most, 0, -1))


@st.composite
def a_part(draw: st.DrawFn, memory: int, cards: int) -> tuple[int, int, int | None]:
    """Mostly small shares, so that most pods fit, and in many ways."""
    count = draw(st.integers(1, cards))
    if draw(st.integers(0, 9)) == 9:
        return count, 100, None
    core = draw(st.sampled_from([5, 10, 15, 20, 25, 50, 100]))
    return count, core, memory * draw(st.sampled_from([1, 1, 2, 2, 3, 4, 10])) // 10


@st.composite
def a_card(draw: st.DrawFn, memory: int) -> Card:
    if draw(st.booleans()):
        return Card(100, memory, 0)
    return Card(
        draw(st.sampled_from([90, 60, 50, 40, 30, 10, 0])),
        memory * draw(st.sampled_from([10, 9, 7, 6, 4, 2, 0])) // 10,
        draw(st.integers(1, 3)),
    )


@st.composite
def a_case(draw: st.DrawFn, cards_max: int = 4, parts_max: int = 4) -> tuple[MgpuAsk, NodeModel, NodeState]:
    """A small node in any state, and a pod that may or may not fit it."""
    memory = draw(st.sampled_from([0, 7, 1000, 1000, 16384]))
    count, containers = draw(up_to(cards_max)), draw(up_to(parts_max))
    cards = [draw(a_card(memory)) for _ in range(count)]
    wishes = [draw(a_part(memory, min(count, 3))) for _ in range(containers)]
    parts = tuple(Part(f"c{number}", *wish) for number, wish in enumerate(wishes))
    model = NodeModel("mgpu", NATIVE_BURST_SHARE, len(cards), memory)
    return MgpuAsk(parts, multi=True, policy=NATIVE_BURST_SHARE), model, NodeState(tuple(cards))


POLICIES = st.sampled_from(["binpack", "spread"])
WEIGHTS = st.sampled_from([0, 20, 50, 99, 100])
CAPS = st.sampled_from([16, 16, 5, 3, 1])
THOUSANDS = 2000
"""Cases of the one comparison on which everything else rests."""


def every_way(ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int) -> list[tuple[Cards, NodeState]]:
    """All placements that the rules for one card allow, container by container, with the state after each."""
    ways = []
    for choice in product(*(combinations(range(model.cards), part.cards) for part in ask.parts)):
        end = list(state.cards)
        for part, numbers in zip(ask.parts, choice, strict=True):
            for number in numbers:
                end[number] = booked(end[number], part, model, cap)
        if all(card.core >= 0 and card.memory >= 0 for card in end):
            ways.append((choice, NodeState(tuple(end))))
    return ways


def booked(card: Card, part: Part, model: NodeModel, cap: int) -> Card:
    """The card with one more container, or a negative one when that is not allowed."""
    if card.core < 0 or card.instances >= cap or (part.full and card != idle_card(model)):
        return Card(-1, -1, cap)
    if part.memory is None:
        return Card(0, 0, 1)
    return Card(card.core - part.core, card.memory - part.memory, card.instances + 1)


def renamings(ask: MgpuAsk, state: NodeState, choice: Cards) -> list[Cards]:
    """The same placement after exchanging two equal cards, or two equal containers."""
    found = []
    for one, other in combinations(range(len(state.cards)), 2):
        if state.cards[one] == state.cards[other]:
            names_ = {one: other, other: one}
            found.append(tuple(tuple(sorted(names_.get(n, n) for n in cards)) for cards in choice))
    for one, other in combinations(range(len(choice)), 2):
        if replace(ask.parts[one], container="") == replace(ask.parts[other], container=""):
            swapped = list(choice)
            swapped[one], swapped[other] = choice[other], choice[one]
            found.append(tuple(swapped))
    return found


@settings(max_examples=max(THOUSANDS, settings().max_examples))
@given(a_case(), POLICIES, WEIGHTS, CAPS)
def test_the_search_equals_brute_force(
    case: tuple[MgpuAsk, NodeModel, NodeState], policy: Policy, weight: int, cap: int
) -> None:
    """The score is the best there is, exactly; among equals the lowest numbers are taken; the filter agrees."""
    ask, model, state = case
    ways = every_way(ask, model, state, cap)
    placement = allocate(ask, model, state, policy=policy, weight=weight, cap=cap)
    assert feasible(ask, model, state, cap=cap) is bool(ways) is (placement is not None)
    if placement is None:
        return
    ends = dict(ways)
    best = max(combination(end, model, policy=policy, weight=weight) for end in ends.values())
    choice = tuple(placement.indexes[part.container] for part in ask.parts)
    assert placement.optimal
    assert placement.value == best == combination(ends[choice], model, policy=policy, weight=weight)
    assert after(state, model, ask, placement.indexes) == ends[choice]
    assert all(choice <= renamed for renamed in renamings(ask, state, choice))


@given(a_case(parts_max=1), POLICIES, WEIGHTS)
def test_a_container_on_one_card_takes_the_lowest_of_all_best_cards(
    case: tuple[MgpuAsk, NodeModel, NodeState], policy: Policy, weight: int
) -> None:
    """Cards that are equally good need not be equal."""
    ask, model, state = case
    if ask.parts[0].cards > 1:
        return
    ways = every_way(ask, model, state, 16)
    placement = allocate(ask, model, state, policy=policy, weight=weight, cap=16)
    if placement is not None:
        best = max(
            ways, key=lambda way: (combination(way[1], model, policy=policy, weight=weight), -way[0][0][0])
        )
        assert placement.indexes["c0"] == best[0][0]


@given(a_case(cards_max=6), POLICIES, WEIGHTS, CAPS, st.randoms(use_true_random=False), st.integers(1, 200))
def test_the_order_of_containers_and_cards_changes_no_score(
    case: tuple[MgpuAsk, NodeModel, NodeState],
    policy: Policy,
    weight: int,
    cap: int,
    random: Random,
    budget: int,
) -> None:
    """Not even when the budget runs out."""
    ask, model, state = case
    parts = tuple(random.sample(ask.parts, len(ask.parts)))
    cards = tuple(random.sample(state.cards, len(state.cards)))
    one, other = (
        allocate(
            MgpuAsk(order, multi=True, policy=ask.policy),
            model,
            state,
            policy=policy,
            weight=weight,
            cap=cap,
            budget=budget,
        )
        for order in (ask.parts, parts)
    )
    assert (one and (one.value, one.optimal)) == (other and (other.value, other.optimal))
    assert feasible(ask, model, state, cap=cap) is feasible(ask, model, NodeState(cards), cap=cap)
    chosen = Settings(mgpu=MgpuSettings(policy=policy, weight_of_core=weight, max_containers_per_card=cap))
    assert preference(ask, model, state, chosen) == preference(ask, model, NodeState(cards), chosen)


@given(a_case(cards_max=6, parts_max=5), POLICIES, WEIGHTS, CAPS, st.integers(1, 5) | st.integers(1, 50))
def test_any_budget_gives_a_legal_placement(
    case: tuple[MgpuAsk, NodeModel, NodeState], policy: Policy, weight: int, cap: int, budget: int
) -> None:
    """Whatever the filter lets pass is placed; no card gives more than it has, no container twice on one card."""
    ask, model, state = case
    placement = allocate(ask, model, state, policy=policy, weight=weight, cap=cap, budget=budget)
    if placement is None:
        assert not feasible(ask, model, state, cap=cap)
        return
    end = list(state.cards)
    for part in sorted(ask.parts, key=lambda part: not part.full):
        assert len(set(placement.indexes[part.container])) == part.cards
        for number in placement.indexes[part.container]:
            end[number] = booked(end[number], part, model, cap)
    assert all(card.core >= 0 and card.memory >= 0 for card in end)
    assert NodeState(tuple(end)) == after(state, model, ask, placement.indexes)
    score = node_score(ask, model, state, placement.indexes, policy=policy, weight=weight)
    assert 0 <= placement.value <= 1
    assert 0 <= score <= 100


AMOUNTS = st.tuples(st.integers(1, 99), st.integers(256, 4000))


@given(st.lists(AMOUNTS, min_size=1, max_size=6), AMOUNTS)
def test_a_pod_that_leaves_gives_back_what_it_took(
    others: list[tuple[int, int]], amounts: tuple[int, int]
) -> None:
    """Binding pods one after the other, then dropping one: the state is as if that one had never been there."""
    node = a_node("n1").mgpu(4, memory=8192).view()
    model = NodeModel("mgpu", "fixed-share", 4, 8192)
    bound: list[pods.Pod] = []
    for number, (core, memory) in enumerate((*others, amounts)):
        waiting = a_pod(f"p{number}").mgpu(core=core, memory=memory)
        answer = decide(waiting.view(), asked(waiting.view()), node, bound, Settings())
        if isinstance(answer, Granted):
            built = waiting.bound_to("n1")
            for key, value in answer.annotations.items():
                built = built.annotation(key, value)
            bound.append(built.view())
            found = occupancy(model, bound, MgpuSettings())
            assert found.irregularities == ()
            assert (
                after(
                    occupancy(model, bound[:-1], MgpuSettings()).state,
                    model,
                    asked(bound[-1]),
                    answer.placement.indexes,
                )
                == found.state
            )
    for gone in bound:
        rest = [pod for pod in bound if pod is not gone]
        ended = [replace(pod, phase="Succeeded") if pod is gone else pod for pod in bound]
        assert occupancy(model, rest, MgpuSettings()) == occupancy(model, ended[::-1], MgpuSettings())
    assert occupancy(model, [], MgpuSettings()).state == idle_state(model)


def asked(pod: pods.Pod) -> MgpuAsk:
    ask = mgpu_ask(pod)
    assert isinstance(ask, MgpuAsk)
    return ask


@given(a_case(), st.sampled_from(["n2", "n3"]), st.integers(0, 3))
def test_an_unrelated_node_changes_nothing(
    case: tuple[MgpuAsk, NodeModel, NodeState], other: str, card: int
) -> None:
    """Pods of other nodes are not looked at."""
    ask, model, _ = case
    node = a_node("n1").mgpu(model.cards, memory=model.memory, policy=NATIVE_BURST_SHARE).view()
    stranger = a_pod("q").mgpu(core=100).bound_to(other).annotation(records.key("main"), str(card)).view()
    pod = a_pod("p").view()
    alone = decide(pod, ask, node, [], Settings())
    assert decide(pod, ask, node, [stranger], Settings()) == alone


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.integers(1, 20),
    st.integers(1, 60),
)
@example([3, 3], 2, 4)
def test_bounds_are_bounds(free: list[int], most: int, demand: int) -> None:
    """No way to take the demand loses less than the one bound or more than the other; both see when it is too much."""
    reachable: dict[int, tuple[int, int]] = {0: (0, 0)}
    for units in free:
        following: dict[int, tuple[int, int]] = {}
        for taken, (low, high) in reachable.items():
            for more in range(min(units, most) + 1):
                loss = units**2 - (units - more) ** 2
                before = following.get(taken + more, (low + loss, high + loss))
                following[taken + more] = min(before[0], low + loss), max(before[1], high + loss)
        reachable = following
    ascending = sorted(free)
    if demand not in reachable:
        assert least_loss(ascending, most, demand) == greatest_loss(ascending[::-1], most, demand) == -1
    else:
        low, high = reachable[demand]
        assert 0 <= least_loss(ascending, most, demand) <= low
        assert greatest_loss(ascending[::-1], most, demand) == high


@given(st.text(alphabet="0123456789,-+ _x\u0661", max_size=12))
def test_card_counts_are_plain_digits(text: str) -> None:
    """Whatever is read can be written back in plain digits, and nothing else is read."""
    try:
        counts = parse_counts(text)
    except CardCountsError:
        return
    assert [int(entry) for entry in text.split(",")] == list(counts)
    assert set(text) <= set("0123456789,-")


@given(st.text(alphabet="0123456789, \tx-", max_size=12))
def test_records_survive_a_round_trip(text: str) -> None:
    """A record that can be read is written in one way."""
    cards = records.parse(text)
    if cards is not None:
        assert records.parse(records.render(cards)) == cards
        assert records.render(cards) == ",".join(str(card) for card in sorted(set(cards)))


QUANTITIES: st.SearchStrategy[object] = st.one_of(
    st.integers(-5, 400),
    st.sampled_from(["0", "1k", "500m", "1Gi", "x", "", None, True, 1.5, [], "1e2", "0.1k"]),
)
AMOUNT_MAPS = st.dictionaries(st.sampled_from([names.MGPU_CORE, names.MGPU_MEMORY, "cpu"]), QUANTITIES)
CONTAINERS = st.fixed_dictionaries(
    {"name": st.text(max_size=50)},
    optional={
        "resources": st.fixed_dictionaries({}, optional={"limits": AMOUNT_MAPS, "requests": AMOUNT_MAPS})
    },
)
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        names.MGPU_MULTIPLE_ANNOTATION: st.text(alphabet="012,-x ", max_size=6),
        names.MGPU_POLICY_KEY: st.sampled_from(["fixed-share", "native-burst-share", "other"]),
    },
)


@given(st.lists(CONTAINERS, max_size=3), st.lists(CONTAINERS, max_size=1), ANNOTATIONS)
def test_what_admission_lets_pass_can_be_placed(
    containers: list[dict[str, object]], inits: list[dict[str, object]], annotations: dict[str, str]
) -> None:
    """No garbage raises; an asking pod without violations has a computable ask, with lines that can be printed."""
    metadata = {"name": "p", "annotations": annotations}
    spec = {"containers": containers, "initContainers": inits}
    found = Findings()
    judge(Draft.of({"metadata": metadata, "spec": spec}), Settings().mgpu, found)
    view = pods.project({"metadata": metadata, "spec": spec})
    ask = mgpu_ask(view)
    assert all("\n" not in str(line) for line in (*found.violations, *found.hints))
    if ask is None:
        assert found.violations == []
    elif found.violations == []:
        assert isinstance(ask, MgpuAsk)
        model = NodeModel("mgpu", ask.policy, 4, 8192)
        placement = allocate(ask, model, idle_state(model), policy="binpack", weight=20, cap=16)
        assert (fits(ask, model, idle_state(model), Settings()) is None) is (placement is not None)
    assert not isinstance(ask, Refusal) or found.violations
