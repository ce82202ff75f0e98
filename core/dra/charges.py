"""The claims that one account counts, each once, however many pods refer to it, and their sum."""

from collections.abc import Iterable, Mapping

from core.dra.amounts import Amounts, DeviceKey, most, total


class _Versions:
    """What the pods that refer to one claim are booked with, which has changed while not all of them are booked anew."""

    __slots__ = ("_pods",)

    def __init__(self, amounts: Amounts, pods: int) -> None:
        self._pods = [(amounts, pods)]

    def count(self, amounts: Amounts, sign: int) -> bool:
        """Counts a pod with these amounts, or one less; whether some came or went with that which no other pod has."""
        for place, (known, pods) in enumerate(self._pods):
            if known is amounts or known == amounts:
                self._pods[place] = known, pods + sign
                if pods + sign:
                    return False
                del self._pods[place]
                return True
        self._pods.append((amounts, 1))
        return True

    @property
    def only(self) -> bool:
        """Whether all pods are booked with the same."""
        return len(self._pods) == 1

    def cost(self) -> Amounts:
        """What is charged: nobody gets what one of the versions takes."""
        return self._pods[0][0] if self.only else most(amounts for amounts, _ in self._pods)


class Charges:
    """Claims with the number of pods that refer to them, and the sum of what they cost.

    A claim costs the same for every pod that refers to it, once; the most that any of them is booked with, while a change of the
    claim has not come to all of them.
    """

    __slots__ = ("_costs", "_holders", "_versions", "sums")

    def __init__(self) -> None:
        self._holders: dict[str, int] = {}
        self._costs: dict[str, Amounts] = {}
        self._versions: dict[str, _Versions] = {}
        self.sums: dict[DeviceKey, int] = {}

    def __contains__(self, claim: str) -> bool:
        return claim in self._holders

    def holders(self, claim: str) -> int:
        """How many pods refer to a claim."""
        return self._holders.get(claim, 0)

    def without(self, claims: Iterable[str]) -> Amounts:
        """The sum of all others than these claims."""
        here = [self._costs[claim] for claim in claims if claim in self._holders]
        if not here:
            return self.sums
        less = total(here)
        return {key: amount - less.get(key, 0) for key, amount in self.sums.items()}

    def add(self, claims: Mapping[str, Amounts]) -> None:
        """One more pod refers to these claims."""
        for claim, amounts in claims.items():
            had = self._holders.get(claim, 0)
            self._holders[claim] = had + 1
            if not had:
                self._costs[claim] = amounts
                self._sum(amounts, 1)
            elif claim in self._versions or self._costs[claim] != amounts:
                self._versions.setdefault(claim, _Versions(self._costs[claim], had))
                self._count(claim, amounts, 1)

    def remove(self, claims: Mapping[str, Amounts]) -> None:
        """One of the pods that refer to these claims does so no longer."""
        for claim, amounts in claims.items():
            self._holders[claim] -= 1
            if not self._holders[claim]:
                del self._holders[claim]
                self._sum(self._costs.pop(claim), -1)
            elif claim in self._versions:
                self._count(claim, amounts, -1)

    def _count(self, claim: str, amounts: Amounts, sign: int) -> None:
        """Counts a pod of a claim of which there are several versions, or one less."""
        versions = self._versions[claim]
        if not versions.count(amounts, sign):
            return
        self._sum(self._costs[claim], -1)
        self._costs[claim] = versions.cost()
        self._sum(self._costs[claim], 1)
        if versions.only:
            del self._versions[claim]

    def _sum(self, amounts: Amounts, sign: int) -> None:
        for key, amount in amounts.items():
            left = self.sums.get(key, 0) + sign * amount
            if left:
                self.sums[key] = left
            else:
                self.sums.pop(key, None)
