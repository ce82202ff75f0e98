"""The dashboards as Grafana imports them, read back: what each panel asks, and what is drawn of the answers."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hack.panels.picture import Frame, Named, bars, lines
from hack.prometheus import Api

_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_POINTS: Final = 200
_STEP_S: Final = 0.25
_KINDS: Final = ("timeseries", "bargauge")


class PanelError(ValueError):
    """A panel of a kind that is not drawn here."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A panel that was drawn: `dashboard-panel` as its name, whether it shows anything, and the SVG."""

    name: str
    title: str
    empty: bool
    svg: str


def drawn(folder: Path, api: Api, start: float, end: float, queue: str = ".*") -> Iterator[Picture]:
    """All panels of all dashboards in a folder, of a time in seconds since 1970, for the queues that a pattern matches.

    Raises `PanelError`, `UnknownUnitError`, and `QueryError` for a query that Prometheus does not take.
    """
    for file in sorted(folder.glob("*.json")):
        board = json.loads(file.read_text("utf-8"))
        for panel in board["panels"]:
            yield _drawn(file.stem, board["title"], panel, api, start, end, queue)


def _drawn(
    name: str, board: str, panel: Mapping[str, Any], api: Api, start: float, end: float, queue: str
) -> Picture:
    if panel["type"] not in _KINDS:
        raise PanelError(f"{name}: {panel['title']}: no way to draw a {panel['type']}")
    series = [found for target in panel["targets"] for found in _answered(target, api, start, end, queue)]
    defaults = panel["fieldConfig"]["defaults"]
    stacked = defaults.get("custom", {}).get("stacking", {}).get("mode") == "normal"
    frame = Frame(
        f"{board}: {panel['title']}", defaults["unit"], start, end, stacked, defaults.get("max", 0.0)
    )
    svg = (bars if panel["type"] == "bargauge" else lines)(frame, series)
    return Picture(f"{name}-{_plain(panel['title'])}", panel["title"], not series, svg)


def _answered(target: Mapping[str, Any], api: Api, start: float, end: float, queue: str) -> Iterator[Named]:
    query = target["expr"].replace("$queue", queue).replace("$node", ".*")
    if target.get("instant"):
        for labels, value in api.instant(query):
            if not math.isnan(value):
                yield Named(legend(target["legendFormat"], labels), [(end, value)])
        return
    for line in api.range(query, start, end, max(_STEP_S, (end - start) / _POINTS)):
        # Where there is nothing to divide by there is no value.
        points = [(at, value) for at, value in line.points if not math.isnan(value)]
        if points:
            yield Named(legend(target["legendFormat"], line.labels), points)


def legend(form: str, labels: Mapping[str, str]) -> str:
    """The name of a series as Grafana makes it: `{{label}}` stands for the value."""
    return _LABEL.sub(lambda found: labels.get(found[1], ""), form)


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
