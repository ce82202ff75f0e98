"""The choice of cards: worked examples, order of preference, limits, budget."""

from fractions import Fraction

import pytest

from core.mgpu.allocation import Placement, Policy, allocate, feasible
from core.mgpu.ask import MgpuAsk
from core.mgpu.node import NodeModel, NodeState, idle_state
from tests.unit.core.mgpu.cases import Wish, a_model, a_state, an_ask, filling

M = 10_000


def placed(
    ask: MgpuAsk,
    model: NodeModel,
    state: NodeState,
    *,
    policy: Policy = "binpack",
    weight: int = 20,
    cap: int = 16,
    budget: int = 4000,
) -> Placement:
    placement = allocate(ask, model, state, policy=policy, weight=weight, cap=cap, budget=budget)
    assert placement is not None
    return placement


def indexes(placement: Placement) -> list[tuple[int, ...]]:
    """The cards, container by container."""
    return list(placement.indexes.values())


def test_two_containers_on_two_idle_cards() -> None:
    """Binpack puts both on one card (0.609 against 0.537), spread on two (0.463 against 0.391)."""
    ask, model = an_ask((1, 30, 2000), (1, 40, 3000)), a_model(2)
    together = placed(ask, model, idle_state(model))
    assert (indexes(together), together.value) == ([(0,), (0,)], Fraction("0.609"))
    apart = placed(ask, model, idle_state(model), policy="spread")
    assert (indexes(apart), apart.value) == ([(0,), (1,)], Fraction("0.463"))


@pytest.mark.parametrize(("weight", "card"), [(0, 1), (20, 1), (54, 1), (55, 0), (80, 0), (100, 0)])
def test_when_core_and_memory_disagree(weight: int, card: int) -> None:
    """Card 0 is short of core, card 1 of memory; the weight decides which one counts as full, from 54.5 on."""
    state = a_state((40, 9000), (90, 3000))
    assert indexes(placed(an_ask((1, 20, 2000)), a_model(2), state, weight=weight)) == [(card,)]


def test_a_used_and_an_idle_card() -> None:
    """Binpack stays on the used card, spread goes to the idle one; exact values."""
    ask, model, state = an_ask((1, 30, 2048)), a_model(2, 16384), a_state((60, 12288), (100, 16384))
    used = placed(ask, model, state)
    assert (indexes(used), used.value) == ([(0,)], Fraction("0.66525"))
    idle = placed(ask, model, state, policy="spread")
    assert (indexes(idle), idle.value) == ([(1,)], Fraction("0.38375"))


@pytest.mark.parametrize("policy", ["binpack", "spread"])
@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ([(1, 50, 1000)], [(0,)]),
        ([(3, 50, 1000)], [(0, 1, 2)]),
        ([(1, 100, None)], [(0,)]),
        ([(2, 100, None), (1, 100, None)], [(0, 1), (2,)]),
        ([(1, 100, None), (1, 50, 1000)], [(0,), (1,)]),
        ([(1, 50, 1000), (1, 100, None)], [(0,), (1,)]),
        ([(1, 60, 1000), (1, 60, 1000)], [(0,), (1,)]),
        ([(1, 60, 1000), (1, 70, 1000)], [(0,), (1,)]),
        ([(2, 60, 1000), (2, 70, 1000)], [(0, 1), (2, 3)]),
    ],
)
def test_among_equal_cards_the_lowest_numbers(
    policy: Policy, wishes: list[Wish], expected: list[tuple[int, ...]]
) -> None:
    """The first container gets the lowest number, whatever its size or kind; then the next."""
    model = a_model(4)
    assert indexes(placed(an_ask(*wishes), model, idle_state(model), policy=policy)) == expected


def test_equally_good_cards_in_different_states() -> None:
    """A single container goes to the lowest number among all that are equally good, equal or not."""
    state = a_state((50, 9000), (60, 6000), (50, 6000), (50, 4000), (70, 6000))
    assert indexes(placed(an_ask((1, 10, 1000)), a_model(5), state, weight=100)) == [(0,)]


@pytest.mark.parametrize(
    ("wishes", "cards", "fits"),
    [
        ([(1, 100, None)], [(100, M), (99, M)], True),
        ([(1, 100, None)], [(100, M - 1, 1), (99, M)], False),
        ([(1, 100, None)], [(100, M, 1)], False),
        ([(2, 100, None)], [(100, M), (99, M)], False),
        ([(1, 50, 5000)], [(50, 5000)], True),
        ([(1, 51, 5000)], [(50, 5000)], False),
        ([(1, 50, 5001)], [(50, 5000)], False),
        ([(2, 50, 5000)], [(50, 5000), (50, 5000)], True),
        ([(2, 10, 100)], [(100, M)], False),
        ([(1, 100, None), (1, 10, 100)], [(100, M), (0, 0)], False),
        ([(1, 100, None), (1, 10, 100)], [(100, M), (10, 100)], True),
        # The part that fits only on one card must not find it taken by one that fits on both.
        ([(1, 30, 1000), (1, 60, 1000)], [(60, M), (30, M)], True),
        ([(1, 60, 1000), (1, 30, 1000)], [(60, M), (30, M)], True),
        ([(1, 30, 6000), (1, 60, 3000)], [(30, 6000), (60, 3000)], True),
        ([(1, 30, 6000), (1, 60, 3000)], [(60, 6000), (30, 3000)], False),
        ([(1, 10, 100)] * 8, [(40, M), (40, M)], True),
        ([(1, 10, 100)] * 9, [(40, M), (40, M)], False),
    ],
)
def test_room(wishes: list[Wish], cards: list[tuple[int, int]], fits: bool) -> None:
    """The pod fits as a whole or not at all; idle means nothing on the card at all."""
    ask, model, state = an_ask(*wishes), a_model(len(cards)), a_state(*cards)
    assert feasible(ask, model, state, cap=16) is fits
    for policy in ("binpack", "spread"):
        assert (allocate(ask, model, state, policy=policy, weight=20, cap=16) is not None) is fits


