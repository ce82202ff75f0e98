"""What the chart renders: rights, processes, webhook entries and policies."""

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from core import names
from tests.chart.conftest import NAMESPACE, Render, Rendered

PROCESSES = ("webhook", "controller")
OWN_NAMESPACES = {"kube-system", "kube-node-lease", NAMESPACE, "volcano-system"}


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


def expressions(document: Any) -> Iterator[str]:
    """Every CEL expression in a rendered object."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in ("expression", "messageExpression"):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(document, list):
        for item in document:
            yield from expressions(item)


def conditions(entry: dict[str, Any]) -> str:
    return "\n".join(condition["expression"] for condition in entry.get("matchConditions", ()))


# -- rights --------------------------------------------------------------------------------------------------------

READ = ("get", "list", "watch")


def test_the_rights_are_these_and_no_others(defaults: Rendered) -> None:
    granted = {
        f"{kind}/{name}": rules(defaults, kind, name)
        for kind in ("Role", "ClusterRole")
        for name in defaults.kind(kind)
    }
    assert granted == {
        "ClusterRole/cardquota-webhook": {"nodes": READ, "queues.scheduling.volcano.sh": READ},
        "ClusterRole/cardquota-controller": {
            "pods": ("get", "list", "patch", "watch"),
            "nodes": READ,
            "namespaces": READ,
            "queues.scheduling.volcano.sh": READ,
            "queues/status.scheduling.volcano.sh": ("patch",),
            "podgroups.scheduling.volcano.sh": READ,
            "jobs.batch.volcano.sh": READ,
            "events.events.k8s.io": ("create", "patch"),
        },
        "ClusterRole/cardquota-certificates": {
            "mutatingwebhookconfigurations.admissionregistration.k8s.io/cardquota-mutating": ("get", "patch"),
            "validatingwebhookconfigurations.admissionregistration.k8s.io/cardquota-validating": (
                "get",
                "patch",
            ),
        },
        "Role/cardquota-leader-election": {
            "leases.coordination.k8s.io": ("create",),
            "leases.coordination.k8s.io/cardquota": ("get", "update"),
        },
        "Role/cardquota-certificates": {"secrets/cardquota-certificates": ("get", "update")},
    }


def test_every_role_is_bound_to_accounts_that_exist(any_values: Rendered) -> None:
    for kind in ("Role", "ClusterRole"):
        bindings = any_values.kind(f"{kind}Binding")
        assert {b["roleRef"]["name"] for b in bindings.values()} == any_values.kind(kind).keys()
        for binding in bindings.values():
            assert binding["roleRef"]["kind"] == kind
            for subject in binding["subjects"]:
                assert subject["namespace"] == NAMESPACE
                assert subject["name"] in any_values.kind("ServiceAccount")


def test_only_the_controller_may_patch_pods(defaults: Rendered) -> None:
    subjects = defaults.one("ClusterRoleBinding", "cardquota-controller")["subjects"]
    assert [subject["name"] for subject in subjects] == ["cardquota-controller"]


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
    "--webhook-configuration=cardquota-mutating",
    "--webhook-configuration=cardquota-validating",
    "--controller-account=system:serviceaccount:$(POD_NAMESPACE):cardquota-controller",
    "--log-level=info",
]


@pytest.mark.parametrize(
    ("component", "more"),
    [
        ("webhook", []),
        (
            "controller",
            ["--lease=cardquota", "--identity=$(POD_NAME)", "--advertise-address=https://$(POD_IP):9443"],
        ),
    ],
)
def test_the_command_line(defaults: Rendered, component: str, more: list[str]) -> None:
    subcommand, *flags = container(defaults, component)["args"]
    assert subcommand == component
    names_of_all = [
        f"--dns-name=cardquota-{other}{suffix}"
        for other in PROCESSES
        for suffix in (
            "",
            ".$(POD_NAMESPACE)",
            ".$(POD_NAMESPACE).svc",
            ".$(POD_NAMESPACE).svc.cluster.local",
        )
    ]
    service = f"--service=cardquota-{component}.$(POD_NAMESPACE).svc"
    assert sorted(flags) == sorted([*COMMON_FLAGS, service, *names_of_all, *more])


@pytest.mark.parametrize("component", PROCESSES)
def test_every_variable_on_the_command_line_is_set(any_values: Rendered, component: str) -> None:
    spec = container(any_values, component)
    used = set(re.findall(r"\$\((\w+)\)", " ".join(spec["args"])))
    assert used <= {entry["name"] for entry in spec["env"]}


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
        assert service["ports"] == [{"name": "https", "port": 443, "targetPort": "https"}]
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


def test_the_certificate_secret_is_there_and_says_nothing_of_its_data(any_values: Rendered) -> None:
    """An upgrade that carried data, even empty, would take away what the processes wrote."""
    secret = any_values.one("Secret", "cardquota-certificates")
    assert secret.keys() == {"apiVersion", "kind", "metadata", "type"}


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


def test_everything_follows_the_release_namespace(render: Render) -> None:
    rendered = render(namespace="quota")
    for thing in rendered.objects:
        assert thing["metadata"].get("namespace", "quota") == "quota"
    for entry in rendered.webhooks().values():
        assert entry["clientConfig"]["service"]["namespace"] == "quota"
    for name in ("cardquota-gate", "cardquota-records"):
        text = "\n".join(expressions(rendered.one("ValidatingAdmissionPolicy", name)))
        assert "'system:serviceaccount:quota:cardquota-controller'" in text


# -- webhook entries -----------------------------------------------------------------------------------------------

ENTRIES = {
    # entry -> path, failure policy
    "mutating/pods.cardquota.io": ("/mutate/pods", "Fail"),
    "mutating/queue-status.cardquota.io": ("/mutate/queue-status", "Ignore"),
    "mutating/bindings.cardquota.io": ("/mutate/bindings", "Ignore"),
    "validating/pods.cardquota.io": ("/validate/pods", "Fail"),
    "validating/hints.pods.cardquota.io": ("/validate/pods", "Ignore"),
    "validating/queues.cardquota.io": ("/validate/queues", "Fail"),
    "validating/workloads.cardquota.io": ("/validate/workloads", "Ignore"),
    "validating/cronjobs.cardquota.io": ("/validate/workloads", "Ignore"),
    "validating/volcano-jobs.cardquota.io": ("/validate/workloads", "Ignore"),
}


def test_the_webhook_entries(defaults: Rendered) -> None:
    found = {
        name: (entry["clientConfig"]["service"]["path"], entry["failurePolicy"])
        for name, entry in defaults.webhooks().items()
    }
    assert found == ENTRIES


def test_entries_call_services_that_exist_and_bring_no_certificate(any_values: Rendered) -> None:
    for entry in any_values.webhooks().values():
        assert entry["clientConfig"].keys() == {"service"}
        service = any_values.one("Service", entry["clientConfig"]["service"]["name"])
        assert entry["clientConfig"]["service"]["port"] == service["spec"]["ports"][0]["port"]


def test_only_the_binding_hook_remembers_anything(any_values: Rendered) -> None:
    effects = {name: entry["sideEffects"] for name, entry in any_values.webhooks().items()}
    assert effects.pop("mutating/bindings.cardquota.io") == "NoneOnDryRun"
    assert set(effects.values()) == {"None"}


def test_no_entry_can_be_escaped_by_a_label_or_another_version(any_values: Rendered) -> None:
    for entry in any_values.webhooks().values():
        assert "objectSelector" not in entry
        assert entry["matchPolicy"] == "Equivalent"
        assert entry["admissionReviewVersions"] == ["v1"]
        assert entry.get("reinvocationPolicy", "IfNeeded") == "IfNeeded"


def excluded(selector: dict[str, Any]) -> list[str]:
    first = selector["matchExpressions"][0]
    assert first.items() >= {"key": "kubernetes.io/metadata.name", "operator": "NotIn"}.items()
    found: list[str] = first["values"]
    return found


def test_namespaced_rules_and_policies_leave_system_namespaces_alone(defaults: Rendered) -> None:
    for entry in defaults.webhooks().values():
        scopes = {rule["scope"] for rule in entry["rules"]}
        assert len(scopes) == 1
        assert ("namespaceSelector" in entry) == (scopes == {"Namespaced"})
        if scopes == {"Namespaced"}:
            assert set(excluded(entry["namespaceSelector"])) == OWN_NAMESPACES
    for policy in defaults.kind("ValidatingAdmissionPolicy").values():
        assert set(excluded(policy["spec"]["matchConstraints"]["namespaceSelector"])) == OWN_NAMESPACES


def test_more_namespaces_can_be_left_alone(render: Render) -> None:
    requirement = {"key": "cardquota.io/enforce", "operator": "Exists"}
    rendered = render(
        {"webhook": {"exemptNamespaces": ["a", "kube-system"], "namespaceSelectorExpressions": [requirement]}}
    )
    for entry in rendered.webhooks().values():
        if "namespaceSelector" in entry:
            assert sorted(excluded(entry["namespaceSelector"])) == sorted({*OWN_NAMESPACES, "a"})
            assert entry["namespaceSelector"]["matchExpressions"][1:] == [requirement]


def test_time_limits_and_the_binding_hooks_failure_policy_are_values(render: Render) -> None:
    hook = {"failurePolicy": "Fail", "timeoutSeconds": 9}
    rendered = render({"webhook": {"timeoutSeconds": 3}, "controller": {"bindingHook": hook}})
    limits = {name: entry["timeoutSeconds"] for name, entry in rendered.webhooks().items()}
    assert limits.pop("mutating/bindings.cardquota.io") == 9
    assert set(limits.values()) == {3}
    assert rendered.webhooks()["mutating/bindings.cardquota.io"]["failurePolicy"] == "Fail"


@pytest.mark.parametrize(
    ("policy", "failure", "by_resource"),
    [("ignore", "Ignore", False), ("warn", "Ignore", True), ("deny", "Fail", True)],
)
def test_pods_without_card_name(render: Render, policy: str, failure: str, by_resource: bool) -> None:
    entry = render({"cards": {"podsWithoutCardName": policy}}).webhooks()[
        "validating/hints.pods.cardquota.io"
    ]
    assert entry["failurePolicy"] == failure
    assert ('"nvidia.com/"' in conditions(entry)) is by_resource
    assert names.CARD_NAME_MISPRINT in conditions(entry)


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("cards", {names.CARD_NAME_ANNOTATION}),
        ("mgpu", {names.MGPU_MULTIPLE_ANNOTATION, "vke.volcengine.com/mgpu-"}),
        ("dra", {"resourceClaims"}),
    ],
)
def test_a_feature_that_is_off_sends_nothing(render: Render, feature: str, words: set[str]) -> None:
    entry = "mutating/pods.cardquota.io"
    on, off = render().webhooks(), render({"features": {feature: False}}).webhooks()
    for word in words:
        assert word in conditions(on[entry])
        assert word not in conditions(off[entry])


def test_with_all_features_off_no_pod_is_sent(render: Render) -> None:
    rendered = render({"features": {"cards": False, "mgpu": False, "dra": False}})
    asks = rendered.webhooks()["mutating/pods.cardquota.io"]["matchConditions"][0]
    assert asks == {"name": "asks", "expression": "false"}


# -- policies and expressions --------------------------------------------------------------------------------------


def test_each_policy_is_bound_and_denies(defaults: Rendered) -> None:
    policies = defaults.kind("ValidatingAdmissionPolicy")
    bindings = defaults.kind("ValidatingAdmissionPolicyBinding")
    assert policies.keys() == {"cardquota-gate", "cardquota-records", "cardquota-create"}
    assert {b["spec"]["policyName"]: b["spec"]["validationActions"] for b in bindings.values()} == {
        name: ["Deny"] for name in policies
    }
    assert {policy["spec"]["failurePolicy"] for policy in policies.values()} == {"Fail"}


def test_without_policies_the_webhook_serves_their_rules(render: Render) -> None:
    rendered = render({"policies": {"enabled": False}})
    assert (
        rendered.kind("ValidatingAdmissionPolicy") == rendered.kind("ValidatingAdmissionPolicyBinding") == {}
    )
    entry = rendered.webhooks()["validating/protection.pods.cardquota.io"]
    assert entry["failurePolicy"] == "Fail"
    assert [(rule["operations"], rule["resources"]) for rule in entry["rules"]] == [
        (["CREATE"], ["pods"]),
        (["UPDATE"], ["pods", "pods/status"]),
    ]


def test_expressions_never_use_the_spelling_that_fails_on_null(any_values: Rendered) -> None:
    for thing in any_values.objects:
        for expression in expressions(thing):
            assert "has(" not in expression


QUOTED = re.compile(r"'([a-z.]+/[A-Za-z.-]*)'")


def test_expressions_know_only_names_that_the_code_knows(any_values: Rendered) -> None:
    known = {value for value in vars(names).values() if isinstance(value, str)} | {"vke.volcengine.com/mgpu-"}
    quoted = {
        word for thing in any_values.objects for text in expressions(thing) for word in QUOTED.findall(text)
    }
    assert names.GATE in quoted
    assert quoted <= known


# -- CRDs ----------------------------------------------------------------------------------------------------------


def test_crds_are_installed_on_request_and_outlive_the_release(render: Render) -> None:
    assert render().kind("CustomResourceDefinition") == {}
    crds = render({"crds": {"install": True}}).kind("CustomResourceDefinition")
    assert crds.keys() == {"queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh"}
    for crd in crds.values():
        assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Path and type of everything that a schema declares."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield f"{path}.*", ""
        return
    yield path, schema.get("type", "quantity")
    for name, inner in schema.get("properties", {}).items():
        yield from leaves(inner, f"{path}.{name}")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from leaves(schema["additionalProperties"], f"{path}.{{}}")
    if "items" in schema:
        yield from leaves(schema["items"], f"{path}[]")


@pytest.mark.parametrize("plural", ["queues", "podgroups"])
def test_the_crds_take_every_object_that_the_published_ones_take(render: Render, plural: str) -> None:
    folder = os.environ.get("VOLCANO_CRDS")
    if folder is None:
        pytest.skip("VOLCANO_CRDS names no folder with the published CRDs")
    published = yaml.safe_load((Path(folder) / f"scheduling.volcano.sh_{plural}.yaml").read_text("utf-8"))
    name = f"{plural}.scheduling.volcano.sh"
    own = render({"crds": {"install": True}}).one("CustomResourceDefinition", name)
    for field in ("group", "scope", "names"):
        assert own["spec"][field] == published["spec"][field]
    (theirs,), (ours,) = published["spec"]["versions"], own["spec"]["versions"]
    assert (ours.get("subresources") or {}) == (theirs.get("subresources") or {})
    declared = dict(leaves(ours["schema"]["openAPIV3Schema"]))
    opened = [path.removesuffix("*") for path in declared if path.endswith(".*")]
    for path, kind in leaves(theirs["schema"]["openAPIV3Schema"]):
        if not any(f"{path}.".startswith(prefix) for prefix in opened):
            assert declared.get(path) == kind, path
