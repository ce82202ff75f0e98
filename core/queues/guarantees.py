"""What queues are guaranteed where they form a tree: the guarantee of a queue is a part of that of the one above it."""

from collections.abc import Callable
from itertools import pairwise

from core.hierarchy import MAX_PARENTS, QueueTree
from core.queues.amounts import Amounts, beyond, total


class Guarantees:
    """`own` gives what a queue says itself. What was asked for is kept until `clear`."""

    def __init__(self, tree: QueueTree, own: Callable[[str], Amounts]) -> None:
        self._tree = tree
        self._own = own
        self._found: dict[str, Amounts] = {}

    def clear(self) -> None:
        """A guarantee or a parent has changed."""
        self._found.clear()

    def of(self, name: str) -> Amounts:
        """What a queue is guaranteed, or those below it together, whichever is more."""
        found = self._found.get(name)
        if found is None:
            # Known from now on, for queues whose parents form a circle.
            found = self._found[name] = self._own(name)
            if len(self._tree.chain(name).queues) <= MAX_PARENTS:
                below = total(self.of(each) for each in self._tree.children(name))
                found = {key: max(found.get(key, 0), below.get(key, 0)) for key in {**found, **below}}
                self._found[name] = found
        return found

    def real(self, cluster: Amounts, name: str) -> Amounts:
        """What a queue could have: of what the one above it could, what is guaranteed to no other, and its own guarantee."""
        real = cluster
        for parent, queue in pairwise(self._tree.chain(name).queues[::-1]):
            # Of a chain that is broken the last queue is no child of the root.
            together = {*self._tree.children(parent), queue} - {parent}
            beside = total(self.of(each) for each in together)
            left, own = beyond(real, beside), self.of(queue)
            real = {key: left.get(key, 0) + own.get(key, 0) for key in {**real, **own}}
        return real
