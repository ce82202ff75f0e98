"""The tree that queues form by their parents, and the chain from a queue up to the root.

It knows nothing of what is counted along a chain. The root is the end of every chain, whether there is a queue of that
name or not; a queue that names no parent is right below it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from core.names import ROOT_QUEUE

MAX_PARENTS: Final = 32
"""The most parents above one queue; more can only be a mistake."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A queue, its parent and so on, ending with the root.

    A broken chain holds what could be reached from the queue, and the root, below which every queue is in the end.
    """

    queues: tuple[str, ...]
    problem: str = ""
    """Where the chain is broken; empty when it is not."""

    @property
    def told(self) -> str:
        """The problem as it is told to whom waits in the queue; empty where there is none."""
        text = f"queue {self.queues[0]}: the chain of its parents is broken: {self.problem}"
        return text if self.problem else ""


def chain_of(name: str, parent_of: Callable[[str], str | None]) -> Chain:
    """The chain of a queue. `parent_of` gives the parent that a queue names, perhaps empty, None where there is no queue.

    A queue that does not exist itself counts as one that names no parent.
    """
    queues = [name]
    problem = ""
    while queues[-1] != ROOT_QUEUE and not problem:
        here = queues[-1]
        parent = parent_of(here) or ROOT_QUEUE
        if parent in queues:
            problem = f"queue {here} has the parent {parent}, which closes a circle"
        elif parent != ROOT_QUEUE and parent_of(parent) is None:
            problem = f"queue {here} has the parent {parent}, which does not exist"
        elif len(queues) > MAX_PARENTS:
            problem = f"queue {name} has more than {MAX_PARENTS} parents above it"
        else:
            queues.append(parent)
    return Chain((*queues, ROOT_QUEUE) if problem else tuple(queues), problem)


class QueueTree:
    """The parents of all queues, and below each queue those that name it."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._children: dict[str, set[str]] = {}

    def put(self, name: str, parent: str) -> bool:
        """Takes in a queue and the parent that it names, perhaps empty; returns whether it is new or names another one."""
        if self._parents.get(name) == parent:
            return False
        self.drop(name)
        self._parents[name] = parent
        self._children.setdefault(parent or ROOT_QUEUE, set()).add(name)
        return True

    def drop(self, name: str) -> None:
        """Takes out a queue; those that name it as their parent have a broken chain until it is back."""
        parent = self._parents.pop(name, None)
        if parent is not None:
            siblings = self._children[parent or ROOT_QUEUE]
            siblings.discard(name)
            if not siblings:
                del self._children[parent or ROOT_QUEUE]

    def chain(self, name: str) -> Chain:
        """The chain of a queue, as the tree is now."""
        return chain_of(name, self._parents.get)

    def children(self, name: str) -> Iterable[str]:
        """The queues right below one."""
        return self._children.get(name, ())

    def subtree(self, name: str) -> Iterable[str]:
        """The queue and all that are below it, each once even where parents form a circle."""
        found = {name: None}
        waiting = [name]
        while waiting:
            children = [child for child in self._children.get(waiting.pop(), ()) if child not in found]
            found.update(dict.fromkeys(children))
            waiting += children
        return found
