"""What the chart renders to run: rights, Deployments and what stands in front of them."""

import itertools
import re
from typing import Any

import pytest

from cli import main
from tests.chart.conftest import NAMESPACE, Render, Rendered

PROCESSES = ("webhook", "controller")


def container(rendered: Rendered, component: str) -> dict[str, Any]:
    template = rendered.one("Deployment", f"cardquota-{component}")["spec"]["template"]
    (only,) = template["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def rules(rendered: Rendered, kind: str, name: str) -> dict[str, tuple[str, ...]]:
    """`resource.group[/name]` to verbs."""
    granted: dict[str, set[str]] = {}
    for rule in rendered.one(kind, name)["rules"]:
        for group, resource in itertools.product(rule["apiGroups"], rule["resources"]):
            for wanted in rule.get("resourceNames", [""]):
                key = ".".join(filter(None, (resource, group))) + (f"/{wanted}" if wanted else "")
                granted.setdefault(key, set()).update(rule["verbs"])
    return {key: tuple(sorted(verbs)) for key, verbs in granted.items()}


# -- rights --------------------------------------------------------------------------------------------------------

READ = ("list", "watch")
KEPT = ("get", "list", "patch", "watch")
LOOK = ("get", "list", "watch")
FOR_PEOPLE = {"cardquota-queue-reader"}
"""Bound to groups that values name."""


def test_the_rights_are_these_and_no_others(defaults: Rendered) -> None:
    granted = {
        f"{kind}/{name}": rules(defaults, kind, name)
        for kind in ("Role", "ClusterRole")
        for name in defaults.kind(kind)
    }
    assert granted == {
        "ClusterRole/cardquota-queue-reader": {
            "clusterroles.rbac.authorization.k8s.io/cardquota-queue-reader": ("get",),
            "queues.scheduling.volcano.sh": LOOK,
            "nodes": LOOK,
            "deviceclasses.resource.k8s.io": LOOK,
        },
        "Role/cardquota-queue-reader": {
            "configmaps/cardquota": ("get",),
            "leases.coordination.k8s.io/cardquota": ("get",),
            "services/proxy/https:cardquota-controller:answers": ("get",),
        },
        "ClusterRole/cardquota-webhook": {
            "nodes": READ,
            "namespaces": READ,
            "queues.scheduling.volcano.sh": READ,
            "deviceclasses.resource.k8s.io": READ,
        },
        "ClusterRole/cardquota-controller": {
            "pods": ("get", "list", "patch", "watch"),
            "pods/status": ("patch",),
            "nodes": READ,
            "namespaces": READ,
            "queues.scheduling.volcano.sh": READ,
            "queues/status.scheduling.volcano.sh": ("patch",),
            "podgroups.scheduling.volcano.sh": ("get", *READ),
            "podgroups.scheduling.k8s.io": ("get", *READ),
            "jobs.batch.volcano.sh": READ,
            "resourceclaims.resource.k8s.io": READ,
            "resourceclaimtemplates.resource.k8s.io": READ,
            "deviceclasses.resource.k8s.io": READ,
            "customresourcedefinitions.apiextensions.k8s.io/queues.scheduling.volcano.sh": (
                "list",
                "patch",
                "watch",
            ),
            "events.events.k8s.io": ("create", "list", "patch"),
            "tokenreviews.authentication.k8s.io": ("create",),
            "subjectaccessreviews.authorization.k8s.io": ("create",),
        },
        "ClusterRole/cardquota-authority": {
            "mutatingwebhookconfigurations.admissionregistration.k8s.io/cardquota-mutating": KEPT,
            "validatingwebhookconfigurations.admissionregistration.k8s.io/cardquota-validating": KEPT,
        },
        "Role/cardquota-leader-election": {
            "leases.coordination.k8s.io": ("create",),
            "leases.coordination.k8s.io/cardquota": ("get", "update"),
        },
        "Role/cardquota-usage": {"configmaps/cardquota-usage": ("get", "update")},
        "Role/cardquota-certificates": {"secrets/cardquota-certificates": ("list", "watch")},
        "Role/cardquota-authority": {
            "secrets/cardquota-certificates": ("get", "list", "update", "watch"),
            "secrets/cardquota-controller": ("get", "list", "update", "watch"),
        },
    }


def test_every_role_is_bound_to_accounts_that_exist(any_values: Rendered) -> None:
    for kind in ("Role", "ClusterRole"):
        bindings = any_values.kind(f"{kind}Binding")
        roles = any_values.kind(kind).keys() - FOR_PEOPLE
        assert {b["roleRef"]["name"] for b in bindings.values()} == roles
        for binding in bindings.values():
            assert binding["roleRef"]["kind"] == kind
            for subject in binding["subjects"]:
                assert subject["namespace"] == NAMESPACE
                assert subject["name"] in any_values.kind("ServiceAccount")


def test_groups_of_people_may_read_what_commands_need(render: Render) -> None:
    rendered = render({"queueReader": {"groups": ["research", "system:authenticated"]}})
    for kind in ("Role", "ClusterRole"):
        binding = rendered.one(f"{kind}Binding", "cardquota-queue-reader")
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, "cardquota-queue-reader")
        assert [(who["kind"], who["name"]) for who in binding["subjects"]] == [
            ("Group", "research"),
            ("Group", "system:authenticated"),
        ]


