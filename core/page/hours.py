"""Card-hours of the last days, out of the sums that `report` reads."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from core.page.view import Hours, HoursRow
from core.steps import Steps
from core.usage.report import Account, Row, rows
from core.usage.sums import DAY_S, Sums

DAYS: Final = 7
ROWS: Final = 20
_MILLI_HOURS: Final = 3_600_000
_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Summed:
    """Sums, and until when they are complete, in seconds since 1970."""

    sums: Sums
    through: int


def hours(summed: Summed, now: int) -> Steps[Hours]:
    """Of the last days up to the one of `through`, or of `now` (microseconds since 1970) where that is earlier."""
    last = min(summed.through, now // _SECOND) // DAY_S
    days = range(max(last - DAYS + 1, summed.sums.first_day), last + 1)
    by_day: list[dict[tuple[str, ...], Row]] = []
    for day in days:
        yield
        table = dict(summed.sums.days.get(day, {}))
        account = Account(day * DAY_S, (day + 1) * DAY_S, table)
        by_day.append({row.names: row for row in rows(account, "queue")})
    yield
    found = [_row(names, by_day) for names in sorted({name for day in by_day for name in day})]
    found.sort(key=lambda row: (-row.used, -row.waited, row.queue, row.card))
    dates = tuple(f"{datetime.fromtimestamp(day * DAY_S, UTC):%Y-%m-%d}" for day in days)
    return Hours(dates, summed.through, tuple(found[:ROWS]), max(0, len(found) - ROWS))


def _row(names: tuple[str, ...], by_day: list[dict[tuple[str, ...], Row]]) -> HoursRow:
    queue, card = names
    of = [day[names] for day in by_day if names in day]
    quota = [row.quota for row in of if row.quota]
    return HoursRow(
        queue,
        card,
        tuple(_hours(day[names].used) if names in day else 0.0 for day in by_day),
        _hours(sum(row.used for row in of)),
        _hours(sum(row.waited for row in of)),
        _hours(sum(quota)) if quota else None,
    )


def _hours(amount: int) -> float:
    return round(amount / _MILLI_HOURS, 2)
