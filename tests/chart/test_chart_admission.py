"""What the chart renders for the API server: webhook entries and policies, and the expressions in them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from core import names, settings
from core.admission.dispatch import PATHS
from core.dra.amounts import DeviceKey
from core.workloads import TABLE, added
from hack.installation import rendering
from hack.pages.workloads import EXAMPLE
from tests.chart.conftest import NAMESPACE, Render, Rendered

OWN_NAMESPACES = {"kube-system", "kube-node-lease", NAMESPACE}


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
    "mutating/queue-definition.cardquota.io": ("/mutate/queue-crd", "Ignore"),
    # Its path is nobody's business.
    "mutating/bindings.cardquota.io": (None, "Ignore"),
    "validating/pods.cardquota.io": ("/validate/pods", "Fail"),
    "validating/hints.pods.cardquota.io": ("/validate/pods", "Ignore"),
    "validating/nodes.cardquota.io": ("/validate/nodes", "Ignore"),
    "validating/strategy.pods.cardquota.io": ("/validate/pods", "Ignore"),
    "validating/queues.cardquota.io": ("/validate/queues", "Fail"),
    "validating/deletions.queues.cardquota.io": ("/validate/queues", "Ignore"),
    "validating/hints.queues.cardquota.io": ("/validate/queues", "Ignore"),
    "validating/workloads.cardquota.io": ("/validate/workloads", "Ignore"),
    "validating/cronjobs.cardquota.io": ("/validate/workloads", "Ignore"),
    "validating/volcano-jobs.cardquota.io": ("/validate/workloads", "Ignore"),
    "validating/podgroups.cardquota.io": ("/validate/workloads", "Ignore"),
    "validating/other-workloads.cardquota.io": ("/validate/workloads", "Ignore"),
    "validating/cluster-templates.cardquota.io": ("/validate/workloads", "Ignore"),
}


def test_the_webhook_entries(defaults: Rendered) -> None:
    found = {
        name: (entry["clientConfig"]["service"].get("path"), entry["failurePolicy"])
        for name, entry in defaults.webhooks().items()
    }
    assert found == ENTRIES


def test_each_path_that_the_api_server_is_told_is_served(any_values: Rendered) -> None:
    """But for the binding hook's, which its process tells the API server itself."""
    entries = any_values.webhooks()
    told = {entry["clientConfig"]["service"].get("path") for entry in entries.values()}
    hook = entries["mutating/bindings.cardquota.io"]["clientConfig"]["service"].get("path")
    assert told - {hook} <= PATHS.keys()
    assert {"/mutate/pods", "/validate/pods", "/validate/queues", "/validate/workloads"} <= told


