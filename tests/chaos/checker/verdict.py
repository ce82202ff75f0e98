"""All rules over a whole log, and what the log covers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.checker import books
from tests.chaos.checker.history import Change, History, World
from tests.chaos.checker.lifts import Lifts
from tests.chaos.checker.line import Line
from tests.chaos.checker.log import WRITES, Entry
from tests.chaos.checker.records import Records
from tests.chaos.checker.rest import Losses, judged_at_rest
from tests.chaos.checker.rooms import overbooked
from tests.chaos.checker.terms import Disturbance, Terms, Violation
from tests.chaos.checker.times import Calm, leaders


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong, and how much was looked at: a log that covers nothing has nothing wrong."""

    violations: tuple[Violation, ...]
    covered: dict[str, int]


def judge(
    entries: Sequence[Entry], disturbances: Sequence[Disturbance] = (), given: Terms | None = None
) -> Verdict:
    """Judge a whole log. What holds at rest is judged by its last lists, if it has any."""
    given = given or Terms()
    calm, history, reigns = Calm(disturbances), History(entries), leaders(entries, given)
    lifts, records, losses = Lifts(calm, given), Records(entries, calm, given), Losses(history, calm, given)
    line = Line(entries, calm, given)
    found: list[Violation] = []
    covered: Counter[str] = Counter()
    world = World()
    for change, world in history.changes():
        covered.update(_steps(change))
        found += lifts.at(change, world)
        line.at(change, world)
        found += overbooked(change, world)
        found += records.at(change)
        found += losses.at(change)
    found += line.passed_by()
    found += records.unrepaired(reigns)
    found += judged_at_rest(history, world, calm, reigns, given)
    writes = [entry for entry in entries if entry.verb in WRITES]
    covered.update(
        {
            "entries": len(entries),
            "terms of leaders": len(reigns),
            "binds that failed open": records.failed_open,
            "bound without record": records.opened,
            "bound without record, due": records.judged,
            "let in by their order": line.judged,
            "writes without an answer": sum(entry.uncertain for entry in writes),
            "refused writes": sum(not entry.accepted and not entry.uncertain for entry in writes),
        }
    )
    found.sort(key=lambda violation: (violation.at, violation.rule, violation.about))
    return Verdict(tuple(found), dict(sorted(covered.items())))


def _steps(change: Change) -> list[str]:
    """What an object went through with this change."""
    if change.kind != "pods":
        return [
            f"{change.kind}: {'gone' if change.after is None else 'new' if change.before is None else 'changed'}"
        ]
    before, after = change.before, change.after
    if after is None:
        return ["pods: gone"]
    steps = ["pods: new"] if before is None else []
    for name, holds in (
        ("at the gate", books.gated),
        ("past the gate", lambda pod: not books.gated(pod)),
        ("past the gate with claims", lambda pod: books.claiming(pod) and not books.gated(pod)),
        ("bound", lambda pod: bool(books.node_of(pod))),
        ("deleted", books.terminating),
        ("ended", books.ended),
    ):
        if holds(after) and (before is None or not holds(before)):
            steps.append(f"pods: {name}")
    if change.entry.verb == "list":
        steps.append("found by a list")
    return steps
