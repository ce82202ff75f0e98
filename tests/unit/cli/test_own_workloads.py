"""The commands over a kind that only the setting `workloads` knows."""

import json
from pathlib import Path
from typing import Any

import pytest

from hack.pages.workloads import EXAMPLE, MANIFEST
from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import NODE, QUEUE

CLUSTER = (
    NODE % ("n1", 8) + QUEUE % ("research", '{"NVIDIA-H200": 4}') + QUEUE % ("other", '{"NVIDIA-H200": 5}')
)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "cardquota.yaml"
    path.write_text(EXAMPLE)
    return path


def planned(run: Run, state: str, *options: object) -> dict[str, Any]:
    outcome = run("plan", "--state", "-", "-o", "json", *options, stdin=state)
    assert outcome.status == 0, outcome.err
    report: dict[str, Any] = json.loads(outcome.out)
    return report


def test_plan_counts_the_pods_of_a_new_object_in_its_queue(run: Run, settings: Path) -> None:
    """Five pods, three of which start together; the quota has four."""
    pods = planned(run, CLUSTER + MANIFEST, "--config", settings)["pods"]
    assert {one["queue"] for one in pods.values()} == {"research"}
    assert sorted(one["decision"] for one in pods.values()) == ["hold", *["lift"] * 4]
    assert planned(run, CLUSTER + MANIFEST)["pods"] == {}


def test_a_gang_that_does_not_fit_waits_whole(run: Run, settings: Path) -> None:
    together = MANIFEST.replace("minAvailable: 3", "minAvailable: 5")
    pods = planned(run, CLUSTER + together, "--config", settings)["pods"]
    assert {one["decision"] for one in pods.values()} == {"hold"}


def test_the_gang_of_another_kind_of_the_same_name_is_another(run: Run, settings: Path) -> None:
    together = MANIFEST.replace("minAvailable: 3", "minAvailable: 5")
    template = {
        "metadata": {"annotations": {"volcano.sh/card.name": "NVIDIA-H200"}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    }
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {"queue": "research", "tasks": [{"name": "t", "replicas": 1, "template": template}]},
    }
    state = f"{CLUSTER}{together}---\n{json.dumps(job)}\n"
    pods = planned(run, state, "--config", settings)["pods"]
    assert sorted(one["decision"] for one in pods.values()) == [*["hold"] * 5, "lift"]


def test_objects_whose_names_are_generated_are_not_one(run: Run, settings: Path) -> None:
    generated = MANIFEST.replace("name: train", "generateName: train-", 1)
    pods = planned(run, f"{CLUSTER}{generated}---\n{generated}", "--config", settings)["pods"]
    assert len(pods) == 10


def test_the_settings_of_the_installation_in_the_state_count(run: Run, settings: Path) -> None:
    """The kind is known only once the state is read in which its row stands."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "cardquota",
            "namespace": "cardquota-system",
            "labels": {"app.kubernetes.io/name": "cardquota"},
        },
        "data": {"cardquota.yaml": settings.read_text()},
    }
    outcome = run(
        "plan", "--state", "-", "-o", "json", stdin=f"{CLUSTER}{MANIFEST}---\n{json.dumps(config)}\n"
    )
    assert outcome.status == 0, outcome.err
    assert "note: settings of" in outcome.err
    assert len(json.loads(outcome.out)["pods"]) == 5


def test_check_judges_it_with_line_and_path(run: Run, settings: Path) -> None:
    bad = MANIFEST.replace("NVIDIA-H200", "A||B")
    outcome = run("check", "--config", settings, "-", stdin=bad)
    assert outcome.status == 1
    assert "spec.roles[0].template.metadata.annotations[volcano.sh/card.name]" in outcome.out
    skipped = run("check", "-", stdin=bad)
    assert (skipped.status, skipped.out) == (0, "")
    assert "of other kinds, skipped: 1 TrainingJob" in skipped.err


def test_can_run_puts_it_in_its_namespace_and_in_another_queue(
    run: Run, settings: Path, tmp_path: Path
) -> None:
    state, manifest = tmp_path / "state.yaml", tmp_path / "job.yaml"
    state.write_text(CLUSTER)
    manifest.write_text(MANIFEST.replace(", namespace: ml", ""))
    given = ("can-run", manifest, "-n", "red", "--state", state, "--config", settings, "-o", "json")
    assert json.loads(run(*given).out)["verdict"] == "waits"
    outcome = run(*given, "--queue", "other")
    assert outcome.status == 0, outcome.out
    assert json.loads(outcome.out)["objects"][0]["object"] == "TrainingJob red/train"


def test_explain_tells_of_its_pods(run: Run, settings: Path) -> None:
    for kind in ("trainingjob", "TrainingJobs"):
        outcome = run(
            "explain", f"{kind}/ml/train", "--state", "-", "--config", settings, stdin=CLUSTER + MANIFEST
        )
        assert outcome.status == 0, outcome.err
        assert outcome.out.startswith("TrainingJob ml/train: 1 waiting, 4 about to be let in")
    unknown = run("explain", "trainingjob/ml/train", "--state", "-", stdin=CLUSTER + MANIFEST)
    assert unknown.status == 2
    assert "trainingjob is no kind that can be explained" in unknown.err
