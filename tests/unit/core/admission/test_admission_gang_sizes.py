"""A gang of which its workload makes too few members is told where the workload is written."""

from dataclasses import replace
from typing import Any

import pytest

from core import names, reasons
from core.admission.dispatch import creation_of, judge
from core.admission.request import UPDATE, AdmissionRequest, ClusterView, Context
from core.settings import Settings

NAME, SIZE = names.GANG_KEYS
Json = dict[str, Any]


def template(size: int = 4, name: str = "train") -> Json:
    limits = {"cpu": "1", "nvidia.com/gpu": "1"}
    annotations = {NAME: name, SIZE: str(size), names.CARD_NAME_ANNOTATION: "A"}
    containers = [{"name": "main", "image": "i", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def workload(version: str, kind: str, spec: Json) -> Json:
    metadata = {"name": "w", "namespace": "ml"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def job(parallelism: int | None, size: int = 4, **more: Any) -> Json:
    spec = {"template": template(size), **({} if parallelism is None else {"parallelism": parallelism})}
    return workload("batch/v1", "Job", {**spec, **more})


def job_set(parallelism: int, replicas: int, size: int = 4) -> Json:
    inner = {"spec": {"parallelism": parallelism, "template": template(size)}}
    jobs = [{"name": "a", "replicas": replicas, "template": inner}]
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def leader_workers(size: int, *, replicas: int = 2, gang: int = 4) -> Json:
    templates = {"size": size, "leaderTemplate": template(gang), "workerTemplate": template(gang)}
    return workload(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"replicas": replicas, "leaderWorkerTemplate": templates},
    )


def training(workers: int, size: int = 4) -> Json:
    roles = {
        "Master": {"replicas": 1, "template": template(size)},
        "Worker": {"replicas": workers, "template": template(size)},
    }
    return workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles})


def scaled(replicas: int) -> Json:
    return workload("apps/v1", "Deployment", {"replicas": replicas, "template": template()})


def request(raw: Json) -> AdmissionRequest:
    found = creation_of(raw)
    assert found is not None
    return found


def told(asked: AdmissionRequest) -> list[str]:
    hints = judge(asked, Context(ClusterView(), Settings(), frozenset())).hints
    return [f"{hint.path}: {hint.detail}" for hint in hints if hint.code == reasons.GANG_NEVER_COMPLETE]


@pytest.mark.parametrize(
    ("raw", "makes"),
    [
        (job(2), 2),
        (job(None), 1),
        (job(8, completions=3), 3),
        (job(4), 0),
        (job(0), 0),
        (job(1, suspend=True), 0),
        (scaled(3), 3),
        (scaled(4), 0),
        (job_set(2, 8), 2),
        (job_set(4, 1), 0),
        (leader_workers(3), 3),
        (leader_workers(4), 0),
        (training(2), 3),
        (training(3), 0),
    ],
)
def test_too_few_members_are_told_with_their_number(raw: Json, makes: int) -> None:
    said = told(request(raw))
    assert bool(said) is bool(makes), said
    if makes:
        (text,) = said
        assert (
            f"4 members of gang train have to start together, and this makes {makes}: none of them starts"
            in text
        )


def test_it_stands_where_the_size_does() -> None:
    assert told(request(job(2)))[0].startswith(f"spec.template.metadata.annotations[{SIZE}]: ")
    path = "spec.replicatedJobs[0].template.spec.template.metadata.annotations"
    assert told(request(job_set(2, 1)))[0].startswith(f"{path}[{SIZE}]: ")


def test_what_was_so_before_is_not_told_again() -> None:
    changed = replace(request(job(2)), operation=UPDATE, old_object=job(2))
    assert told(changed) == []
    assert told(replace(changed, old_object=job(4))) != []


def test_what_another_object_makes_is_told_there_alone() -> None:
    raw = job(2)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u", "controller": True}
    raw["metadata"]["ownerReferences"] = [owner]
    assert told(request(raw)) == []


# -- kinds that say it themselves --------------------------------------------------------------------------------------


def volcano_job(*tasks: Json, least: int | None = None) -> Json:
    spec = {"tasks": list(tasks), **({} if least is None else {"minAvailable": least})}
    return workload("batch.volcano.sh/v1alpha1", "Job", spec)


def task(replicas: int, least: int | None = None, name: str = "w") -> Json:
    made = {"name": name, "replicas": replicas, "template": template()}
    return made if least is None else {**made, "minAvailable": least}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (volcano_job(task(2), task(1, name="ps")), []),
        (volcano_job(task(2), task(1, name="ps"), least=3), []),
        (
            volcano_job(task(2), task(1, name="ps"), least=4),
            [
                "spec.minAvailable: 4 of its pods have to start together, and this makes 3: none of them starts"
            ],
        ),
        (volcano_job(task(2, 2)), []),
        (
            volcano_job(task(2), task(1, 2, name="ps")),
            [
                "spec.tasks[1].minAvailable: 2 pods of task ps have to start together, and it makes 1: none of them starts"
            ],
        ),
        (volcano_job(task(0, 2), least=2), []),
        (volcano_job(), []),
    ],
)
def test_a_volcano_job_that_makes_fewer_pods_than_it_starts_with_is_told(raw: Json, said: list[str]) -> None:
    assert told(request(raw)) == said
