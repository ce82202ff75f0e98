"""Manifests as if they were applied to a cluster: what admission says of each, and the pods that would come of them."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cli import documents, inputs
from cli.errors import InputError

if TYPE_CHECKING:
    from cli.fresh_names import FreshNames
    from cli.kinds import ObjectKind
    from cli.state import State
    from core.objects import Pod
    from core.settings import Settings
    from core.violations import Findings
    from core.workloads import Kinds

Raw = Mapping[str, Any]

_GIVEN_LATER: Final = (
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "generation",
    "managedFields",
    "selfLink",
)
_CRON_JOB: Final = ("batch", "CronJob")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, and where it stands."""

    source: str
    found: documents.Found
    chosen: str = ""
    """The name that stands for the one which the API server would make of `generateName`; empty until it is chosen."""

    @property
    def is_generated(self) -> bool:
        """Whether its name is made by the API server: then it is that of no object that is there."""
        return not self.found.raw["metadata"].get("name")

    @property
    def kind(self) -> "ObjectKind":
        """Its kind."""
        from cli.kinds import ObjectKind

        return ObjectKind(self.found.group, self.found.kind)

    @property
    def name(self) -> str:
        """Its name; of one that has none what it would begin with, until one is chosen."""
        metadata = self.found.raw["metadata"]
        return str(self.chosen or metadata.get("name") or str(metadata["generateName"]).rstrip("-"))

    def named(self, names: "FreshNames") -> "Manifest":
        """The manifest with a name of its own, where the API server is to make one."""
        if not self.is_generated:
            return self
        return replace(self, chosen=names.take(self.kind, self.key).rpartition("/")[2])

    @property
    def key(self) -> str:
        """`namespace/name`, the name alone for what is in no namespace."""
        namespace = self.found.raw["metadata"].get("namespace")
        return f"{f'{namespace}/' if namespace else ''}{self.name}"

    @property
    def display(self) -> str:
        """`Kind namespace/name`, `Kind name` for what is in no namespace."""
        return f"{self.found.kind} {self.key}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A cluster with manifests applied."""

    state: "State"
    made: Mapping[tuple["ObjectKind", str], list["Pod"]]
    """The new pods of each object that makes any, by its kind and key; in their order."""
    findings: Sequence[tuple[Manifest, "Findings"]]
    """What is said of each object, in their order."""
    replaced: tuple[str, ...]
    """Objects that are there already, and are taken as deleted before."""
    skipped: tuple[str, ...]
    """Objects of kinds that make no pods and that no decision looks at."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`-n NAMESPACE` and `-R`."""
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help="of objects that name none; default: that of the kubeconfig's context",
    )
    inputs.add_recursive(parser)


def read(names: Sequence[str], *, recursive: bool) -> list[Manifest]:
    """The objects in files as they stand. Raises InputError for what is no object, and where there is none at all."""
    found = [
        Manifest(source, _given(source, one))
        for source, one in _read(inputs.manifests(names, recursive=recursive))
    ]
    if not found:
        where = ", ".join(inputs.label(name) for name in names)
        raise InputError(
            where, "holds no Kubernetes object", remedy="give the manifests that you would apply"
        )
    return found


def placed(
    given: Sequence[Manifest], *, namespace: str, queue: str | None, settings: "Settings"
) -> list[Manifest]:
    """The objects in this namespace where they name none, charging this queue if one is given."""
    from core.workloads import kinds_with

    kinds = kinds_with(settings.workloads)
    return [replace(one, found=_placed(one.found, namespace, queue, settings, kinds)) for one in given]


def _read(names: Iterator[str]) -> Iterator[tuple[str, documents.Found]]:
    for name in names:
        source = inputs.label(name)
        for document in documents.read(source, inputs.read_text(name)):
            for duplicate in document.duplicates:
                problem = f"{duplicate.path} is given twice; take one away"
                raise InputError(source, problem, duplicate.line)
            for found in documents.objects(document):
                if found.problem:
                    raise InputError(source, found.problem, found.place.line)
                yield source, found


