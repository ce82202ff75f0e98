"""Objects of a state that are only about to be created: judged, gated and taken as the last in line.

A pod that nobody has stored yet shows that by what it lacks: an API server gives every object a uid and a time. So what is
appended to a dump of a cluster, or a manifest by itself, is answered for as if it were applied now; a workload stands for the
pods that it would make.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from cli.errors import InputError

if TYPE_CHECKING:
    from cli.kinds import ObjectKind
    from cli.state import State
    from core.settings import Settings
    from core.workloads import Kinds, Workload

Raw = Mapping[str, Any]

_AT_ONCE: Final = 10**9
"""Nothing else is done meanwhile."""
MOST_PODS: Final = 100_000
"""More than any state is made for."""


def as_created(state: "State", settings: "Settings") -> "State":
    """The state with everything that is new in it created. What admission refuses is in `refused`. Raises InputError."""
    from cli.kinds import GROUP, POD
    from core.workloads import kinds_with

    made = list(_made(state, kinds_with(settings.workloads)))
    pods = {key: raw for key, raw in state.raw.get(POD, {}).items() if _is_new(raw)}
    if not made and not pods:
        return state
    groups = {key: raw for kind, key, raw in made if kind == GROUP}
    new = {**pods, **{key: raw for kind, key, raw in made if kind == POD}}
    known = state.extended({GROUP: groups, POD: new})
    return _judged(known, new, settings)


def _is_new(raw: Raw) -> bool:
    """Whether no API server has seen the pod: what it gives every object is missing, and so is all that comes later.

    One that carries our gate has been through admission, whatever was cut away since.
    """
    from core.admission.protection import gated
    from core.objects import raw as read

    if not is_unstored(raw) or gated(raw) or read.text(read.mapping(raw, "spec"), "nodeName"):
        return False
    if read.text(read.mapping(raw, "status"), "phase"):
        return False
    return not _was_let_in(read.texts(raw, "metadata", "annotations"))


def _was_let_in(annotations: Mapping[str, str]) -> bool:
    """Whether a lift has left its record. Any other key of ours on a new pod somebody else has written: admission refuses it."""
    from core import names
    from core.cards.assigned import read_assigned

    if read_assigned(annotations.get(names.ASSIGNED_ANNOTATION, "")) is not None:
        return True
    return any(annotations.get(key) for key in names.LET_IN - {names.ASSIGNED_ANNOTATION})


def is_unstored(raw: Raw) -> bool:
    """Whether no API server has stored the object: it gives every one a uid and a time."""
    from core.objects import raw as read

    metadata = read.mapping(raw, "metadata")
    return not metadata.get("uid") and not metadata.get("creationTimestamp")


# -- workloads ---------------------------------------------------------------------------------------------------


def _made(state: "State", kinds: "Kinds") -> Iterator[tuple["ObjectKind", str, Raw]]:
    """The pods, and the PodGroups of Volcano Jobs and their like, that new workloads make. Raises InputError for too many."""
    from cli.fresh_names import FreshNames
    from cli.kinds import GROUP, POD, maker_of
    from core.workloads import pod_sets

    makers = set(map(maker_of, state.pods))
    taken = set(state.raw.get(POD, ()))
    groups = FreshNames((GROUP, key) for key in state.raw.get(GROUP, ()))
    total = 0
    for kind, objects in state.raw.items():
        for key, raw in objects.items() if kind in kinds else ():
            if not is_unstored(raw) or (kind, key) in makers:
                continue
            nodes = _nodes_of(state, raw) if kind.kind == "DaemonSet" else []
            sets = pod_sets(kind.group, kind.kind, raw, nodes=len(nodes), kinds=kinds)
            total += sum(one.count for one in sets)
            if total > MOST_PODS:
                raise InputError(
                    "state",
                    f"{kind.kind} {key} and those before it make more than {MOST_PODS:,} pods",
                    remedy="ask about fewer at a time",
                )
            row = kinds[kind]
            group = groups.take(GROUP, key) if row.gang and sets else ""
            if group:
                yield GROUP, group, _group(group, _owner(row, key, raw), row, raw, sets)
            for pod, made in _pods_of(row, key, raw, sets, nodes, group=group, taken=taken):
                taken.add(pod)
                yield POD, pod, made


def _pods_of(
    row: "Workload",
    key: str,
    raw: Raw,
    sets: list[Any],
    nodes: list[str],
    *,
    group: str,
    taken: Collection[str],
) -> Iterator[tuple[str, Raw]]:
    """The pods of a workload, and their keys: none that is taken, by a pod of another workload of that name for instance."""
    from core.objects import raw as read

    namespace, _, name = key.partition("/")
    owner = _owner(row, key, raw)
    annotations, spec = _read_on_pods(row, raw, group)
    number = 0
    for one in sets:
        template = read.mapping(one.template)
        metadata = _metadata(one, namespace, owner, annotations)
        for made in range(one.count):
            while f"{namespace}/{name}-{number}" in taken:
                number += 1
            own = {**metadata, "name": f"{name}-{number}"}
            if replica := one.replica(made):
                # Another object below this one controls the pods of each replica.
                own["ownerReferences"] = [{**owner, "uid": f"{owner['uid']}/{replica}"}]
            pod_spec = {**spec, **read.mapping(template, "spec")}
            if nodes:
                pod_spec["affinity"] = _only_on(nodes.pop(0), pod_spec)
            yield f"{namespace}/{name}-{number}", _pod(own, pod_spec)
            number += 1


def _owner(row: "Workload", key: str, raw: Raw) -> dict[str, Any]:
    """The workload as what it makes names it. Of one name there may be objects of several kinds, and of several groups."""
    return {
        "apiVersion": raw["apiVersion"],
        "kind": row.kind,
        "name": key.partition("/")[2],
        "uid": f"{row.kind.lower()}.{row.group}/{key}",
        "controller": True,
    }


def _read_on_pods(row: "Workload", raw: Raw, group: str) -> tuple[dict[str, str], dict[str, str]]:
    """What the controller of a workload writes on its pods: annotations, and fields of the spec that templates may give."""
    from core import names
    from core.objects import raw as read

    spec: dict[str, str] = {}
    if row.queue:
        spec = {"schedulerName": read.text(read.mapping(raw, "spec"), "schedulerName") or "volcano"}
    if group:
        return {names.GROUP_NAME_ANNOTATION: group.partition("/")[2]}, spec
    queue = row.queue_of(raw)
    return {names.QUEUE_NAME_ANNOTATION: queue} if queue else {}, spec


def _metadata(one: Any, namespace: str, owner: Raw, annotations: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of the pods of a set, but for their names."""
    from core import names
    from core.objects import raw as read

    metadata = read.mapping(read.mapping(one.template), "metadata")
    task = {names.TASK_SPEC_ANNOTATION: one.task} if one.task else {}
    return {
        **metadata,
        "namespace": namespace,
        "ownerReferences": [owner],
        "annotations": {**read.mapping(metadata, "annotations"), **annotations, **task},
    }


