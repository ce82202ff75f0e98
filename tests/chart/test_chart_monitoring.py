"""ServiceMonitor, PrometheusRule and dashboards as the chart makes them."""

import json
import re
from typing import Any

import pytest
import yaml

from hack import dashboards
from hack.installation import rendering
from hack.metrics_reference import PAGE as METRICS
from hack.metrics_reference import reference
from tests.chart.conftest import Render, Rendered

MONITORING = rendering.CHART / "monitoring"
ALERTS = yaml.safe_load((MONITORING / "alerts.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def everything(render: Render) -> Rendered:
    enabled: dict[str, Any] = {"enabled": True, "labels": {"release": "prometheus"}}
    return render({"monitoring": dict.fromkeys(("serviceMonitor", "prometheusRule", "dashboards"), enabled)})


def test_nothing_of_it_is_there_by_default(defaults: Rendered) -> None:
    assert not defaults.kind("ServiceMonitor")
    assert not defaults.kind("PrometheusRule")
    assert not [name for name in defaults.kind("ConfigMap") if "dashboard" in name]


def test_the_service_that_is_monitored_is_that_of_the_metrics_and_no_other(everything: Rendered) -> None:
    monitor = everything.one("ServiceMonitor", "cardquota")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    found = [
        name
        for name, each in everything.kind("Service").items()
        if wanted.items() <= each["metadata"]["labels"].items()
    ]
    assert found == ["cardquota-metrics"]
    (endpoint,) = monitor["spec"]["endpoints"]
    (port,) = everything.one("Service", "cardquota-metrics")["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    assert endpoint["honorLabels"], "else the namespace of what pods use is called by another name"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


def test_the_label_that_alerts_go_by_is_that_of_the_pods(everything: Rendered) -> None:
    (endpoint,) = everything.one("ServiceMonitor", "cardquota")["spec"]["endpoints"]
    (relabeling,) = endpoint["relabelings"]
    assert relabeling["targetLabel"] == "component"
    label = relabeling["sourceLabels"][0].removeprefix("__meta_kubernetes_pod_label_")
    for component in ("webhook", "controller"):
        template = everything.one("Deployment", f"cardquota-{component}")["spec"]["template"]
        assert {re.sub(r"\W", "_", key): value for key, value in template["metadata"]["labels"].items()}[
            label
        ] == component


def test_series_can_be_dropped(render: Render, everything: Rendered) -> None:
    (endpoint,) = everything.one("ServiceMonitor", "cardquota")["spec"]["endpoints"]
    assert "metricRelabelings" not in endpoint
    drop = yaml.safe_load(re.findall(r"to `(\[\{.*\}\])`", METRICS.read_text("utf-8"))[0])
    (rule,) = drop
    monitor = render({"monitoring": {"serviceMonitor": {"enabled": True, "metricRelabelings": drop}}})
    (endpoint,) = monitor.one("ServiceMonitor", "cardquota")["spec"]["endpoints"]
    assert endpoint["metricRelabelings"] == [rule]
    by_node = [one for found in reference().values() for one in found if "node" in one.labels]
    assert len(by_node) == 5
    for one in by_node:
        assert re.fullmatch(rule["regex"], f"{one.name};n")
    assert not re.fullmatch(rule["regex"], "cardquota_node_card_alarms;"), "the number of nodes stays"


def test_the_rules_are_those_of_the_plain_file(everything: Rendered) -> None:
    assert everything.one("PrometheusRule", "cardquota")["spec"] == ALERTS


def test_the_dashboards_are_those_of_the_plain_files_and_these_are_up_to_date(everything: Rendered) -> None:
    for dashboard in dashboards.DASHBOARDS:
        text = (MONITORING / "dashboards" / f"{dashboard.name}.json").read_text("utf-8")
        assert text == dashboards.render(dashboard), "python -m hack.dashboards writes it anew"
        config = everything.one("ConfigMap", f"cardquota-dashboard-{dashboard.name}")
        (shown,) = config["data"].values()
        assert json.loads(shown) == json.loads(text)
        assert config["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_the_port_of_the_metrics_can_be_closed_and_the_others_are_as_before(
    render: Render, component: str
) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    closed = render({"monitoring": {"allowFrom": [peer]}})
    (policy,) = [
        each["spec"]
        for each in closed.kind("NetworkPolicy").values()
        if each["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == component
    ]
    rules = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["ingress"]}
    assert rules["metrics"] == [peer]
    assert rules["https"] is None
    container = closed.one("Deployment", f"cardquota-{component}")["spec"]["template"]["spec"]["containers"][
        0
    ]
    assert rules.keys() == {port["name"] for port in container["ports"]}
