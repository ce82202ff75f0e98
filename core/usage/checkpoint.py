"""What is written down of the sums, so that whoever leads next goes on from there: the data of a ConfigMap.

Beside the sums it names the pods that are in them, by the first bytes of a digest of their UIDs: those that wait, those that use
their cards, those that have ended lately. With that nothing is counted twice, whatever a later leader sees of them.
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple

from core.steps import Pace, Steps, finish
from core.usage.sums import DAY_S, Amounts, Series, Sums, What
from core.usage.tally import KEPT_DAYS, Tally, first_kept

VERSION: Final = 1
SUMS_MOST: Final = 600_000
"""Bytes of all sums. Above that the oldest days lose themselves in what was before them. With the pods that are named it fits
into a ConfigMap, which takes 1 MiB."""

DIGEST_BYTES: Final = 8

_HEAD: Final = "usage.json"
_SERIES: Final = "series.json"
_BEFORE: Final = "before.json"
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal() - _EPOCH
_IN_A_STEP: Final = 100
_LISTS: Final = ("waiting", "using", "ended")


class CheckpointError(ValueError):
    """What was written down cannot be read."""


class UnknownVersionError(CheckpointError):
    """It was written by a later version of cardquota."""


class Listed(NamedTuple):
    """The digests of the pods that are in the sums, one after the other. `partial` says that not all are named that go on."""

    waiting: bytes
    using: bytes
    ended: bytes
    partial: bool


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was written down; moments in seconds since 1970. `sums` are of all that was seen until `through`."""

    began: int
    through: int
    partial: bool
    sums: Sums
    waiting: frozenset[bytes]
    using: frozenset[bytes]
    ended: frozenset[bytes]

    def tally(self) -> Tally:
        """One that goes on from here. Once: it has the sums afterwards."""
        return Tally(self.sums, self.through, self.began)


@dataclass(frozen=True, slots=True)
class Written:
    """`data` and `binaryData` of the ConfigMap, and how many bytes they are."""

    data: dict[str, str]
    binary: dict[str, str]
    size: int


class Scribe:
    """Writes the sums of one tally down, again and again: days that have not changed are taken over as they were written."""

    def __init__(self) -> None:
        self._tally: Tally | None = None
        self._texts: dict[int, str] = {}
        self._places: dict[Series, int] = {}

    def prepare(self, tally: Tally) -> Steps[None]:
        """Writes what has changed before, for as long as nothing changes again: so that `write` has the last day to write as a rule."""
        sums = tally.sums
        if self._tally is not tally or not self._places.keys() <= sums.total.keys():
            self._tally, self._texts, self._places = tally, {}, {}
        for day in sorted(sums.days.keys() | {sums.first_day - 1}):
            if day not in sums.touched and day in self._texts:
                continue
            sums.touched.discard(day)
            table = sums.before if day < sums.first_day else sums.days.get(day, {})
            for series in table:
                self._places.setdefault(series, len(self._places))
            self._texts[day] = self._text(table)
            yield

    def write(self, tally: Tally, listed: Listed) -> Written:
        """All of it, as of `tally.through`."""
        sums = tally.sums
        while True:
            finish(self.prepare(tally))
            for day in self._texts.keys() - sums.days.keys() - {sums.first_day - 1}:
                del self._texts[day]
            names = f"[{','.join(series.written() for series in self._places)}]"
            size = len(names.encode()) + sum(map(len, self._texts.values()))
            if size <= SUMS_MOST or len(sums.days) <= 1:
                break
            sums.keep_from(min(sums.days) + 1)
        head = {
            "version": VERSION,
            "began": tally.began,
            "through": tally.through,
            "firstDay": sums.first_day,
        }
        data = {_HEAD: _json({**head, "partial": listed.partial}), _SERIES: names}
        for day, text in sorted(self._texts.items()):
            data[_BEFORE if day < sums.first_day else f"{_name(day)}.json"] = text
        lists = {name: getattr(listed, name) for name in _LISTS}
        binary = {name: b64encode(digests).decode() for name, digests in lists.items() if digests}
        return Written(data, binary, size + sum(map(len, lists.values())))

    def _text(self, table: Mapping[Series, Amounts]) -> str:
        return _json(
            {str(self._places[series]): amounts for series, amounts in table.items() if any(amounts)}
        )


