"""Alerts, dashboards and pages go by metrics that there are, with labels that these have."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack import metrics_reference
from hack.dashboards import DASHBOARDS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "alerts.md").read_text("utf-8")
RULES = yaml.safe_load((ROOT / "charts" / "cardquota" / "monitoring" / "alerts.yaml").read_text("utf-8"))
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
SERIES = {one.name: one for found in metrics_reference.reference().values() for one in found}

SCRAPED = {"job", "pod", "component"}
"""Labels that the ServiceMonitor gives."""
_METRIC = re.compile(r"\b(?:cardquota|volcano)_\w+")
_LABEL = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
_GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


def queries() -> Iterator[tuple[str, str]]:
    for name, rule in ALERTS.items():
        yield name, rule["expr"]
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            for query, _ in panel.queries:
                yield f"{dashboard.name}: {panel.title}", query


def series_of(name: str) -> metrics_reference.Series:
    base = _HISTOGRAM.sub("", name)
    return SERIES[base] if base in SERIES and SERIES[base].kind == "histogram" else SERIES[name]


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in queries()])
def test_a_query_names_metrics_and_labels_that_there_are(query: str) -> None:
    query = query.replace('"cardquota-metrics"', '""')
    found = [series_of(name) for name in _METRIC.findall(query)]
    known = {label for one in found for label in one.labels} | SCRAPED | {"le"}
    grouped = {label.strip() for group in _GROUPED.findall(query) for label in group.split(",")}
    assert {*_LABEL.findall(query), *grouped} <= known


def test_the_page_of_metrics_is_up_to_date() -> None:
    text = metrics_reference.PAGE.read_text("utf-8")
    assert text == metrics_reference.render(), "python -m hack.metrics_reference writes it anew"


def test_every_metric_says_what_it_means_and_what_it_counts() -> None:
    assert [one.name for one in SERIES.values() if not one.meaning.endswith(".")] == []
    assert {one.kind for one in SERIES.values()} == {"counter", "gauge", "histogram"}


def test_every_alert_has_its_page_and_no_page_is_about_none() -> None:
    headings = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
    assert sorted(headings) == sorted(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert {"summary", "description"} <= rule["annotations"].keys()
