"""What workloads make whose pod templates are more than a path and a number: as their controllers would a moment later."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from core import names
from core.objects import raw as read
from core.pod_sets import Maker, PodSet, Raw


def batch(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """Job: as many as may run at once, and no more than have to complete."""
    del nodes
    spec = read.mapping(raw, "spec")
    yield PodSet(read.mapping(spec, "template"), _at_once(spec))


def _at_once(spec: Raw) -> int:
    at_once = read.integer(spec, "parallelism", 1)
    return 0 if spec.get("suspend") is True else min(at_once, read.integer(spec, "completions", at_once))


def scaled(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """Deployment and its like: `spec.replicas`, one when it is not given."""
    del nodes
    spec = read.mapping(raw, "spec")
    yield PodSet(read.mapping(spec, "template"), read.integer(spec, "replicas", 1))


def one_for_each_node(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """DaemonSet; `nodes` are those that its template admits."""
    yield PodSet(read.mapping(raw, "spec", "template"), nodes)


def tasks(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """Volcano Job: the replicas of each task, one when that is not given; a task without name is called `default<index>`."""
    del nodes
    for index, task in enumerate(read.sequence(raw, "spec", "tasks")):
        fields = read.mapping({"task": task}, "task")
        name = read.text(fields, "name") or f"default{index}"
        count = read.integer(fields, "replicas", 1)
        yield PodSet(read.mapping(fields, "template"), count, name, f"spec.tasks[{index}].template")


def job_set(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """JobSet: the replicas of each job, each with as many pods as run at once."""
    del nodes
    suspended = read.mapping(raw, "spec").get("suspend") is True
    for index, each in enumerate(read.sequence(raw, "spec", "replicatedJobs")):
        job = read.mapping({"job": each}, "job")
        spec = read.mapping(job, "template", "spec")
        replicas = max(0, read.integer(job, "replicas", 1))
        count = 0 if suspended else replicas * max(0, _at_once(spec))
        path = f"spec.replicatedJobs[{index}].template.spec.template"
        each_job = f"{read.text(job, 'name')}-", replicas
        yield PodSet(read.mapping(spec, "template"), count, path=path, replicas=each_job)


def leader_workers(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """LeaderWorkerSet: in each of its groups one leader and size - 1 workers; the worker's template makes leaders as well."""
    del nodes
    spec = read.mapping(raw, "spec")
    groups, template = read.integer(spec, "replicas", 1), read.mapping(spec, "leaderWorkerTemplate")
    size, place = read.integer(template, "size", 1), "spec.leaderWorkerTemplate"
    leader = read.mapping(template, "leaderTemplate")
    if leader:
        yield PodSet(leader, groups, path=f"{place}.leaderTemplate", replicas=("", groups))
    workers = groups * (size - 1 if leader else size)
    path = f"{place}.workerTemplate"
    yield PodSet(read.mapping(template, "workerTemplate"), workers, path=path, replicas=("", groups))


_OF_POD_SPEC: Final = (
    "affinity",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priority",
    "resourceClaims",
    "resources",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)
"""What is read in the spec of a pod beside its containers. A component has its scaling and its canary in the same place: whoever
changes those changes no template."""