@pytest.mark.parametrize(
    ("taken", "containers", "fits"), [(0, 2, True), (0, 3, False), (1, 1, True), (2, 1, False)]
)
def test_no_more_containers_on_a_card_than_allowed(taken: int, containers: int, fits: bool) -> None:
    """Each container counts once on every card it uses."""
    ask, state = an_ask(*[(1, 1, 1)] * containers), a_state((90, 9000, taken))
    assert (allocate(ask, a_model(1), state, policy="binpack", weight=20, cap=2) is not None) is fits


def test_seats_push_containers_to_other_cards() -> None:
    """Where the number of containers binds, binpack fills the next card."""
    model = a_model(2)
    placement = placed(an_ask(*[(1, 10, 100)] * 4), model, idle_state(model), cap=2)
    assert sorted(indexes(placement)) == [(0,), (0,), (1,), (1,)]


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_without_memory_only_whole_cards_fit(policy: Policy) -> None:
    """A node that reports no memory: no share, no division by zero."""
    model = a_model(2, 0)
    assert allocate(an_ask((1, 50, 256)), model, idle_state(model), policy=policy, weight=20, cap=16) is None
    whole = placed(an_ask((1, 100, None)), model, idle_state(model), policy=policy)
    assert indexes(whole) == [(0,)]
    assert whole.value == (Fraction("0.1") if policy == "binpack" else Fraction("0.9"))


def test_whole_cards_contribute_nothing() -> None:
    """The combination score counts what is free; on a node taken whole that is nothing."""
    model = a_model(2)
    assert placed(an_ask((2, 100, None)), model, idle_state(model)).value == 0


def test_a_node_without_cards() -> None:
    """Nothing fits, nothing is divided by."""
    model = a_model(0)
    assert allocate(an_ask((1, 50, 1)), model, idle_state(model), policy="binpack", weight=20, cap=1) is None
    assert (
        allocate(an_ask((1, 100, None)), model, idle_state(model), policy="spread", weight=20, cap=1) is None
    )


def hard() -> tuple[MgpuAsk, NodeModel, NodeState]:
    """Eight different containers of four cards on sixteen: far more arrangements than any budget."""
    model = a_model(16, 16384)
    wishes = [(4, 10 + 5 * number, 1000 + 733 * number) for number in range(8)]
    return an_ask(*wishes), model, idle_state(model)


def test_a_budget_that_is_used_up() -> None:
    """The best that was found comes back, marked; more budget is never worse; the same call, the same answer."""
    values = []
    for budget in (8, 100, 1500):
        placement = placed(*hard(), budget=budget)
        assert not placement.optimal
        assert placement == placed(*hard(), budget=budget)
        values.append(placement.value)
    assert values == sorted(values)


def test_a_budget_too_small_for_any_answer() -> None:
    """What fits by the filter's own search is placed even then."""
    placement = placed(*hard(), budget=1)
    assert not placement.optimal
    ask, model, state = hard()
    assert feasible(ask, model, state, cap=16, budget=1)


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_symmetric_nodes_are_solved_exactly(policy: Policy) -> None:
    """Sixteen idle cards and equal containers are proved within the default budget."""
    model = a_model(16, 16384)
    for core, memory in ((50, 8192), (30, 4915)):
        ask = an_ask(*[(4, core, memory)] * 8)
        placement = allocate(ask, model, idle_state(model), policy=policy, weight=20, cap=16)
        assert placement is not None
        assert placement.optimal


def test_very_many_containers_do_not_exhaust_the_stack() -> None:
    """The search keeps its own stack."""
    model = a_model(40)
    placement = placed(an_ask(*[(1, 1, 1)] * 3000), model, idle_state(model), cap=100, budget=10_000)
    assert len(placement.indexes) == 3000


def test_an_absurd_number_of_cards() -> None:
    """Counts beyond the node are no reason to loop over them."""
    model = a_model(4)
    for wish in ((10**18, 100, None), (10**18, 1, 1)):
        assert not feasible(an_ask(wish), model, idle_state(model), cap=16)


def test_a_search_that_is_cut_short_says_neither_that_there_is_room_nor_that_there_is_none() -> None:
    """By construction there is some for the first."""
    ask, model = filling(8), a_model(8, 16_384)
    assert feasible(ask, model, idle_state(model), cap=16) is None
    assert feasible(an_ask((1, 60, 1), (1, 60, 1)), a_model(1), idle_state(a_model(1)), cap=16) is False
    assert feasible(an_ask((1, 60, 1), (1, 40, 1)), a_model(1), idle_state(a_model(1)), cap=16) is True
