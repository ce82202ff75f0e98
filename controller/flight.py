"""A lift on its way into the API server."""

from dataclasses import dataclass
from http import HTTPStatus

from core.objects import Pod
from core.plan.decision import Lift
from kube import errors

WRITE_TIMEOUT_S = 4.0
"""So long a write is waited for here, and so long the API server works on it after it has arrived: it is told. Shorter than
what lies between the renew deadline and the end of the lease, see controller.leading.QUIET_S."""

FAILED_S = 15.0
"""So long what the API server has answered with 500 may still be stored: its database may have taken in what it gave up
waiting for."""
UNANSWERED_S = 2 * WRITE_TIMEOUT_S + FAILED_S
"""The same of a request without an answer: on its way as long as it is waited for, then worked on for as long again."""

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

    def keep_open(self, error: errors.KubeError, now: float) -> None:
        """Notes that a try has failed at this time of the event loop, and may be stored all the same for a while."""
        answered = isinstance(error, errors.ApiError) and error.status == HTTPStatus.INTERNAL_SERVER_ERROR
        self.open_until = max(self.open_until, now + (FAILED_S if answered else UNANSWERED_S))

    def open_s(self, now: float) -> float:
        """For how many seconds more a try may be stored; less than nothing when none can be any more."""
        return self.open_until - now


def key_of(pod: Pod) -> Key:
    """The key of a pod's lift."""
    return pod.namespace, pod.uid


def about(lift: Lift, error: errors.KubeError | None) -> dict[str, object]:
    """What the log says of a lift."""
    said: dict[str, object] = {"pod": lift.pod.key, "queue": lift.queue, "assigned": dict(lift.assigned)}
    return said if error is None else said | {"error": errors.describe(error)}
