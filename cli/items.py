"""One object of a stream after the other: where it stands, and what makes it one that no API server would store."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cli import manifests
from cli.documents import Document, place_of
from cli.errors import InputError
from cli.kinds import ObjectKind, in_namespaces, is_built_in
from cli.manifests import Found
from core import workloads
from core.objects import raw as read

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """One object of the stream and where it stands."""

    kind: ObjectKind
    key: str
    raw: Raw
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Unread:
    """One object of a kind that nothing is known of without settings."""

    kind: ObjectKind
    found: Found
    source: str


def items_of(documents: Iterable[Document], unread: list[Unread]) -> Iterator[Item]:
    """The objects of the kinds that are read; others go to `unread`."""
    for document in documents:
        for duplicate in document.duplicates:
            raise InputError(document.source, f"{duplicate.path} is given twice", duplicate.line)
        for found in manifests.objects(document):
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
