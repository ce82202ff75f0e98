"""The quota pass: all queues at the start of a term, and what one freed card costs afterwards."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from core.plan.decision import Decision
from core.plan.lift import Planner
from core.queues.account import NOTHING
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from hack.bench import samples
from hack.bench.clock import cpu_ms, in_turns, settled
from hack.bench.effort import FULL, Effort
from hack.bench.report import Row, Target
from kube.turns import SLICE_S

_FLOOR_IS: Final = (
    "a loop over the same waiting pods that looks one number up in a dictionary and compares it; whoever decides on a "
    "pod at all has to do that, and no more is needed for most (reading the pods' JSON, which a pass never does, would "
    "flatter it)"
)
_FULL_PASS: Final = Target("figure", "<", 300)
_AFTERWARDS: Final = Target("figure", "<", 5)
_ONE_CALL: Final = Target("figure", "<", 20)
_ONE_SLICE: Final = Target("figure", "<", 10)
_SLICE_IS: Final = "the slice itself, which ends with the step that reaches its end"


T = TypeVar("T")
_END: Final = object()


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster whose cards are all in use, and pods that wait.

    `spare`: cards of each product that a queue may still use; `choosers`: every so many-th pod names two products,
    0 none.
    """

    label: str
    spare: int
    choosers: int = 0
    waits: bool = True
    """Whether pods are left waiting after a pass."""


def shapes(effort: Effort) -> tuple[Shape, ...]:
    """Everybody waits for quota; nobody waits; some have quota and wait for one of two cards to become free."""
    enough = effort.waiting
    return (
        Shape("no quota left", 0),
        Shape("quota for all", enough, waits=False),
        Shape("1 in 10 waits for room", enough, choosers=10),
    )


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """The pass, its longest call, its longest slice and, where pods are left waiting, what a freed card leads to."""
    rows: list[Row] = []
    for shape in shapes(effort):
        progress(f"{shape.label}: building the ledger")
        rows += _measure(shape, effort)
    return rows


def _measure(shape: Shape, effort: Effort) -> list[Row]:
    case = Case(filled(shape, effort))
    judged = all(getattr(effort, size) >= getattr(FULL, size) for size in ("waiting", "queues", "nodes"))
    with settled():
        rows = [
            _row(f"full pass, {shape.label}", case.full_pass, case.bare_loop, _FULL_PASS, effort),
            _row(f"longest queue, {shape.label}", case.longest_queue, case.bare_queue, _ONE_CALL, effort),
        ]
        what = f"longest slice, {shape.label}"
        rows.append(_row(what, case.longest_slice, _slice_ms, _ONE_SLICE, effort, _SLICE_IS))
        if shape.waits:
            what = f"one freed card, {shape.label}"
            rows.append(_row(what, case.freed_card, case.bare_queue, _AFTERWARDS, effort))
    return rows if judged else [replace(row, target=None) for row in rows]


def _row(
    what: str,
    figure: Callable[[], float],
    floor: Callable[[], float],
    target: Target,
    effort: Effort,
    floor_is: str = _FLOOR_IS,
) -> Row:
    found = in_turns(figure, floor, rounds=effort.rounds, limit_s=effort.limit_s)
    return Row(
        benchmark="quota",
        what=what,
        figure=found.figure,
        floor=found.floor,
        ratio=found.ratio,
        unit="ms",
        floor_is=floor_is,
        target=target,
    )


