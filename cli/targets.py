"""What `explain` is asked about: `[KIND/][NAMESPACE/]NAME`, and the pods that this means."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cli import output
from cli.errors import CommandError
from cli.suggestions import instead, nearest
from core import workloads
from core.objects.kinds import GROUP, JOB, KUBERNETES_GROUP, POD, Kind
from core.objects.owner import without_hash
from core.workloads import Workload

if TYPE_CHECKING:
    from cli.state import State
    from core.objects import Pod
    from core.settings import Settings

_PATTERN: Final = "[KIND/][NAMESPACE/]NAME"
_ROWS: Final[tuple[Kind[Any] | Workload, ...]] = (POD, GROUP, KUBERNETES_GROUP, *workloads.TABLE)
_SHORT: Final = {
    "po": "Pod",
    "pg": "PodGroup",
    "podgroup-v1beta1": "PodGroup",
    "gang": "gang",
    "gangs": "gang",
    "deploy": "Deployment",
    "rs": "ReplicaSet",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "cj": "CronJob",
    "vcjob": "Job",
    "vj": "Job",
    "lws": "LeaderWorkerSet",
    "isvc": "InferenceService",
    "wf": "Workflow",
    "ro": "Rollout",
    "sparkapp": "SparkApplication",
}
"""As kubectl knows them, and the gangs that pods name themselves."""
_GROUPS: Final = {"vcjob": JOB.group, "vj": JOB.group, "podgroup-v1beta1": GROUP.group}
"""Of those whose kind other groups have, too."""
_KINDS: Final[Mapping[str, str]] = {
    **_SHORT,
    **{word: row.kind for row in _ROWS for word in (row.kind.lower(), row.resource)},
}
_LABELS: Final[Mapping[str, str]] = {
    "InferenceService": "serving.kserve.io/inferenceservice",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "LeaderWorkerSet": "leaderworkerset.sigs.k8s.io/name",
    "RayJob": "ray.io/originated-from-cr-name",
    "RayService": "ray.io/originated-from-cr-name",
    "SparkApplication": "sparkoperator.k8s.io/app-name",
}
"""Where pods name a workload that has them made by another object."""
_ROLLOUT_HASH: Final = "rollouts-pod-template-hash"
"""As the label of a Deployment's pods, for those of a Rollout."""


class Target(NamedTuple):
    """An object by kind, namespace and name."""

    kind: str
    namespace: str
    name: str
    group: str | None = None
    """The API group of its kind; None where nobody has said which: then objects of all that have the kind are meant."""

    @property
    def display(self) -> str:
        """As it is called in texts."""
        return output.printable(f"{self.kind} {self.namespace}/{self.name}")

    def is_of(self, group: str, kind: str) -> bool:
        """Whether an object of this kind may be meant."""
        return kind == self.kind and self.group in (None, group)


def parse(text: str, given: str | None, default: Callable[[], str]) -> Target:
    """The object that is meant; `given` is the namespace of `-n`, `default` that of what names none. Raises CommandError."""
    parts = text.split("/")
    kind = _KINDS.get(parts[0].lower().partition(".")[0]) if len(parts) > 1 else "Pod"
    group = None
    if kind is not None and len(parts) > 1:
        group, parts = _group(parts[0], kind, _ROWS), parts[1:]
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
        return Target(kind, parts[0], parts[1], group)
    return Target(kind, given or default(), parts[0], group)


def _group(word: str, kind: str, rows: Iterable[Kind[Any] | Workload]) -> str | None:
    """The API group in a word for a kind, like `jobs.batch` or `jobs.v1.batch`; None where none is in it that has the kind."""
    name, _, behind = word.lower().partition(".")
    named = {behind, behind.partition(".")[2]} - {""}
    found = (row.group for row in rows if row.kind == kind and row.group in named)
    return _GROUPS.get(name) or next(found, None)


