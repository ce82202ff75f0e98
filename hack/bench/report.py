"""The results: rows, whether they reach their targets, as a table for people and as JSON for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isinf
from typing import Any, Literal

from hack.bench.clock import quotient

_HEADER = ("what", "figure", "floor", "ratio", "target", "reached")
_RIGHT = frozenset({1, 2, 3})


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on the figure, in its unit, or on its ratio to the floor."""

    of: Literal["figure", "ratio"]
    relation: Literal["<", "<=", ">="]
    bound: float

    def met_by(self, figure: float, ratio: float) -> bool:
        """Whether a measured pair is within the bound."""
        value = figure if self.of == "figure" else ratio
        match self.relation:
            case "<":
                return value < self.bound
            case "<=":
                return value <= self.bound
            case ">=":
                return value >= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `ratio` is the median over the rounds, so it need not be the quotient of the two medians.

    `target` is None for a figure that only informs, and where a smaller size was measured than the target names.
    """

    benchmark: str
    what: str
    figure: float
    floor: float
    ratio: float
    unit: str
    floor_is: str
    target: Target | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; None without one."""
        return None if self.target is None else self.target.met_by(self.figure, self.ratio)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows of one benchmark, each measured once, as `before`, `what` and `after` say; no target counts unless `judged`."""

    benchmark: str
    judged: bool
    before: str = ""
    after: str = ""

    def row(
        self, what: str, unit: str, figure: float, floor: float, floor_is: str, target: Target | None = None
    ) -> Row:
        """One row, whose ratio is the quotient of figure and floor."""
        return Row(
            benchmark=self.benchmark,
            what=f"{self.before}{what}{self.after}",
            figure=figure,
            floor=floor,
            ratio=quotient(figure, floor),
            unit=unit,
            floor_is=floor_is,
            target=target if self.judged else None,
        )


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as plain data."""
    return [
        {
            "benchmark": row.benchmark,
            "what": row.what,
            "figure": row.figure,
            "floor": row.floor,
            "ratio": row.ratio,
            "unit": row.unit,
            "floorIs": row.floor_is,
            "target": None if row.target is None else _target(row),
            "reached": row.reached,
        }
        for row in rows
    ]


def as_table(rows: Sequence[Row]) -> str:
    """One block for each benchmark and kind of floor, all with the same columns."""
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(_HEADER, *cells, strict=True)]
    lines: list[str] = []
    for (benchmark, floor_is), group in groupby(
        zip(rows, cells, strict=True), key=lambda pair: (pair[0].benchmark, pair[0].floor_is)
    ):
        lines += ["", f"{benchmark}; the floor: {floor_is}", _line(_HEADER, widths)]
        lines += [_line(row_cells, widths) for _, row_cells in group]
    return "\n".join(lines[1:])


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "yes", False: "NO", None: "-"}[row.reached]
    return (
        row.what,
        f"{_number(row.figure)} {row.unit}",
        f"{_number(row.floor)} {row.unit}",
        _number(row.ratio),
        "-" if row.target is None else _target(row),
        verdict,
    )


def _target(row: Row) -> str:
    assert row.target is not None, "only called for rows with a target"
    bound = f"{row.target.bound:g}"
    return (
        f"{row.target.relation} {bound}x"
        if row.target.of == "ratio"
        else f"{row.target.relation} {bound} {row.unit}"
    )


def _number(value: float) -> str:
    """Three significant digits, but whole numbers from 100 on in full; a dash for what is infinite."""
    if isinf(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if number in _RIGHT else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return ("  " + "  ".join(padded)).rstrip()
