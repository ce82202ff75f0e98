"""All rules over a whole log, and what the log covers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.checker import books
from tests.chaos.checker.history import Change, History, World
from tests.chaos.checker.lifts import Lifts
from tests.chaos.checker.line import Line
from tests.chaos.checker.log import WRITES, Entry, Object
from tests.chaos.checker.records import Records
from tests.chaos.checker.rest import Losses, Rest
from tests.chaos.checker.rooms import overbooked
from tests.chaos.checker.terms import Disturbance, Terms, Violation
from tests.chaos.checker.times import Calm, leaders


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong, and how much was looked at: a log that covers nothing has nothing wrong."""

    violations: tuple[Violation, ...]
    covered: dict[str, int]
    unrest: str = ""
    """Why nothing was judged at rest; "" where it was."""


def judge(
    entries: Sequence[Entry], disturbances: Sequence[Disturbance] = (), given: Terms | None = None
) -> Verdict:
    """Judge a whole log. What holds at rest is judged by its last lists, if it has any."""
    given = given or Terms()
    calm, history, reigns = Calm(disturbances), History(entries), leaders(entries, given)
    lifts, records = Lifts(calm, reigns, given), Records(entries, calm, given)
    losses = Losses(history, calm, given)
    line = Line(entries, calm, given)
    found: list[Violation] = []
    covered: Counter[str] = Counter()
    world = World()
    for change, world in history.changes():
        covered.update(_steps(change, calm))
        found += lifts.at(change, world)
        line.at(change, world)
        found += overbooked(change, world)
        found += records.at(change)
        found += losses.at(change)
    found += line.passed_by()
    found += records.unrepaired(reigns)
    at_rest = Rest(history, world, calm, reigns, given)
    found += at_rest.violations()
    covered.update(at_rest.covered())
    writes = [entry for entry in entries if entry.verb in WRITES]
    covered.update(
        {
            "entries": len(entries),
            "terms of leaders": len(reigns),
            "binds that failed open": records.failed_open,
            "bound without record": records.opened,
            "bound without record, due": records.judged,
            "let in by their order": line.judged,
            "let in, judged by an earlier quota": lifts.forgiven,
            "writes without an answer": sum(entry.uncertain for entry in writes),
            "refused writes": sum(not entry.accepted and not entry.uncertain for entry in writes),
        }
    )
    found.sort(key=lambda violation: (violation.at, violation.rule, violation.about))
    return Verdict(tuple(found), dict(sorted(covered.items())), at_rest.unrest())


def _steps(change: Change, calm: Calm) -> list[str]:
    """What an object went through with this change, and during what."""
    if change.kind != "pods":
        return [
            f"{change.kind}: {'gone' if change.after is None else 'new' if change.before is None else 'changed'}"
        ]
    was, now = _state(change.before), _state(change.after)
    steps = _reached(change)
    if was != now:
        steps.append(f"pods: {was or 'nothing'} -> {now or 'nothing'}")
    for kind in sorted(calm.disturbed_by(change.entry.ended)):
        steps += [f"during {kind}: {step}" for step in steps if step in _TOLD_BY_FAULT]
    if change.entry.verb == "list":
        steps.append("found by a list")
    return steps


_PAST, _BOUND = "pods: past the gate", "pods: bound"
_TOLD_BY_FAULT: Final = frozenset({_PAST, _BOUND})


def _reached(change: Change) -> list[str]:
    before, after = change.before, change.after
    if after is None:
        return ["pods: gone"]
    steps = ["pods: new"] if before is None else []
    for name, holds in (
        ("pods: at the gate", books.gated),
        (_PAST, lambda pod: not books.gated(pod)),
        (f"{_PAST} with claims", lambda pod: books.claiming(pod) and not books.gated(pod)),
        (_BOUND, lambda pod: bool(books.node_of(pod))),
        ("pods: deleted", books.terminating),
        ("pods: ended", books.ended),
    ):
        if holds(after) and (before is None or not holds(before)):
            steps.append(name)
    return steps


def _state(pod: Object | None) -> str:
    """In which of the states a pod is that the promises tell apart; "" for one that is not there."""
    if pod is None:
        return ""
    phase = (pod.get("status") or {}).get("phase", "")
    place = "waiting" if books.gated(pod) else "bound" if books.node_of(pod) else "reserved"
    state = phase.lower() if books.ended(pod) or (place == "bound" and phase == "Running") else place
    return f"{state}, deleted" if books.terminating(pod) else state
