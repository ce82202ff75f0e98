"""What was stored, change by change, in the order in which the store took it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.chaos.checker.log import Entry, Object

KINDS: Final = ("pods", "nodes", "queues", "podgroups", "resourceclaims", "resourceclaimtemplates")


@dataclass(frozen=True, slots=True)
class Change:
    """An object became `after` (None: it is gone); `before` is what was last known of it, by the entry `known_by`.

    The revision is the store's, one count for all objects. Where a write is missing in the log, the change is found by the next
    request that shows the object, and has the revision that is shown there.
    """

    entry: Entry
    kind: str
    uid: str
    revision: int
    before: Object | None
    known_by: Entry | None
    after: Object | None

    @property
    def about(self) -> str:
        """Namespace and name of the object."""
        metadata = (self.after or self.before or {}).get("metadata", {})
        return "/".join(filter(None, (metadata.get("namespace", ""), metadata.get("name", ""))))

    @property
    def proof(self) -> tuple[int, ...]:
        """The entries that show it."""
        return tuple(entry.number for entry in (self.known_by, self.entry) if entry is not None)


@dataclass(slots=True)
class World:
    """All objects at one moment, by kind and UID, and the entry that last showed each."""

    objects: dict[str, dict[str, Object]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    shown_by: dict[str, Entry] = field(default_factory=dict)

    def all(self, kind: str) -> Iterable[Object]:
        """Every object of a kind."""
        return self.objects[kind].values()

    def named(self, kind: str) -> Mapping[str, Object]:
        """Objects of a kind that is in no namespace, by name."""
        return {thing["metadata"]["name"]: thing for thing in self.all(kind)}


@dataclass(frozen=True, slots=True)
class _Version:
    revision: int
    gone: bool
    kind: str
    uid: str
    entry: Entry
    thing: Object | None


class History:
    """The changes that a log shows."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.censuses = [
            e for e in entries if e.verb == "list" and e.accepted and e.response.get("items") is not None
        ]
        versions = [version for entry in entries for version in _shown(entry)]
        versions += _unrevisioned(entries, versions)
        versions += _missing(self.censuses, versions)
        versions.sort(key=lambda version: (version.revision, version.gone, version.entry.number))
        self._versions = versions
        self.deletes: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if entry.verb == "delete" and entry.resource == "pods" and (entry.accepted or entry.uncertain):
                self.deletes[f"{entry.namespace}/{entry.name}"].append(entry)

    def changes(self) -> Iterator[tuple[Change, World]]:
        """Each change with the world right after it; the world is one object that goes on changing."""
        world = World()
        gone: set[str] = set()
        for version in self._versions:
            things = world.objects[version.kind]
            before = things.get(version.uid)
            if version.uid in gone or (version.thing is not None and _same(before, version.thing)):
                continue
            known_by = world.shown_by.get(version.uid)
            world.shown_by[version.uid] = version.entry
            if version.thing is None:
                gone.add(version.uid)
                things.pop(version.uid, None)
            else:
                things[version.uid] = version.thing
            yield (
                Change(
                    version.entry,
                    version.kind,
                    version.uid,
                    version.revision,
                    before,
                    known_by,
                    version.thing,
                ),
                world,
            )

    def end(self) -> World:
        """The world after the last change."""
        world = World()
        for _, each in self.changes():
            world = each
        return world


def _same(before: Object | None, after: Object) -> bool:
    return before is not None and revision(before) == revision(after)


def revision(thing: Object) -> int:
    """The store's count when the object was written last."""
    return int(thing["metadata"].get("resourceVersion") or 0)


def _shown(entry: Entry) -> Iterator[_Version]:
    """The objects that an answer shows, at revisions of their own."""
    kind = entry.resource.partition("/")[0]
    if kind not in KINDS or not entry.accepted:
        return
    if entry.verb == "list":
        for item in entry.response.get("items") or ():
            yield _Version(revision(item), False, kind, item["metadata"]["uid"], entry, item)
        return
    metadata: Mapping[str, Any] = entry.response.get("metadata") or {}
    if "uid" not in metadata or not metadata.get("resourceVersion"):
        return
    gone = entry.verb == "delete" and not metadata.get("deletionGracePeriodSeconds")
    thing = None if gone else entry.response
    yield _Version(revision(entry.response), gone, kind, metadata["uid"], entry, thing)


def _unrevisioned(entries: Sequence[Entry], versions: Sequence[_Version]) -> Iterator[_Version]:
    """Deletions of which the answer shows no revision: at the last one that was certainly before them.

    Such an answer is a Status, or the object where somebody else had deleted or changed it meanwhile.
    """
    seen = sorted((version.entry.ended, version.revision) for version in versions)
    last: dict[str, int] = {}
    for version in versions:
        last[version.uid] = max(last.get(version.uid, 0), version.revision)
    for entry in entries:
        uid = _gone_without_revision(entry)
        if entry.resource in KINDS and uid:
            before = max((rev for ended, rev in seen if ended <= entry.began), default=0)
            yield _Version(max(before, last.get(uid, 0)), True, entry.resource, uid, entry, None)


def _gone_without_revision(entry: Entry) -> str:
    """The uid of what is gone by a deletion whose answer shows no revision; "" for any other entry."""
    if entry.verb != "delete" or not entry.accepted:
        return ""
    metadata: Mapping[str, Any] = entry.response.get("metadata") or {}
    if "uid" in metadata:
        stays = metadata.get("resourceVersion") or metadata.get("deletionGracePeriodSeconds")
        return "" if stays else str(metadata["uid"])
    return str((entry.response.get("details") or {}).get("uid", ""))


def _missing(censuses: Sequence[Entry], versions: Sequence[_Version]) -> Iterator[_Version]:
    """What a list does not show any more is gone by then, whoever deleted it."""
    first: dict[tuple[str, str], int] = {}
    for version in versions:
        key = (version.kind, version.uid)
        first[key] = min(first.get(key, version.revision), version.revision)
    for census in censuses:
        if census.resource not in KINDS:
            continue
        at = revision(census.response)
        there = {item["metadata"]["uid"] for item in census.response["items"]}
        for (kind, uid), since in first.items():
            if kind == census.resource and since <= at and uid not in there:
                yield _Version(at, True, kind, uid, census, None)
