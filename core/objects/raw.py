"""Tolerant reading of raw JSON: a value of the wrong type is read as absent."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from core import quantity

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING: Final[Mapping[str, Any]] = {}
_LONGEST_TIME: Final = 40
"""Characters; the longest that is written is shorter. What is remembered is bounded, whatever somebody sends."""


def mapping(raw: object, *path: str) -> Mapping[str, Any]:
    """The object at `path`, or an empty one."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else _NOTHING


def entries(raw: object, *path: str) -> Iterator[tuple[str, Any]]:
    """The entries of the object at `path`. YAML, unlike JSON, has keys of any type; those are left out."""
    found: Mapping[Any, Any] = mapping(raw, *path)
    return ((key, value) for key, value in found.items() if isinstance(key, str))


def sequence(raw: object, *path: str) -> list[Any]:
    """The list at `path`, or an empty one."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw if isinstance(raw, list) else []


def part(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`, or an empty one; as `mapping`, in half the time."""
    value = raw.get(key)
    return value if isinstance(value, dict) else _NOTHING


def listed(raw: Mapping[str, Any], key: str) -> list[Any]:
    """The list under `key`, or an empty one; as `sequence`, in half the time."""
    value = raw.get(key)
    return value if isinstance(value, list) else []


def text(raw: Mapping[str, Any], key: str) -> str:
    """The string under `key`, or an empty one."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def integer(raw: Mapping[str, Any], key: str, default: int = 0) -> int:
    """The whole number under `key`, or the default; a boolean is no number."""
    value = raw.get(key)
    return value if type(value) is int else default


def texts(raw: object, *path: str) -> dict[str, str]:
    """The string entries of the object at `path` (labels, annotations, a node selector)."""
    found: Mapping[Any, Any] = mapping(raw, *path)
    return {key: value for key, value in found.items() if isinstance(value, str) and isinstance(key, str)}


def resources(raw: object, *path: str) -> dict[str, int]:
    """The resource list at `path` in thousandths, rounded up; what is no quantity is left out."""
    result: dict[str, int] = {}
    found: Mapping[Any, Any] = mapping(raw, *path)
    for name, value in found.items():
        if isinstance(name, str):
            try:
                result[name] = quantity.milli(value)
            except quantity.QuantityError:
                continue
    return result


def timestamp(value: object) -> int:
    """Microseconds since 1970 of an RFC 3339 text; 0 when absent or unreadable.

    An integer, so that two creation times compare exactly.
    """
    return _microseconds(value) if isinstance(value, str) and 0 < len(value) <= _LONGEST_TIME else 0


@lru_cache(maxsize=4096)
def _microseconds(text: str) -> int:
    """Remembered, as the same moments are read over and over: with each state of an object, and of all made in a second."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
