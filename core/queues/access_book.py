"""Whose pods may use which queue, kept for those of whom it decides something: a change is compared with what it concerns alone."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from core.index import Index
from core.objects import Namespace, Pod, Queue
from core.queues.access import access_of, may_use, not_allowed
from core.queues.entry import Entry
from core.refusal import Refusal
from core.sharded import Sharded, in_parts
from core.stage import Stage

P = TypeVar("P", bound="dict[str, _Pair]")

_QUEUE: Final = "queue "
_NAMESPACE: Final = "namespace "


@dataclass(slots=True)
class _Pair:
    """The pods of one namespace that are to be let in by one queue, and whether they may; None to be found out again."""

    allowed: bool | None
    pods: dict[str, None] = field(default_factory=dict)


class AccessBook:
    """Follows queues, namespaces, pods that are still to be let in, and those that nobody ever let in.

    Every change returns the UIDs of those pods that may be judged otherwise from now on. What is kept goes with the last of
    them that it is about. `queues` are those that exist; a queue that does not is closed to nobody, something else is
    said of it.
    """

    def __init__(self, queues: Mapping[str, Queue], access: str) -> None:
        self._queues = queues
        self._access = access
        self._labels: dict[str, Mapping[str, str]] = {}
        self._by_queue = Sharded[dict[str, _Pair]]()
        self._by_namespace: dict[str, Sharded[_Pair]] = {}
        self._past = Index()
        """Those that came with a node past everybody, by their namespaces and by the queues that are named to them."""

    def allows(self, queue: str, namespace: str) -> bool:
        """Whether pods of a namespace may use a queue. A namespace that has not been seen yet has no labels."""
        pair = self._by_queue.get(queue, {}).get(namespace)
        if pair is None:
            return self._judge(queue, namespace)
        if pair.allowed is None:
            pair.allowed = self._judge(queue, namespace)
        return pair.allowed

    def refusal(self, queue: str, namespace: str) -> Refusal | None:
        """Why pods of a namespace may not use a queue; None when they may."""
        return None if self.allows(queue, namespace) else not_allowed(queue, namespace)

    def book(self, entry: Entry) -> None:
        """Follows a pod from now on, if it is still to be let in."""
        if not asks_admission(entry.stage, entry.pod):
            return
        queue, namespace, uid = entry.queue, entry.pod.namespace, entry.pod.uid
        in_queue = self._by_queue.opened(queue, dict)
        pair = in_queue.get(namespace)
        if pair is None:
            pair = in_queue[namespace] = _Pair(entry.allowed)
            self._by_namespace.setdefault(namespace, Sharded()).add(queue, pair)
        pair.pods[uid] = None
        pair.pods = in_parts(pair.pods)

    def unbook(self, entry: Entry) -> None:
        """Takes out what `book` took in."""
        if asks_admission(entry.stage, entry.pod):
            self.let_in(entry)

    def let_in(self, entry: Entry) -> None:
        """The same of a pod that has been followed so far."""
        queue, namespace = entry.queue, entry.pod.namespace
        pair = self._by_queue[queue][namespace]
        del pair.pods[entry.pod.uid]
        if not pair.pods:
            _drop(self._by_queue, queue, namespace)
            _drop(self._by_namespace, namespace, queue)

    def follow_past(self, uid: str, namespace: str, queues: Collection[str]) -> None:
        """Follows a pod that came with a node past everybody, and is charged to the first of these queues that it may use.

        That is in place of those that were said before; none for a pod of which this decides nothing (any more).
        """
        of_namespace = (_NAMESPACE + namespace,) if queues else ()
        self._past.put(uid, *of_namespace, *(_QUEUE + queue for queue in queues))

    def queue_changed(self, name: str, old: Queue | None, new: Queue | None) -> Collection[str]:
        """Takes note of a queue that came, changed or went (None)."""
        if self._says(old) == self._says(new):
            return ()
        return [*self._ask_again(self._by_queue.get(name, {}).values()), *self._past.get(_QUEUE + name)]

    def put_namespace(self, namespace: Namespace) -> Collection[str]:
        """Takes in a namespace; most of its changes leave the labels as they are."""
        if self._labels.get(namespace.name) == namespace.labels:
            return ()
        self._labels[namespace.name] = namespace.labels
        return self._relabelled(namespace.name)

    def drop_namespace(self, name: str) -> Collection[str]:
        """Takes out a namespace."""
        return self._relabelled(name) if self._labels.pop(name, None) is not None else ()

    def _relabelled(self, namespace: str) -> Collection[str]:
        """Labels count only in queues that select by them; the verdict is the same more often than not."""
        changed: list[_Pair] = []
        for name, pair in self._by_namespace.get(namespace, {}).items():
            queue = self._queues.get(name)
            selects = queue is not None and access_of(queue).selected is not None
            if selects and pair.allowed is not self._judge(name, namespace):
                changed.append(pair)
        return [*self._ask_again(changed), *self._past.get(_NAMESPACE + namespace)]

    def _says(self, queue: Queue | None) -> object:
        """What the verdicts on a queue follow from; None where everybody may use it."""
        if queue is None or (self._access == "open" and not access_of(queue).stated):
            return None
        return queue.namespaces, queue.namespace_selector

    def _judge(self, name: str, namespace: str) -> bool:
        queue = self._queues.get(name)
        return queue is None or may_use(queue, namespace, self._labels.get(namespace), self._access)

    @staticmethod
    def _ask_again(pairs: Collection[_Pair]) -> list[str]:
        found: list[str] = []
        for pair in pairs:
            pair.allowed = None
            found += pair.pods
        return found


def asks_admission(stage: Stage, pod: Pod) -> bool:
    """Whether a pod is still to be let in: at our gate, or at its bind where no gate of ours holds it."""
    return stage is Stage.WAITING or (stage is Stage.RESERVED and not pod.let_in)


def _drop(pairs: dict[str, P], first: str, second: str) -> None:
    inner = pairs[first]
    del inner[second]
    if not inner:
        del pairs[first]
