"""What a leader knows of its lease: for how long nobody else can lead, and how to give it up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Clock = Callable[[], float]
"""Seconds that go on while the process is stopped, as the event loops' own do."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds. They have to decrease strictly, else two leaders could overlap: ValueError."""

    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_deadline_s > self.retry_s > 0:
            raise ValueError(f"not lease > renew deadline > retry > 0: {self}")

    @property
    def request_s(self) -> float:
        """How long a single read or write may take; of two in a row at least one fits into what is left of a term."""
        return max(self.retry_s, self.renew_deadline_s / 2)


class Resigned(Exception):  # noqa: N818 - a decision of the leader, no error of the election
    """Raised by the leader's work, with the reason: another process shall lead, and this one campaigns again later."""


class Term:
    """One time of leading. `epoch` grows from term to term, whoever leads (it is the Lease's leaseTransitions)."""

    def __init__(
        self,
        epoch: int,
        clock: Clock,
        valid_until: float,
        left: Mapping[str, str] | None = None,
        *,
        alone_from: float = float("-inf"),
    ) -> None:
        self.epoch = epoch
        self.left = left
        """The annotations of the Lease as its last holder gave it back; None where it did not."""
        self.leaving: Mapping[str, str] = MappingProxyType({})
        """What the Lease shall say when it is given back after this term, for whoever holds it next; the leader's work sets it."""
        self._clock = clock
        self._valid_until = valid_until
        self._alone_from = alone_from

    def valid(self) -> bool:
        """Whether nobody else can lead now. To be asked right before every write of the leader."""
        return self._clock() < self._valid_until

    def remaining_s(self) -> float:
        """Seconds for which `valid` stays true without a further renewal."""
        return max(0.0, self._valid_until - self._clock())

    def shared_s(self) -> float:
        """Seconds for which a former leader's term may go on beside this one, because the Lease that says so is gone."""
        return max(0.0, self._alone_from - self._clock())

    def extend(self, valid_until: float) -> None:
        """The lease was renewed. Only the elector calls this."""
        self._valid_until = valid_until

    def end(self) -> None:
        """The lease was lost or given back: never valid again. Only the elector calls this, and nothing renews it then."""
        self._valid_until = float("-inf")
