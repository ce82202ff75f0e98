"""In which queues pods wait that refer to a claim. Of a claim that is shared there may be thousands of them."""

from collections.abc import Iterable


class AwaitedClaims:
    """Counts by claim, `namespace/name`, and queue, so that asking about a claim costs its queues, not its users."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, int]] = {}

    def queues(self, claims: Iterable[str]) -> set[str]:
        """Those in which a pod waits that refers to any of these claims."""
        return {queue for claim in claims for queue in self._waiting.get(claim, ())}

    def wait(self, queue: str, claims: Iterable[str]) -> None:
        """A pod waits in a queue that refers to these claims, each of them once."""
        for claim in claims:
            queues = self._waiting.setdefault(claim, {})
            queues[queue] = queues.get(queue, 0) + 1

    def leave(self, queue: str, claims: Iterable[str]) -> None:
        """One that waited there with these claims does so no more."""
        for claim in claims:
            queues = self._waiting[claim]
            queues[queue] -= 1
            if not queues[queue]:
                del queues[queue]
            if not queues:
                del self._waiting[claim]