def _given(source: str, found: documents.Found) -> documents.Found:
    """The object as it is created. Raises InputError for one without name, or whose parts have the wrong type."""
    raw = found.raw
    for part in ("metadata", "spec"):
        if raw.get(part) is not None and not isinstance(raw[part], dict):
            line = documents.place_of(found.place, part).line
            raise InputError(source, f"{part} of a {found.kind} must be a mapping", line)
    metadata = {key: value for key, value in (raw.get("metadata") or {}).items() if key not in _GIVEN_LATER}
    if not any(isinstance(metadata.get(key), str) and metadata[key] for key in ("name", "generateName")):
        line = documents.place_of(found.place, "metadata").line
        raise InputError(source, f"a {found.kind} needs metadata.name", line)
    given = {key: value for key, value in raw.items() if key != "status"} | {"metadata": metadata}
    return found._replace(raw=given)


def _placed(
    found: documents.Found, namespace: str, queue: str | None, settings: "Settings", kinds: "Kinds"
) -> documents.Found:
    from cli.kinds import ObjectKind, is_namespaced

    raw = found.raw
    if is_namespaced(ObjectKind(found.group, found.kind), settings) and not raw["metadata"].get("namespace"):
        raw = {**raw, "metadata": {**raw["metadata"], "namespace": namespace}}
    return found._replace(raw=raw if queue is None else _charging(found, raw, queue, kinds))


def _charging(found: documents.Found, raw: Raw, queue: str, kinds: "Kinds") -> dict[str, Any]:
    """The object with another queue, wherever objects of its kind name theirs."""
    from core import names
    from core.objects import raw as read

    result = dict(raw)
    if (found.group, found.kind) == (names.VOLCANO_GROUPS, "PodGroup"):
        return {**result, "spec": {**read.mapping(raw, "spec"), "queue": queue}}
    row = kinds.get((found.group, found.kind))
    if row is not None and row.queue:
        *path, last = row.queue.split(".")
        inner: Any = result
        for key in path:
            inner[key] = dict(read.mapping(inner, key))
            inner = inner[key]
        inner[last] = queue
    elif row is not None or (found.group, found.kind) == ("", "Pod"):
        for place in ("",) if row is None else row.templates:
            _annotate(result, place.split(".") if place else [], names.QUEUE_NAME_ANNOTATION, queue)
    return result


def _annotate(raw: Any, path: list[str], key: str, value: str) -> None:
    """Writes an annotation on the templates at a path, in copies of what leads there."""
    from core.objects import raw as read

    if not path:
        raw["metadata"] = dict(read.mapping(raw, "metadata"))
        raw["metadata"]["annotations"] = {**read.mapping(raw, "metadata", "annotations"), key: value}
        return
    step, rest = path[0], path[1:]
    name = step.removesuffix("[]").removesuffix("{}")
    held = raw.get(name)
    if step.endswith("[]") and isinstance(held, list):
        raw[name] = [dict(one) if isinstance(one, dict) else one for one in held]
        inner = raw[name]
    elif step.endswith("{}") and isinstance(held, dict):
        raw[name] = {one: dict(part) if isinstance(part, dict) else part for one, part in held.items()}
        inner = raw[name].values()
    elif isinstance(held, dict):
        raw[name] = dict(held)
        inner = (raw[name],)
    else:
        return
    for one in inner:
        if isinstance(one, dict):
            _annotate(one, rest, key, value)


# -- onto a cluster -----------------------------------------------------------------------------------------------


def to_cluster(options: argparse.Namespace, files: Sequence[str] | None) -> tuple["Settings", Outcome]:
    """What the manifests in these files, if there are any, make of the cluster that the arguments name, charging its `queue`.

    Raises CommandError, where not all pods may be seen as well.
    """
    from cli import cluster
    from cli.kinds import NODE, POD, QUEUE

    namespace = "" if files is None else cluster.default_namespace(options)
    found = [] if files is None else read(files, recursive=options.recursive)
    settings, state = cluster.read(options, needs=(NODE, POD, QUEUE))
    cluster.demand_all(state)
    given = placed(found, namespace=namespace, queue=options.queue, settings=settings)
    return settings, apply(state, given, settings)


