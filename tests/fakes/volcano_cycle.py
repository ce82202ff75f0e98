"""A stand-in for a scheduling cycle of Volcano's scheduler, as far as gangs and its predicate cache go; over API objects.

Within one cycle the real one keeps for each node why it has refused a pod, by the pod's job *and task*, and gives that as the
answer for all other pods of the task (`predicateErrorCacheEnable`, on by default; `taskPredicateErrorCache` in
pkg/scheduler/util/predicate_helper.go). A job is bound when at least minMember of its pods are or can be; else nothing is.
A pod that is nominated for a node is tried there before any other one is asked (`NominatedNodeName` in
pkg/scheduler/actions/allocate/allocate.go), where its node has enough in sum; versions before 1.12 do not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from core import names

Json = Mapping[str, Any]

COUNTED: Final = ("nvidia.com/gpu", *names.MGPU_RESOURCES)
"""What nodes have in sum; of single cards the scheduler knows nothing."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class VolcanoCycle:
    """One scheduling cycle after the other; nothing is remembered in between."""

    def __init__(self, *, predicate_error_cache: bool = True, nominations: bool = True) -> None:
        self._caching = predicate_error_cache
        self._nominations = nominations

    def run(self, nodes: Iterable[Json], groups: Iterable[Json], pods: Sequence[Json]) -> dict[str, str]:
        """Pod -> node of all that is bound in this cycle, by name; pods, groups and nodes of one namespace."""
        labels = {node["metadata"]["name"]: _labels(node) for node in nodes}
        free = {node["metadata"]["name"]: _counted(node["status"]["allocatable"]) for node in nodes}
        for pod in pods:
            if pod["spec"].get("nodeName") and not _ended(pod):
                free[pod["spec"]["nodeName"]].subtract(_asked(pod))
        bound: dict[str, str] = {}
        refusals: set[tuple[str, str, str]] = set()
        for group in groups:
            members = [pod for pod in pods if _group(pod) == group["metadata"]["name"]]
            there = sum(1 for pod in members if pod["spec"].get("nodeName"))
            found: dict[str, str] = {}
            left = {name: Counter(amounts) for name, amounts in free.items()}
            for pod in members:
                node = self._node(pod, labels, left, refusals) if _waits_for_a_node(pod) else ""
                if node:
                    found[pod["metadata"]["name"]] = node
                    left[node].subtract(_asked(pod))
            if there + len(found) >= group["spec"]["minMember"]:
                bound |= found
                free = left
        return bound

    def _node(
        self,
        pod: Json,
        nodes: Mapping[str, Mapping[str, str]],
        free: Mapping[str, Counter[str]],
        refusals: set[tuple[str, str, str]],
    ) -> str:
        """The node for which the pod is nominated, else the first one that takes it, all are asked; empty when none does."""
        nominated = pod.get("status", {}).get("nominatedNodeName", "") if self._nominations else ""
        if nominated in nodes and _asked(pod) <= free[nominated]:
            taking = self._taking(pod, {nominated: nodes[nominated]}, free, refusals)
            if taking:
                return nominated
        return next(iter(self._taking(pod, nodes, free, refusals)), "")

    def _taking(
        self,
        pod: Json,
        nodes: Mapping[str, Mapping[str, str]],
        free: Mapping[str, Counter[str]],
        refusals: set[tuple[str, str, str]],
    ) -> list[str]:
        """All of these nodes that take the pod; those that do not are remembered."""
        task = pod["metadata"]["annotations"].get(names.TASK_SPEC_ANNOTATION, "")
        taking: list[str] = []
        for node, labels in nodes.items():
            key = (_group(pod), task, node)
            if self._caching and key in refusals:
                continue
            if _asked(pod) <= free[node] and _admits(pod["spec"], labels):
                taking.append(node)
            else:
                refusals.add(key)
        return taking


def _admits(spec: Json, labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get(_REQUIRED)
    if required is None:
        return True
    return any(
        all(_holds(each, labels) for each in term.get("matchExpressions", ()))
        for term in required["nodeSelectorTerms"]
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    if expression["operator"] == "DoesNotExist":
        return expression["key"] not in labels
    assert expression["operator"] == "In", "the other operator that this stand-in knows"
    return labels.get(expression["key"]) in expression["values"]


def _waits_for_a_node(pod: Json) -> bool:
    return not (pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates") or _ended(pod))


def _ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def _group(pod: Json) -> str:
    return str(pod["metadata"].get("annotations", {}).get(names.GROUP_NAME_ANNOTATION, ""))


def _labels(node: Json) -> Mapping[str, str]:
    found: Mapping[str, str] = node["metadata"].get("labels", {})
    return found


def _asked(pod: Json) -> Counter[str]:
    asked = Counter[str]()
    for container in pod["spec"]["containers"]:
        asked.update(_counted(container.get("resources", {}).get("limits", {})))
    return asked


def _counted(amounts: Mapping[str, Any]) -> Counter[str]:
    return Counter({key: int(amounts[key]) for key in COUNTED if key in amounts})
