"""The dashboards as the JSON that Grafana imports."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hack.dashboards.shape import Dashboard, Panel

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS = 24
_HEIGHT = 8
_OF_NOW = frozenset({"bargauge"})
"""Kinds that show what is now, and nothing of the past."""
_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {
        "tooltip": {"mode": "multi", "sort": "desc"},
        "legend": {"displayMode": "list", "placement": "bottom"},
    },
    "bargauge": {
        "orientation": "horizontal",
        "displayMode": "basic",
        "reduceOptions": {"calcs": ["lastNotNull"]},
    },
}


def render(dashboard: Dashboard) -> str:
    """Return the text of the file."""
    body = {
        "uid": f"cardquota-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["cardquota"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [*_variables(dashboard)]},
        "panels": [*_placed(dashboard.panels)],
    }
    return json.dumps(body, indent=2) + "\n"


def _variables(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    for choice in dashboard.choices:
        yield {
            "name": choice.name,
            "label": choice.title,
            "type": "query",
            "datasource": _SOURCE,
            "query": f"label_values({choice.metric}, {choice.label})",
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }


def _placed(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    across = down = 0
    for number, panel in enumerate(panels, 1):
        if across + panel.width > _COLUMNS:
            across, down = 0, down + _HEIGHT
        yield {
            "id": number,
            "type": panel.kind,
            "title": panel.title,
            "description": panel.description,
            "datasource": _SOURCE,
            "gridPos": {"x": across, "y": down, "w": panel.width, "h": _HEIGHT},
            "fieldConfig": {
                "defaults": {"unit": panel.unit, "min": 0, **_drawing(panel)},
                "overrides": [],
            },
            "options": _OPTIONS[panel.kind],
            "targets": [
                {
                    "refId": chr(ord("A") + place),
                    "datasource": _SOURCE,
                    "expr": query,
                    "legendFormat": legend,
                    "instant": panel.kind in _OF_NOW,
                    "range": panel.kind not in _OF_NOW,
                }
                for place, (query, legend) in enumerate(panel.queries)
            ],
        }
        across += panel.width


def _drawing(panel: Panel) -> dict[str, Any]:
    if panel.kind in _OF_NOW:
        # Without an end of the scale the fullest one would look full.
        end = {"max": 1} if panel.unit == "percentunit" else {}
        return {**end, "color": {"mode": "fixed", "fixedColor": "blue"}}
    return {
        "custom": {
            "fillOpacity": 20 if panel.stacked else 0,
            "stacking": {"mode": "normal" if panel.stacked else "none"},
        }
    }
