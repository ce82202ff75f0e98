"""`cardquota can-run` on objects that share a name with others: no kind, no API group and no generated name is mistaken for another."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import NODE, POD, QUEUE
from tests.unit.cli.test_can_run import TEMPLATE, Asked, workload

STATE = NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 4}')
BATCH, VOLCANO = "batch/v1", "batch.volcano.sh/v1alpha1"


@pytest.fixture
def asked(run: Run, tmp_path: Path) -> Asked:
    return Asked(run, tmp_path)


def job(pods: int, **metadata: str) -> dict[str, Any]:
    spec = {"parallelism": pods, "completions": pods, "template": TEMPLATE}
    return {"apiVersion": BATCH, "kind": "Job", "metadata": metadata, "spec": spec}


def volcano_job(pods: int, **metadata: str) -> dict[str, Any]:
    tasks = [{"name": "t", "replicas": pods, "template": TEMPLATE}]
    spec = {"queue": "team", "minAvailable": 1, "tasks": tasks}
    return {"apiVersion": VOLCANO, "kind": "Job", "metadata": metadata, "spec": spec}


def cron_job(pods: int, name: str) -> dict[str, Any]:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job(pods)["spec"]}}
    return {"apiVersion": BATCH, "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


def pods_of(api: str, name: str, count: int) -> str:
    """Pods that run, of a Job that need not be in the state."""
    owner = f"{{apiVersion: {api}, kind: Job, name: {name}, uid: j, controller: true}}"
    return "".join(
        (POD % (f"{name}-{n}", "NVIDIA-H200", "team", "nodeName: n1")).replace(
            "metadata:", f"metadata:\n  ownerReferences: [{owner}]", 1
        )
        for n in range(count)
    )


def together(*objects: dict[str, Any]) -> str:
    return "\n---\n".join(map(json.dumps, objects))


def counts(report: dict[str, Any]) -> list[tuple[str, int]]:
    return [(one["object"], sum(one["pods"].values())) for one in report["objects"]]


def test_workloads_of_two_kinds_wait_each_for_its_pods(asked: Asked) -> None:
    status, report, _ = asked(together(workload(2), workload(3, "StatefulSet")), state=STATE)
    assert status == 3
    assert counts(report) == [("Deployment default/web", 2), ("StatefulSet default/web", 3)]


def test_jobs_of_two_api_groups_wait_each_for_its_pods(asked: Asked) -> None:
    status, report, _ = asked(together(job(2, name="web"), volcano_job(3, name="web")), state=STATE)
    assert (status, report["replaced"]) == (3, [])
    assert counts(report) == [("Job default/web", 2), ("Job default/web", 3)]


@pytest.mark.parametrize(
    ("api", "made"), [(VOLCANO, job(2, name="web")), (BATCH, volcano_job(2, name="web"))]
)
def test_a_job_of_another_api_group_is_not_replaced(asked: Asked, api: str, made: dict[str, Any]) -> None:
    """Its pods go on holding what they hold."""
    status, report, _ = asked(made, state=STATE + pods_of(api, "web", 4))
    assert (status, report["replaced"]) == (3, [])
    own = VOLCANO if api == BATCH else BATCH
    status, report, _ = asked(made, state=STATE + pods_of(own, "web", 4))
    assert (status, report["replaced"]) == (0, ["Job default/web"])


def test_jobs_whose_names_are_generated_are_two(asked: Asked) -> None:
    two = together(job(3, generateName="train-"), job(3, generateName="train-"))
    status, report, _ = asked(two, state=STATE)
    assert status == 3
    assert counts(report) == [("Job default/train", 3), ("Job default/train-2", 3)]


def test_pods_whose_names_are_generated_are_two(asked: Asked) -> None:
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", **TEMPLATE}
    pod["metadata"] = {**pod["metadata"], "generateName": "p-"}
    _, report, _ = asked(together(pod, pod), state=STATE)
    assert counts(report) == [("Pod default/p", 1), ("Pod default/p-2", 1)]


def test_a_generated_name_replaces_nothing(asked: Asked) -> None:
    made = job(1, generateName="train-")
    status, report, _ = asked(made, state=STATE + pods_of(BATCH, "train", 4))
    assert (status, report["replaced"]) == (3, [])
    status, report, _ = asked(together(made, job(4, name="train")), state=STATE)
    assert status == 3
    assert counts(report) == [("Job default/train-2", 1), ("Job default/train", 4)]


def test_the_next_job_of_a_cron_job_is_none_that_is_there(asked: Asked) -> None:
    """`kubectl create job web --from=cronjob/web` makes one of its name."""
    status, report, _ = asked(cron_job(2, "web"), state=STATE + pods_of(BATCH, "web", 4))
    assert (status, report["replaced"]) == (3, [])
    assert counts(report) == [("CronJob default/web", 2)]
    status, report, _ = asked(together(cron_job(2, "web"), job(3, name="web")), state=STATE)
    assert status == 3
    assert counts(report) == [("CronJob default/web", 2), ("Job default/web", 3)]
