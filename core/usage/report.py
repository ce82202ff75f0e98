"""What was used and waited for in a time, from what was written down or from what Prometheus has kept of the counters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.usage.checkpoint import Checkpoint
from core.usage.sums import DAY_S, Amounts, Series, What

Points = Sequence[tuple[float, float]]
"""Moments in seconds since 1970, in order, and values."""

BY: Final[Mapping[str, Callable[[Series], tuple[str, ...]]]] = {
    "queue": lambda series: (series.queue, series.card),
    "namespace": lambda series: (series.namespace, series.card),
    "card": lambda series: (series.card,),
}
"""What rows may stand for; a row is always of one card, for hours of different cards are different things."""


@dataclass(frozen=True, slots=True)
class Account:
    """The sums of a time, in thousandths of a card times seconds; its ends in seconds since 1970."""

    start: int
    end: int
    sums: Mapping[Series, Amounts]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a report. `quota` is None where none applies: namespaces have none."""

    names: tuple[str, ...]
    used: int
    waited: int
    quota: int | None

    @property
    def share(self) -> float | None:
        """The part of the quota that was used; None without quota."""
        return self.used / self.quota if self.quota else None


def rows(account: Account, by: str) -> list[Row]:
    """One for each value of what is asked for and each card, sorted. Raises KeyError for what is not in BY."""
    found: dict[tuple[str, ...], Amounts] = {}
    for series, amounts in account.sums.items():
        if by == "namespace" and not series.namespace:
            continue
        total = found.setdefault(BY[by](series), [0, 0, 0])
        for what in What:
            total[what] += amounts[what]
    return [
        Row(names, used, waited, None if by == "namespace" else quota)
        for names, (used, waited, quota) in sorted(found.items())
        if used or waited or quota
    ]


def of_checkpoint(written: Checkpoint, since_s: int) -> Account:
    """The whole days (UTC) in which the last `since_s` seconds lie, as far as they were kept; all there is where that is more."""
    sums, first = written.sums, (written.through - since_s) // DAY_S
    if first < sums.first_day:
        return Account(written.began, written.through, sums.total)
    found: dict[Series, Amounts] = {}
    for day, table in sums.days.items():
        # Later days are of a clock that was ahead.
        if first <= day <= written.through // DAY_S:
            for series, amounts in table.items():
                total = found.setdefault(series, [0, 0, 0])
                for what in What:
                    total[what] += amounts[what]
    return Account(max(first * DAY_S, written.began), written.through, found)


def of_samples(
    samples: Mapping[What, Iterable[tuple[Series, Points]]], start: int, end: int, step_s: float
) -> Account:
    """What counters have grown by, and gauges of quota have stood for; points are `step_s` apart where there are any.

    A counter that begins after any other did has grown from nothing, for all are shown together; one that falls back has begun anew.
    """
    found: dict[Series, Amounts] = {}
    seen = {what: [(series, points) for series, points in some if points] for what, some in samples.items()}
    first = min(
        (points[0][0] for what, lines in seen.items() if what is not What.QUOTA for _, points in lines),
        default=0.0,
    )
    for what, lines in seen.items():
        for series, points in lines:
            value = _stood(points, step_s) if what is What.QUOTA else _grown(points, first)
            found.setdefault(series, [0, 0, 0])[what] += round(value * 1000)
    return Account(start, end, found)


def _grown(points: Points, first: float) -> float:
    grown, before = 0.0, points[0][1] if points[0][0] == first else 0.0
    for _, value in points:
        grown += value - before if value >= before else value
        before = value
    return grown


def _stood(points: Points, step_s: float) -> float:
    followers = [moment for moment, _ in points[1:]]
    return sum(
        value * min(step_s, following - moment)
        for (moment, value), following in zip(points, followers, strict=False)
    )
