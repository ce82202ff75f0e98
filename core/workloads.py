"""The table of the kinds of workloads: where their pod templates stand, and how many pods of each their controllers make.

The webhook, `check`, `plan` and the chart's rules all go by it, and `docs/workloads.md` is generated from it. The setting
`workloads` adds rows: who has settings goes by `kinds_with`. In each row of a kind that is not Kubernetes' own is where its schema was looked up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from core import workload_readers
from core.objects import raw as read
from core.pod_sets import Maker, PodSet, Raw, at, joined, none, number, once, places_at
from core.settings.workload import WorkloadRow

__all__ = ["KINDS", "TABLE", "Kinds", "PodSet", "Raw", "Workload", "added", "kinds_with", "pod_sets"]


@dataclass(frozen=True, slots=True)
class Workload:
    """A row. `resource` is the lower-case plural, `templates` where the pod templates stand, for people."""

    group: str
    kind: str
    resource: str
    templates: tuple[str, ...]
    makes: Maker
    pods: str
    """How many pods it makes, for people."""
    queue: str = ""
    """Where the queue stands, other than on the template, in its PodGroup or on the namespace."""
    gang: str = ""
    """What says how many of its pods start together."""
    replica: str = ""
    """Whose pods are one gang when their template names one; empty for all pods that the object makes."""
    namespaced: bool = True
    source: str = ""
    rest: str = ""
    """Where the rest of its pods comes from, for people; empty where the templates of the object say all of it."""

    def queue_of(self, raw: Raw) -> str:
        """The queue that an object of the kind names where the row says; empty where it names none."""
        *path, last = self.queue.split(".")
        return read.text(read.mapping(raw, *path), last) if self.queue else ""

    def places(self, raw: Raw) -> int:
        """How many pod templates an object can have, counted without looking at any."""
        return sum(places_at(path, raw) for path in self.templates)

    def gang_of(self, raw: Raw, otherwise: int) -> int:
        """How many pods of an object start together."""
        *path, last = self.gang.split(".")
        return read.integer(read.mapping(raw, *path), last, otherwise) if self.gang else otherwise


_RAY: Final = "KubeRay, ray.io/v1: headGroupSpec and workerGroupSpecs, each with a template; submitterPodTemplate of a RayJob"
_TRAINING: Final = (
    "kubeflow/training-operator, kubeflow.org/v1: a map of replica specs, each with replicas and a template"
)
_RUNTIME: Final = "kubeflow/trainer, trainer.kubeflow.org/v1alpha1: a runtime's template is that of a JobSet; a TrainJob has none"
_ARGO: Final = "Argo Workflows: a template with container, script or containerSet is a pod"
_VOLCANO: Final = "Volcano: the tasks of a job, each with replicas and a template"


def _ray(group: str, *, more: tuple[Maker, ...] = ()) -> Maker:
    workers = number("replicas", "numOfHosts")
    head = at(f"{group}headGroupSpec.template", once)
    return joined(head, at(f"{group}workerGroupSpecs[].template", workers), *more)


def _ray_places(group: str) -> tuple[str, ...]:
    return f"{group}headGroupSpec.template", f"{group}workerGroupSpecs[].template"


def _apps(kind: str, resource: str, pods: str, makes: Maker, replica: str = "") -> Workload:
    return Workload("apps", kind, resource, ("spec.template",), makes, pods, replica=replica)


def _training(kind: str, field: str) -> Workload:
    path = f"spec.{field}{{}}.template"
    makes = at(path, number("replicas"))
    return Workload(
        "kubeflow.org", kind, f"{kind.lower()}s", (path,), makes, "replicas of each", source=_TRAINING
    )


def _runtime(kind: str, resource: str, *, namespaced: bool) -> Workload:
    path = "spec.template.spec.replicatedJobs[].template.spec.template"
    return Workload(
        "trainer.kubeflow.org",
        kind,
        resource,
        (path,),
        at(path, none),
        "none itself, a TrainJob makes them",
        replica="each Job of the JobSet",
        namespaced=namespaced,
        source=_RUNTIME,
        rest="each TrainJob",
    )


def _workflow(kind: str, resource: str, *path: str, namespaced: bool = True) -> Workload:
    places = (f"{'.'.join(path)}.templates[]",)
    return Workload(
        "argoproj.io",
        kind,
        resource,
        places,
        workload_readers.steps(*path),
        "as its run tells",
        namespaced=namespaced,
        source=_ARGO,
        rest="parameters and `podSpecPatch`",
    )


TABLE: Final = (
    _apps("Deployment", "deployments", "replicas", workload_readers.scaled, "each ReplicaSet"),
    _apps("ReplicaSet", "replicasets", "replicas", workload_readers.scaled),
    _apps("StatefulSet", "statefulsets", "replicas", workload_readers.scaled),
    _apps("DaemonSet", "daemonsets", "one for each node", workload_readers.one_for_each_node),
    Workload(
        "batch", "Job", "jobs", ("spec.template",), workload_readers.batch, "parallelism, at most completions"
    ),
    Workload(
        "batch",
        "CronJob",
        "cronjobs",
        ("spec.jobTemplate.spec.template",),
        at("spec.jobTemplate.spec.template", none),
        "none before its hour",
        replica="each Job",
    ),
    Workload(
        "batch.volcano.sh",
        "Job",
        "jobs",
        ("spec.tasks[].template",),
        workload_readers.tasks,
        "replicas of each task",
        queue="spec.queue",
        gang="spec.minAvailable",
        source=_VOLCANO,
        replica="its minAvailable counts",
    ),
    Workload(
        "flow.volcano.sh",
        "JobTemplate",
        "jobtemplates",
        ("spec.tasks[].template",),
        at("spec.tasks[].template", none),
        "none itself, a JobFlow makes them",
        queue="spec.queue",
        gang="spec.minAvailable",
        source="Volcano, flow.volcano.sh/v1alpha1: the spec of a JobTemplate is that of a Volcano Job",
        replica="its minAvailable counts",
    ),
    Workload(
        "ray.io",
        "RayCluster",
        "rayclusters",
        _ray_places("spec."),
        _ray("spec."),
        "1 and replicas x numOfHosts",
        source=_RAY,
    ),
    Workload(
        "ray.io",
        "RayJob",
        "rayjobs",
        (*_ray_places("spec.rayClusterSpec."), "spec.submitterPodTemplate"),
        _ray("spec.rayClusterSpec.", more=(at("spec.submitterPodTemplate"),)),
        "1 and replicas x numOfHosts, and the submitter",
        source=_RAY,
        replica="each RayCluster",
    ),
    Workload(
        "ray.io",
        "RayService",
        "rayservices",
        _ray_places("spec.rayClusterConfig."),
        _ray("spec.rayClusterConfig."),
        "1 and replicas x numOfHosts",
        source=_RAY,
        replica="each RayCluster",
    ),
    Workload(
        "jobset.x-k8s.io",
        "JobSet",
        "jobsets",
        ("spec.replicatedJobs[].template.spec.template",),
        workload_readers.job_set,
        "replicas x parallelism of each job",
        source="kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go",
        replica="each Job",
    ),
    Workload(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "leaderworkersets",
        ("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"),
        workload_readers.leader_workers,
        "replicas x size",
        source="kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go",
        replica="each group: a leader and its workers",
    ),
    _training("PyTorchJob", "pytorchReplicaSpecs"),
    _training("TFJob", "tfReplicaSpecs"),
    _training("XGBoostJob", "xgbReplicaSpecs"),
    _training("PaddleJob", "paddleReplicaSpecs"),
    _training("JAXJob", "jaxReplicaSpecs"),
    _training("MPIJob", "mpiReplicaSpecs"),
    _runtime("TrainingRuntime", "trainingruntimes", namespaced=True),
    _runtime("ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False),
    Workload(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        ("spec.predictor", "spec.transformer", "spec.explainer"),
        workload_readers.served,
        "minReplicas of each component",
        source="KServe, serving.kserve.io/v1beta1; kserve/kserve issue 3710: annotations of the object go to its pods",
        replica="each ReplicaSet",
        rest="the ServingRuntime",
    ),
    _workflow("Workflow", "workflows", "spec"),
    _workflow("WorkflowTemplate", "workflowtemplates", "spec"),
    _workflow("ClusterWorkflowTemplate", "clusterworkflowtemplates", "spec", namespaced=False),
    _workflow("CronWorkflow", "cronworkflows", "spec", "workflowSpec"),
    Workload(
        "argoproj.io",
        "Rollout",
        "rollouts",
        ("spec.template",),
        workload_readers.scaled,
        "replicas",
        source="Argo Rollouts, argoproj.io/v1alpha1: the spec of a Deployment",
        replica="each ReplicaSet",
    ),
    Workload(
        "sparkoperator.k8s.io",
        "SparkApplication",
        "sparkapplications",
        ("spec.driver.template", "spec.executor.template"),
        workload_readers.spark,
        "1 and instances",
        source="Spark operator, sparkoperator.k8s.io/v1beta2: annotations, gpu and template of driver and executor",
        replica="the executors, or the driver",
        rest="`sparkConf`",
    ),
)
Kinds = Mapping[tuple[str, str], Workload]
"""Rows by (group, kind)."""

KINDS: Final[Kinds] = {(row.group, row.kind): row for row in TABLE}
"""The rows that need no setting."""


@cache
def added(rows: tuple[WorkloadRow, ...]) -> tuple[Workload, ...]:
    """The rows of the setting `workloads`."""
    return tuple(map(_added, rows))


@cache
def kinds_with(rows: tuple[WorkloadRow, ...]) -> Kinds:
    """All rows, those of the setting `workloads` too."""
    return {**KINDS, **{(row.group, row.kind): row for row in added(rows)}}


def _added(row: WorkloadRow) -> Workload:
    count = number(*row.replicas) if row.replicas else once
    return Workload(
        row.group,
        row.kind,
        row.resource,
        row.templates,
        joined(*(at(path, count) for path in row.templates)),
        " x ".join(row.replicas) or "1",
        queue=row.queue,
        gang=row.gang,
        namespaced=not row.cluster_scoped,
    )


def pod_sets(group: str, kind: str, raw: Raw, *, nodes: int, kinds: Kinds = KINDS) -> list[PodSet]:
    """What a workload of one of these kinds makes in a cluster of so many nodes that it may use; numbers below 0 count as 0."""
    found = kinds[group, kind].makes(raw, nodes)
    return [replace(made, count=max(0, made.count)) for made in found]
