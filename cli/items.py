"""One object of a stream after the other: where it stands, what no API server would store, and what it would have filled in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cli.documents import Document, Found, objects, place_of
from cli.errors import InputError
from cli.fresh_names import FreshNames
from cli.kinds import POD, ObjectKind, in_namespaces, is_built_in
from core import workloads
from core.objects import raw as read
from core.objects.owner import controlling_owner

Raw = Mapping[str, Any]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""Stand-ins come after the youngest time of the file; after this one there is no room for them."""


@dataclass(frozen=True, slots=True)
class Item:
    """One object of the stream and where it stands."""

    kind: ObjectKind
    key: str
    raw: Raw
    source: str
    line: int

    @property
    def is_generated(self) -> bool:
        """Whether it has no name of its own, so that the one in its key stands for what the API server would make."""
        return not read.text(read.mapping(self.raw, "metadata"), "name")


def _owner(pod: Item) -> tuple[tuple[ObjectKind, str], str] | None:
    """The kind and key of the object that controls a pod, and its uid."""
    owner = controlling_owner(read.mapping(pod.raw, "metadata"))
    if owner is None:
        return None
    namespace = pod.key.rpartition("/")[0]
    return (ObjectKind(owner.group, owner.kind), f"{namespace}/{owner.name}"), owner.uid


@dataclass(frozen=True, slots=True)
class Unread:
    """One object of a kind that nothing is known of without settings."""

    kind: ObjectKind
    found: Found
    source: str


def items_of(documents: Iterable[Document], unread: list[Unread]) -> Iterator[Item]:
    """The objects of the kinds that are read; others go to `unread`."""
    return apart(list(_items(documents, unread)))


def apart(items: Sequence[Item]) -> Iterator[Item]:
    """The same, each of those that the API server is to name under a name that nothing else of its kind has."""
    if not any(item.is_generated for item in items):
        yield from items
        return
    named = [(item.kind, item.key) for item in items if not item.is_generated]
    owners = [owner for item in items if item.kind == POD and (owner := _owner(item)) is not None]
    names = FreshNames([*named, *(key for key, _ in owners)])
    for item in items:
        yield replace(item, key=names.take(item.kind, item.key)) if item.is_generated else item


def _items(documents: Iterable[Document], unread: list[Unread]) -> Iterator[Item]:
    for document in documents:
        for duplicate in document.duplicates:
            raise InputError(document.source, f"{duplicate.path} is given twice", duplicate.line)
        for found in objects(document):
            if found.problem:
                raise InputError(document.source, found.problem, found.place.line)
            kind = ObjectKind(found.group, found.kind)
            if is_built_in(kind):
                yield item_of(document.source, found, kind)
            else:
                unread.append(Unread(kind, found, document.source))


def item_of(source: str, found: Found, kind: ObjectKind) -> Item:
    """An object as an item. One whose main parts have the wrong type, which no API server stores, is refused. Raises InputError."""

    def wrong(problem: str, *keys: str) -> InputError:
        return InputError(source, problem, place_of(found.place, *keys).line)

    for part in ("metadata", "spec", "status"):
        if found.raw.get(part) is not None and not isinstance(found.raw[part], dict):
            raise wrong(f"{part} of a {kind.kind} must be a mapping", part)
    metadata = read.mapping(found.raw, "metadata")
    for part in ("name", "namespace", "uid", "creationTimestamp"):
        if not isinstance(metadata.get(part, ""), str | None):
            raise wrong(f"metadata.{part} must be a text", "metadata", part)
    name = read.text(metadata, "name")
    if not name and (kind in workloads.KINDS or not is_built_in(kind)):
        # Whoever applies it gets a name; here it needs one for its pods.
        name = read.text(metadata, "generateName").rstrip("-")
    if not name:
        raise wrong(f"a {kind.kind} needs metadata.name", "metadata", "name")
    namespaced = in_namespaces(kind)
    key = f"{read.text(metadata, 'namespace') or 'default'}/{name}" if namespaced else name
    return Item(kind, key, found.raw, source, found.place.line)


class StandIns:
    """Fills in what the API server would have, for objects of a file that came from elsewhere.

    * namespace: `default`.
    * name: of what is to be named by the API server the one in its key.
    * uid: made from kind, namespace and name. A Volcano Job takes the uid by which its pods name it as their owner.
    * creationTimestamp: right after the youngest object of the file, in the order of the file. So a pod that is added
      to a dump of a cluster to see what would become of it stands behind those that wait already.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._uids: dict[tuple[ObjectKind, str], str] = {}
        self._created: dict[tuple[ObjectKind, str], str] = {}
        undated: list[tuple[ObjectKind, str]] = []
        youngest = 0
        for item in items:
            metadata = read.mapping(item.raw, "metadata")
            created = read.timestamp(metadata.get("creationTimestamp"))
            youngest = max(youngest, created)
            if not created:
                undated.append((item.kind, item.key))
            if item.kind == POD:
                self._note_owner(item)
        for number, key in enumerate(undated, 1):
            moment = _EPOCH + timedelta(microseconds=min(youngest, _LATEST) + number)
            self._created[key] = moment.isoformat(timespec="microseconds")

    def _note_owner(self, pod: Item) -> None:
        owner = _owner(pod)
        if owner is not None and owner[1]:
            self._uids[owner[0]] = owner[1]

    def __call__(self, kind: ObjectKind, key: str, raw: Raw) -> Raw:
        """The object with name, namespace, uid and creation time; what it had stays."""
        metadata = read.mapping(raw, "metadata")
        filled = dict(metadata)
        if not metadata.get("name"):
            filled["name"] = key.rpartition("/")[2]
        if in_namespaces(kind):
            filled["namespace"] = key.partition("/")[0]
        if not metadata.get("uid"):
            filled["uid"] = self._uids.get((kind, key)) or f"{kind.kind.lower()}/{key}"
        if (kind, key) in self._created:
            filled["creationTimestamp"] = self._created[kind, key]
        return {**raw, "metadata": filled}