def decode(data: Mapping[str, Any], binary: Mapping[str, Any]) -> Checkpoint | None:
    """What a ConfigMap has; None where nothing was written yet. Raises CheckpointError."""
    return finish(decoding(data, binary))


def decoding(data: Mapping[str, Any], binary: Mapping[str, Any]) -> Steps[Checkpoint | None]:
    """The same in steps."""
    if not data and not binary:
        return None
    head = _object(data, _HEAD)
    if head.get("version") != VERSION:
        raise UnknownVersionError(f"{_HEAD}: version {head.get('version')!r} is not known")
    began, through = (_moment(head, key) for key in ("began", "through"))
    first_day = _within(head, "firstDay", -KEPT_DAYS, _LAST_DAY)
    names = [_series(each) for each in _loaded(data, _SERIES, list)]
    sums = Sums(first_day)
    for key in data:
        if key not in (_HEAD, _SERIES):
            yield from _load(sums, _day(key, first_day), names, _object(data, key), key)
    # As whoever wrote it did. A hand may have changed the one and not the other.
    sums.keep_from(first_kept(through))
    sums.touched.clear()
    lists = (_digests(binary, name) for name in _LISTS)
    return Checkpoint(began, through, head.get("partial") is True, sums, *lists)


def _load(sums: Sums, day: int, names: list[Series], table: Mapping[str, Any], key: str) -> Steps[None]:
    pace = Pace(_IN_A_STEP)
    for place, amounts in table.items():
        if pace.due():
            yield
        known = place.isdecimal() and int(place) < len(names)
        if not known or not isinstance(amounts, list) or len(amounts) != len(What):
            raise CheckpointError(f"{key}: {place} is not understood")
        sums.load(day, names[int(place)], [_whole(amount, key) for amount in amounts])


def _name(day: int) -> str:
    return date.fromordinal(day + _EPOCH).isoformat()


def _day(key: str, first_day: int) -> int:
    if key == _BEFORE:
        return first_day - 1
    try:
        day = date.fromisoformat(key.removesuffix(".json")).toordinal() - _EPOCH
    except ValueError:
        raise CheckpointError(f"{key} is not a day") from None
    if day < first_day:
        raise CheckpointError(f"{key} lies before the first day")
    return day


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _loaded(data: Mapping[str, Any], key: str, kind: type) -> Any:
    try:
        value = json.loads(data.get(key, ""))
    except (TypeError, ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise CheckpointError(f"{key} is missing or cannot be read")
    return value


def _object(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    found: dict[str, Any] = _loaded(data, key, dict)
    return found


def _whole(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise CheckpointError(f"{key}: {value!r} is no whole number")
    return value


def _within(head: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = _whole(head.get(key), key)
    if not least <= value <= most:
        raise CheckpointError(f"{_HEAD}: {key} {value} makes no sense")
    return value


def _moment(head: Mapping[str, Any], key: str) -> int:
    """In seconds since 1970: later ones than a calendar has are of another unit."""
    return _within(head, key, 0, (_LAST_DAY + 1) * DAY_S - 1)


def _series(value: object) -> Series:
    if (
        not isinstance(value, list)
        or len(value) != len(Series._fields)
        or not all(isinstance(part, str) for part in value)
    ):
        raise CheckpointError(f"{_SERIES}: {value!r} is no series")
    return Series(*value)


def _digests(binary: Mapping[str, Any], name: str) -> frozenset[bytes]:
    try:
        raw = b64decode(binary.get(name, ""), validate=True)
    except (Base64Error, TypeError, ValueError):
        raise CheckpointError(f"{name} cannot be read") from None
    if len(raw) % DIGEST_BYTES:
        raise CheckpointError(f"{name} is cut off")
    return frozenset(raw[at : at + DIGEST_BYTES] for at in range(0, len(raw), DIGEST_BYTES))
