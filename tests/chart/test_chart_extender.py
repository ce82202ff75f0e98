"""What the chart does for schedulers: their port, who may reach it, and the examples that name it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.installation.rendering import RenderError
from tests.chart.conftest import Render, Rendered

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text("utf-8"))


def policy_of(rendered: Rendered) -> dict[str, Any]:
    spec: dict[str, Any] = rendered.one("NetworkPolicy", "cardquota-extender")["spec"]
    return spec


@pytest.mark.parametrize("port", [8090, 9000])
def test_the_plain_port_has_a_service_of_its_own(render: Render, port: int) -> None:
    rendered = render({"controller": {"extender": {"port": port}}})
    service = rendered.one("Service", "cardquota-extender")["spec"]
    deployment = rendered.one("Deployment", "cardquota-controller")["spec"]
    assert service["selector"] == deployment["selector"]["matchLabels"]
    assert service["ports"] == [{"name": "extender", "port": 80, "targetPort": "extender"}]
    (container,) = deployment["template"]["spec"]["containers"]
    assert {"name": "extender", "containerPort": port} in container["ports"]
    assert f"--extender-port={port}" in container["args"]


def test_nobody_but_volcano_reaches_the_plain_port(defaults: Rendered) -> None:
    policy = policy_of(defaults)
    assert policy["podSelector"] == defaults.one("Deployment", "cardquota-controller")["spec"]["selector"]
    assert policy["policyTypes"] == ["Ingress"]
    *open_to_all, volcano = policy["ingress"]
    assert volcano == {
        "ports": [{"port": "extender", "protocol": "TCP"}],
        "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "volcano-system"}}}],
    }
    assert not any("from" in rule for rule in open_to_all)
    others = {port["name"] for port in container_ports(defaults)} - {"extender"}
    assert {port["port"] for rule in open_to_all for port in rule["ports"]} == others, (
        "a policy closes what it does not name"
    )


def container_ports(rendered: Rendered) -> list[dict[str, Any]]:
    pod = rendered.one("Deployment", "cardquota-controller")["spec"]["template"]["spec"]
    ports: list[dict[str, Any]] = pod["containers"][0]["ports"]
    return ports


def test_who_reaches_it_can_be_said_otherwise(render: Render) -> None:
    host = {"ipBlock": {"cidr": "192.168.0.0/24"}}
    changed = render({"controller": {"extender": {"networkPolicy": {"from": [host]}}}})
    assert policy_of(changed)["ingress"][-1]["from"] == [host]
    moved = render({"volcano": {"namespace": "batch"}})
    (who,) = policy_of(moved)["ingress"][-1]["from"]
    assert who["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "batch"}
    without = render({"controller": {"extender": {"networkPolicy": {"enabled": False}}}})
    assert "cardquota-extender" not in without.kind("NetworkPolicy")
    assert "cardquota-extender" in without.kind("Service")


def test_who_reaches_the_other_ports_can_be_said_as_well(render: Render) -> None:
    """And the controllers always reach each other."""
    servers, schedulers = [{"ipBlock": {"cidr": "192.168.0.1/32"}}], [{"ipBlock": {"cidr": "192.168.0.2/32"}}]
    changed = render(
        {
            "controller": {
                "bindingHook": {"allowFrom": servers},
                "extender": {"networkPolicy": {"kubeFrom": schedulers}},
            },
            "webhook": {"allowFrom": servers},
        }
    )
    _, hook, _, kube, _ = policy_of(changed)["ingress"]
    own = changed.one("Deployment", "cardquota-controller")["spec"]["selector"]
    assert hook == {"ports": [{"port": "https", "protocol": "TCP"}], "from": [{"podSelector": own}, *servers]}
    assert kube == {"ports": [{"port": "kube-extender", "protocol": "TCP"}], "from": schedulers}
    webhook = changed.one("NetworkPolicy", "cardquota-webhook")["spec"]
    assert webhook["podSelector"] == changed.one("Deployment", "cardquota-webhook")["spec"]["selector"]
    assert webhook["ingress"][1] == {"ports": [{"port": "https", "protocol": "TCP"}], "from": servers}
    without = {"features": {"extender": False}, "controller": {"bindingHook": {"allowFrom": servers}}}
    rules = policy_of(render(without))["ingress"]
    assert [rule["ports"][0]["port"] for rule in rules] == ["metrics", "https", "answers"]


def test_without_the_feature_there_is_no_port(render: Render) -> None:
    rendered = render({"features": {"extender": False}})
    assert rendered.kind("NetworkPolicy") == {}
    assert "cardquota-extender" not in rendered.kind("Service")
    assert {port["name"] for port in container_ports(rendered)} == {"https", "metrics", "answers"}
    arguments = rendered.one("Deployment", "cardquota-controller")["spec"]["template"]["spec"]["containers"][
        0
    ]["args"]
    assert not any("extender-port" in argument for argument in arguments)


@pytest.mark.parametrize("port", [80, 0, 70000, "8090"])
def test_a_port_that_the_process_cannot_have_fails_at_install(render: Render, port: Any) -> None:
    with pytest.raises(RenderError, match=r"/controller/extender/port|controller\.extender\.port"):
        render({"controller": {"extender": {"port": port}}})


@pytest.mark.parametrize(
    ("values", "by"),
    [
        ({"answers": {"port": 8443}}, "controller.answers.port"),
        ({"answers": {"port": 8080}}, "the metrics"),
        ({"extender": {"port": 8080}}, "the metrics"),
        ({"extender": {"kubePort": 9443}}, "the binding hook"),
        ({"extender": {"port": 8500, "kubePort": 8500}}, "controller.extender.kubePort"),
    ],
)
def test_a_port_that_is_taken_fails_at_install(render: Render, values: dict[str, Any], by: str) -> None:
    with pytest.raises(
        RenderError, match=rf"controller\.[.A-Za-z]+: [0-9]+ is taken by {by}; choose another"
    ):
        render({"controller": values})


def test_a_port_that_nobody_opens_is_not_taken(render: Render) -> None:
    off = {"features": {"extender": False}, "controller": {"answers": {"port": 8443}}}
    assert {"name": "answers", "containerPort": 8443} in container_ports(render(off))
    off = {"controller": {"answers": {"enabled": False, "port": 9443}}}
    assert {"name": "https", "containerPort": 9443} in container_ports(render(off))


def test_without_crossquota_its_annotations_are_not_sent(render: Render) -> None:
    entries = render({"features": {"crossQuota": False}}).webhooks()
    assert not {"validating/nodes.cardquota.io", "validating/strategy.pods.cardquota.io"} & entries.keys()


def test_the_kube_scheduler_example_calls_the_service_by_a_name_in_its_certificate(
    defaults: Rendered,
) -> None:
    (extender,) = example("pods-without-gpu/kube-scheduler.yaml")["extenders"]
    host = extender["tlsConfig"]["serverName"]
    assert extender["urlPrefix"] == f"https://{host}:8443/kube"
    assert {"name": "kube-extender", "containerPort": 8443} in container_ports(defaults)
    ports = defaults.one("Service", host.partition(".")[0])["spec"]["ports"]
    assert {"name": "kube-extender", "port": 8443, "targetPort": "kube-extender"} in ports
    service, namespace, _ = host.split(".", 2)
    assert defaults.one("Service", service)["metadata"]["namespace"] == namespace
    arguments = defaults.one("Deployment", "cardquota-controller")["spec"]["template"]["spec"]["containers"][
        0
    ]["args"]
    assert f"--dns-name={host.replace(namespace, '$(POD_NAMESPACE)')}" in arguments
    assert (extender["enableHTTPS"], "ca.crt" in extender["tlsConfig"]["caFile"]) == (True, True)


def test_the_volcano_example_calls_the_plain_service(defaults: Rendered) -> None:
    configuration = yaml.safe_load(
        example("beside-volcano/volcano-scheduler.yaml")["data"]["volcano-scheduler.conf"]
    )
    plugins = [plugin for tier in configuration["tiers"] for plugin in tier["plugins"]]
    arguments = next(plugin["arguments"] for plugin in plugins if plugin["name"] == "extender")
    service = defaults.one("Service", "cardquota-extender")["metadata"]
    assert arguments["extender.urlPrefix"] == f"http://{service['name']}.{service['namespace']}.svc/volcano"
    verbs = {value for key, value in arguments.items() if key.endswith("Verb")}
    assert verbs == {"predicate", "prioritize", "jobEnqueueable", "queueOverused"}
    assert "extender.managedResources" not in arguments


def test_the_example_for_volcano_starts_gangs_whose_tasks_are_spread_over_several_cards() -> None:
    configuration = yaml.safe_load(
        example("beside-volcano/volcano-scheduler.yaml")["data"]["volcano-scheduler.conf"]
    )
    assert {each["name"]: each["arguments"] for each in configuration["configurations"]} == {
        action: {"predicateErrorCacheEnable": False}
        for action in ("allocate", "backfill", "preempt", "reclaim")
    }
