"""Deleted pods that gave their quota back and run on: how long they are waited for, and what is said about them."""

from typing import Final

from core.objects import Pod
from core.plan.reservations import moment_text

PATIENCE_S: Final = 60.0
"""So long after its deadline a pod may still be there: kubelets end pods a little late, and tell of it later still."""

_SECOND: Final = 1_000_000


def due_in_s(pod: Pod, now: int) -> float:
    """After how many seconds a deleted pod counts again that still runs then; `now` in microseconds since 1970.

    Never longer than its grace, which began before anybody saw it, and the patience: a clock that is wrong may end the wait
    for a pod too early, and cannot make it last.
    """
    left_s = (pod.deadline - now) / _SECOND
    return min(max(0.0, left_s), float(pod.grace_s)) + PATIENCE_S


def overrun_notice(pod: Pod, queue: str) -> str:
    """The words for an event on the pod, which charges `queue`."""
    return (
        f"Queue <{queue}>: the pod was deleted and had to be gone by {moment_text(pod.deadline)}, but node {pod.node_name} "
        "is ready and the pod still runs there; it counts again"
    )
