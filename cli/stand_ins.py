"""What the API server would have filled in, for objects of a file that came from elsewhere.

* namespace: `default`.
* uid: made from kind, namespace and name. A Volcano Job takes the uid by which its pods name it as their owner.
* creationTimestamp: right after the youngest object of the file, in the order of the file. So a pod that is added
  to a dump of a cluster to see what would become of it stands behind those that wait already.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from cli.items import Item, Raw
from cli.kinds import POD, ObjectKind, in_namespaces
from core.objects import raw as read
from core.objects.owner import controlling_owner

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""Stand-ins come after the youngest time of the file; after this one there is no room for them."""


class StandIns:
    """Fills in what the API server would have."""

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
                self._note_owner(item, metadata)
        for number, key in enumerate(undated, 1):
            moment = _EPOCH + timedelta(microseconds=min(youngest, _LATEST) + number)
            self._created[key] = moment.isoformat(timespec="microseconds")

    def _note_owner(self, item: Item, metadata: Raw) -> None:
        owner = controlling_owner(metadata)
        if owner is not None and owner.uid:
            kind = ObjectKind(owner.api_version.rpartition("/")[0], owner.kind)
            namespace_of_pod = item.key.rpartition("/")[0]
            self._uids[kind, f"{namespace_of_pod}/{owner.name}"] = owner.uid

    def __call__(self, kind: ObjectKind, key: str, raw: Raw) -> Raw:
        """The object with namespace, uid and creation time; what it had stays."""
        metadata = read.mapping(raw, "metadata")
        filled = dict(metadata)
        if in_namespaces(kind):
            filled["namespace"] = key.partition("/")[0]
        if not metadata.get("uid"):
            filled["uid"] = self._uids.get((kind, key)) or f"{kind.kind.lower()}/{key}"
        if (kind, key) in self._created:
            filled["creationTimestamp"] = self._created[kind, key]
        return {**raw, "metadata": filled}
