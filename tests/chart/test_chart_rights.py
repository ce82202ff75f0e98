"""The rights that the chart grants: to which accounts and groups, and that there are no others."""

import itertools
from typing import Any

import pytest

from tests.chart.conftest import NAMESPACE, Render, Rendered

READ = ("list", "watch")
KEPT = ("get", "list", "patch", "watch")
LOOK = ("get", "list", "watch")
FOR_PEOPLE = {"cardquota-queue-reader"}
"""Bound to groups that values name."""


def rules(rendered: Rendered, kind: str, name: str) -> dict[str, tuple[str, ...]]:
    """`resource.group[/name]` to verbs."""
    granted: dict[str, set[str]] = {}
    for rule in rendered.one(kind, name)["rules"]:
        for group, resource in itertools.product(rule["apiGroups"], rule["resources"]):
            for wanted in rule.get("resourceNames", [""]):
                key = ".".join(filter(None, (resource, group))) + (f"/{wanted}" if wanted else "")
                granted.setdefault(key, set()).update(rule["verbs"])
    return {key: tuple(sorted(verbs)) for key, verbs in granted.items()}


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
