"""The sums of all queues at any moment: what has been counted until then, and at which rate it goes on.

Nothing is counted by a timer. What is open grows with time by itself; a pod that begins or ends is taken in with the moments
that it names itself, however late it is seen.
"""

from collections.abc import Iterator
from typing import Final

from core.usage.course import Piece
from core.usage.sums import DAY_S, Amounts, Series, Sums, What

OTHER: Final = "_other"
"""Stands for queue, card and namespace of what has no series of its own, for there are too many; nobody can be named so."""

SERIES_MOST: Final = 2_000
"""So many series are told apart ..."""

NAMES_MOST: Final = 350_000
"""... whose names are so many bytes together: whoever creates pods may choose the longest ones. With them, one day and what was
before it is less than what may be written down, see core.usage.checkpoint.SUMS_MOST."""

NAME_MOST: Final = 253
"""Whose name is longer is not told apart: pods may wait for cards with any name."""

KEPT_DAYS: Final = 35


def first_kept(now: int) -> int:
    """The first of the days that are told apart."""
    return now // DAY_S - KEPT_DAYS + 1


class Tally:
    """Sums, and for each series the thousandths of a card that are open now. `through` is until when all of it is in the sums."""

    def __init__(self, sums: Sums, through: int, began: int) -> None:
        self.sums = sums
        self.through = through
        self.began = began
        """Since when it has been counted, in seconds since 1970; what was before is not known."""
        self.rates: dict[Series, Amounts] = {}

    @classmethod
    def new(cls, now: int) -> "Tally":
        """One that begins now."""
        return cls(Sums(first_kept(now)), now, now)

    def admitted(self, series: Series) -> Series:
        """The series itself, or the one in which it is counted where there are too many."""
        if series in self.sums.total or series in self.rates:
            return series
        room = len(self.sums.total) < SERIES_MOST and self.sums.names_size < NAMES_MOST
        if room and max(map(len, series)) <= NAME_MOST:
            return series
        return Series(OTHER, OTHER, OTHER if series.namespace else "", series.kind)

    def apply(self, piece: Piece, sign: int = 1) -> None:
        """Takes a piece in, or out again with a `sign` of -1."""
        for series, milli in piece.charge:
            if piece.end is not None:
                self.sums.add(series, piece.what, sign * milli, piece.start, piece.end)
            else:
                self.go_on(series, piece.what, sign * milli, piece.start)

    def go_on(self, series: Series, what: What, milli: int, since: int) -> None:
        """So much more, or less, is open since then."""
        rate = self.rates.setdefault(series, [0, 0, 0])
        rate[what] += milli
        if not any(rate):
            del self.rates[series]
        self.sums.place(series)
        self.sums.add(series, what, milli, since, self.through)

    def cut(self, now: int) -> None:
        """Takes all that is open into the sums until now; what is older than the kept days loses its day.

        It loses it first: time is added day by day, and the last cut may have been long ago.
        """
        first = first_kept(now)
        if first > self.sums.first_day:
            self.sums.keep_from(first)
            self._forget_unused()
        for series, rate in self.rates.items():
            for what in What:
                self.sums.add(series, what, rate[what], self.through, now)
        self.through = now
        tomorrow = now // DAY_S + 1
        if self.sums.first_day > tomorrow:
            self.sums.begin_again(tomorrow)

    def now(self, series: Series, what: What, now: int) -> int:
        """The sum of a series as of now."""
        total, rate = self.sums.total.get(series), self.rates.get(series)
        counted = total[what] if total is not None else 0
        return counted + (rate[what] * (now - self.through) if rate is not None else 0)

    def series(self) -> Iterator[Series]:
        """All that there are."""
        return iter(self.sums.total)

    def _forget_unused(self) -> None:
        """Whoever has used nothing for as long as days are kept makes room."""
        used = set(self.rates).union(*self.sums.days.values())
        for series in [one for one in self.sums.total if one not in used]:
            self.sums.forget(series)