def test_the_webhook_reads_its_pair_and_writes_nothing(any_values: Rendered) -> None:
    """Neither the authority's key, nor the hook's path, nor whom the API server trusts is within its reach."""
    bound = [
        binding["roleRef"]
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for binding in any_values.kind(kind).values()
        if {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": "cardquota-webhook"}
        in binding["subjects"]
    ]
    granted: dict[str, tuple[str, ...]] = {}
    for role in bound:
        granted |= rules(any_values, role["kind"], role["name"])
    assert {verb for verbs in granted.values() for verb in verbs} <= {"get", "list", "watch"}
    assert {what for what in granted if what.startswith("secrets")} == {"secrets/cardquota-certificates"}
    assert not any("webhookconfigurations" in what for what in granted)


def test_no_role_reaches_a_secret_that_it_does_not_name(any_values: Rendered) -> None:
    for kind in ("Role", "ClusterRole"):
        for role in any_values.kind(kind).values():
            for rule in role["rules"]:
                assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
                if "secrets" in rule["resources"]:
                    assert rule["resourceNames"]
                    assert "create" not in rule["verbs"]


def test_only_the_controller_may_patch_pods(defaults: Rendered) -> None:
    subjects = defaults.one("ClusterRoleBinding", "cardquota-controller")["subjects"]
    assert [subject["name"] for subject in subjects] == ["cardquota-controller"]


@pytest.mark.parametrize(
    ("values", "reads_claims", "extends"),
    [
        ({"dra": {"queueCRD": "leave"}}, True, False),
        ({"features": {"dra": False}}, False, False),
        ({"dra": None}, True, True),
    ],
    ids=str,
)
def test_rights_on_claims_and_on_the_definition_of_queue_follow_the_settings(
    render: Render, values: dict[str, Any], reads_claims: bool, extends: bool
) -> None:
    rendered = render(values)
    granted = rules(rendered, "ClusterRole", "cardquota-controller")
    assert ("resourceclaims.resource.k8s.io" in granted) is reads_claims
    assert any(key.startswith("customresourcedefinitions") for key in granted) is extends
    assert ("mutating/queue-definition.cardquota.io" in rendered.webhooks()) is extends
    seen = rules(rendered, "ClusterRole", "cardquota-webhook")
    assert ("deviceclasses.resource.k8s.io" in seen) is reads_claims


@pytest.mark.parametrize(
    ("reservation", "deletes"),
    [({}, False), ({"evictAfter": "2h"}, True), ({"unfinishedAfter": "5m"}, True), (None, False)],
    ids=str,
)
def test_the_controller_may_delete_pods_only_where_that_is_asked_for(
    render: Render, reservation: dict[str, str] | None, deletes: bool
) -> None:
    granted = rules(render({"reservation": reservation}), "ClusterRole", "cardquota-controller")
    assert ("delete" in granted["pods"]) is deletes
    assert not any("delete" in verbs for resource, verbs in granted.items() if resource != "pods")


# -- processes -----------------------------------------------------------------------------------------------------


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
