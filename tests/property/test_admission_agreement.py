"""`check`, `review` and the webhook's paths say the same of the same object."""

import json
from typing import Any

import orjson
from hypothesis import given

from cli.check import Finding, check
from core import reasons
from core.admission import dispatch
from core.admission.dispatch import PATHS, creation_of
from core.admission.messages import WARNING_MAX, WARNINGS_MAX, one_line
from core.admission.request import Context, Decision
from core.settings import Settings
from kube.admission import wire
from tests.property.admission_objects import objects, view

SETTINGS = Settings()


VIEW = view()


def reviewed(raw: dict[str, Any]) -> dict[str, Any]:
    """What `review` answers to the creation of an object, from bytes to bytes."""
    request = creation_of(raw)
    assert request is not None
    review = {
        "apiVersion": wire.API_VERSION,
        "kind": wire.KIND,
        "request": {
            "uid": "u",
            "kind": {"group": request.group, "kind": request.kind},
            "resource": {"group": request.group, "resource": request.resource},
            "name": request.name,
            "namespace": request.namespace,
            "operation": "CREATE",
            "object": raw,
        },
    }
    decoded = wire.decode(orjson.dumps(review))
    answer: dict[str, Any] = orjson.loads(wire.encode("u", dispatch.review(decoded, VIEW, SETTINGS)))
    response: dict[str, Any] = answer["response"]
    return response


def by_paths(raw: dict[str, Any]) -> list[Decision]:
    """What the webhook answers at each of its paths that a cluster would ask."""
    request = creation_of(raw)
    assert request is not None
    asked = {PATHS[path] for path in PATHS if any(rule.applies(request) for rule in PATHS[path])}
    return [dispatch.review(request, VIEW, SETTINGS, rules=rules) for rules in asked]


def warnings_of(findings: list[Finding]) -> list[str]:
    lines = [one_line(f"{found.path}: {found.message}", WARNING_MAX) for found in findings]
    return list(dict.fromkeys(lines))


@given(objects)
def test_check_and_review_find_the_same(raw: dict[str, Any]) -> None:
    """`check` also guesses what may have been meant, of which no webhook speaks."""
    findings, _ = check([("x.json", json.dumps(raw).encode())], Context(VIEW, SETTINGS), {})
    errors = [found for found in findings if found.severity == "error"]
    response = reviewed(raw)
    assert response["allowed"] == (not errors)
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    assert [(cause["reason"], cause["field"]) for cause in causes] == [
        (found.code, one_line(found.path, 512)) for found in errors
    ]
    hints = [found for found in findings if found.severity == "warning"]
    warned = response.get("warnings", [])
    assert warned == [line for line in warnings_of(hints) if line in warned]
    guesses = {reasons.KEY_UNREAD, reasons.CARD_RESOURCE_MISSING, reasons.BEYOND_QUOTA}
    beyond = warnings_of([found for found in hints if found.code not in guesses])
    assert set(beyond[:WARNINGS_MAX]) <= set(warned)


@given(objects)
def test_the_paths_of_the_webhook_together_say_what_review_says(raw: dict[str, Any]) -> None:
    request = creation_of(raw)
    assert request is not None
    whole, parts = dispatch.review(request, VIEW, SETTINGS), by_paths(raw)
    assert whole.allowed == all(part.allowed for part in parts)
    denials = [part.denial for part in parts if part.denial is not None]
    assert bool(denials) == (whole.denial is not None)
    assert all(denial == whole.denial for denial in denials)
    assert {warning for part in parts for warning in part.warnings} == set(whole.warnings)
    if whole.allowed:
        assert [step for part in parts for step in part.patch] == list(whole.patch)


@given(objects)
def test_yaml_and_json_of_one_object_are_judged_alike(raw: dict[str, Any]) -> None:
    """A stream of both: JSON is YAML, but other parsers read it."""
    context = Context(VIEW, SETTINGS)
    as_json, _ = check([("x", json.dumps(raw).encode())], context, {})
    as_yaml, _ = check([("x", b"---\n" + json.dumps(raw).encode())], context, {})
    assert [(found.code, found.path, found.message) for found in as_json] == [
        (found.code, found.path, found.message) for found in as_yaml
    ]
