"""The claims that the pods of one queue and of all queues below it hold, each charged once."""

from collections.abc import Mapping

from core.dra.amounts import Amounts, DeviceKey, total
from core.stage import Stage


class Charges:
    """Claims with the number of pods that refer to them, and the sum of what they cost.

    As long as any pod refers to a claim, `amounts` must be the same for it.
    """

    __slots__ = ("_holders", "sums")

    def __init__(self) -> None:
        self._holders: dict[str, int] = {}
        self.sums: dict[DeviceKey, int] = {}

    def __contains__(self, claim: str) -> bool:
        return claim in self._holders

    def alone(self, claims: Mapping[str, Amounts]) -> Amounts:
        """What those of these claims cost to which a single pod refers."""
        return total(amounts for claim, amounts in claims.items() if self._holders.get(claim) == 1)

    def added(self, claims: Mapping[str, Amounts], instead: Mapping[str, Amounts]) -> Amounts:
        """What those of these claims cost to which nobody refers but a pod that has these now `instead` of others."""
        return total(
            amounts
            for claim, amounts in claims.items()
            if self._holders.get(claim, 0) == (1 if claim in instead else 0)
        )

    def add(self, claims: Mapping[str, Amounts]) -> None:
        """One more pod refers to these claims."""
        for claim, amounts in claims.items():
            self._holders[claim] = self._holders.get(claim, 0) + 1
            if self._holders[claim] == 1:
                self._sum(amounts, 1)

    def remove(self, claims: Mapping[str, Amounts]) -> None:
        """One of the pods that refer to these claims does so no longer."""
        for claim, amounts in claims.items():
            self._holders[claim] -= 1
            if not self._holders[claim]:
                del self._holders[claim]
                self._sum(amounts, -1)

    def _sum(self, amounts: Amounts, sign: int) -> None:
        for key, amount in amounts.items():
            left = self.sums.get(key, 0) + sign * amount
            if left:
                self.sums[key] = left
            else:
                self.sums.pop(key, None)


class DeviceAccount:
    """What a queue and those below it use. A claim that pods of several stages share counts for the furthest of them."""

    __slots__ = ("_known", "_pods", "allocated", "granted", "used", "waiting_queues")

    def __init__(self) -> None:
        self._pods = 0
        self.allocated = Charges()
        """Claims of bound pods."""
        self.used = Charges()
        """Those, and the claims of pods that may be bound any moment."""
        self.granted = Charges()
        """Those of bound pods, and of pods that were let in: without those that lost their gate in another way."""
        self._known = Charges()
        """Those, and the claims of waiting pods."""
        self.waiting_queues: dict[str, int] = {}
        """The queues in which pods with claims wait, and how many."""

    @property
    def empty(self) -> bool:
        """Whether no pod is booked, not even one whose claims are not known."""
        return not self._pods

    def reserved(self) -> dict[DeviceKey, int]:
        """What is used beyond what is allocated."""
        return _beyond(self.used.sums, self.allocated.sums)

    def waiting(self) -> dict[DeviceKey, int]:
        """What would be used beyond what is, if all that wait were let in."""
        return _beyond(self._known.sums, self.used.sums)

    def sums(self) -> dict[str, Amounts]:
        """Copies of all sums, by what they are called."""
        return {
            "allocated": dict(self.allocated.sums),
            "allocated or reserved": dict(self.used.sums),
            "granted": dict(self.granted.sums),
            "asked for": dict(self._known.sums),
        }

    def book(self, queue: str, stage: Stage, claims: Mapping[str, Amounts], *, granted: bool) -> None:
        """Adds a pod of `queue`, which is this one or below it."""
        self._pods += 1
        for charges in self._counting(stage):
            charges.add(claims)
        if granted:
            self.granted.add(claims)
        if stage is Stage.WAITING:
            self.waiting_queues[queue] = self.waiting_queues.get(queue, 0) + 1

    def unbook(self, queue: str, stage: Stage, claims: Mapping[str, Amounts], *, granted: bool) -> None:
        """Takes out a pod that was booked so."""
        self._pods -= 1
        for charges in self._counting(stage):
            charges.remove(claims)
        if granted:
            self.granted.remove(claims)
        if stage is Stage.WAITING:
            self.waiting_queues[queue] -= 1
            if not self.waiting_queues[queue]:
                del self.waiting_queues[queue]

    def _counting(self, stage: Stage) -> tuple[Charges, ...]:
        match stage:
            case Stage.ALLOCATED:
                return (self._known, self.used, self.allocated)
            case Stage.RESERVED:
                return (self._known, self.used)
            case Stage.WAITING:
                return (self._known,)
            case Stage.IGNORED:
                raise ValueError("an ignored pod is not booked")


def _beyond(sums: Amounts, others: Amounts) -> dict[DeviceKey, int]:
    over = {key: amount - others.get(key, 0) for key, amount in sums.items()}
    return {key: amount for key, amount in over.items() if amount}