def resolved(target: Target, settings: "Settings") -> Target:
    """The target with its kind as objects have it. Raises CommandError for one that nobody knows."""
    from core.workloads import kinds_with

    if target.kind in _KINDS.values():
        return target
    rows = kinds_with(settings.workloads).values()
    named = target.kind.lower().partition(".")[0]
    words = {word: row.kind for row in rows for word in (row.kind.lower(), row.resource)}
    found = words.get(named)
    if found is None:
        known = ", ".join(sorted({*_KINDS.values(), *words.values()}))
        near = instead(named, {**_KINDS, **words}) or f"; those that can: {known}"
        raise CommandError(
            f"{output.printable(target.kind)} is no kind that can be explained{near}",
            "name a pod as NAMESPACE/NAME, anything else as KIND/NAMESPACE/NAME",
        )
    return target._replace(kind=found, group=_group(target.kind, found, rows))


def pods_of(state: "State", target: Target) -> list["Pod"]:
    """The pods that are meant, in the order of the state. Raises CommandError where there is no such object."""
    found = [pod for pod in state.pods if pod.namespace == target.namespace and belongs(pod, target)]
    if not found and not _is_there(state, target):
        raise CommandError(
            f"{_missing(target)}{_instead(state, target)}", "`cardquota plan -o name` lists the pods"
        )
    return found


def other_pods(state: "State", key: str) -> str:
    """Where a pod of this name is, or what was meant by the name, as the end of a message; empty where nobody knows."""
    namespace, _, name = key.partition("/")
    return _instead(state, Target("Pod", namespace, name), kinds=False)


def belongs(pod: "Pod", target: Target) -> bool:
    """Whether the pod is the target, or one of its pods; the namespace is not looked at."""
    return target.name in _names(pod, target)


def _names(pod: "Pod", target: Target) -> Iterator[str]:
    """What one of the target's kind is called that the pod is, or belongs to."""
    if target.kind == "Pod":
        yield pod.name
    elif target.kind == "PodGroup":
        if target.is_of(GROUP.group, GROUP.kind):
            yield pod.group_name
        if target.is_of(KUBERNETES_GROUP.group, KUBERNETES_GROUP.kind):
            yield pod.scheduling_group
    elif target.kind == "gang":
        yield pod.gang.name if pod.gang is not None else ""
    else:
        if pod.owner is not None and target.is_of(pod.owner.group, pod.owner.kind):
            yield pod.owner.name
        if target.group is None or (target.group, target.kind) in workloads.KINDS:
            yield _from_above(pod, target.kind)


def _from_above(pod: "Pod", kind: str) -> str:
    """The name of a workload that has the pod made by another object; empty where the pod shows none."""
    if kind == "Deployment":
        return pod.deployment
    if kind == "Rollout":
        return without_hash(pod.owner, pod.labels.get(_ROLLOUT_HASH, ""))
    return pod.labels.get(_LABELS[kind], "") if kind in _LABELS else ""


def _missing(target: Target) -> str:
    """A workload is known by its pods alone."""
    if target.kind in ("Pod", "PodGroup"):
        return f"there is no {target.display}"
    return f"there is no pod of {target.display}"


def _is_there(state: "State", target: Target) -> bool:
    key = f"{target.namespace}/{target.name}"
    if target.kind == "Pod" and key in state.refused:
        return True
    return any(target.is_of(*kind) and key in objects for kind, objects in state.raw.items())


def _instead(state: "State", target: Target, *, kinds: bool = True) -> str:
    """Where one of that name is, in another namespace, or what was meant: another name, a kind, another namespace."""
    found = sorted({pod.namespace for pod in state.pods if belongs(pod, target)})
    if found:
        return f"; there is one in namespace {', '.join(map(output.printable, found[:3]))}"
    near = instead(target.name, _known(state, target))
    namespaces = dict.fromkeys(pod.namespace for pod in state.pods)
    if near or target.namespace in namespaces:
        return near
    kind = nearest(target.namespace.lower(), _KINDS) if kinds and target.kind == "Pod" else ""
    if kind:
        return f"; did you mean {kind}/{output.printable(target.name)}?"
    return instead(target.namespace, namespaces).replace("mean ", "mean namespace ", 1)


def _known(state: "State", target: Target) -> Iterator[str]:
    """The names of what there is of the kind in the namespace."""
    for pod in state.pods:
        if pod.namespace == target.namespace:
            yield from filter(None, _names(pod, target))
    for kind, objects in state.raw.items():
        if target.is_of(*kind):
            yield from (
                name
                for namespace, _, name in (key.partition("/") for key in objects)
                if namespace == target.namespace
            )
