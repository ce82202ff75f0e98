"""The quota pass over a tree of queues on three levels, beside the same queues and pods where each is limited by itself."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from core.cards.quota import parse_quota
from core.objects import Queue
from core.queues.ledger import Ledger
from core.settings import Settings
from hack.bench import samples
from hack.bench.clock import in_turns, settled
from hack.bench.effort import FULL, Effort
from hack.bench.quota import Case, Shape, filled
from hack.bench.report import Row, Target

_QUEUES: Final = 500
_DEPARTMENTS: Final = 20
_TEAMS: Final = _QUEUES - _DEPARTMENTS - 1
_COMPANY: Final = "company"
_FLOOR_IS: Final = "the same pass over the same queues and pods with cards.hierarchy off"
_AT_MOST: Final = Target("ratio", "<=", 1.3)

_SHORT_ABOVE: Final = Shape("none left at the top", 1)
_SHAPES: Final = (Shape("no quota left", 0), Shape("quota for all", FULL.waiting, waits=False))


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """The pass where everybody waits for the queue itself, nobody waits, and everybody waits for the topmost queue."""
    rows: list[Row] = []
    judged = effort.waiting >= FULL.waiting and effort.nodes >= FULL.nodes
    for shape in (*_SHAPES, _SHORT_ABOVE):
        progress(f"{_QUEUES} queues on three levels, {shape.label}: building the ledgers")
        tree = Case(_filled(shape, effort, hierarchy=True))
        # What holds everybody at the top holds nobody where each queue is by itself: there they wait in their own.
        flat = Case(_filled(_SHAPES[0] if shape is _SHORT_ABOVE else shape, effort, hierarchy=False))
        with settled():
            found = in_turns(tree.full_pass, flat.full_pass, rounds=effort.rounds, limit_s=effort.limit_s)
        rows.append(
            Row(
                benchmark="quota",
                what=f"full pass, {_QUEUES} queues on three levels, {shape.label}",
                figure=found.figure,
                floor=found.floor,
                ratio=found.ratio,
                unit="ms",
                floor_is=_FLOOR_IS,
                target=_AT_MOST if judged else None,
            )
        )
    return rows


def _filled(shape: Shape, effort: Effort, *, hierarchy: bool) -> Ledger:
    """Teams with the pods, in departments of one company; what is above has the quota of all below it together.

    At the top nothing is left of that in the shape that says so.
    """
    settings = Settings.model_validate({"cards": {"hierarchy": hierarchy}})
    ledger = filled(shape, replace(effort, queues=_TEAMS), settings)
    departments: dict[str, Counter[str]] = {
        f"department-{number}": Counter() for number in range(_DEPARTMENTS)
    }
    for number, team in enumerate(list(ledger.queues.values())):
        parent = f"department-{number % _DEPARTMENTS}"
        departments[parent].update(parse_quota(team.card_quota))
        ledger.put_queue(replace(team, parent=parent))
    company: Counter[str] = Counter()
    for name, quota in departments.items():
        company.update(quota)
        ledger.put_queue(_queue(name, _COMPANY, quota))
    if shape is _SHORT_ABOVE:
        company.subtract(dict.fromkeys(samples.PRODUCTS, _TEAMS * shape.spare))
    ledger.put_queue(_queue(_COMPANY, "", company))
    return ledger


def _queue(name: str, parent: str, quota: Counter[str]) -> Queue:
    return replace(samples.queue(0, dict(quota)).view(), name=name, parent=parent)
