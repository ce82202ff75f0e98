"""Taints of nodes and tolerations of pods, as schedulers compare them."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

from core.objects import raw as read

_OF_CONDITIONS: Final = "node.kubernetes.io/"
_KEEPS_OUT: Final = frozenset({"NoSchedule", "NoExecute"})
_SHARED_MOST: Final = 32
_SHARED_LONGEST: Final = 1000
"""So many tolerations, of so many characters, are kept to be shared; what is beyond that few pods have."""


class Taint(NamedTuple):
    """A taint that keeps pods out; one that is only to be avoided is left out."""

    key: str
    value: str
    effect: str

    @property
    def passing(self) -> bool:
        """Whether Kubernetes sets it for how the node is now, and takes it away again: cordoned, not ready, short of memory."""
        return self.key.startswith(_OF_CONDITIONS)

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class Toleration(NamedTuple):
    """What a pod puts up with. An empty key stands for every one, an empty effect too."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether it is about this taint. An operator that is not known here tolerates nothing."""
        if self.effect not in ("", taint.effect):
            return False
        if self.operator == "Exists":
            return self.key in ("", taint.key)
        return self.operator in ("", "Equal") and (self.key, self.value) == (taint.key, taint.value)


Tolerations = tuple[Toleration, ...]


def taints_of(spec: Mapping[str, Any]) -> tuple[Taint, ...]:
    """The taints of a node's spec."""
    found = (
        Taint(read.text(raw, "key"), read.text(raw, "value"), read.text(raw, "effect"))
        for raw in read.sequence(spec, "taints")
        if isinstance(raw, dict)
    )
    return tuple(taint for taint in found if taint.effect in _KEEPS_OUT)


def tolerations_of(spec: Mapping[str, Any]) -> Tolerations:
    """The tolerations of a pod's spec: the same object for most pods alike, of which there are many."""
    found = tuple(
        Toleration(*(read.text(raw, key) for key in ("key", "operator", "value", "effect")))
        for raw in read.sequence(spec, "tolerations")
        if isinstance(raw, dict)
    )
    if len(found) <= _SHARED_MOST and sum(map(len, chain.from_iterable(found))) <= _SHARED_LONGEST:
        return _shared(found)
    return found


@lru_cache(maxsize=1024)
def _shared(tolerations: Tolerations) -> Tolerations:
    return tolerations


def untolerated(taints: Iterable[Taint], tolerations: Tolerations) -> Taint | None:
    """The first taint that keeps the pod out."""
    for taint in taints:
        if not any(toleration.tolerates(taint) for toleration in tolerations):
            return taint
    return None
