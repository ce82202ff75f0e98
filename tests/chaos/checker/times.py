"""When the processes were disturbed, who led, and what a leader could know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.checker.log import Entry
from tests.chaos.checker.terms import Disturbance, Terms


class Calm:
    """The times between disturbances."""

    def __init__(self, disturbances: Sequence[Disturbance]) -> None:
        self._disturbances = disturbances

    def blind(self, began: float, ended: float) -> bool:
        """Whether the log may lack writes of this time."""
        return any(d.blind and d.began <= ended and began <= d.ended for d in self._disturbances)

    def disturbed_by(self, at: float) -> set[str]:
        """What disturbs the processes at this time, its echo included."""
        return {d.kind for d in self._disturbances if d.kind and d.began <= at <= d.ended}

    def known_since(self, at: float, within_s: float) -> float:
        """Since when whoever decides at this time may not have heard anything new."""
        since = at - within_s
        while True:
            earlier = [d.began - within_s for d in self._disturbances if d.ended >= since and d.began <= at]
            if min(earlier, default=since) >= since:
                return since
            since = min(earlier)

    def calm_from(self, at: float, length_s: float) -> float:
        """When, at this time at the earliest, so long a time begins in which nothing is disturbed."""
        while overlapping := [
            d.ended for d in self._disturbances if d.began <= at + length_s and at < d.ended
        ]:
            at = max(overlapping)
        return at

    @property
    def last(self) -> float:
        """When the last disturbance ended."""
        return max((d.ended for d in self._disturbances), default=0.0)


@dataclass(frozen=True, slots=True)
class Term:
    """The time in which somebody certainly led: from the first to the last write of the Lease that was seen."""

    holder: str
    began: float
    ended: float


def leaders(entries: Sequence[Entry], terms: Terms) -> list[Term]:
    """The terms that the writes of the Lease show; a gap longer than the Lease's duration ends one."""
    found: list[Term] = []
    for at, holder, duration in _renewals(entries, terms):
        if found and found[-1].holder == holder and at - found[-1].ended <= duration:
            found[-1] = Term(holder, found[-1].began, at)
        elif holder:
            found.append(Term(holder, at, at))
    return found


def _renewals(entries: Sequence[Entry], terms: Terms) -> Iterator[tuple[float, str, float]]:
    for entry in sorted(entries, key=lambda each: each.ended):
        spec = entry.response.get("spec") or {}
        if (
            entry.resource == "leases"
            and entry.name == terms.lease
            and entry.accepted
            and entry.verb != "delete"
        ):
            yield (
                entry.ended,
                str(spec.get("holderIdentity") or ""),
                float(spec.get("leaseDurationSeconds") or 0),
            )


def followed_since(at: float, reigns: Sequence[Term], terms: Terms) -> float:
    """When whoever decides at this time began to lead: it knows of all that was written before, whatever disturbed it.

    A new leader decides nothing until it does, nor while anything of the one before may still be stored.
    """
    begun = (reign.began for reign in reigns if reign.began + terms.takes_over_s <= at)
    return max(begun, default=float("-inf"))
