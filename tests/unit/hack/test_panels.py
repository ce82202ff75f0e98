"""Panels are drawn as the dashboards describe them: names, units, gaps, what lies on what, and that there is nothing to see."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hack.dashboards import DASHBOARDS, FOLDER
from hack.dashboards.rendering import render
from hack.dashboards.shape import Panel
from hack.panels import units
from hack.panels.dashboard import PanelError, drawn, legend
from hack.panels.picture import Frame, Named, bars, lines
from hack.prometheus import Api, Line

SVG = "{http://www.w3.org/2000/svg}"


class Answers(Api):
    """Says the same to every query, and keeps what was asked."""

    def __init__(self, found: Sequence[Line]) -> None:
        super().__init__("http://nowhere")
        self.found = found
        self.asked: list[str] = []

    def range(self, query: str, start: float, end: float, step_s: float) -> list[Line]:
        self.asked.append(query)
        return list(self.found)

    def instant(self, query: str) -> list[tuple[dict[str, str], float]]:
        self.asked.append(query)
        return [(dict(line.labels), line.points[-1][1]) for line in self.found]


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def paths(svg: str, kind: str = "polyline") -> list[list[tuple[float, float]]]:
    found = [each.get("points", "") for each in ET.fromstring(svg).iter(f"{SVG}{kind}")]
    return [
        [(float(x), float(y)) for x, y in (point.split(",") for point in points.split())] for points in found
    ]


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (3.0, "short", "3"),
        (0.25, "short", "0.25"),
        (12_500.0, "short", "12.5k"),
        (3_000_000.0, "short", "3M"),
        (0.0024, "s", "2.4 ms"),
        (0.0, "s", "0 s"),
        (5_400.0, "s", "1.5 h"),
        (31_536_000.0, "s", "365 d"),
        (0.1875, "percentunit", "18.75 %"),
        (0.5, "ops", "0.5/s"),
        (1.2, "opm", "1.2/min"),
    ],
)
def test_values_have_their_units(value: float, unit: str, written: str) -> None:
    assert units.write(value, unit) == written


@pytest.mark.parametrize(
    ("most", "unit", "marks"),
    [
        (0.0, "short", [0, 1]),
        (3.0, "short", [0, 1, 2, 3]),
        (16.0, "short", [0, 5, 10, 15, 20]),
        (0.19, "percentunit", [0, 0.05, 0.1, 0.15, 0.2]),
        (9_100.0, "s", [0, 3_600, 7_200, 10_800]),
    ],
)
def test_marks_are_round_and_reach_above_everything(most: float, unit: str, marks: list[float]) -> None:
    assert units.marks(most, unit) == pytest.approx(marks)


def test_a_unit_that_is_not_known_is_an_error() -> None:
    with pytest.raises(units.UnknownUnitError, match="'furlongs'; known: opm, ops"):
        units.write(1, "furlongs")


def test_a_line_is_interrupted_where_nothing_was_scraped_and_ends_within_the_picture() -> None:
    points = [(float(at), 2.0) for at in (0, 10, 20, 70, 80, 90, 100)]
    first, second = paths(lines(Frame("t", "short", 0, 100), [Named("a", points)]))
    assert (len(first), len(second)) == (3, 4)
    assert (first[0][0], second[-1][0]) == (70, 628)
    # The greatest value is at the top, under the title.
    assert {y for _, y in first} == {34.0}


def test_areas_lie_on_one_another() -> None:
    series = [Named("a", [(0, 1.0), (10, 1.0)]), Named("b", [(0, 2.0), (10, 2.0)])]
    frame = Frame("t", "short", 0, 10, stacked=True)
    (lower, upper) = paths(lines(frame, series))
    floor = 212.0
    assert floor - upper[0][1] == pytest.approx(3 * (floor - lower[0][1]), abs=0.5)
    assert len(paths(lines(frame, series), "polygon")) == 2


def test_what_does_not_fit_into_the_legend_is_counted() -> None:
    series = [Named(f"queue-{number}", [(0, 1.0), (10, 1.0)]) for number in range(200)]
    told = texts(lines(Frame("t", "short", 0, 10), series))
    named = [text for text in told if text.startswith("queue-")]
    assert f"and {200 - len(named)} more" in told
    assert named == [f"queue-{number}" for number in range(len(named))]


def test_nothing_to_see_is_said() -> None:
    frame = Frame("t", "short", 0, 10)
    assert "No data" in texts(lines(frame, []))
    assert "No data" in texts(bars(frame, []))


def test_a_part_of_the_whole_fills_that_part_of_its_bar() -> None:
    """A node that is a quarter full is not drawn as the longest bar that there can be, though no other is fuller."""
    whole, quarter = (
        float(re.findall(r'<rect x="\d+" y="\d+" width="([\d.]+)"', svg)[0])
        for svg in (
            bars(Frame("t", "percentunit", 0, 60, most=1), [Named("a", [(60, value)])])
            for value in (1.0, 0.25)
        )
    )
    assert quarter == pytest.approx(whole / 4, abs=0.1)


@pytest.mark.parametrize(
    "panel",
    [panel for board in DASHBOARDS for panel in board.panels if panel.kind == "bargauge"],
    ids=lambda panel: panel.title,
)
def test_bars_of_parts_end_at_the_whole(panel: Panel) -> None:
    (drawn_as,) = [
        found["fieldConfig"]["defaults"]
        for board in DASHBOARDS
        for found in json.loads(render(board))["panels"]
        if found["title"] == panel.title
    ]
    assert drawn_as.get("max") == (1 if panel.unit == "percentunit" else None)


def test_bars_come_with_the_greatest_first() -> None:
    svg = bars(
        Frame("t", "s", 0, 10),
        [Named("few", [(10, 30.0)]), Named("<most>", [(10, 120.0)]), Named("none", [(10, 0.0)])],
    )
    assert texts(svg)[1:] == ["<most>", "2 min", "few", "30 s", "none", "0 s"]
    wide = [float(each.get("width", "")) for each in list(ET.fromstring(svg).iter(f"{SVG}rect"))[1:]]
    assert wide[0] == pytest.approx(4 * wide[1], rel=0.01)


def test_names_are_made_as_grafana_makes_them() -> None:
    assert legend("quota {{card}} of {{ queue }}{{no}}", {"card": "A", "queue": "q"}) == "quota A of q"


def test_every_panel_of_the_dashboards_is_drawn_for_the_chosen_queues() -> None:
    api = Answers([Line({"queue_name": "q"}, [(0.0, 1.0), (5.0, float("nan")), (10.0, 2.0)])])
    pictures = [*drawn(FOLDER, api, 0, 10, queue="team-.*")]
    assert sorted(one.title for one in pictures) == sorted(
        panel.title for dashboard in DASHBOARDS for panel in dashboard.panels
    )
    assert len({one.name for one in pictures}) == len(pictures)
    assert not [one for one in pictures if one.empty or not re.fullmatch(r"[a-z0-9-]+", one.name)]
    assert not [query for query in api.asked if "$" in query]
    assert [query for query in api.asked if 'queue_name=~"team-.*"' in query]
    assert all(one.empty and "No data" in texts(one.svg) for one in drawn(FOLDER, Answers([]), 0, 10))


def test_what_has_no_number_shows_nothing() -> None:
    """A quantile of nothing is no number, and Grafana draws none."""
    api = Answers([Line({}, [(0.0, float("nan")), (10.0, float("nan"))])])
    assert all(one.empty for one in drawn(FOLDER, api, 0, 10))


def test_a_kind_of_panel_that_is_not_known_is_an_error(tmp_path: Path) -> None:
    text = (FOLDER / "system.json").read_text("utf-8").replace('"timeseries"', '"heatmap"')
    (tmp_path / "system.json").write_text(text, "utf-8")
    with pytest.raises(PanelError, match="system: Leader: no way to draw a heatmap"):
        [*drawn(tmp_path, Answers([]), 0, 10)]
