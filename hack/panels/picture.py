"""One panel as an SVG: lines or stacked areas over time, or bars of the values that stand now."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from hack.panels import units

WIDTH: Final = 640
_HEIGHT: Final = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 12, 34, 88
_LEGEND_ROWS: Final = 3
_LEGEND_ROW: Final = 16
_CHARACTER: Final = 6.4
_BAR: Final = 18
_BARS_MOST: Final = 40
_COLOURS: Final = (
    "#3274d9",
    "#e0752d",
    "#56a64b",
    "#c4162a",
    "#8f3bb8",
    "#0a9396",
    "#b8860b",
    "#d6336c",
    "#5c6bc0",
    "#7a6a58",
)


@dataclass(frozen=True, slots=True)
class Named:
    """A line, or with one point a bar, under the name that the legend gives it; moments in seconds since 1970."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Frame:
    """What is drawn around the values."""

    title: str
    unit: str
    start: float
    end: float
    stacked: bool = False
    most: float = 0.0
    """What a whole bar stands for at least."""


def lines(frame: Frame, series: Sequence[Named]) -> str:
    """Values over time. Without any it says so."""
    tops = _tops(series) if frame.stacked else [dict(one.points) for one in series]
    most = max((value for top in tops for value in top.values()), default=0.0)
    marks = units.marks(most, frame.unit)
    return _svg(_HEIGHT, frame.title, [*_grid(frame, marks), *_drawn(frame, series, tops, marks[-1])])


def bars(frame: Frame, series: Sequence[Named]) -> str:
    """The last value of each series, the greatest first."""
    ranked = sorted(((one.points[-1][1], one.name) for one in series if one.points), reverse=True)
    shown = ranked[:_BARS_MOST]
    left = min(WIDTH // 2, 20 + int(_CHARACTER * max((len(name) for _, name in shown), default=0)))
    room, most = WIDTH - left - 110, max((value for value, _ in shown), default=0.0)
    most = max(most, frame.most)
    full = room / (most or 1.0)
    drawn = [] if shown else [_no_data(_TOP + 40)]
    for place, (value, name) in enumerate(shown):
        y = _TOP + place * _BAR
        drawn.append(_text(left - 6, y + 12, name, anchor="end"))
        drawn.append(
            f'<rect x="{left}" y="{y}" width="{max(1.0, value * full):.1f}" height="{_BAR - 5}" fill="{_COLOURS[0]}"/>'
        )
        drawn.append(_text(left + max(1.0, value * full) + 6, y + 12, units.write(value, frame.unit)))
    if len(ranked) > len(shown):
        drawn.append(
            _text(left, _TOP + len(shown) * _BAR + 12, f"and {len(ranked) - len(shown)} more", anchor="start")
        )
    return _svg(_TOP + (max(len(shown), 3) + 2) * _BAR, frame.title, drawn)


def _tops(series: Sequence[Named]) -> list[dict[float, float]]:
    """Where each of the areas ends that lie on one another, at its moments."""
    below: dict[float, float] = {}
    tops = []
    for one in series:
        for moment, value in one.points:
            below[moment] = below.get(moment, 0.0) + value
        tops.append({moment: below[moment] for moment, _ in one.points})
    return tops


def _x(frame: Frame, moment: float) -> float:
    return _LEFT + (moment - frame.start) / (frame.end - frame.start) * (WIDTH - _LEFT - _RIGHT)


def _y(value: float, most: float) -> float:
    return _HEIGHT - _BOTTOM - value / most * (_HEIGHT - _TOP - _BOTTOM)


def _grid(frame: Frame, marks: Sequence[float]) -> Iterator[str]:
    for mark in marks:
        y = _y(mark, marks[-1])
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(_LEFT - 6, y + 4, units.write(mark, frame.unit), anchor="end")
    form = "%H:%M:%S" if frame.end - frame.start < 1_200 else "%H:%M"
    for part in range(5):
        moment = frame.start + (frame.end - frame.start) * part / 4
        anchor = "start" if part == 0 else "end" if part == 4 else "middle"
        yield _text(
            _x(frame, moment),
            _HEIGHT - _BOTTOM + 16,
            time.strftime(form, time.gmtime(moment)),
            anchor=anchor,
        )


def _drawn(
    frame: Frame, series: Sequence[Named], tops: Sequence[dict[float, float]], most: float
) -> Iterator[str]:
    if not series:
        yield _no_data((_HEIGHT - _BOTTOM + _TOP) / 2)
        return
    for place, (one, top) in enumerate(zip(series, tops, strict=True)):
        colour = _COLOURS[place % len(_COLOURS)]
        for run in _runs([moment for moment, _ in one.points]):
            path = " ".join(f"{_x(frame, moment):.1f},{_y(top[moment], most):.1f}" for moment in run)
            if frame.stacked:
                values = dict(one.points)
                base = " ".join(
                    f"{_x(frame, moment):.1f},{_y(top[moment] - values[moment], most):.1f}"
                    for moment in reversed(run)
                )
                yield f'<polygon points="{path} {base}" fill="{colour}" fill-opacity="0.25"/>'
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-linecap="square"/>'
    yield from _legend(series)


def _runs(moments: Sequence[float]) -> Iterator[list[float]]:
    """The moments without a gap between them: the smallest distance is the step."""
    step = min((later - sooner for sooner, later in pairwise(moments)), default=0.0)
    run: list[float] = []
    for moment in moments:
        if run and moment - run[-1] > step * 1.5:
            yield run
            run = []
        run.append(moment)
    yield run


def _legend(series: Sequence[Named]) -> Iterator[str]:
    x, row = float(_LEFT), 0
    y = _HEIGHT - _BOTTOM + 40
    for place, one in enumerate(series):
        wide = 22 + _CHARACTER * len(one.name)
        if x + wide > WIDTH - _RIGHT and x > _LEFT:
            x, row = float(_LEFT), row + 1
        if row == _LEGEND_ROWS - 1 and place < len(series) - 1 and x + 2 * wide + 80 > WIDTH - _RIGHT:
            yield _text(x, y + row * _LEGEND_ROW, f"and {len(series) - place} more")
            return
        colour = _COLOURS[place % len(_COLOURS)]
        yield f'<rect x="{x:.0f}" y="{y + row * _LEGEND_ROW - 5}" width="12" height="3" fill="{colour}"/>'
        yield _text(x + 16, y + row * _LEGEND_ROW, one.name)
        x += wide


def _no_data(y: float) -> str:
    return _text(WIDTH / 2, y, "No data", anchor="middle", size=16)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" fill="#333">{escape(text)}</text>'


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
    )
    name = f'<text x="12" y="20" font-size="13" font-weight="bold" fill="#222">{escape(title)}</text>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', name, *parts, "</svg>\n"])
