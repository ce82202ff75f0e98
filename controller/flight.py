"""A lift on its way into the API server."""

from dataclasses import dataclass

from core.objects import Pod
from core.plan.decision import Lift
from kube import errors

RETRY_FIRST_S = 0.2

Key = tuple[str, str]
"""Namespace and UID: a pod that is made anew under a name is another one, whatever is still under way for the former."""


@dataclass(slots=True)
class Flight:
    """How far a lift has come."""

    lift: Lift
    tries: int = 0
    delay_s: float = RETRY_FIRST_S
    look: bool = False
    """Whether the pod has to be read before it is written again."""
    open_until: float = float("-inf")
    """Until when a try may still be stored that failed, or was not answered."""
    since: float = 0.0
    """When it was decided, or first failed."""
    given_up: str = ""
    """Why it is not to be written any more."""
    void: bool = False
    """Whether its queue has changed so that the decision does not hold."""


def key_of(pod: Pod) -> Key:
    """The key of a pod's lift."""
    return pod.namespace, pod.uid


def about(lift: Lift, error: errors.KubeError | None) -> dict[str, object]:
    """What the log says of a lift."""
    said: dict[str, object] = {"pod": lift.pod.key, "queue": lift.queue, "assigned": dict(lift.assigned)}
    return said if error is None else said | {"error": errors.describe(error)}
