"""Where a pod stands between creation and its end, as far as quota is concerned."""

from enum import StrEnum
from typing import Final

from core.objects import Pod


class Stage(StrEnum):
    """Where a pod stands between creation and its end, as far as quota is concerned."""

    WAITING = "waiting"
    RESERVED = "reserved"
    ALLOCATED = "allocated"
    IGNORED = "ignored"


_UNCOUNTED_PHASES: Final = frozenset({"Succeeded", "Failed", "Unknown"})


def stage_of(pod: Pod) -> Stage:
    """Derived from the pod alone, so that a restarted controller comes to the same answer.

    A pod without gate and node may be bound any moment, whoever took its gate away: it is reserved. A terminating
    pod has given its quota back although its cards may still be busy: that is how the Volcano scheduler counts. A pod that
    carries our gate waits even if it asks for nothing (any more): somebody has to lift it.
    """
    if not (pod.asks or pod.gated) or pod.deleting or pod.phase in _UNCOUNTED_PHASES:
        return Stage.IGNORED
    if pod.bound:
        return Stage.ALLOCATED
    return Stage.WAITING if pod.gated else Stage.RESERVED


def holds_quota(pod: Pod) -> bool:
    """Whether a pod, whatever it asks for, is bound and neither ended nor on its way out."""
    return pod.bound and not pod.deleting and pod.phase not in _UNCOUNTED_PHASES
