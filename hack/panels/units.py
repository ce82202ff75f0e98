"""Values as the dashboards' units write them, and round places for the marks of an axis."""

import math
from collections.abc import Callable, Mapping
from typing import Final

_SPANS: Final = (
    (86_400.0, "d"),
    (3_600.0, "h"),
    (60.0, "min"),
    (1.0, "s"),
    (1e-3, "ms"),
    (1e-6, "µs"),
    (0.0, "ns"),
)
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


class UnknownUnitError(ValueError):
    """A unit that is not written here; Grafana may know it."""


def write(value: float, unit: str) -> str:
    """A value with its unit, in Grafana's name for that. Raises `UnknownUnitError`."""
    writer = _WRITERS.get(unit)
    if writer is None:
        raise UnknownUnitError(f"no way to write {unit!r}; known: {', '.join(sorted(_WRITERS))}")
    return writer(value)


def marks(most: float, unit: str, about: int = 4) -> list[float]:
    """Round values from 0 to at least `most`, about so many; 0 and 1 where nothing is above 0."""
    if most <= 0:
        return [0.0, 1.0]
    if unit == "s" and most > 1:
        size = next(size for size, _ in _SPANS if size <= most)
        return [mark * size for mark in marks(most / size, "short", about)]
    rough = most / about
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(each * scale for each in _STEPS if each * scale >= rough * (1 - 1e-9))
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def _number(value: float) -> str:
    for scale, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= scale:
            return f"{value / (1e3 if sign == 'k' else scale):.4g}{sign}"
    return f"{value:.4g}"


def _span(value: float) -> str:
    for size, sign in _SPANS:
        if abs(value) >= size and size:
            return f"{value / size:.3g} {sign}"
    return "0 s" if not value else f"{value * 1e9:.3g} ns"


_WRITERS: Final[Mapping[str, Callable[[float], str]]] = {
    "short": _number,
    "s": _span,
    "percentunit": lambda value: f"{value * 100:.4g} %",
    "ops": lambda value: f"{_number(value)}/s",
    "opm": lambda value: f"{_number(value)}/min",
}