def apply(state: "State", given: Sequence[Manifest], settings: "Settings") -> Outcome:
    """The cluster once these objects are applied, but for those that admission refuses. Raises InputError."""
    from cli import books
    from cli.applying import applied_over
    from cli.check import Bundle
    from cli.creation import as_created
    from cli.kinds import POD, is_known
    from core.admission.request import Context
    from core.workloads import kinds_with

    context = Context(books.view_of(state, settings), settings)
    names = _names_of(state, given)
    given = [one.named(names) for one in given]
    bundle = Bundle(context, [one.found for one in given], state.raw)
    findings = [(one, bundle.judge(one.found)) for one in given]
    accepted = [one for one, said in findings if not said.violations]
    gone, replaced = _there_already(state, accepted, kinds_with(settings.workloads))
    stored = state.as_stored(gone)
    more: dict[ObjectKind, dict[str, Raw]] = {}
    makers: dict[tuple[ObjectKind, str], Manifest] = {}
    skipped = []
    for one in accepted:
        if not is_known(one.kind, settings):
            skipped.append(one.display)
            continue
        kind, key, raw = _created(one, names)
        old = stored.raw.get(kind, {}).get(key)
        more.setdefault(kind, {})[key] = raw if old is None else applied_over(raw, old)
        makers[kind, key] = one
    there = set(stored.raw.get(POD, ()))
    created = as_created(stored.extended(more), settings)
    return Outcome(created, _made(created, makers, there), findings, replaced, tuple(skipped))


def _names_of(state: "State", given: Sequence[Manifest]) -> "FreshNames":
    """The names that nothing may be given: of what is there, of owners that may not be among it, and of what is applied."""
    from cli.fresh_names import FreshNames
    from cli.kinds import maker_of

    there = [(kind, key) for kind, objects in state.raw.items() for key in objects]
    makers = [maker for pod in state.pods if (maker := maker_of(pod)) is not None]
    applied = [(one.kind, one.key) for one in given if not one.is_generated]
    return FreshNames([*there, *makers, *applied])


def _created(one: Manifest, names: "FreshNames") -> tuple["ObjectKind", str, Raw]:
    """What is created, and its key; of a CronJob the next Job, for what matters is whether that would run."""
    from cli.kinds import ObjectKind
    from core.objects import raw as read

    kind, key, raw = one.kind, one.key, one.found.raw
    if kind == _CRON_JOB:
        spec = read.mapping(raw, "spec", "jobTemplate", "spec")
        kind, raw = ObjectKind("batch", "Job"), {**raw, "apiVersion": "batch/v1", "kind": "Job", "spec": spec}
        key = names.take(kind, key)
    if one.is_generated or key != one.key:
        raw = {**raw, "metadata": {**raw["metadata"], "name": key.rpartition("/")[2]}}
    return kind, key, raw


def _there_already(
    state: "State", given: Sequence[Manifest], kinds: "Kinds"
) -> tuple[set[tuple["ObjectKind", str]], tuple[str, ...]]:
    """The pods, and the workloads with their pods, that would have to be deleted first, and how these are called."""
    from cli.kinds import POD
    from cli.targets import Target, belongs

    gone: set[tuple[ObjectKind, str]] = set()
    names = []
    for one in given:
        kind = one.kind
        if (kind != POD and kind not in kinds) or kind == _CRON_JOB or one.is_generated:
            continue
        namespace, _, name = one.key.partition("/")
        target = Target(kind.kind, namespace, name, kind.group)
        old = {pod.key for pod in state.pods if pod.namespace == namespace and belongs(pod, target)}
        if old or one.key in state.raw.get(kind, {}):
            gone |= {(kind, one.key), *((POD, key) for key in old)}
            names.append(one.display)
    return gone, tuple(names)


def _made(
    state: "State", makers: Mapping[tuple["ObjectKind", str], Manifest], there: set[str]
) -> dict[tuple["ObjectKind", str], list["Pod"]]:
    """The pods that were not there, by the object that they come of."""
    from cli.kinds import POD, maker_of

    found: dict[tuple[ObjectKind, str], list[Pod]] = {(one.kind, one.key): [] for one in makers.values()}
    for pod in state.pods:
        if pod.key in there:
            continue
        owner = maker_of(pod)
        one = makers.get((POD, pod.key)) or (makers.get(owner) if owner is not None else None)
        if one is not None:
            found[one.kind, one.key].append(pod)
    return {maker: pods for maker, pods in found.items() if pods}
