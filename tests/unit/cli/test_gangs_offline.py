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


def of_group(**spec: object) -> str:
    """A PodGroup of the queue, as a document of its own."""
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"queue": "team", **spec},
    }
    return json.dumps(group) + "\n---\n"


def in_group(count: int, task: str) -> str:
    said = f"scheduling.k8s.io/group-name: g, volcano.sh/task-spec: {task}, "
    pods = (POD % (f"m{number}", "NVIDIA-H200", "team", GATED) for number in range(count))
    return "".join(pod.replace("annotations: {", f"annotations: {{{said}", 1) for pod in pods)


@pytest.mark.parametrize("used", [0, 4])
@pytest.mark.parametrize(
    ("pods", "reason", "step"),
    [
        (
            of_group(minMember=4) + in_group(3, "worker"),
            "PodGroup default/g needs 4 more members at once, with only 3 ready",
            "minMember 3 instead of 4 in PodGroup default/g, which lacks 1 member",
        ),
        (
            of_group(minMember=4, minTaskMember={"worker": 2, "ps": 1}) + in_group(4, "worker"),
            "PodGroup default/g needs 4 more members at once, with 4 ready; it needs 1 of task <ps>, with only 0",
            "no minTaskMember in PodGroup default/g",
        ),
        (
            of_group(minMember=5, minTaskMember={"worker": 2, "ps": 1}) + in_group(3, "worker"),
            "PodGroup default/g needs 5 more members at once, with only 3 ready; it needs 1 of task <ps>, with only 0",
            "minMember 3 instead of 5 and no minTaskMember in PodGroup default/g, which lacks 2 members",
        ),
        (
            of_group(minMember=5, minTaskMember={"worker": 2, "ps": 2}) + in_group(3, "worker"),
            "PodGroup default/g needs 5 more members at once, with only 3 ready; it needs 2 of task <ps>, with only 0",
            "minMember 3 instead of 5 in PodGroup default/g, which lacks 2 members",
        ),
        (
            members(3),
            "gang default/train needs 4 more members at once, with only 3 ready",
            (
                "cardquota.io/gang-size 3 instead of 4 in the pod template of gang default/train, which lacks 1 member; "
                "its pods have to be made anew for that"
            ),
        ),
    ],
    ids=["a PodGroup", "only a task lacks", "both lack", "tasks that count no more", "by name"],
)
def test_what_an_incomplete_gang_lacks_is_told_whatever_is_left_of_the_quota(
    run: Run, used: int, pods: str, reason: str, step: str
) -> None:
    """Its members are what it lacks first, and the quota only after that; no number contradicts itself."""
    running = "".join(POD % (f"old{number}", "NVIDIA-H200", "team", "nodeName: n1") for number in range(used))
    state = NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 4}') + running + pods
    report = json.loads(run("explain", "m0", "--state", "-", "-o", "json", stdin=state).out)
    assert report["message"] == f"Queue <team>: {reason}"
    steps = [[one["text"] for one in remedy["steps"]] for remedy in report["help"]]
    assert steps[0][0] == step
    assert all(remedy[0] == step for remedy in steps)
    assert (len(steps[0]) == 1) is (not used), steps
