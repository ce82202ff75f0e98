"""Placement of shares: one node in the shapes that are known to be hard, and the filter over a large cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from random import Random
from typing import Final

from core.mgpu.allocation import PLACEMENT_BUDGET, Doubt, Policy, allocate, combination, first_fit
from core.mgpu.ask import NATIVE_BURST_SHARE, MgpuAsk, Part
from core.mgpu.filter import fits
from core.mgpu.node import NODE_TYPE, Card, NodeModel, NodeState, after, idle_state
from core.mgpu.search import solve
from core.settings import Settings
from hack.bench.clock import cpu_ms, in_turns, settled
from hack.bench.effort import FULL, Effort
from hack.bench.report import Row, Target

_PLACEMENT_FLOOR: Final = "the first arrangement that fits, without any thought for a better one"
_DISTANCE_FLOOR: Final = "the same of the first arrangement that fits"
_FILTER_FLOOR: Final = "a loop over the same nodes that looks for one card with enough of both"
_MEMORY: Final = 81920
_POLICIES: Final[tuple[Policy, ...]] = ("binpack", "spread")
_SEEDS: Final = 5
_LONG_BUDGET: Final = 30_000
"""Search steps that take half a second and more; what they find is the best that is known."""
_STATES: Final = 60
"""Different states among the nodes of the filter; in a large cluster most nodes are in one of few."""


Problem = tuple[NodeState, tuple[Part, ...]]
"""A node, and the containers of a pod."""


@dataclass(frozen=True, slots=True)
class Case:
    """Problems of one shape; the figure is that of the worst. Of an `endless` search only the budget is the end."""

    label: str
    problems: tuple[Problem, ...]
    bound_ms: float | None = None
    endless: bool = False


def cases() -> tuple[Case, ...]:
    """Symmetric nodes, nodes whose cards are all different, and two shapes that only the budget ends."""
    return (
        Case("16 idle cards, 8 containers x 4 cards x 50 %", (_alike(16, 8, 4, 50),), bound_ms=10),
        Case("16 idle cards, 8 containers x 4 cards x 30 %", (_alike(16, 8, 4, 30),), bound_ms=10),
        Case("8 idle cards, 8 different containers", _mixed(8, 8, 1, idle=True), bound_ms=10),
        Case("8 different cards, 4 different containers", _mixed(8, 4, 1), bound_ms=3),
        Case("8 different cards, 5 different containers", _mixed(8, 5, 1)),
        Case("8 different cards, 3 containers x 2 cards", _mixed(8, 3, 2)),
        Case("16 idle cards, 8 different containers x 4", _mixed(16, 8, 4, idle=True), 50, endless=True),
        Case("16 different cards, 8 different containers x 4", _mixed(16, 8, 4), 50, endless=True),
    )


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """One row for each case and policy, then what the budget costs, then the filter."""
    rows: list[Row] = []
    with settled():
        for case in cases():
            progress(case.label)
            rows += [_placement(case, policy, effort) for policy in _POLICIES]
        for case in (case for case in cases() if case.endless):
            progress(f"{case.label}, for as long as it takes")
            rows += [_distance(case, policy, effort) for policy in _POLICIES]
        progress(f"filter over {effort.share_nodes} nodes")
        rows.append(_filter(effort))
    return rows


def _placement(case: Case, policy: Policy, effort: Effort) -> Row:
    settings = Settings().mgpu
    cap = settings.max_containers_per_card

    def placed(state: NodeState, parts: tuple[Part, ...]) -> float:
        ask, model = _ask(parts), _model(len(state.cards))
        solve.cache_clear()
        return cpu_ms(
            lambda: allocate(ask, model, state, policy=policy, weight=settings.weight_of_core, cap=cap)
        )

    def greedy(state: NodeState, parts: tuple[Part, ...]) -> float:
        ask, model = _ask(parts), _model(len(state.cards))
        return cpu_ms(lambda: first_fit(ask, model, state, cap))

    return _row(
        f"{case.label}, {policy}",
        lambda: max(placed(*problem) for problem in case.problems),
        lambda: max(greedy(*problem) for problem in case.problems),
        _PLACEMENT_FLOOR,
        None if case.bound_ms is None else Target("figure", "<", case.bound_ms),
        effort,
    )


def _distance(case: Case, policy: Policy, effort: Effort) -> Row:
    """By how much the score of what is found within the budget falls short of the best that is known.

    Nothing of it differs from round to round; each round looks at another problem.
    """
    settings = Settings().mgpu
    cap, weight = settings.max_containers_per_card, settings.weight_of_core

    def shortfalls(state: NodeState, parts: tuple[Part, ...]) -> tuple[float, float]:
        ask, model = _ask(parts), _model(len(state.cards))
        first = first_fit(ask, model, state, cap)
        found, best = (
            allocate(ask, model, state, policy=policy, weight=weight, cap=cap, budget=budget)
            for budget in (PLACEMENT_BUDGET, _LONG_BUDGET)
        )
        assert found is not None, "the problems have room"
        assert best is not None, "the problems have room"
        assert not isinstance(first, Doubt), "the problems have room"
        indexes = {part.container: first[position] for position, part in enumerate(parts)}
        greedy = combination(after(state, model, ask, indexes), model, policy=policy, weight=weight)
        return float(100 * (1 - found.value / best.value)), float(100 * (1 - greedy / best.value))

    figures, floors = zip(*(shortfalls(*problem) for problem in case.problems[: effort.rounds]), strict=True)
    figure, floor = max(figures), max(floors)
    return Row(
        benchmark="mgpu",
        what=f"{case.label}, {policy}: short of the best known score",
        figure=figure,
        floor=floor,
        ratio=figure / floor,
        unit="%",
        floor_is=_DISTANCE_FLOOR,
    )


def _filter(effort: Effort) -> Row:
    """A pod of two containers that nobody asked about before, on nodes of which a part has room."""
    random = Random(1)
    states = [_different(random, 8) for _ in range(_STATES)]
    nodes = [random.choice(states) for _ in range(effort.share_nodes)]
    model, settings = _model(8), Settings()
    names = (f"round-{number}" for number in count())

    def judged() -> float:
        # A new name makes a new question, so nothing is remembered from the round before.
        ask = _ask(_wanted(next(names)))
        solve.cache_clear()
        return cpu_ms(lambda: [fits(ask, model, state, settings) for state in nodes])

    def scanned() -> float:
        core, memory = 60, 50_000
        return cpu_ms(
            lambda: [
                any(card.core >= core and card.memory >= memory for card in state.cards) for state in nodes
            ]
        )

    return _row(
        f"filter over {effort.share_nodes:,} nodes in {_STATES} states",
        judged,
        scanned,
        _FILTER_FLOOR,
        Target("figure", "<", 200) if effort.share_nodes >= FULL.share_nodes else None,
        effort,
    )


def _row(
    what: str,
    figure: Callable[[], float],
    floor: Callable[[], float],
    floor_is: str,
    target: Target | None,
    effort: Effort,
) -> Row:
    found = in_turns(figure, floor, rounds=effort.rounds, limit_s=effort.limit_s)
    return Row(
        benchmark="mgpu",
        what=what,
        figure=found.figure,
        floor=found.floor,
        ratio=found.ratio,
        unit="ms",
        floor_is=floor_is,
        target=target,
    )


def _ask(parts: tuple[Part, ...]) -> MgpuAsk:
    return MgpuAsk(parts, multi=True, policy=NATIVE_BURST_SHARE)


def _wanted(name: str) -> tuple[Part, ...]:
    return Part(f"{name}-a", 2, 30, 30_000), Part(f"{name}-b", 1, 60, 50_000)


def _model(cards: int) -> NodeModel:
    return NodeModel(kind=NODE_TYPE, policy=NATIVE_BURST_SHARE, cards=cards, memory=_MEMORY)


def _alike(cards: int, containers: int, each: int, percent: int) -> Problem:
    memory = _MEMORY * percent // 100
    parts = tuple(Part(f"c{number}", each, percent, memory) for number in range(containers))
    return idle_state(_model(cards)), parts


def _mixed(cards: int, containers: int, each: int, *, idle: bool = False) -> tuple[Problem, ...]:
    """Pods that have room, of containers of all sizes, on idle cards or on cards of which no two are alike."""
    problems = (_problem(Random(seed), cards, containers, each, idle=idle) for seed in count())
    return tuple(islice((problem for problem in problems if has_room(*problem)), _SEEDS))


def _problem(random: Random, cards: int, containers: int, each: int, *, idle: bool) -> Problem:
    state = idle_state(_model(cards)) if idle else _different(random, cards)
    # Together they take up to half of what is free, so that there are many ways to place them.
    mean = min(sum(card.core for card in state.cards) // (2 * containers * each), 40)
    sizes = random.sample(range(max(mean - 12, 2), mean + 13), containers)
    return state, tuple(
        Part(f"c{number}", each, size, random.randint(size * 300, size * 700))
        for number, size in enumerate(sizes)
    )


def has_room(state: NodeState, parts: tuple[Part, ...]) -> bool:
    """Whether the first arrangement that is tried fits."""
    cap = Settings().mgpu.max_containers_per_card
    return not isinstance(first_fit(_ask(parts), _model(len(state.cards)), state, cap), Doubt)


def _different(random: Random, cards: int) -> NodeState:
    """Cards of which no two have the same core left."""
    cores = random.sample(range(20, 100), cards)
    return NodeState(
        tuple(Card(core, random.randint(_MEMORY // 5, _MEMORY), random.randint(1, 4)) for core in cores)
    )
