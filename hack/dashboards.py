"""Writes the Grafana dashboards of the chart: `python -m hack.dashboards`.

They are described here, panel by panel, and written as the JSON that Grafana imports; a test fails while the files differ.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "charts" / "cardquota" / "monitoring" / "dashboards"

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS = 24
_HEIGHT = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: its title, what it says, and its queries, each with the name of its lines."""

    title: str
    description: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    stacked: bool = False
    width: int = 12


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of them; `queues` adds the choice of a queue."""

    name: str
    title: str
    panels: Sequence[Panel]
    queues: bool = False


_Q = 'queue_name=~"$queue"'
_REQUEST = f"volcano_queue_card_request{{{_Q}}}"
_USED = f"cardquota_queue_card_used{{{_Q}}} or 0 * {_REQUEST}"

QUEUES = Dashboard(
    "queues",
    "cardquota / queues",
    queues=True,
    panels=(
        Panel(
            "Cards in use by workload",
            "Offline are pods of Volcano Jobs, online all others; with pods that have quota and no node yet.",
            [(f"sum by (kind) (cardquota_queue_card_used{{{_Q}}})", "{{kind}}")],
            stacked=True,
        ),
        Panel(
            "Cards in use by card",
            "Pods that have a node.",
            [(f"sum by (card) (volcano_queue_card_allocated{{{_Q}}})", "{{card}}")],
            stacked=True,
        ),
        Panel(
            "Quota and use",
            "What the queues may use, what they use, and what is promised to pods without a node.",
            [
                (f"sum by (card) (volcano_queue_card_capacity{{{_Q}}})", "quota {{card}}"),
                (f"sum by (card) (volcano_queue_card_allocated{{{_Q}}})", "allocated {{card}}"),
                (f"sum by (card) (cardquota_queue_card_reserved{{{_Q}}})", "reserved {{card}}"),
            ],
        ),
        Panel(
            "Cards waited for",
            "What the pods at the gate ask for.",
            [
                (
                    f"sum by (card) ({_REQUEST}) - sum by (card) ({_USED})",
                    "{{card}}",
                )
            ],
            stacked=True,
        ),
        Panel(
            "Longest wait",
            "How long the pod has waited that waits longest.",
            [(f"time() - (cardquota_queue_oldest_waiting_timestamp_seconds{{{_Q}}} > 0)", "{{queue_name}}")],
            unit="s",
        ),
        Panel(
            "Beyond the quota",
            "Cards in use above the quota: it was lowered, or pods were bound past the controller.",
            [
                (
                    f"sum by (queue_name, card) (cardquota_queue_card_overused{{{_Q}}}) > 0",
                    "{{queue_name}} {{card}}",
                )
            ],
        ),
        Panel(
            "Devices in use",
            "Devices of claims by DeviceClass; a queue shows those below it too.",
            [
                (
                    f'sum by (queue_name, device_class) (cardquota_queue_device_allocated{{{_Q},dimension=""}})',
                    "{{queue_name}} {{device_class}}",
                )
            ],
        ),
        Panel(
            "Pods that hold quota without a node",
            "For longer than reservation.warnAfter; and gangs that are in by halves.",
            [
                (f"sum by (queue_name) (cardquota_reserved_too_long{{{_Q}}})", "late {{queue_name}}"),
                (
                    f"sum by (queue_name) (cardquota_gangs_unfinished{{{_Q}}})",
                    "gangs cut short {{queue_name}}",
                ),
            ],
        ),
    ),
)

CLUSTER = Dashboard(
    "cluster",
    "cardquota / cluster",
    panels=(
        Panel(
            "Cards",
            "What the nodes show, and what is in use of it.",
            [
                ("sum by (card) (cardquota_cards)", "on nodes {{card}}"),
                ("sum by (card) (cardquota_queue_card_used)", "in use {{card}}"),
            ],
        ),
        Panel(
            "Cards in use by workload",
            "Offline are pods of Volcano Jobs, online all others.",
            [("sum by (kind) (cardquota_queue_card_used)", "{{kind}}")],
            stacked=True,
        ),
        Panel(
            "Quota sold of the cards that there are",
            "Above 1 more is promised than there is; of queues below each other the sum counts twice.",
            [
                (
                    "sum by (card) (volcano_queue_card_capacity) / (sum by (card) (cardquota_cards) > 0)",
                    "{{card}}",
                )
            ],
            unit="percentunit",
        ),
        Panel(
            "Lifts",
            "Pods that were let in a second, by what became of the write.",
            [("sum by (outcome) (rate(cardquota_lifts_total[5m]))", "{{outcome}}")],
            unit="ops",
        ),
        Panel(
            "Decisions to leave a pod waiting",
            "By reason; a pod counts each time it is looked at.",
            [("sum by (reason) (rate(cardquota_holds_total[5m]))", "{{reason}}")],
            unit="ops",
            stacked=True,
        ),
        Panel(
            "Binds",
            "Answers of the binding hook.",
            [("sum by (verdict, reason) (rate(cardquota_binds_total[5m]))", "{{verdict}} {{reason}}")],
            unit="ops",
        ),
        Panel(
            "mGPU records that are not in order",
            "By what is wrong with them.",
            [("sum by (kind) (cardquota_mgpu_irregularities)", "{{kind}}")],
        ),
        Panel(
            "Nodes that a scheduler was told not to use",
            "By reason, a second; a node counts each time it is asked about.",
            [("sum by (reason) (rate(cardquota_extender_refusals_total[5m]))", "{{reason}}")],
            unit="ops",
        ),
    ),
)

SYSTEM = Dashboard(
    "system",
    "cardquota / system",
    panels=(
        Panel("Leader", "Which replica leads.", [("cardquota_leader", "{{pod}}")]),
        Panel(
            "Days until certificates expire",
            "Of what each replica serves.",
            [
                (
                    "((cardquota_serving_certificate_not_after_timestamp_seconds > 0) - time()) / 86400",
                    "{{pod}}",
                )
            ],
        ),
        Panel(
            "Admission, 99 of 100",
            "From the complete body of a request to its answer.",
            [
                (
                    "histogram_quantile(0.99, sum by (le, path) (rate(cardquota_admission_duration_seconds_bucket[5m])))",
                    "{{path}}",
                )
            ],
            unit="s",
        ),
        Panel(
            "Admission by verdict",
            "Requests a second.",
            [("sum by (verdict) (rate(cardquota_admission_requests_total[5m]))", "{{verdict}}")],
            unit="ops",
        ),
        Panel(
            "Binding hook, 99 of 100",
            "Of pods about which there was something to decide.",
            [
                (
                    "histogram_quantile(0.99, sum by (le) (rate(cardquota_bind_duration_seconds_bucket[5m])))",
                    "binds",
                )
            ],
            unit="s",
        ),
        Panel(
            "Quota pass, 99 of 100",
            "Over all queues that had changed.",
            [
                (
                    "histogram_quantile(0.99, sum by (le) (rate(cardquota_quota_pass_duration_seconds_bucket[5m])))",
                    "passes",
                )
            ],
            unit="s",
        ),
        Panel(
            "Deaf",
            "Pauses of more than 50 ms, a second.",
            [("sum by (pod) (rate(cardquota_loop_stall_seconds_count[5m]))", "{{pod}}")],
            unit="ops",
        ),
        Panel(
            "Requests to the API server",
            "A second, by answer.",
            [("sum by (code) (rate(cardquota_api_requests_total[5m]))", "{{code}}")],
            unit="ops",
        ),
    ),
)

DASHBOARDS = (QUEUES, CLUSTER, SYSTEM)


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
    if dashboard.queues:
        yield {
            "name": "queue",
            "label": "Queue",
            "type": "query",
            "datasource": _SOURCE,
            "query": "label_values(volcano_queue_card_request, queue_name)",
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
                "defaults": {
                    "unit": panel.unit,
                    "min": 0,
                    "custom": {
                        "fillOpacity": 20 if panel.stacked else 0,
                        "stacking": {"mode": "normal" if panel.stacked else "none"},
                    },
                },
                "overrides": [],
            },
            "options": {
                "tooltip": {"mode": "multi"},
                "legend": {"displayMode": "list", "placement": "bottom"},
            },
            "targets": [
                {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
                for place, (query, legend) in enumerate(panel.queries)
            ],
        }
        across += panel.width


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (FOLDER / f"{dashboard.name}.json").write_text(render(dashboard), "utf-8")


if __name__ == "__main__":
    main()
