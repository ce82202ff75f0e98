"""The builders: `a_pod("p").gpu(2).card("A|B").in_queue("q").gated().build()`."""

import json
from collections.abc import Mapping
from typing import Any, Self

from core import names
from core.objects import Group, Job, Namespace, Node, Queue, group, job, namespace, node, queue
from tests.builders.pods import GPU, Amount, PodBuilder
from tests.builders.raw import Builder, metadata

__all__ = [
    "GPU",
    "Amount",
    "GroupBuilder",
    "JobBuilder",
    "NamespaceBuilder",
    "NodeBuilder",
    "PodBuilder",
    "QueueBuilder",
    "SchedulingGroupBuilder",
    "a_group",
    "a_job",
    "a_namespace",
    "a_node",
    "a_pod",
    "a_queue",
    "a_scheduling_group",
]

DEFAULT_NAMESPACE = "ml"


def a_pod(name: str = "pod", *, namespace: str = DEFAULT_NAMESPACE) -> PodBuilder:
    """A pod with one container `main` that asks for nothing."""
    return PodBuilder(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(name, namespace),
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        }
    )


def a_node(name: str = "node") -> "NodeBuilder":
    """A ready node without cards."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return NodeBuilder({"apiVersion": "v1", "kind": "Node", "metadata": metadata(name), "status": ready})


def a_queue(name: str = "q") -> "QueueBuilder":
    """An open queue without any quota."""
    return QueueBuilder(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": metadata(name),
            "spec": {},
            "status": {"state": "Open"},
        }
    )


def a_group(name: str = "group", *, namespace: str = DEFAULT_NAMESPACE) -> "GroupBuilder":
    """A PodGroup of one member in no queue."""
    return GroupBuilder(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": metadata(name, namespace),
            "spec": {"minMember": 1},
        }
    )


def a_scheduling_group(
    name: str = "group", *, namespace: str = DEFAULT_NAMESPACE
) -> "SchedulingGroupBuilder":
    """A PodGroup of Kubernetes itself whose pods start each alone."""
    return SchedulingGroupBuilder(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": metadata(name, namespace),
            "spec": {"schedulingPolicy": {"basic": {}}},
        }
    )


def a_job(name: str = "job", *, namespace: str = DEFAULT_NAMESPACE) -> "JobBuilder":
    """A Volcano Job without tasks."""
    return JobBuilder(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": metadata(name, namespace),
            "spec": {"tasks": []},
        }
    )


def a_namespace(name: str = DEFAULT_NAMESPACE) -> "NamespaceBuilder":
    return NamespaceBuilder({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name)})


class NodeBuilder(Builder):
    """A node; amounts go to `status.allocatable`."""

    def allocatable(self, resource: str, amount: Amount) -> Self:
        return self.put("status", "allocatable", resource, value=str(amount))

    def product(
        self, product: str, *, memory: Amount = 81920, count: Amount | None = None, prefix: str = GPU
    ) -> Self:
        """The labels by which a card is recognised, without any resource."""
        labelled = self.label(f"{prefix}.product", product).label(f"{prefix}.memory", str(memory))
        return labelled if count is None else labelled.label(f"{prefix}.count", str(count))

    def card(self, product: str, count: int, *, memory: Amount = 81920, prefix: str = GPU) -> Self:
        """Whole cards: labels and allocatable."""
        return self.product(product, memory=memory, count=count, prefix=prefix).allocatable(prefix, count)

    def mps(self, slices: int, *, replicas: Amount) -> Self:
        """MPS slices of the cards whose product was named."""
        return self.label(names.MPS_REPLICAS_LABEL, str(replicas)).allocatable(names.MPS_RESOURCE, slices)

    def mig(self, profile: str, count: int) -> Self:
        """MIG slices, mixed strategy."""
        return self.allocatable(names.MIG_RESOURCE_PREFIX + profile, count)

    def mgpu(self, cards: int, *, memory: int, policy: str = "") -> Self:
        """A node that serves shares: `memory` is MiB of one card."""
        node = self.label(names.MGPU_NODE_TYPE_LABEL, "mgpu")
        node = node.label(names.MGPU_POLICY_KEY, policy) if policy else node
        return node.allocatable(names.MGPU_CORE, cards * 100).allocatable(names.MGPU_MEMORY, cards * memory)

    def not_ready(self) -> Self:
        return self.put("status", "conditions", value=[{"type": "Ready", "status": "False"}])

    def cordoned(self) -> Self:
        return self.put("spec", "unschedulable", value=True)

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        return self.put("spec", "taints", value=[{"key": key, "value": value, "effect": effect}])

    def view(self) -> Node:
        return node.project(self.build())


class QueueBuilder(Builder):
    """A queue."""

    def cards(self, quota: Mapping[str, int] | str) -> Self:
        """The card quota: a mapping, or the text as it stands."""
        text = quota if isinstance(quota, str) else json.dumps(dict(quota))
        return self.annotation(names.CARD_QUOTA_ANNOTATION, text)

    def used_by(self, listed: str | None = None, selector: str | None = None) -> Self:
        """With the annotations that say who may use it; None leaves one out."""
        built = self if listed is None else self.annotation(names.NAMESPACES_ANNOTATION, listed)
        return built if selector is None else built.annotation(names.NAMESPACE_SELECTOR_ANNOTATION, selector)

    def capability(self, **amounts: Amount) -> Self:
        return self.put("spec", "capability", value={key: str(value) for key, value in amounts.items()})

    def shares(self, *, core: Amount | None = None, memory: Amount | None = None) -> Self:
        """The mGPU limits in spec.capability."""
        limits = {names.MGPU_CORE: core, names.MGPU_MEMORY: memory}
        builder = self
        for key, value in limits.items():
            builder = builder if value is None else builder.put("spec", "capability", key, value=str(value))
        return builder

    def deserved(self, **amounts: Amount) -> Self:
        return self.put("spec", "deserved", value={key: str(value) for key, value in amounts.items()})

    def guarantee(self, **amounts: Amount) -> Self:
        return self.put(
            "spec", "guarantee", "resource", value={key: str(value) for key, value in amounts.items()}
        )

    def devices(self, dra: Mapping[str, Any]) -> Self:
        """spec.dra."""
        return self.put("spec", "dra", value=dict(dra))

    def child_of(self, parent: str) -> Self:
        return self.put("spec", "parent", value=parent)

    def priority(self, value: int) -> Self:
        return self.put("spec", "priority", value=value)

    def fifo(self) -> Self:
        return self.put("spec", "dequeueStrategy", value="fifo")

    def state(self, state: str) -> Self:
        return self.put("status", "state", value=state)

    def allocated(self, usage: Mapping[str, str]) -> Self:
        return self.put("status", "allocated", value=dict(usage))

    def view(self) -> Queue:
        return queue.project(self.build())


class GroupBuilder(Builder):
    """A PodGroup."""

    def in_queue(self, queue: str) -> Self:
        return self.put("spec", "queue", value=queue)

    def min_member(self, count: int) -> Self:
        return self.put("spec", "minMember", value=count)

    def min_task(self, task: str, count: int) -> Self:
        return self.put("spec", "minTaskMember", task, value=count)

    def min_resources(self, **amounts: Amount) -> Self:
        return self.put("spec", "minResources", value={key: str(value) for key, value in amounts.items()})

    def cards(self, request: Mapping[str, int] | str) -> Self:
        """The card request: a mapping, or the text as it stands."""
        text = request if isinstance(request, str) else json.dumps(dict(request))
        return self.annotation(names.CARD_REQUEST_ANNOTATION, text)

    def phase(self, phase: str) -> Self:
        return self.put("status", "phase", value=phase)

    def view(self) -> Group:
        return group.project(self.build())


class SchedulingGroupBuilder(Builder):
    """A PodGroup of Kubernetes itself."""

    def min_count(self, count: int) -> Self:
        return self.put("spec", "schedulingPolicy", value={"gang": {"minCount": count}})

    def view(self) -> Group:
        return group.project_kubernetes(self.build())


class JobBuilder(Builder):
    """A Volcano Job."""

    def in_queue(self, queue: str) -> Self:
        return self.put("spec", "queue", value=queue)

    def cards(self, request: Mapping[str, int] | str) -> Self:
        """The card request: a mapping, or the text as it stands."""
        text = request if isinstance(request, str) else json.dumps(dict(request))
        return self.annotation(names.CARD_REQUEST_ANNOTATION, text)

    def task(self, name: str, template: PodBuilder, *, replicas: int = 1) -> Self:
        """A task made from a pod's template."""
        return self.add(
            "spec", "tasks", item={"name": name, "replicas": replicas, "template": template.template()}
        )

    def view(self) -> Job:
        return job.project(self.build())


class NamespaceBuilder(Builder):
    """A namespace."""

    def in_queue(self, queue: str) -> Self:
        return self.annotation(names.QUEUE_NAME_ANNOTATION, queue)

    def view(self) -> Namespace:
        return namespace.project(self.build())