def served(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """InferenceService: a component is a pod spec itself, and its pods have the annotations of the object and of the component."""
    del nodes
    for component in ("predictor", "transformer", "explainer"):
        part = read.mapping(raw, "spec", component)
        if not part:
            continue
        containers = [
            {"name": "kserve-container", **read.mapping(part, key)}
            for key in (
                "model",
                "sklearn",
                "xgboost",
                "tensorflow",
                "pytorch",
                "triton",
                "onnx",
                "huggingface",
            )
            if read.mapping(part, key)
        ]
        annotations = {
            key: text
            for holder in (read.mapping(raw, "metadata"), part)
            for key, text in read.mapping(holder, "annotations").items()
            if names.is_read_on_pods(key)
        }
        path = f"spec.{component}"
        own = "metadata" if not read.mapping(part, "annotations") else path
        yield PodSet(
            {
                "metadata": {"annotations": annotations},
                "spec": {
                    **{key: part[key] for key in _OF_POD_SPEC if key in part},
                    "containers": [*containers, *read.sequence(part, "containers")],
                },
            },
            read.integer(part, "minReplicas", 1),
            path=path,
            moved=((f"{path}.metadata.annotations", f"{own}.annotations"), (f"{path}.spec", path)),
        )


_COPIED: Final = 200
"""Annotations; the rules are about some twenty, and name a hundred records at most."""


def steps(*path: str) -> Maker:
    """Argo: a template of `templates` is a pod when it has a container of its own; how many there will be only its run tells."""

    def make(raw: Raw, nodes: int) -> Iterator[PodSet]:
        del nodes
        outer = read.mapping(raw, *path)
        common = _read_on_pods(read.mapping(outer, "podMetadata", "annotations"))
        for index, each in enumerate(read.sequence(outer, "templates")):
            step = read.mapping({"step": each}, "step")
            own = _step_containers(step)
            if not own:
                continue
            containers = {**own, **_listed(step, "sidecars")} if "sidecars" in step else own
            place = f"{'.'.join(path)}.templates[{index}]"
            metadata = read.mapping(step, "metadata")
            annotations = {**common, **read.mapping(metadata, "annotations")}
            yield PodSet(
                {
                    "metadata": {**metadata, "annotations": annotations},
                    "spec": {
                        "containers": list(containers.values()),
                        "initContainers": step.get("initContainers"),
                        "schedulerName": step.get("schedulerName") or outer.get("schedulerName"),
                    },
                },
                0,
                path=place,
                moved=(
                    *(
                        (f"{place}.spec.containers[{number}]", f"{place}.{real}")
                        for number, real in enumerate(containers)
                    ),
                    (f"{place}.spec", place),
                ),
            )

    return make


def _read_on_pods(annotations: Raw) -> Raw:
    """Those that rules may be about; no more than anybody is told of, as each step gets a copy."""
    ours = ((key, text) for key, text in annotations.items() if names.is_read_on_pods(key))
    return dict(islice(ours, _COPIED))


def _step_containers(step: Raw) -> dict[str, Any]:
    """What makes a step a pod, by its place in the step."""
    own = {key: read.mapping(step, key) for key in ("container", "script") if read.mapping(step, key)}
    return {**own, **_listed(step, "containerSet", "containers")} if "containerSet" in step else own


def _listed(step: Raw, *path: str) -> dict[str, Any]:
    return {f"{'.'.join(path)}[{index}]": each for index, each in enumerate(read.sequence(step, *path))}


def spark(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """SparkApplication: annotations and GPUs of driver and executors stand beside their templates, and win over those."""
    del nodes
    for role, count in (
        ("driver", 1),
        ("executor", read.integer(read.mapping(raw, "spec", "executor"), "instances", 1)),
    ):
        part = read.mapping(raw, "spec", role)
        template, gpu, path = read.mapping(part, "template"), read.mapping(part, "gpu"), f"spec.{role}"
        metadata, spec = read.mapping(template, "metadata"), read.mapping(template, "spec")
        annotations = {**read.mapping(metadata, "annotations"), **read.mapping(part, "annotations")}
        containers = list(read.sequence(spec, "containers"))
        if gpu:
            limits = {read.text(gpu, "name"): gpu.get("quantity")}
            containers.append({"name": f"spark-{role}", "resources": {"limits": limits}})
        where = path if read.mapping(part, "annotations") else f"{path}.template.metadata"
        yield PodSet(
            {
                "metadata": {**metadata, "annotations": annotations},
                "spec": {
                    **spec,
                    "containers": containers,
                    "schedulerName": part.get("schedulerName") or spec.get("schedulerName"),
                },
            },
            count,
            path=path,
            moved=(
                (f"{path}.metadata.annotations", f"{where}.annotations"),
                (f"{path}.spec", f"{path}.template.spec"),
            ),
        )