def sent_workloads(rendered: Rendered) -> set[tuple[str, str, bool]]:
    return {
        (group, resource, rule["scope"] == "Namespaced")
        for entry in rendered.webhooks().values()
        if entry["clientConfig"]["service"].get("path") == "/validate/workloads"
        for rule in entry["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    } - {("scheduling.volcano.sh", "podgroups", True)}


def test_every_kind_of_the_table_of_workloads_is_sent_and_no_other(defaults: Rendered) -> None:
    assert sent_workloads(defaults) == {(row.group, row.resource, row.namespaced) for row in TABLE}


def test_kinds_that_the_values_add_are_sent_and_known_to_the_processes(render: Render) -> None:
    own = yaml.safe_load(EXAMPLE)["workloads"]
    cluster = {**own[0], "kind": "TrainingPlan", "resource": "trainingplans", "clusterScoped": True}
    rendered = render({"workloads": [*own, cluster]})
    assert sent_workloads(rendered) == {
        *((row.group, row.resource, row.namespaced) for row in TABLE),
        ("batch.example.com", "trainingjobs", True),
        ("batch.example.com", "trainingplans", False),
    }
    parsed, warnings = settings.parse(rendered.settings())
    assert [row.resource for row in added(parsed.workloads)] == ["trainingjobs", "trainingplans"]
    assert warnings == []


@pytest.mark.parametrize(
    "change",
    [{"group": "nodots"}, {"templates": ["template"]}, {"resource": "Jobs"}, {"queues": "spec.queue"}],
)
def test_values_that_add_a_bad_row_are_refused(render: Render, change: dict[str, Any]) -> None:
    own = yaml.safe_load(EXAMPLE)["workloads"]
    with pytest.raises(rendering.RenderError, match="workloads"):
        render({"workloads": [{**own[0], **change}]})


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


def test_what_changes_objects_is_asked_again_after_others_have(any_values: Rendered) -> None:
    asked = {name: entry.get("reinvocationPolicy") for name, entry in any_values.webhooks().items()}
    mutating = {name for name in asked if name.startswith("mutating/")}
    assert mutating
    assert {name for name, policy in asked.items() if policy == "IfNeeded"} == mutating


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
    """Without devices, for which pods with extended resources are sent anyway."""
    values = {"cards": {"podsWithoutCardName": policy}, "features": {"dra": False}}
    entry = render(values).webhooks()["validating/hints.pods.cardquota.io"]
    assert entry["failurePolicy"] == failure
    assert (names.DEVICE_CLASS_RESOURCE_PREFIX in conditions(entry)) is by_resource
    assert names.CARD_NAME_MISPRINT in conditions(entry)


def test_resources_that_are_no_cards_or_no_devices_can_be_left_out(render: Render) -> None:
    values = {"cards": {"resourcePrefixes": ["nvidia.com/"]}, "dra": {"notDevices": ["rdma/hca"]}}
    webhooks = render(values).webhooks()
    assert '!(resource in ["rdma/hca"])' in conditions(webhooks["mutating/pods.cardquota.io"])
    assert '["nvidia.com/"].exists(prefix' in conditions(webhooks["validating/hints.pods.cardquota.io"])


TEMPLATES = [f"validating/{entry}.cardquota.io" for entry in ("workloads", "cronjobs", "volcano-jobs")]


@pytest.mark.parametrize("entry", TEMPLATES)
@pytest.mark.parametrize(("policy", "by_resource"), [("ignore", False), ("warn", True), ("deny", True)])
def test_templates_are_sent_for_the_same_hints_as_pods(
    render: Render, entry: str, policy: str, by_resource: bool
) -> None:
    """A template is early feedback whatever the policy: the pods that it makes are judged again."""
    values = {"cards": {"podsWithoutCardName": policy}, "features": {"dra": False}}
    found = render(values).webhooks()[entry]
    assert found["failurePolicy"] == "Ignore"
    assert (names.DEVICE_CLASS_RESOURCE_PREFIX in conditions(found)) is by_resource
    for word in (names.CARD_NAME_MISPRINT, names.CROSSQUOTA_STRATEGY_ANNOTATION, names.ASSUMED_ANNOTATION):
        assert word in conditions(found)


@pytest.mark.parametrize(
    ("feature", "word"),
    [("cards", names.CARD_NAME_MISPRINT), ("crossQuota", names.CROSSQUOTA_STRATEGY_ANNOTATION)],
)
def test_hints_of_a_feature_that_is_off_send_no_template(render: Render, feature: str, word: str) -> None:
    webhooks = render({"features": {feature: False}}).webhooks()
    for entry in TEMPLATES:
        assert word not in conditions(webhooks[entry])


QUEUES, QUEUE_HINTS = "validating/queues.cardquota.io", "validating/hints.queues.cardquota.io"
CARD_PLACES = {names.CARD_QUOTA_ANNOTATION}
DEVICE_PLACES = {names.DRA_QUOTA_ANNOTATION, "?spec.?dra", "'deviceclass/'"}


@pytest.mark.parametrize(
    ("features", "places"),
    [
        ({}, CARD_PLACES | DEVICE_PLACES),
        ({"dra": False}, CARD_PLACES),
        ({"cards": False}, DEVICE_PLACES),
        ({"cards": False, "dra": False}, set()),
    ],
    ids=["all on", "no DRA", "no cards", "neither"],
)
def test_queues_are_sent_for_the_quotas_of_the_features_that_are_on(
    render: Render, features: dict[str, bool], places: set[str]
) -> None:
    webhooks = render({"features": features}).webhooks()
    text = conditions(webhooks[QUEUES])
    assert {place for place in CARD_PLACES | DEVICE_PLACES if place in text} == places
    # Of parents there is something to say with either; of what the API server has dropped only with DRA.
    assert (QUEUE_HINTS in webhooks) is bool(places)
    if places:
        assert (names.LAST_APPLIED_ANNOTATION in conditions(webhooks[QUEUE_HINTS])) is (
            places >= DEVICE_PLACES
        )


def test_without_quotas_no_podgroup_is_sent_and_queues_for_their_access_alone(render: Render) -> None:
    webhooks = render({"features": {"cards": False, "dra": False}}).webhooks()
    assert not {QUEUE_HINTS, "validating/podgroups.cardquota.io"} & webhooks.keys()
    sent = conditions(webhooks[QUEUES])
    assert names.NAMESPACES_ANNOTATION in sent
    assert names.NAMESPACE_SELECTOR_ANNOTATION in sent
    assert "quota'" not in sent


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("cards", {names.CARD_NAME_ANNOTATION}),
        ("mgpu", {names.MGPU_MULTIPLE_ANNOTATION, '["vke.volcengine.com/mgpu-"]'}),
        ("dra", {"resourceClaims", names.DEVICE_CLASS_RESOURCE_PREFIX}),
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
    assert policies.keys() == {
        "cardquota-gate",
        "cardquota-records",
        "cardquota-create",
        "cardquota-deletion",
        "cardquota-eviction",
    }
    assert {b["spec"]["policyName"]: b["spec"]["validationActions"] for b in bindings.values()} == {
        name: ["Deny"] for name in policies
    }
    assert {policy["spec"]["failurePolicy"] for policy in policies.values()} == {"Fail"}


def test_a_forced_deletion_is_judged_of_whatever_was_charged(any_values: Rendered) -> None:
    """By a lift, which leaves the label too, or by the bind alone, as an extended resource that only the webhook knows."""
    policy = any_values.kind("ValidatingAdmissionPolicy").get("cardquota-deletion")
    if policy is None:
        assert any_values.kind("ValidatingAdmissionPolicy") == {}
        return
    (ours,) = [each["expression"] for each in policy["spec"]["matchConditions"] if each["name"] == "ours"]
    for line in (
        f"oldObject.metadata.?labels[?'{names.MANAGED_LABEL}'].hasValue()",
        f"'{names.CHARGED_QUEUE_ANNOTATION}' in oldObject.?metadata.?annotations.orValue({{}})",
    ):
        assert line in [one.strip() for one in ours.split("||")]


def test_without_policies_the_webhook_serves_their_rules_but_those_of_deletions(render: Render) -> None:
    """A forced deletion or eviction is not sent to it, see the exceptions in docs/security.md."""
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
    known = {value for value in vars(names).values() if isinstance(value, str)} | {
        "vke.volcengine.com/mgpu-",
        "kubernetes.io/",
    }
    known |= {
        DeviceKey("c").resource.removesuffix("c"),
        DeviceKey("c", "x").resource.removeprefix("x").removesuffix("c"),
    }
    quoted = {
        word for thing in any_values.objects for text in expressions(thing) for word in QUOTED.findall(text)
    }
    assert names.GATE in quoted
    assert quoted <= known
