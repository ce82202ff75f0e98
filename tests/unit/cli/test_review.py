"""`cardquota review`: a review in, its answer out, nothing else."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from cli.review import DEFAULT_CONTROLLER
from tests.unit.cli.conftest import Run, spawn
from tests.unit.cli.objects import BARE

GATE = {"name": "cardquota.io/quota"}


def pod(card: str = "NVIDIA-H200", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml", "annotations": {"volcano.sh/card.name": card}},
        "spec": {"containers": containers, **spec},
    }


def review(obj: Any, old: Any = None, user: str = "alice", **request: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u-1",
                "kind": {"group": "", "version": "v1", "kind": "Pod"},
                "resource": {"group": "", "version": "v1", "resource": "pods"},
                "operation": "UPDATE" if old else "CREATE",
                "userInfo": {"username": user},
                "object": obj,
                "oldObject": old,
                **request,
            },
        }
    )


def answer(out: str) -> dict[str, Any]:
    found = json.loads(out)
    assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = found["response"]
    assert response["uid"] == "u-1"
    return response


def test_a_card_pod_is_admitted_with_the_gate(run: Run) -> None:
    outcome = run("review", stdin=review(pod()))
    assert (outcome.status, outcome.err) == (0, "")
    response = answer(outcome.out)
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"
    patch = json.loads(base64.b64decode(response["patch"]))
    assert {"op": "add", "path": "/spec/schedulingGates", "value": [GATE]} in patch


def test_a_denial_is_an_answer_too(run: Run) -> None:
    outcome = run("review", stdin=review(pod("A|")))
    assert (outcome.status, outcome.err) == (0, "")
    response = answer(outcome.out)
    assert response["allowed"] is False
    assert "volcano.sh/card.name" in response["status"]["message"]
    assert response["status"]["code"]
    assert response["status"]["reason"]
    assert "patch" not in response


@pytest.mark.parametrize(
    ("user", "arguments", "allowed"),
    [
        ("alice", (), False),
        ("system:admin", (), False),
        (DEFAULT_CONTROLLER, (), True),
        (DEFAULT_CONTROLLER, ("--controller-account", "me"), False),
        ("me", ("--controller-account", "me"), True),
        ("me", ("--controller-account", "me", "--controller-account", "you"), True),
    ],
)
def test_only_the_controller_lifts_the_gate(
    run: Run, user: str, arguments: tuple[str, ...], allowed: bool
) -> None:
    request = review(pod(), pod(schedulingGates=[GATE]), user)
    assert answer(run("review", *arguments, stdin=request).out)["allowed"] is allowed


def test_kinds_without_rules_are_allowed(run: Run) -> None:
    request = review({"kind": "ConfigMap"}, resource={"group": "", "version": "v1", "resource": "configmaps"})
    assert answer(run("review", stdin=request).out) == {"uid": "u-1", "allowed": True}


def test_a_state_makes_the_nodes_cards_known(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text(BARE)
    assert "warnings" not in answer(run("review", stdin=review(pod())).out)
    assert "NVIDIA-H200" in str(answer(run("review", "--state", state, stdin=review(pod())).out)["warnings"])


def test_settings_count(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "cardquota.yaml"
    config.write_text("schedulerNames: [volcano]\n")
    assert "patch" not in answer(run("review", "--config", config, stdin=review(pod())).out)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "hello",
        "{}",
        '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        '{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {}}',
        review(None),
        review(pod(), operation="FLY"),
        "\xff",
    ],
)
def test_what_is_no_review_is_an_error_and_no_answer(run: Run, text: str) -> None:
    outcome = run("review", stdin=text)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("error: <stdin>: no AdmissionReview: ")
    _, remedy = outcome.err.splitlines()
    assert remedy.startswith('try: send what an API server sends: {"apiVersion": ')


@pytest.mark.parametrize("flag", ["--state", "--config"])
def test_standard_input_is_for_the_review(run: Run, flag: str) -> None:
    outcome = run("review", flag, "-", stdin=review(pod()))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("error: standard input holds the review")


def test_as_a_process() -> None:
    outcome = spawn("review", stdin=review(pod()).encode())
    assert (outcome.status, outcome.err) == (0, "")
    assert answer(outcome.out)["allowed"] is True