def filled(shape: Shape, effort: Effort, settings: Settings | None = None) -> Ledger:
    """A ledger with every card in use and the waiting pods spread evenly over the queues."""
    ledger = Ledger(settings or Settings())
    for number in range(effort.nodes):
        ledger.put_node(samples.card_node(number).view())
    for number in range(effort.nodes * samples.CARDS_PER_NODE):
        node = number // samples.CARDS_PER_NODE
        pod = samples.card_pod(f"bound-{number}", number % effort.queues, samples.product(node))
        ledger.put_pod(pod.bound_to(f"n{node}").view())
    for number in range(effort.queues):
        used = ledger.accounts.get(f"q{number}", NOTHING).allocated
        quota = {card: used.get(card, 0) // 1000 + shape.spare for card in samples.PRODUCTS}
        ledger.put_queue(samples.queue(number, quota).view())
    for number in range(effort.waiting):
        expression = samples.product(number)
        if shape.choosers and number // effort.queues % shape.choosers == 0:
            expression = f"{expression}|{samples.product(number + 1)}"
        pod = samples.card_pod(f"waiting-{number}", number % effort.queues, expression)
        ledger.put_pod(pod.gated().view())
    return ledger


class Case:
    """One ledger, brought back to its first state after each measurement."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._queues = tuple(ledger.queues)
        self._waiting = {name: ledger.waiting(name) for name in self._queues}
        self._used = dict.fromkeys(samples.PRODUCTS, 0)

    def full_pass(self) -> float:
        """Milliseconds of all decisions at the start of a term."""
        return self._undone(lambda: cpu_ms(lambda: self._pass(Planner(self._ledger))))

    def longest_queue(self) -> float:
        """Milliseconds of the longest call in a full pass: what the event loop has to wait at a stretch."""

        def longest() -> float:
            planner = Planner(self._ledger)
            return max(cpu_ms(partial(planner.decide, name)) for name in planner.order(self._queues))

        return self._undone(longest)

    def longest_slice(self) -> float:
        """Milliseconds for which a full pass may keep the event loop to itself: a slice, and the longest step after it began."""

        def longest() -> float:
            steps = Planner(self._ledger).run(self._ledger.wakeups.take_queues())
            found, more = 0.0, True
            while more:
                started = time.process_time()
                more = next(steps, _END) is not _END
                found = max(found, (time.process_time() - started) * 1000)
            return found

        return _slice_ms() + self._undone(longest)

    def freed_card(self) -> float:
        """Milliseconds from a bound pod's end to the last decision that it leads to, after a full pass."""

        def freed() -> float:
            planner = Planner(self._ledger)
            self._pass(planner)
            uid = next(iter(self._ledger.occupants.on("n0")))
            pod = self._ledger.pod(uid)
            assert pod is not None, "a pod on a node is in the ledger"
            self._ledger.wakeups.take_queues()

            def after() -> None:
                self._ledger.drop_pod(uid)
                self._pass(planner)

            taken = cpu_ms(after)
            self._ledger.put_pod(pod)
            return taken

        return self._undone(freed)

    def bare_loop(self) -> float:
        """Milliseconds of the floor for all queues."""
        return cpu_ms(lambda: [_compared(entries, self._used) for entries in self._waiting.values()])

    def bare_queue(self) -> float:
        """Milliseconds of the floor for one queue."""
        entries = self._waiting[self._queues[0]]
        return cpu_ms(lambda: _compared(entries, self._used))

    def decisions(self) -> list[Decision]:
        """What a full pass decides."""
        return self._undone(lambda: self._pass(Planner(self._ledger)))

    def _pass(self, planner: Planner) -> list[Decision]:
        """As the controller's loop does it, without the writes."""
        ledger = self._ledger
        decisions: list[Decision] = []
        while queues := ledger.wakeups.take_queues():
            decisions += [decision for decision in planner.run(queues) if decision is not None]
        return decisions

    def _undone(self, work: Callable[[], T]) -> T:
        """Does the work on a ledger in which every queue is to be looked at, and takes its assumptions back."""
        self._ledger.wakeups.look_at(*self._queues)
        result = work()
        self._ledger.forget_all()
        finish(self._ledger.settle())
        self._ledger.wakeups.room_freed(self._ledger.inventory.cards())
        self._ledger.wakeups.take_queues()
        return result


def _slice_ms() -> float:
    return SLICE_S * 1000


def _compared(entries: Iterable[Entry], used: Mapping[str, int]) -> int:
    over = 0
    for entry in entries:
        if used.get(entry.pod.card_name, 0) + 1000 > 0:
            over += 1
    return over
