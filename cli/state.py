"""A cluster from a file: what `--state` reads.

The stream is what `kubectl get ... -o yaml` prints, or manifests as people write them. What the API server would
have filled in may be missing and gets a stand-in (cli.items), so that the same file always gives the same answer.

The raw objects are kept as they stood, without stand-ins: patches are made against those.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from cli import documents, inputs
from cli.documents import LEAF, Document
from cli.errors import InputError
from cli.items import Item, Raw, StandIns, Unread, apart, item_of, items_of
from cli.kinds import NODE, POD, QUEUE, ObjectKind, added, in_namespaces
from core import names
from core.objects import (
    Claim,
    ClaimTemplate,
    DeviceClass,
    Group,
    Job,
    Namespace,
    Node,
    Pod,
    Queue,
    kinds,
    pod,
)
from core.objects import raw as read
from core.objects.kinds import KINDS, Kind, View
from core.refusal import Refusal
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class State:
    """The objects of a cluster, each kind in the order of the file; `raw` by kind and `namespace/name` or name."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    queues: tuple[Queue, ...] = ()
    groups: tuple[Group, ...] = ()
    kubernetes_groups: tuple[Group, ...] = ()
    jobs: tuple[Job, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    claims: tuple[Claim, ...] = ()
    templates: tuple[ClaimTemplate, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    claims_served: bool = True
    """Whether ResourceClaims exist as a kind. Of a file nobody can tell: there a claim that is not in it is missing."""
    kubernetes_groups_served: bool = True
    """The same of the PodGroups of Kubernetes itself."""
    pods_of: str = ""
    """The only namespace whose pods, groups, jobs and claims are known; empty where those of all are."""
    home: str = ""
    """Where the installation of the live cluster was looked for by who may not look everywhere; empty for all others."""
    unled: str = ""
    """Why nobody leads in the live cluster that was read; empty where somebody does or nothing is known of it."""
    unseen: frozenset[str] = frozenset()
    """The kinds of which nothing may be listed in the live cluster."""
    settings_hidden: bool = False
    """Whether the settings of the live cluster could not be looked for."""
    raw: Mapping[ObjectKind, Mapping[str, Raw]] = field(default_factory=dict)
    complete: Mapping[ObjectKind, tuple[Raw, ...]] = field(default_factory=dict)
    """The same objects with their stand-ins, as an API server would show them."""
    warnings: tuple[str, ...] = ()
    """What the reader should tell the user: one line each."""
    read_at: int = 0
    """When `cardquota dump` read the cluster, in microseconds since 1970; 0 where a file does not say."""
    unread: tuple[Unread, ...] = field(default=(), compare=False)
    """Objects of kinds that are read only where settings name them."""
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    """New pods that admission refuses, by key: the code of the first reason, and the whole message."""

    @property
    def all_hidden(self) -> list[str]:
        """What may not be seen of what decides on every pod; cli.sight knows of the rest."""
        kinds = [kind.kind for kind in (NODE, QUEUE, POD) if kind.kind in self.unseen]
        pods = ["Pod in all namespaces"] if self.pods_of else []
        return [*kinds, *pods]

    @property
    def hidden(self) -> str:
        """The same in words; empty where all of it is known."""
        return ", ".join(self.all_hidden)

    def views(self) -> Iterator[View]:
        """All objects that decisions rest on, in the order of the table of kinds."""
        for row in KINDS:
            yield from getattr(self, row.collection)

    def knowing(self, settings: Settings) -> "State":
        """The state with the objects of the kinds that the setting `workloads` adds. Raises InputError."""
        kinds_added = added(settings)
        found = [one for one in self.unread if one.kind in kinds_added]
        more: dict[ObjectKind, dict[str, Raw]] = {}
        for item in apart([item_of(one.source, one.found, one.kind) for one in found]):
            more.setdefault(item.kind, {})[item.key] = item.raw
        return self.extended(more) if more else self

    def extended(self, more: Mapping[ObjectKind, Mapping[str, Raw]]) -> "State":
        """The state with more PodGroups and pods, younger than all that is there; what is there already is moved behind."""
        items = [
            Item(kind, key, raw, "", 0)
            for given in (self.raw, more)
            for kind, found in given.items()
            for key, raw in found.items()
        ]
        return replace(
            _build(items),
            claims_served=self.claims_served,
            kubernetes_groups_served=self.kubernetes_groups_served,
            pods_of=self.pods_of,
            unseen=self.unseen,
            warnings=self.warnings,
            read_at=self.read_at,
            unread=self.unread,
        )

    def as_stored(self, besides: Collection[tuple[ObjectKind, str]] = ()) -> "State":
        """The state with its stand-ins taken for given, so that nothing of it is new; without these objects."""
        raw: dict[ObjectKind, dict[str, Raw]] = {}
        for kind, objects in self.complete.items():
            for one in objects:
                key = _key(one) if in_namespaces(kind) else read.text(read.mapping(one, "metadata"), "name")
                if (kind, key) not in besides:
                    raw.setdefault(kind, {})[key] = one
        return replace(self, raw=raw, refused={})

    def with_pods(self, stored: Mapping[str, Raw], refused: Mapping[str, Refusal]) -> "State":
        """The state with these pods as they are stored now, and without those that are refused."""
        pods = self.complete.get(POD, ())
        complete = tuple(stored.get(_key(raw), raw) for raw in pods if _key(raw) not in refused)
        return replace(
            self,
            pods=tuple(map(_with_labels, complete)),
            complete={**self.complete, POD: complete},
            refused=refused,
        )


def _key(raw: Raw) -> str:
    metadata = read.mapping(raw, "metadata")
    return f"{read.text(metadata, 'namespace')}/{read.text(metadata, 'name')}"


EMPTY: Final = State()

TO_WRITE_ONE: Final = (
    "write one with `cardquota dump -o FILE`, or with kubectl get nodes,pods,queues,podgroups -A -o json"
)
_SLOW: Final = 1_000_000
"""Bytes of YAML that take about two seconds."""


def load(name: str) -> State:
    """The state in a file, `-` for standard input. Raises InputError, with the line where there is one.

    One without any object is an error: it is what a command leaves that has failed, and no cluster is without nodes and namespaces.
    """
    source, content = inputs.label(name), inputs.read_bytes(name)
    found = parse(source, content)
    if not found.raw:
        raise _nothing_in(source, content)
    return found


def _nothing_in(source: str, content: bytes) -> InputError:
    every = documents.read(source, inputs.decode(source, content))
    skipped = sorted({found.kind for document in every for found in documents.objects(document)})
    others = f" of the kinds that are read, only {', '.join(skipped)}" if skipped else ""
    return InputError(source, f"there is no object in it{others}", remedy=TO_WRITE_ONE)


def parse(source: str, content: bytes) -> State:
    """The state in a YAML or JSON stream, which may hold no object at all. Raises InputError."""
    try:
        value = orjson.loads(content)
        quick = _as_read(build([value], source), [value])
    except (orjson.JSONDecodeError, InputError):
        quick = None
    if quick is not None and not quick.warnings:
        return quick
    if quick is None and len(content) > _SLOW:
        # At half a megabyte a second: more than the two seconds for which nobody wonders.
        told = f"reading {source}: {len(content) / 10**6:.0f} MB of YAML; `cardquota dump` writes JSON, which is read far faster"
        print(told, file=sys.stderr)
    # The quick way is for large dumps in JSON; it knows no lines, so what is wrong is told by the thorough way.
    every = list(documents.read(source, inputs.decode(source, content)))
    return _as_read(_read(every), [one.value for one in every])


def _as_read(state: State, values: Sequence[Any]) -> State:
    """The state with what the lists among these say: when they were read, the last of these moments, and what could not be."""
    said = [read.texts(value, "metadata", "annotations") for value in values]
    unseen = (kind for one in said for kind in one.get(names.UNSEEN_ANNOTATION, "").split(",") if kind)
    return replace(
        state,
        read_at=max((read.timestamp(one.get(names.READ_AT_ANNOTATION)) for one in said), default=0),
        unseen=frozenset(unseen),
        pods_of=next((of for one in said if (of := one.get(names.PODS_OF_ANNOTATION, ""))), ""),
    )


def build(objects: Iterable[Any], source: str) -> State:
    """The state of objects or lists at hand, for instance those of a live cluster. Raises InputError."""
    return _read(Document(source, 0, raw, LEAF) for raw in objects)


def _read(documents: Iterable[Document]) -> State:
    unread: list[Unread] = []
    return replace(_build(items_of(documents, unread)), unread=tuple(unread))


def _build(items: Iterable[Item]) -> State:
    latest: dict[tuple[ObjectKind, str], Item] = {}
    warnings: list[str] = []
    for item in items:
        earlier = latest.pop((item.kind, item.key), None)
        if earlier is not None:
            told = (
                f"{item.kind.kind} {item.key} is given twice, first in line {earlier.line}; this one counts"
            )
            warnings.append(f"{item.source}:{item.line}: {told}")
        latest[item.kind, item.key] = item
    raw: dict[ObjectKind, dict[str, Raw]] = {}
    for item in latest.values():
        raw.setdefault(item.kind, {})[item.key] = item.raw
    fill = StandIns(latest.values())
    complete = {
        kind: tuple(fill(kind, key, one) for key, one in found.items()) for kind, found in raw.items()
    }

    def views(row: Kind[Any]) -> tuple[Any, ...]:
        project = _with_labels if row is kinds.POD else row.project
        return tuple(map(project, complete.get(ObjectKind.of(row), ())))

    collections: dict[str, Any] = {row.collection: views(row) for row in KINDS}
    return State(**collections, raw=raw, complete=complete, warnings=tuple(warnings))


def _with_labels(raw: Raw) -> pod.Pod:
    """The view of a pod with all its labels: a file is small, and which of them settings look at is not known here."""
    return pod.project(raw, read.texts(raw, "metadata", "labels"))