def _nodes_of(state: "State", daemon_set: Raw) -> list[str]:
    """The nodes on which a DaemonSet makes a pod: those that its template admits. The nodes' own conditions keep it off none."""
    from core.node_match import compiled
    from core.objects import pod
    from core.objects import raw as read
    from core.objects.taints import tolerations_of, untolerated
    from core.steps import Pace, finish

    template = read.mapping(daemon_set, "spec", "template")
    tolerations = tolerations_of(read.mapping(template, "spec"))
    match = finish(compiled(pod.project(template).node_rules))
    return [
        node.name
        for node in state.nodes
        if finish(match.admits(node, Pace(_AT_ONCE)))
        and untolerated(
            tuple(taint for taint in node.taints if not taint.key.startswith("node.kubernetes.io/")),
            tolerations,
        )
        is None
    ]


def _only_on(node: str, spec: Raw) -> Raw:
    """The affinity of the pod of a DaemonSet on one node."""
    from core.objects import raw as read

    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    term = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = read.mapping(spec, "affinity")
    node_affinity = read.mapping(affinity, "nodeAffinity")
    required = {**node_affinity, "requiredDuringSchedulingIgnoredDuringExecution": term}
    return {**affinity, "nodeAffinity": required}


def _pod(metadata: Raw, spec: Raw) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _group(key: str, owner: Raw, row: "Workload", job: Raw, sets: list[Any]) -> Raw:
    """The PodGroup that Volcano makes for a job, or others for their like; without minAvailable all of its pods start together."""
    from core import names
    from core.objects import raw as read

    namespace, _, name = key.partition("/")
    annotations = read.texts(job, "metadata", "annotations")
    request = annotations.get(names.CARD_REQUEST_ANNOTATION)
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {} if request is None else {names.CARD_REQUEST_ANNOTATION: request},
            "ownerReferences": [owner],
        },
        "spec": {
            "queue": row.queue_of(job) or "default",
            "minMember": row.gang_of(job, sum(one.count for one in sets)),
        },
    }


# -- admission ---------------------------------------------------------------------------------------------------


def _judged(state: "State", new: Mapping[str, Raw], settings: "Settings") -> "State":
    """The state with the new pods as admission stores them, without those that it refuses."""
    from cli import books
    from cli.kinds import POD
    from core.admission.dispatch import creation_of, review
    from core.refusal import Refusal

    view = books.view_of(state, settings)
    stored: dict[str, Raw] = {}
    refused: dict[str, Refusal] = {}
    for raw in state.complete.get(POD, ()):
        metadata = raw["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        request = creation_of(raw) if key in new else None
        if request is None:
            continue
        decision = review(request, view, settings)
        if decision.denial is not None:
            refused[key] = Refusal(decision.denial.violations[0].code, decision.denial.message)
        else:
            stored[key] = _applied(raw, [(add.path, add.value) for add in decision.patch])
    return state.with_pods(stored, refused)


def _applied(raw: Raw, additions: list[tuple[tuple[str, ...], Any]]) -> Raw:
    """A copy of the object with what admission adds; objects only ever gain something there."""
    result: dict[str, Any] = dict(raw)
    for path, value in additions:
        target: Any = result
        for key in path[:-1]:
            inner = target.get(key)
            target[key] = list(inner) if isinstance(inner, list) else dict(inner or {})
            target = target[key]
        if isinstance(target, list):
            target.append(value)
        else:
            target[path[-1]] = value
    return result
