"""Why a gang waits, as it is told, and how all that is decided on one is handed out."""

from collections import Counter, deque
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from core import names, reasons
from core.objects import Group
from core.plan.decision import Decision, Hold, Lift
from core.queues.entry import Entry
from core.queues.group_minimum import Progress
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.steps import Pace, Steps, batched

_TOLD: Final = 3
_IN_ONE_STEP: Final = 250
"""Members whose tasks are counted in about half a millisecond."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a gang does not fit, how many members were found to fit, and the codes of everything that stood in the way."""

    shortfall: Refusal
    most: int
    exhausted: bool
    obstacles: frozenset[str]


@dataclass(slots=True)
class Told:
    """What gangs that ask for the same were told, as long as that holds."""

    verdicts: dict[Hashable, Verdict | None] = field(default_factory=dict)
    """None where that was not found out, so that nobody else tries to."""
    for_another: bool = False
    """Whether somebody is left for another one of whom that was not found out: it does not wait by itself."""


def explained(found: Verdict, group: Group, wanted: int) -> Refusal:
    """What the members of a gang are told that did not fit."""
    code, most = found.shortfall.code, f"{found.most} fit"
    if found.exhausted:
        code = reasons.GANG_SEARCH_GIVEN_UP
        most = f"{found.most} were found to fit when the search was given up"
    text = f"{found.shortfall.message.removesuffix('.')}; {group.title} needs {wanted} more members at once, {most}"
    return Refusal(code, text)


def lacking_of_tasks(ready: Sequence[Entry], progress: Progress) -> Steps[str]:
    """The tasks that have fewer members ready than they need; of a group without such the numbers of the whole say all."""
    if not progress.missing_tasks:
        return ""
    there: Counter[str] = Counter()
    pace = Pace(_IN_ONE_STEP)
    for some in batched(ready, _IN_ONE_STEP):
        if pace.due(len(some)):
            yield
        there.update(entry.pod.task for entry in some)
    short = [task for task, wanted in sorted(progress.missing_tasks.items()) if there[task] < wanted]
    named = [f"{progress.missing_tasks[task]} of task <{task}>, with only {there[task]}" for task in short]
    more = f" and {len(named) - _TOLD} more tasks" if len(named) > _TOLD else ""
    return f"; it needs {', '.join(named[:_TOLD])}{more}" if named else ""


def nothing_common(queue: str, wanted: int) -> Refusal:
    """What they are told where no card would do for so many of them."""
    text = f"Queue <{queue}>: no card is accepted by {wanted} pods of the group"
    return Refusal(reasons.MIXED_CARDS, text)


def at_odds(ledger: Ledger, queue: str, group: Group) -> str:
    """What members disagree about who name the size of their gang, or their queue, each by himself."""
    text = ""
    if group.sizes:
        least, most = group.sizes
        text += (
            f"; its members say {names.GANG_SIZE_ANNOTATION} {least} to {most}, of which the largest counts"
        )
    others = sorted(set(ledger.queues_with(group.key)) - {queue}) if not group.queue else []
    if others:
        named = ", ".join(f"<{other}>" for other in others[:_TOLD])
        text += f"; others of it wait in queue {named}, and one queue has to let in all of them"
    return text


def hold_all(entries: Sequence[Entry], group: Group, why: Refusal) -> Steps[list[Decision]]:
    """Each of these members waits, for the same reason."""
    found: list[Decision] = []
    pace = Pace(_IN_ONE_STEP)
    for some in batched(entries, _IN_ONE_STEP):
        if pace.due(len(some)):
            yield
        found += [Hold(entry.pod, entry.queue, why, group=group) for entry in some]
    return found


def handed_out(left: deque[Decision], ledger: Ledger) -> Generator[Decision]:
    """These decisions; lifts that the caller does not ask for any more are taken back."""
    try:
        while left:
            yield left.popleft()
    finally:
        if left:
            ledger.retract_all([each.lifted for each in left if isinstance(each, Lift)])
