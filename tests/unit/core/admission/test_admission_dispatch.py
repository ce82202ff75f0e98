"""The table of what is served where."""

from typing import Any

import pytest

from core import reasons
from core.admission.dispatch import PATHS, RULES, resource_of, review
from core.admission.request import NOTHING_LISTED, Add, AdmissionRequest
from core.settings import Settings
from tests.unit.core.admission.samples import (
    a_card_pod,
    a_pod,
    a_queue,
    answer,
    changed,
    codes,
    creation,
    update,
    with_fields,
)


def test_every_rule_either_mutates_or_judges() -> None:
    assert all((rule.mutate is None) != (rule.judge is None) for rule in RULES)


def test_the_paths_are_those_of_the_chart() -> None:
    assert {
        "/mutate/pods",
        "/mutate/queue-status",
        "/validate/pods",
        "/validate/queues",
        "/validate/workloads",
    } <= set(PATHS)
    assert {f"/validate/{rule.resource}" for rule in RULES if rule.judge} <= set(PATHS)
    for path, rules in PATHS.items():
        assert all((rule.mutate is not None) == path.startswith("/mutate/") for rule in rules)


def test_a_path_answers_with_its_own_rules_only() -> None:
    request = creation(a_card_pod("A||B"))
    decisions = {
        path: review(request, NOTHING_LISTED, Settings(), rules=rules) for path, rules in PATHS.items()
    }
    assert {path for path, decision in decisions.items() if decision.patch} == {"/mutate/pods"}
    assert {path for path, decision in decisions.items() if not decision.allowed} == {"/validate/pods"}


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "DELETE", "object": {}},
        {"operation": "CONNECT"},
        {"subresource": "eviction"},
        {"subresource": "binding"},
        {"subresource": "status"},
        {"group": "example.com"},
        {"resource": "services"},
        {"resource": ""},
    ],
)
def test_what_has_no_rule_is_allowed(changes: dict[str, Any]) -> None:
    request = with_fields(creation(a_pod()), **changes)
    decision = answer(request)
    assert decision.allowed
    assert decision.patch == ()
    assert decision.warnings == ()


def test_resources_are_found_by_kind() -> None:
    assert resource_of("", "Pod") == "pods"
    assert resource_of("batch.volcano.sh", "Job") == "jobs"
    assert resource_of("scheduling.volcano.sh", "Queue") == "queues"
    assert resource_of("apps", "Pod") == ""


def test_a_patch_pointer_escapes_its_names() -> None:
    assert Add(("metadata", "labels", "a/b~c"), "x").as_json() == {
        "op": "add",
        "path": "/metadata/labels/a~1b~0c",
        "value": "x",
    }


def test_objects_nested_too_deeply_are_refused() -> None:
    """Comparing the old template with the new one would overflow the stack."""
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    old = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"x": deep}},
    }
    again: dict[str, Any] = {}
    for _ in range(100_000):
        again = {"x": again}
    new = {**old, "spec": {"template": {"x": again}}}
    decision = answer(update(old, new))
    assert codes(decision) == [reasons.OBJECT_MALFORMED]


def test_the_controllers_are_nobody_unless_named() -> None:
    gated = a_card_pod(gated=True)
    request = update(gated, changed(gated, "spec", schedulingGates=None), username="")
    assert not review(request, NOTHING_LISTED, Settings()).allowed


def test_an_empty_request_is_answered() -> None:
    for rule in RULES:
        for operation in ("CREATE", "UPDATE", "DELETE"):
            for subresource in ("", "status"):
                request = AdmissionRequest(
                    uid="u",
                    group=rule.group,
                    resource=rule.resource,
                    kind=rule.kind,
                    operation=operation,
                    subresource=subresource,
                )
                assert answer(request).allowed
    assert answer(creation(a_queue("{}"))).allowed
