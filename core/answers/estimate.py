"""When a waiting pod may start: a range, from the rate at which cards of its queue came free lately.

Ends are taken for independent of each other: then the time until m more of them, after n were seen in a time W, is W times the
ratio of two gamma variables of shapes m and n, whatever the rate is (a beta prime distribution). Nothing is decided by this, so
it may be reckoned in floating point.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, floor, lgamma, log, log1p
from typing import Final

from core import reasons
from core.answers.explain import Explanation
from core.cards.expression import split

_LATELY: Final = 60
"""Ends before the last so many are not looked at: the rate of last month is not that of today."""
_FEWEST: Final = 4
_AT_ONCE: Final = 60_000_000
"""Microseconds. Pods that end within them, as those of one gang, ended together."""
_OUTSIDE: Final = 0.015
"""The chance that is left to either side, were ends as independent as they are taken for."""
_MOST: Final = 2000
_CLOSE_ENOUGH: Final = 60


@dataclass(frozen=True, slots=True)
class Freed:
    """A pod of the queue that has ended: when, in microseconds since 1970, and what it gave back, in thousandths."""

    at: int
    milli: int


@dataclass(frozen=True, slots=True)
class Start:
    """From so many microseconds on, and until so many; `latest` is None where others may go first again and again."""

    earliest: int
    latest: int | None
    key: str
    needed: int
    """What has to come free, in thousandths of `key`."""
    ends: int
    freed: int
    over: int
    """On what it rests: so many ends gave back so much, in so many microseconds."""


def cards_waited_for(found: Explanation) -> tuple[str, ...]:
    """The cards of which one has to come back for the pod to start; none where it waits for something else."""
    asked = found.entry.demand.card
    if found.hold is None or found.hold.why.code != reasons.INSUFFICIENT_SCALAR_QUOTA or asked is None:
        return ()
    # What ends in queues beside this one frees the quota of one above, and nothing of that is seen here.
    above = {figure.key for figure in found.figures if figure.queue not in ("", found.entry.queue)}
    return tuple(card for card in asked.alternatives if card not in above)


def start_among(found: Explanation, ended: Mapping[str, Sequence[Freed]], now: int) -> Start | None:
    """The range for a pod that starts with whichever of its cards comes first; `ended` are the ends by card.

    What is not known of one card leaves the end of the range to the others, and its beginning open.
    """
    cards = [card for card in cards_waited_for(found) if _ever(found, card)]
    ranges = [start_of(found, ended.get(card, ()), now, card) for card in cards]
    known = [one for one in ranges if one is not None]
    if not known:
        return None
    first = min(known, key=lambda one: (one.latest is None, one.latest or one.earliest))
    earliest = min(one.earliest for one in known) if len(known) == len(ranges) else 0
    return replace(first, earliest=earliest)


def silence(found: Explanation, ended: Mapping[str, Sequence[Freed]]) -> str:
    """Why no range is told of a pod that waits for cards of its queue; empty for any other."""
    cards = [card for card in cards_waited_for(found) if _ever(found, card)]
    if not cards:
        return "the quota is too small for it, however long it waits" if cards_waited_for(found) else ""
    seen = max(len(_together(ended.get(card, ()))) for card in cards)
    ends = {0: "no end is", 1: "1 end is"}.get(seen, f"{seen} ends are")
    return f"{ends} to be seen that gave back {' or '.join(cards)} in this queue, and it takes {_FEWEST + 1}"


def _ever(found: Explanation, key: str) -> bool:
    """Whether the quota of a card would suffice, were nobody else there."""
    figure = next((one for one in found.figures if one.key == key), None)
    return figure is not None and figure.limit is not None and figure.asked <= figure.limit


def start_of(found: Explanation, ended: Sequence[Freed], now: int, key: str) -> Start | None:
    """The range for a pod that waits for a card; None without enough history, or where no waiting helps.

    `ended` are the ends in its queue as far as they are known; what came free before the first of them is not looked at.
    """
    figure = next((one for one in found.figures if one.key == key), None)
    if figure is None or not _ever(found, key):
        return None
    events = _together(ended)[-_LATELY - 1 :]
    seen, over = events[1:], now - events[0].at if events else 0
    if len(seen) < _FEWEST or over <= 0:
        return None
    least, most = _needed(found, key)
    freed = sum(one.milli for one in seen)
    rate = freed / len(seen)
    soonest = min(_MOST, max(1, floor(least / max(one.milli for one in seen))))
    latest = min(_MOST, max(1, ceil(most / rate * (1 + _unevenness(seen, rate)))))
    passed = not found.place or (not found.place.fifo and figure.asked > min(one.milli for one in seen))
    return Start(
        earliest=round(over * _quantile(_OUTSIDE, soonest, len(seen))),
        latest=None if passed else round(over * _quantile(1 - _OUTSIDE, latest, len(seen))),
        key=key,
        needed=least,
        ends=len(seen),
        freed=freed,
        over=over,
    )


def _needed(found: Explanation, key: str) -> tuple[int, int]:
    """What has to come free at least, and when all of those before it are served first."""
    figure = next(one for one in found.figures if one.key == key)
    # Whoever has a choice before it may take this card.
    before = sum(
        milli
        for one in (found.place.before if found.place else ())
        for asked, milli in one.asks.items()
        if key in split(asked)
    )
    most = figure.missing + before
    tried = [
        remedy.steps[0].amount
        for remedy in found.remedies
        if len(remedy.steps) == 1 and (remedy.steps[0].action, remedy.steps[0].key) == ("raise", key)
    ]
    least = min([*tried, most])
    return max(1, least), max(1, most)


def _together(ended: Sequence[Freed]) -> list[Freed]:
    events: list[Freed] = []
    for one in sorted(ended, key=lambda each: each.at):
        if events and one.at - events[-1].at < _AT_ONCE:
            events[-1] = Freed(events[-1].at, events[-1].milli + one.milli)
        else:
            events.append(one)
    return events


def _unevenness(seen: Sequence[Freed], mean: float) -> float:
    """The squared coefficient of variation of what one end gives back."""
    return sum((one.milli - mean) ** 2 for one in seen) / len(seen) / mean**2


def _quantile(chance: float, m: int, n: int) -> float:
    """Of the ratio of two gamma variables of shapes m and n."""
    low, high = 0.0, 1.0
    below = _below(m, n)
    for _ in range(_CLOSE_ENOUGH):
        middle = (low + high) / 2
        if below(middle) < chance:
            low = middle
        else:
            high = middle
    return high / (1 - high) if high < 1 else float(_MOST)


def _below(m: int, n: int) -> Callable[[float], float]:
    """The beta distribution for whole shapes: the chance of m or more successes in m + n - 1 trials of chance p."""
    trials = m + n - 1
    ways = [lgamma(trials + 1) - lgamma(k + 1) - lgamma(trials - k + 1) for k in range(m, trials + 1)]

    def chance(p: float) -> float:
        if p <= 0 or p >= 1:
            return float(p >= 1)
        yes, no = log(p), log1p(-p)
        return sum(exp(way + k * yes + (trials - k) * no) for k, way in enumerate(ways, m))

    return chance
