"""`cardquota dump`: what the other commands read, and nothing that is its owner's business."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli import cluster
from cli.dump import shareable
from tests.unit.cli.conftest import Run

SECRET = "s3cret"
LAST_APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "kept": "x"}
CONTAINER = {
    "name": "c",
    "image": SECRET,
    "command": [SECRET],
    "args": [SECRET],
    "env": [{"name": "TOKEN", "value": SECRET}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
    "restartPolicy": "Always",
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "uid": "u", "annotations": LAST_APPLIED},
    "spec": {
        "containers": [CONTAINER, None],
        "initContainers": [CONTAINER],
        "volumes": [{"name": SECRET}],
        "imagePullSecrets": [{"name": SECRET}],
        "schedulingGates": [{"name": "g"}],
    },
    "status": {"phase": "Pending"},
}
TEMPLATE = {"metadata": {"annotations": {"a": "b"}}, "spec": POD["spec"]}


def test_of_a_pod_only_what_decisions_look_at_is_left() -> None:
    assert shareable(POD) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u", "annotations": {"kept": "x"}},
        "spec": {
            "containers": [
                {"name": "c", "resources": CONTAINER["resources"], "restartPolicy": "Always"},
                None,
            ],
            "initContainers": [{"name": "c", "resources": CONTAINER["resources"], "restartPolicy": "Always"}],
            "schedulingGates": [{"name": "g"}],
        },
        "status": {"phase": "Pending"},
    }


def test_the_templates_of_a_volcano_job_are_treated_alike() -> None:
    job = {"kind": "Job", "spec": {"queue": "q", "tasks": [{"name": "t", "template": TEMPLATE}, 3]}}
    assert SECRET not in json.dumps(shareable(job))
    assert shareable(job)["spec"]["queue"] == "q"


def test_a_queue_keeps_the_manifest_that_shows_a_dropped_quota() -> None:
    queue: dict[str, Any] = {"kind": "Queue", "metadata": {"name": "q", "annotations": LAST_APPLIED}}
    assert shareable(queue) == queue


@pytest.mark.parametrize(
    "raw", [{}, {"kind": "Pod", "spec": 3, "metadata": None}, {"kind": "Job", "spec": {"tasks": 3}}]
)
def test_whatever_an_object_holds_nothing_breaks(raw: dict[str, Any]) -> None:
    assert shareable(raw) == raw


def test_it_is_read_by_the_other_commands(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "objects", lambda _options: [POD])
    path = tmp_path / "state.json"
    outcome = run("dump", "-o", path)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", f"{path}: 1 objects\n")
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
    pods = json.loads(run("plan", "--state", path, "-o", "json").out)["pods"]
    assert list(pods) == ["default/p"]


def test_a_place_that_cannot_be_written_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "objects", lambda _options: [POD])
    outcome = run("dump", "-o", tmp_path / "missing" / "state.json")
    assert outcome.status == 2
    assert outcome.err.startswith("error: ")
