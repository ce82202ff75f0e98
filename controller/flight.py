"""A lift on its way into the API server."""

from dataclasses import dataclass
from http import HTTPStatus

from controller.late_writes import STORED_LATE_S
from core.names import GANG_ANNOTATION
from core.objects import Pod
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from kube import errors
from kube.workqueue import SLOW_S

WRITE_TIMEOUT_S = 4.0
"""So long a write is waited for here, and so long the API server works on it after it has arrived: it is told. Shorter than
what lies between the renew deadline and the end of the lease, see controller.leading.QUIET_S."""

UNANSWERED_S = 2 * WRITE_TIMEOUT_S + STORED_LATE_S
"""So long what was not answered may still be stored: on its way as long as it is waited for, then worked on for as long again,
and then still with the database."""

RETRY_FIRST_S = 0.2
RETRY_MAX_S = 5.0

PATIENCE_S = 30.0
"""So long a lift may fail before it is given up for now, or wait for its turn while none of its namespace is stored."""
TRIES = 6
"""So often the API server may fail at a pod before that gives its quota back and waits to be tried anew."""
GANG_PATIENCE = 10
"""So many times longer, and more often, for a member of a gang of which others are in and wait for it: what it gives back goes to
others, and those hold theirs for nothing."""

PUT_BACK = "the API server took the lift in, and the gate is still there: somebody's webhook puts it back"

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
    read_at: float = float("-inf")
    """When the last reading began of the pod that found it as it was."""
    not_before: float = float("-inf")
    """Until when the server wants to be left alone with it."""
    first_failed: bool = False
    """Whether the first try has failed."""
    given_up: str = ""
    """Why it is not to be written any more."""
    void: bool = False
    """Whether its queue has changed so that the decision does not hold."""

    def keep_open(self, error: errors.KubeError, now: float) -> None:
        """Notes that a try has failed at this time of the event loop, and may be stored all the same for a while."""
        answered = isinstance(error, errors.ApiError) and error.status == HTTPStatus.INTERNAL_SERVER_ERROR
        self.open_until = max(self.open_until, now + (STORED_LATE_S if answered else UNANSWERED_S))

    def open_s(self, now: float) -> float:
        """For how many seconds more a try may be stored; less than nothing when none can be any more."""
        return self.open_until - now

    def read_after_s(self, delay_s: float, now: float) -> float:
        """After how many seconds the pod of a lift that is given up is to be read: as soon as that shows how it ended."""
        return min(delay_s, max(RETRY_MAX_S, self.open_s(now)))

    def read_again_s(self, now: float) -> float:
        """The same where it was just read: that may have begun before the last try could be stored, and be answered after."""
        return min(RETRY_MAX_S, max(self.delay_s, self.open_s(now)))

    @property
    def certain(self) -> bool:
        """Whether no try has been stored, or can be any more: the pod was read after the last of them could be."""
        return self.open_until <= self.read_at

    def heed(self, error: errors.KubeError, now: float) -> float:
        """Takes in for how many seconds the server wants to be left alone with it, and returns that."""
        asked_s = errors.retry_after_s(error)
        self.not_before = max(self.not_before, now + asked_s)
        return asked_s

    def failed(self, error: errors.KubeError, now: float, ledger: Ledger) -> float:
        """Takes in that a request was not answered as it should be. Returns after how many seconds it is to be tried again.

        As long as the server asks for is waited, up to the bound of `errors.retry_after_s`. What it puts off for longer than
        a lift is given is given up at once.
        """
        asked_s = self.heed(error, now)
        if self.tries == 1 and not (self.given_up or self.first_failed):
            # What fails after it, a question or a reading, begins no time anew.
            self.first_failed, self.since = True, now
        spent = self.tries >= TRIES or now - self.since >= PATIENCE_S or asked_s > PATIENCE_S
        if spent and not self.patient(now, ledger):
            self.look, self.given_up = True, self.given_up or errors.describe(error)
        delay_s = self.delay_s
        self.delay_s = min(RETRY_MAX_S, 2 * delay_s)
        return max(delay_s, asked_s)

    def patient(self, now: float, ledger: Ledger) -> bool:
        """Whether a lift that has failed for long is tried on all the same: others of its gang wait for it."""
        if self.tries >= GANG_PATIENCE * TRIES or now - self.since >= GANG_PATIENCE * PATIENCE_S:
            return False
        return others_wait_for(self.lift, ledger)

    def was_long(self, now: float) -> bool:
        """Whether it has held its quota for longer than a request takes."""
        return now - self.since >= SLOW_S

    def overtaken(self, ledger: Ledger) -> bool:
        """Whether it has been seen what became of the lift, or of the pod."""
        return ledger.assumed(self.lift.pod.uid) is not self.lift.lifted

    def undone(self) -> None:
        """Gives it up: it was taken in, and the pod that is stored has our gate."""
        self.given_up = PUT_BACK

    def is_another(self, ledger: Ledger) -> bool:
        """Whether the pod is still gated and has changed: then this lift can never be stored."""
        seen = ledger.observed(self.lift.pod.uid)
        return seen is not None and seen.resource_version != self.lift.pod.resource_version

    def put_back(self, ledger: Ledger) -> bool:
        """Whether such a pod carries all that a lift writes, and a try had no certain end: it was stored, but for the gate."""
        seen, records = ledger.observed(self.lift.pod.uid), self.lift.records.items()
        unanswered = self.open_until > float("-inf")
        return unanswered and bool(records) and seen is not None and records <= seen.annotations.items()


def gang_of(lift: Lift) -> str:
    """The group that a pod is lifted together with; empty for one that needs no others."""
    return lift.pod.group_key if GANG_ANNOTATION in lift.records else ""


def others_wait_for(lift: Lift, ledger: Ledger) -> bool:
    """Whether others of the gang with which a pod is lifted are in, and hold their quota for nothing without it."""
    together = lift.records.get(GANG_ANNOTATION)
    return together is not None and ledger.others_wait_for(lift.pod, int(together))


def key_of(pod: Pod) -> Key:
    """The key of a pod's lift."""
    return pod.namespace, pod.uid


def about(lift: Lift, error: errors.KubeError | None) -> dict[str, object]:
    """What the log says of a lift."""
    said: dict[str, object] = {"pod": lift.pod.key, "queue": lift.queue, "assigned": dict(lift.assigned)}
    return said if error is None else said | {"error": errors.describe(error)}
