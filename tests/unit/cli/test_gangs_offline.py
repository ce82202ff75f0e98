"""Gangs without PodGroup in `plan`, `explain` and `can-run`: named as a PodGroup would be, replica by replica."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import GATED, NODE, POD, QUEUE
from tests.unit.cli.test_creation import TEMPLATE, cluster, decisions, workload

SAID = {"cardquota.io/gang-name": "train", "cardquota.io/gang-size": "4"}
MEMBER_OF = 'cardquota.io/gang-name: train, cardquota.io/gang-size: "4", '


def template(size: int = 4) -> dict[str, Any]:
    said = {**SAID, "cardquota.io/gang-size": str(size)}
    raw: dict[str, Any] = {**TEMPLATE}
    annotations = {**raw["metadata"]["annotations"], **said}
    return {**raw, "metadata": {"annotations": annotations}}


def members(count: int) -> str:
    pods = (POD % (f"m{number}", "NVIDIA-H200", "team", GATED) for number in range(count))
    return "".join(pod.replace("annotations: {", f"annotations: {{{MEMBER_OF}", 1) for pod in pods)


def job_set(replicas: int, parallelism: int) -> dict[str, Any]:
    spec = {"parallelism": parallelism, "completions": parallelism, "template": template()}
    return workload(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        replicatedJobs=[{"name": "workers", "replicas": replicas, "template": {"spec": spec}}],
    )


def leader_worker_set(replicas: int, size: int, *, leader: bool) -> dict[str, Any]:
    templates = {"workerTemplate": template(), **({"leaderTemplate": template()} if leader else {})}
    return workload(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        replicas=replicas,
        leaderWorkerTemplate={"size": size, **templates},
    )


@pytest.mark.parametrize(
    ("thing", "quota", "lifted"),
    [
        (workload("batch/v1", "Job", parallelism=4, completions=4, template=template()), 3, 0),
        (workload("batch/v1", "Job", parallelism=4, completions=4, template=template()), 4, 4),
        (job_set(2, 4), 6, 4),
        (job_set(2, 4), 8, 8),
        (job_set(4, 2), 8, 0),
        (leader_worker_set(2, 4, leader=True), 6, 4),
        (leader_worker_set(2, 4, leader=False), 6, 4),
        (leader_worker_set(2, 4, leader=True), 8, 8),
        (leader_worker_set(4, 2, leader=True), 8, 0),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else str(value),
)
def test_a_new_workload_is_planned_with_one_gang_for_each_replica(
    run: Run, thing: dict[str, Any], quota: int, lifted: int
) -> None:
    found = [*decisions(run, cluster(quota), thing).values()]
    assert found.count("lift") == lifted
    assert found.count("hold") == len(found) - lifted


def test_explain_tells_the_gang_and_what_it_lacks(run: Run) -> None:
    outcome = run("explain", "gang/train", "--state", "-", stdin=cluster(8) + members(3))
    assert outcome.status == 0, outcome.err
    assert "gang default/train needs 4 more members at once, with only 3 ready" in " ".join(
        outcome.out.split()
    )
    assert "cardquota.io/gang-size 3 instead of 4 in the pod template of gang default/train" in " ".join(
        outcome.out.split()
    )


def test_explain_of_a_name_that_no_gang_has(run: Run) -> None:
    outcome = run("explain", "gang/other", "--state", "-", stdin=cluster(8) + members(3))
    assert outcome.status != 0
    assert "gang default/other" in outcome.err


def test_who_waits_behind_a_gang_is_told_its_name(run: Run) -> None:
    last = POD % ("z", "NVIDIA-H200", "team", GATED)
    outcome = run("explain", "z", "--state", "-", "-o", "json", stdin=cluster(0) + members(4) + last)
    report = json.loads(outcome.out)
    assert [one["object"] for one in report["position"]["before"]] == ["gang default/train"]


def test_a_member_that_is_to_be_made_would_start_with_those_that_wait(run: Run, tmp_path: Any) -> None:
    """`can-run` of the last member: the other three wait for it."""
    manifest = tmp_path / "last.yaml"
    last = POD % ("last", "NVIDIA-H200", "team", "")
    manifest.write_text(last.replace("annotations: {", f"annotations: {{{MEMBER_OF}", 1))
    state = NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 4}') + members(3)
    outcome = run("can-run", str(manifest), "--state", "-", stdin=state)
    assert outcome.status == 0, (outcome.out, outcome.err)
