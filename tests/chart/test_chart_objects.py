"""What the chart renders to run: Deployments, what stands in front of them, and what they write to."""

import re
from typing import Any

import pytest

from cli import main
from tests.chart.conftest import Render, Rendered

PROCESSES = ("webhook", "controller")


def container(rendered: Rendered, component: str) -> dict[str, Any]:
    template = rendered.one("Deployment", f"cardquota-{component}")["spec"]["template"]
    (only,) = template["spec"]["containers"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize("component", PROCESSES)
def test_the_pods_run_with_no_privilege(any_values: Rendered, component: str) -> None:
    pod = any_values.one("Deployment", f"cardquota-{component}")["spec"]["template"]["spec"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(any_values, component)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("component", PROCESSES)
def test_a_deployment_selects_by_labels_that_never_change(any_values: Rendered, component: str) -> None:
    spec = any_values.one("Deployment", f"cardquota-{component}")["spec"]
    assert spec["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "cardquota",
        "app.kubernetes.io/instance": "cardquota",
        "app.kubernetes.io/component": component,
    }
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


COMMON_FLAGS = [
    "--config=/etc/cardquota/cardquota.yaml",
    "--port=9443",
    "--metrics-port=8080",
    "--namespace=$(POD_NAMESPACE)",
    "--cert-secret=cardquota-certificates",
    "--controller-account=system:serviceaccount:$(POD_NAMESPACE):cardquota-controller",
    "--log-level=info",
]


def names_of(component: str) -> list[str]:
    endings = ("", ".$(POD_NAMESPACE)", ".$(POD_NAMESPACE).svc", ".$(POD_NAMESPACE).svc.cluster.local")
    return [f"cardquota-{component}{ending}" for ending in endings]


@pytest.mark.parametrize(
    ("component", "more"),
    [
        ("webhook", []),
        (
            "controller",
            [
                "--lease=cardquota",
                "--identity=$(POD_NAME)",
                "--advertise-address=https://$(POD_IP):9443",
                "--hook-timeout=5",
                "--extender-port=8090",
                "--kube-extender-port=8443",
                "--answers-port=8444",
                "--authority-secret=cardquota-controller",
                "--webhook-configuration=cardquota-mutating",
                "--webhook-configuration=cardquota-validating",
                *[f"--dns-name={name}" for name in names_of("controller")],
                *[f"--webhook-name={name}" for name in names_of("webhook")],
            ],
        ),
    ],
)
def test_the_command_line(defaults: Rendered, component: str, more: list[str]) -> None:
    subcommand, *flags = container(defaults, component)["args"]
    assert subcommand == component
    service = f"--service=cardquota-{component}.$(POD_NAMESPACE).svc"
    assert sorted(flags) == sorted([*COMMON_FLAGS, service, *more])


@pytest.mark.parametrize("component", PROCESSES)
def test_the_command_understands_its_command_line(any_values: Rendered, component: str) -> None:
    options = main.parser().parse_args(container(any_values, component)["args"])
    assert options.cert_secret in any_values.kind("Secret")
    if component == "webhook":
        return
    assert options.authority_secret in any_values.kind("Secret")
    configurations = [
        *any_values.kind("MutatingWebhookConfiguration"),
        *any_values.kind("ValidatingWebhookConfiguration"),
    ]
    assert options.webhook_configuration == configurations


@pytest.mark.parametrize("component", PROCESSES)
def test_every_variable_on_the_command_line_is_set(any_values: Rendered, component: str) -> None:
    """And the one by which a process knows on addresses of which kind it listens."""
    spec = container(any_values, component)
    used = set(re.findall(r"\$\((\w+)\)", " ".join(spec["args"])))
    assert used | {"POD_IP"} <= {entry["name"] for entry in spec["env"]}


@pytest.mark.parametrize("component", PROCESSES)
def test_ports_and_probes_agree_with_the_command_line(any_values: Rendered, component: str) -> None:
    spec = container(any_values, component)
    ports = {port["name"]: port["containerPort"] for port in spec["ports"]}
    assert f"--port={ports['https']}" in spec["args"]
    assert f"--metrics-port={ports['metrics']}" in spec["args"]
    assert spec["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    assert spec["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}


def test_services_lead_to_the_pods(any_values: Rendered) -> None:
    for component in PROCESSES:
        service = any_values.one("Service", f"cardquota-{component}")["spec"]
        selector = any_values.one("Deployment", f"cardquota-{component}")["spec"]["selector"]["matchLabels"]
        assert service["selector"] == selector
        assert service["ports"][0] == {"name": "https", "port": 443, "targetPort": "https"}
        metrics = any_values.one("Service", "cardquota-metrics")["spec"]
        assert metrics["selector"].items() <= selector.items()


def test_pods_are_replaced_when_the_settings_change_and_only_then(render: Render) -> None:
    def checksums(values: dict[str, Any]) -> set[str]:
        templates = [d["spec"]["template"] for d in render(values).kind("Deployment").values()]
        return {template["metadata"]["annotations"]["checksum/config"] for template in templates}

    before = checksums({})
    assert len(before) == 1
    assert checksums({"mgpu": {"policy": "spread"}}) != before
    assert checksums({"webhook": {"replicas": 5}}) == before


@pytest.mark.parametrize(
    ("webhook", "budgets"),
    [
        ({}, {"cardquota-webhook", "cardquota-controller"}),
        ({"replicas": 1}, {"cardquota-controller"}),
        ({"pdb": {"enabled": False}}, {"cardquota-controller"}),
    ],
)
def test_a_disruption_budget_never_holds_a_single_replica(
    render: Render, webhook: dict[str, Any], budgets: set[str]
) -> None:
    assert render({"webhook": webhook}).kind("PodDisruptionBudget").keys() == budgets


@pytest.mark.parametrize("name", ["cardquota-certificates", "cardquota-controller"])
def test_the_secrets_are_there_and_say_nothing_of_their_data(any_values: Rendered, name: str) -> None:
    """An upgrade that carried data, even empty, would take away what the leader wrote."""
    secret = any_values.one("Secret", name)
    assert secret.keys() == {"apiVersion", "kind", "metadata", "type"}


def test_the_place_of_usage_is_there_and_says_nothing_of_its_data(any_values: Rendered) -> None:
    """So no upgrade takes it away."""
    assert not {"data", "binaryData"} & any_values.one("ConfigMap", "cardquota-usage").keys()


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, "cardquota:0.1.0"),
        ({"tag": "1.2"}, "cardquota:1.2"),
        (
            {"repository": "r.example/c", "tag": "1", "digest": f"sha256:{'a' * 64}"},
            f"r.example/c@sha256:{'a' * 64}",
        ),
    ],
)
def test_a_digest_wins_over_a_tag(render: Render, image: dict[str, str], expected: str) -> None:
    rendered = render({"image": image})
    assert {container(rendered, component)["image"] for component in PROCESSES} == {expected}
