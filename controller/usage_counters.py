"""Card-seconds as counters, summed up to the moment at which the page is asked for; only the leader shows them."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from prometheus_client.core import Metric, Sample
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from controller.series import escaped
from core.steps import Steps, finish
from core.usage.courses import Courses
from core.usage.sums import Series, What
from core.usage.tally import Tally
from kube.metrics import LongFamily

LABELS: Final = ("queue", "card", "namespace", "kind")
"""In the order of the fields of a Series."""

_FAMILIES: Final = {
    What.USED: (
        "cardquota_card_seconds",
        "Cards, shares of mGPU cards and devices of claims that pods have used, from when they got their node until they gave their quota back, in card-seconds.",
    ),
    What.WAITED: (
        "cardquota_card_waiting_seconds",
        "Cards, shares of mGPU cards and devices of claims that pods have waited for, from their creation until they got their node or were given up, in card-seconds.",
    ),
}
_PUT_RIGHT_S: Final = 300
"""A clock that steps back by more than this was ahead before."""

_SHOWN: Final = sorted(range(len(LABELS)), key=LABELS.__getitem__)
_PER_STEP: Final = 100


class _Shown:
    """One family as it has been shown, by sums that began at one moment."""

    def __init__(self, began: int = 0) -> None:
        self.began = began
        self.values: dict[Series, int] = {}
        self._latest = 0
        self._ahead: dict[Series, int] = {}
        """What a clock that was ahead had shown too much."""

    def show(self, tally: Tally, what: What, now: int) -> Steps[None]:
        """Brings the values up to date."""
        values, ahead = dict[Series, int](), dict[Series, int]()
        put_right, self._latest = now < self._latest - _PUT_RIGHT_S, now
        for number, series in enumerate(tuple(tally.series())):
            if number % _PER_STEP == _PER_STEP - 1:
                yield
            summed, shown = tally.now(series, what, now), self.values.get(series, 0)
            ahead[series] = max(0, shown - summed) if put_right else self._ahead.get(series, 0)
            if value := max(summed + ahead[series], shown):
                values[series] = value
        self.values, self._ahead = values, ahead


class UsageCounters(Collector):
    """`now` is the wall clock in seconds since 1970, `summing` says whether the sums are complete, `leading` whether they are to be shown at all.

    A counter never goes back, for Prometheus would take all of it for new: what turns out to have ended earlier than was thought makes it
    stand still for as long, and when a clock that was ahead is put right, it goes on from where it is. Only sums that have begun
    anew, because what was written down is lost, begin at nothing.
    """

    def __init__(
        self,
        courses: Courses,
        now: Callable[[], int],
        leading: Callable[[], bool],
        summing: Callable[[], bool],
    ) -> None:
        self._courses = courses
        self._now = now
        self._leading = leading
        self._summing = summing
        self._shown = {what: _Shown() for what in _FAMILIES}

    @property
    def label_names(self) -> dict[str, tuple[str, ...]]:
        """The labels of each family."""
        return {name: LABELS for name, _ in _FAMILIES.values()}

    def collect(self) -> Iterator[Metric]:
        """Both families."""
        for what, (name, text) in _FAMILIES.items():
            yield _Counters(name, text, what, self)

    def values(self, what: What) -> Steps[list[tuple[Series, int]]]:
        """Thousandths of a card times seconds, as of now; what has never been anything is left out."""
        tally = self._courses.tally
        if tally is None or not self._leading():
            return []
        if self._summing():
            if tally.began != self._shown[what].began:
                self._shown[what] = _Shown(tally.began)
            yield from self._shown[what].show(tally, what, self._now())
        return sorted(self._shown[what].values.items())


class _Counters(LongFamily):
    def __init__(self, name: str, documentation: str, what: What, counters: UsageCounters) -> None:
        super().__init__(name, documentation, "counter")
        self._what = what
        self._counters = counters

    def all_samples(self) -> list[Sample]:
        return [
            Sample(f"{self.name}_total", dict(zip(LABELS, series, strict=True)), value / 1000)
            for series, value in finish(self._counters.values(self._what))
        ]

    def lines(self) -> Steps[list[str]]:
        values, texts = iter((yield from self._counters.values(self._what))), list[str]()
        while some := list(islice(values, _PER_STEP)):
            texts.append("".join(self._line(*each) for each in some))
            yield
        return texts

    def _line(self, series: Series, value: int) -> str:
        """As prometheus_client writes it."""
        pairs = ",".join(f'{LABELS[place]}="{escaped(series[place])}"' for place in _SHOWN)
        number: str = floatToGoString(value / 1000)  # type: ignore[no-untyped-call] # as in controller.series
        return f"{self.name}_total{{{pairs}}} {number}\n"
