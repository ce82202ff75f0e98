"""Short objects of kinds that others define, after their public schemas: each with pod templates of the caller's making."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Template = Mapping[str, Any]


class Sample(NamedTuple):
    """`make` puts a template into every place of the kind; `paths` are those places, `counts` how many pods of each."""

    kind: str
    api_version: str
    make: Callable[[Template], dict[str, Any]]
    paths: tuple[str, ...]
    counts: tuple[int, ...]

    def object(self, template: Template) -> dict[str, Any]:
        """The whole object."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": "w", "namespace": "ml"},
            "spec": self.make(template),
        }


def _ray(template: Template) -> dict[str, Any]:
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": template},
        "workerGroupSpecs": [
            {"groupName": "gpu", "replicas": 2, "numOfHosts": 3, "rayStartParams": {}, "template": template}
        ],
    }


def _replicated(template: Template) -> dict[str, Any]:
    job = {"parallelism": 4, "completions": 4, "template": template}
    return {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": job}}]}


def _roles(field: str, *roles: str) -> Callable[[Template], dict[str, Any]]:
    def make(template: Template) -> dict[str, Any]:
        return {field: {role: {"replicas": 2, "template": template} for role in roles}}

    return make


def _training(kind: str, field: str, *roles: str) -> Sample:
    paths = tuple(f"spec.{field}[{role}].template" for role in roles)
    return Sample(kind, "kubeflow.org/v1", _roles(field, *roles), paths, (2,) * len(roles))


_HOSTS = ".headGroupSpec.template", ".workerGroupSpecs[0].template"
_JOBS = "replicatedJobs[0].template.spec.template"

SAMPLES = (
    Sample("RayCluster", "ray.io/v1", _ray, tuple(f"spec{each}" for each in _HOSTS), (1, 6)),
    Sample(
        "RayJob",
        "ray.io/v1",
        lambda template: {
            "entrypoint": "train",
            "rayClusterSpec": _ray(template),
            "submitterPodTemplate": template,
        },
        (*(f"spec.rayClusterSpec{each}" for each in _HOSTS), "spec.submitterPodTemplate"),
        (1, 6, 1),
    ),
    Sample(
        "RayService",
        "ray.io/v1",
        lambda template: {"rayClusterConfig": _ray(template)},
        tuple(f"spec.rayClusterConfig{each}" for each in _HOSTS),
        (1, 6),
    ),
    Sample("JobSet", "jobset.x-k8s.io/v1alpha2", _replicated, (f"spec.{_JOBS}",), (8,)),
    Sample(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        lambda template: {
            "replicas": 2,
            "leaderWorkerTemplate": {"size": 4, "leaderTemplate": template, "workerTemplate": template},
        },
        ("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"),
        (2, 6),
    ),
    _training("PyTorchJob", "pytorchReplicaSpecs", "Master", "Worker"),
    _training("TFJob", "tfReplicaSpecs", "PS", "Worker"),
    _training("XGBoostJob", "xgbReplicaSpecs", "Master", "Worker"),
    _training("PaddleJob", "paddleReplicaSpecs", "Worker"),
    _training("JAXJob", "jaxReplicaSpecs", "Worker"),
    _training("MPIJob", "mpiReplicaSpecs", "Launcher", "Worker"),
    Sample(
        "TrainingRuntime",
        "trainer.kubeflow.org/v1alpha1",
        lambda template: {"template": {"spec": _replicated(template)}},
        (f"spec.template.spec.{_JOBS}",),
        (0,),
    ),
    Sample(
        "ClusterTrainingRuntime",
        "trainer.kubeflow.org/v1alpha1",
        lambda template: {"template": {"spec": _replicated(template)}},
        (f"spec.template.spec.{_JOBS}",),
        (0,),
    ),
    Sample(
        "JobTemplate",
        "flow.volcano.sh/v1alpha1",
        lambda template: {"queue": "q", "tasks": [{"name": "t", "replicas": 3, "template": template}]},
        ("spec.tasks[0].template",),
        (0,),
    ),
    Sample(
        "Rollout",
        "argoproj.io/v1alpha1",
        lambda template: {"replicas": 3, "template": template},
        ("spec.template",),
        (3,),
    ),
)
"""Kinds that have a whole template; the others are in the tests themselves."""
