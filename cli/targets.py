"""What `explain` is asked about: `[KIND/][NAMESPACE/]NAME`, and the pods that this means."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from cli import output
from cli.errors import CommandError

if TYPE_CHECKING:
    from cli.state import State
    from core.objects import Pod
    from core.settings import Settings

_PATTERN: Final = "[KIND/][NAMESPACE/]NAME"
_KINDS: Final = {
    **dict.fromkeys(("pod", "pods", "po"), "Pod"),
    **dict.fromkeys(("podgroup", "podgroups", "pg", "podgroup-v1beta1"), "PodGroup"),
    **dict.fromkeys(("gang", "gangs"), "gang"),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs", "vcjob", "vj"), "Job"),
}


class Target(NamedTuple):
    """An object by kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    @property
    def display(self) -> str:
        """As it is called in texts."""
        return output.printable(f"{self.kind} {self.namespace}/{self.name}")


def parse(text: str, given: str | None, default: Callable[[], str]) -> Target:
    """The object that is meant; `given` is the namespace of `-n`, `default` that of what names none. Raises CommandError."""
    parts = text.split("/")
    kind = _KINDS.get(parts[0].lower().partition(".")[0]) if len(parts) > 1 else "Pod"
    if kind is not None and len(parts) > 1:
        parts = parts[1:]
    elif kind is None and len(parts) == 3:
        # Perhaps one of the table of workloads, which settings add to: `resolved` tells.
        kind, parts = parts[0], parts[1:]
    kind = kind or "Pod"
    if len(parts) > 2 or not all(parts):
        raise CommandError(
            f"{output.printable(text) or 'an empty name'} is not {_PATTERN}",
            "name it like train-5, ml/train-5 or job/ml/train",
        )
    if len(parts) == 2:
        if given not in (None, parts[0]):
            raise CommandError(
                f"{output.printable(text)} names another namespace than -n {output.printable(given or '')}"
            )
        return Target(kind, *parts)
    return Target(kind, given or default(), parts[0])


def resolved(target: Target, settings: "Settings") -> Target:
    """The target with its kind as objects have it. Raises CommandError for one that nobody knows."""
    from core.workloads import kinds_with

    if target.kind in _KINDS.values():
        return target
    rows = kinds_with(settings.workloads).values()
    named = target.kind.lower().partition(".")[0]
    found = next((row.kind for row in rows if named in (row.kind.lower(), row.resource)), None)
    if found is None:
        own = sorted(set(_KINDS.values()))
        known = ", ".join([*own, *sorted({row.kind for row in rows}.difference(own))])
        raise CommandError(
            f"{output.printable(target.kind)} is no kind that can be explained; those that can: {known}"
        )
    return target._replace(kind=found)


def pods_of(state: "State", target: Target) -> list["Pod"]:
    """The pods that are meant, in the order of the state. Raises CommandError where there is no such object."""
    found = [pod for pod in state.pods if pod.namespace == target.namespace and belongs(pod, target)]
    if not found and not _is_there(state, target):
        raise CommandError(
            f"{_missing(target)}{_instead(state, target)}", "`cardquota plan -o name` lists the pods"
        )
    return found


def _missing(target: Target) -> str:
    """A workload is known by its pods alone."""
    if target.kind in ("Pod", "PodGroup"):
        return f"there is no {target.display}"
    return f"there is no pod of {target.display}"


def belongs(pod: "Pod", target: Target) -> bool:
    """Whether the pod is the target, or one of its pods; the namespace is not looked at."""
    match target.kind:
        case "Pod":
            return pod.name == target.name
        case "PodGroup":
            return pod.group_name == target.name
        case "gang":
            return pod.gang is not None and pod.gang.name == target.name
        case "Deployment" if pod.deployment == target.name:
            return True
    return pod.owner is not None and (pod.owner.kind, pod.owner.name) == (target.kind, target.name)


def _is_there(state: "State", target: Target) -> bool:
    key = f"{target.namespace}/{target.name}"
    if target.kind == "Pod" and key in state.refused:
        return True
    return any(kind.kind == target.kind and key in objects for kind, objects in state.raw.items())


def _instead(state: "State", target: Target) -> str:
    """Where one of that name is, in another namespace."""
    found = sorted(
        {pod.namespace for pod in state.pods if belongs(pod, target._replace(namespace=pod.namespace))}
    )
    if not found:
        return ""
    return f"; there is one in namespace {', '.join(map(output.printable, found[:3]))}"
