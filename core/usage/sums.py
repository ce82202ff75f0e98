"""Card-seconds by series and day; whole numbers throughout."""

import json
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

DAY_S: Final = 86_400

Amounts = list[int]
"""Thousandths of a card times seconds: used, waited, quota; in the order of `What`."""


class What(IntEnum):
    """What is summed up."""

    USED = 0
    """From when a pod got its node until it gave its quota back."""
    WAITED = 1
    """From a pod's creation until it got its node, or was given up."""
    QUOTA = 2
    """What the queue could have used: its quota for as long as it stood."""


class Series(NamedTuple):
    """Whose seconds they are. Of a quota `namespace` and `kind` are empty."""

    queue: str
    card: str
    namespace: str
    kind: str

    def written(self) -> str:
        """Its names as they are written down."""
        return json.dumps(self, separators=(",", ":"), ensure_ascii=False)


class Sums:
    """Sums of each day (UTC, as days since 1970), of all days before the first one that is kept, and of both together.

    Time may be added backwards, from a later to an earlier moment: that takes away what was added too much.
    """

    def __init__(self, first_day: int) -> None:
        self.first_day = first_day
        self.days: dict[int, dict[Series, Amounts]] = {}
        self.before: dict[Series, Amounts] = {}
        self.total: dict[Series, Amounts] = {}
        self.names_size = 0
        """Bytes of the names of all series that have a total."""
        self.touched: set[int] = set()
        """Days that have changed; whoever keeps a copy takes them out. What is before has the day before the first."""

    def add(self, series: Series, what: What, milli: int, start: int, end: int) -> None:
        """Adds `milli` thousandths of a card from `start` to `end`, in seconds since 1970."""
        if start == end or not milli:
            return
        self.place(series)[what] += milli * (end - start)
        for day, seconds in self._spread(start, end):
            self.add_to_day(day, series, what, milli * seconds)

    def add_to_day(self, day: int, series: Series, what: What, amount: int) -> None:
        """Adds to one day, or to what is before the first, and not to the total."""
        if day < self.first_day:
            self.touched.add(self.first_day - 1)
            self._put(self.before, series, what, amount)
        else:
            self.touched.add(day)
            self._put(self.days.setdefault(day, {}), series, what, amount)

    def load(self, day: int, series: Series, amounts: Amounts) -> None:
        """Adds what was kept of a day."""
        for what in What:
            if amounts[what]:
                self.add_to_day(day, series, what, amounts[what])
                self.place(series)[what] += amounts[what]

    def place(self, series: Series) -> Amounts:
        """The total of a series, which has a place from now on, even before it has any seconds."""
        total = self.total.get(series)
        if total is None:
            total = self.total[series] = [0, 0, 0]
            self.names_size += _size(series)
        return total

    def keep_from(self, first_day: int) -> None:
        """Puts the days before this one together."""
        if first_day <= self.first_day:
            return
        for day in sorted(self.days):
            if day < first_day:
                for series, amounts in self.days.pop(day).items():
                    for what in What:
                        self._put(self.before, series, what, amounts[what])
        self.first_day = first_day
        self.touched.add(first_day - 1)

    def begin_again(self, first_day: int) -> None:
        """Tells days apart from this one on, which is earlier than the first one now: the clock that said so was ahead.

        What lies before it stays together. Later days stay for the case that it is now that a clock is wrong, but for those that have
        nothing left once their time was taken back.
        """
        self.first_day = first_day
        self.touched.add(first_day - 1)
        for day, table in list(self.days.items()):
            left = {series: amounts for series, amounts in table.items() if any(amounts)}
            self.days[day] = left
            if not left:
                del self.days[day]

    def forget(self, series: Series) -> None:
        """Drops a series, which no kept day has."""
        self.before.pop(series, None)
        if self.total.pop(series, None) is not None:
            self.names_size -= _size(series)

    def _spread(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The days between two moments and the seconds of each; all before the first kept day as one."""
        if end < start:
            yield from ((day, -seconds) for day, seconds in self._spread(end, start))
            return
        first = self.first_day * DAY_S
        if start < first:
            yield self.first_day - 1, min(end, first) - start
            start = first
        while start < end:
            day = start // DAY_S
            until = min(end, (day + 1) * DAY_S)
            yield day, until - start
            start = until

    @staticmethod
    def _put(table: dict[Series, Amounts], series: Series, what: What, amount: int) -> None:
        amounts = table.get(series)
        if amounts is None:
            amounts = table[series] = [0, 0, 0]
        amounts[what] += amount


def _size(series: Series) -> int:
    return len(series.written().encode())
