"""Objects for the tests on a whole installation: pods that ask for cards or shares of one, queues, bindings."""

from collections.abc import Mapping
from typing import Any

from core import names

Object = dict[str, Any]

GPU = "nvidia.com/gpu"

JOB_OUT_OF_REACH: Object = {
    "apiVersion": "batch.volcano.sh/v9",
    "kind": "Job",
    "name": "j",
    "uid": "u",
    "controller": True,
}
"""An owner of a version that is served nowhere, so that no garbage collector finds it gone."""


def pod(
    name: str,
    *,
    limits: Mapping[str, str | int] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod of one container `c`; its namespace is filled in by whoever creates it."""
    resources = {"limits": {key: str(amount) for key, amount in (limits or {}).items()}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "c", "image": "none", "resources": resources}], **spec},
    }


def card_pod(name: str, card: str, queue: str, count: int = 1, **spec: Any) -> Object:
    """A pod that asks for `count` whole cards of an expression."""
    annotations = {names.CARD_NAME_ANNOTATION: card, names.QUEUE_NAME_ANNOTATION: queue}
    return pod(name, limits={GPU: count}, annotations=annotations, **spec)


def share_pod(name: str, core: int, memory_mib: int | None = None, **spec: Any) -> Object:
    """A pod that asks for a share of an mGPU card, of whole ones when `memory_mib` is left out."""
    limits: dict[str, str | int] = {names.MGPU_CORE: core}
    if memory_mib is not None:
        limits[names.MGPU_MEMORY] = memory_mib
    return pod(name, limits=limits, **spec)


def queue(name: str, quota: str) -> Object:
    """A queue with this text for its card quota."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": {names.CARD_QUOTA_ANNOTATION: quota}},
        "spec": {"weight": 1},
    }


def podgroup(name: str, in_queue: str, minimum: int) -> Object:
    """A gang of at least `minimum` members."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"queue": in_queue, "minMember": minimum},
    }


def in_group(group: str, *pods: Object) -> list[Object]:
    """The pods as members of a PodGroup."""
    annotation = {names.GROUP_NAME_ANNOTATION: group}
    return [
        {
            **pod,
            "metadata": {**pod["metadata"], "annotations": {**pod["metadata"]["annotations"], **annotation}},
        }
        for pod in pods
    ]


def scheduling_group(name: str, min_count: int | None) -> Object:
    """A PodGroup of Kubernetes itself: a gang of at least so many members, or with None one whose pods start each alone."""
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy},
    }


def in_scheduling_group(group: str, *pods: Object) -> list[Object]:
    """The pods as members of a PodGroup of Kubernetes itself."""
    return [{**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": group}}} for pod in pods]


def binding(name: str, node: str, *, uid: str = "", annotations: Mapping[str, str] | None = None) -> Object:
    """What a scheduler posts to bind the pod `name`."""
    metadata: Object = {"name": name, "annotations": dict(annotations or {})}
    if uid:
        metadata["uid"] = uid
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def deployment(name: str, template: Object, replicas: int) -> Object:
    """A Deployment of pods like `template`."""
    labels = {"app": name}
    metadata = {"annotations": template["metadata"]["annotations"], "labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": template["spec"]},
        },
    }


def volcano_job(
    name: str,
    in_queue: str,
    tasks: Mapping[str, tuple[Object, int]],
    *,
    minimum: int,
    request: str = "",
) -> Object:
    """A Volcano Job: task -> a pod as its template, and replicas; `request` is the text of its card request."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "annotations": {names.CARD_REQUEST_ANNOTATION: request} if request else {},
        },
        "spec": {
            "queue": in_queue,
            "schedulerName": "volcano",
            "minAvailable": minimum,
            "tasks": [
                {
                    "name": task,
                    "replicas": replicas,
                    "template": {
                        "metadata": {"annotations": template["metadata"]["annotations"]},
                        "spec": template["spec"],
                    },
                }
                for task, (template, replicas) in tasks.items()
            ],
        },
    }
