"""Which kinds of objects a state has: API group and kind of each, and whether it is in namespaces."""

from typing import Any, Final, NamedTuple

from core import workloads
from core.objects import Pod, kinds
from core.objects.kinds import KINDS, Kind
from core.settings import Settings


class ObjectKind(NamedTuple):
    """An API group and a kind; the version does not matter."""

    group: str
    kind: str

    @classmethod
    def of(cls, row: Kind[Any]) -> "ObjectKind":
        """The kind of a row of the table."""
        return cls(row.group, row.kind)


POD: Final = ObjectKind.of(kinds.POD)
NODE: Final = ObjectKind.of(kinds.NODE)
NAMESPACE: Final = ObjectKind.of(kinds.NAMESPACE)
QUEUE: Final = ObjectKind.of(kinds.QUEUE)
GROUP: Final = ObjectKind.of(kinds.GROUP)
JOB: Final = ObjectKind.of(kinds.JOB)
CLAIM: Final = ObjectKind.of(kinds.CLAIM)
CONFIG_MAP: Final = ObjectKind("", "ConfigMap")
LEASE: Final = ObjectKind("coordination.k8s.io", "Lease")
BOOKS: Final = ObjectKind("cardquota.io", "LeaderBooks")
"""What the leader has told, in a dump; see leader_books."""

_NAMESPACED: Final = {
    CONFIG_MAP: True,
    LEASE: True,
    BOOKS: True,
    **{ObjectKind.of(row): row.namespaced for row in KINDS},
    **{ObjectKind(*kind): workloads.KINDS[kind].namespaced for kind in sorted(workloads.KINDS)},
}


def is_built_in(kind: ObjectKind) -> bool:
    """Whether objects of the kind are read whatever the settings say."""
    return kind in _NAMESPACED


def in_namespaces(kind: ObjectKind) -> bool:
    """Whether objects of the kind are in namespaces; of the kinds that settings add all are."""
    return _NAMESPACED.get(kind, True)


def is_known(kind: ObjectKind, settings: Settings) -> bool:
    """Whether objects of the kind are read."""
    return kind in _NAMESPACED or kind in added(settings)


def added(settings: Settings) -> frozenset[ObjectKind]:
    """The kinds that the setting `workloads` adds; objects outside of namespaces make no pods."""
    rows = workloads.added(settings.workloads)
    return frozenset(ObjectKind(row.group, row.kind) for row in rows if row.namespaced)


def is_namespaced(kind: ObjectKind, settings: Settings) -> bool:
    """Whether objects of the kind are read, and are in a namespace."""
    return _NAMESPACED.get(kind, kind in added(settings))


def maker_of(pod: Pod) -> tuple[ObjectKind, str] | None:
    """The kind and key of the object that controls a pod, which need not be there; None where none does."""
    if pod.owner is None:
        return None
    return ObjectKind(pod.owner.group, pod.owner.kind), f"{pod.namespace}/{pod.owner.name}"
