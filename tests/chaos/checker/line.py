"""The order of a queue with `dequeueStrategy: fifo`: while the first in line waits, nobody behind it is let in."""

from collections.abc import Iterator, Sequence

from tests.chaos.checker import books, terms
from tests.chaos.checker.history import Change, World
from tests.chaos.checker.log import Entry, Object
from tests.chaos.checker.terms import Terms, Violation
from tests.chaos.checker.times import Calm


def fifo(queue: Object | None) -> bool:
    """Whether a queue lets its pods in in their order."""
    return ((queue or {}).get("spec") or {}).get("dequeueStrategy") == "fifo"


def place(pod: Object) -> tuple[int, str, str]:
    """The place of a pod in its line: by priority, then by age, then by name."""
    metadata = pod["metadata"]
    priority = int(pod["spec"].get("priority") or 0)
    return -priority, metadata.get("creationTimestamp", ""), f"{metadata.get('namespace')}/{metadata['name']}"


def stands_in_line(pod: Object) -> bool:
    """Whether a pod waits for cards alone: not for other members of a gang, nor for the gates of others.

    Who waits for something of its own keeps nobody waiting.
    """
    gates = pod["spec"].get("schedulingGates") or ()
    return (
        bool(books.alternatives(pod))
        and books.gated(pod)
        and len(gates) == 1
        and not books.terminating(pod)
        and not _in_gang(pod)
    )


def ahead(pod: Object, world: World, default: str) -> Iterator[Object]:
    """Those who stand in the line of this pod's queue before it."""
    queue = books.queue_of(pod, world, default)
    for other in world.all("pods"):
        if (
            stands_in_line(other)
            and books.queue_of(other, world, default) == queue
            and place(other) < place(pod)
        ):
            yield other


def _in_gang(pod: Object) -> bool:
    return terms.GROUP_NAME in books.annotations(pod) or terms.GANG in books.annotations(pod)


class Line:
    """Feed every change in order; then ask who was passed by."""

    def __init__(self, entries: Sequence[Entry], calm: Calm, given: Terms) -> None:
        self._calm = calm
        self._terms = given
        self._refused = {
            f"{entry.namespace}/{entry.name}"
            for entry in entries
            if entry.user == given.controller and entry.resource == "pods" and not entry.accepted
        }
        """Pods of which a write of the leader was not taken in: such a lift is tried again later, and others go first."""
        self._known: dict[str, float] = {}
        self._left: dict[str, float] = {}
        self._passed: list[tuple[Change, Object]] = []
        self.judged = 0
        """How many were let in of whom it was asked whether somebody stood before them."""

    def at(self, change: Change, world: World) -> None:
        """Takes note of this change."""
        if change.kind != "pods":
            return
        self._known.setdefault(change.uid, change.entry.ended)
        pod = change.after
        if pod is None or not stands_in_line(pod):
            self._left.setdefault(change.uid, change.entry.ended)
        if pod is None or change.before is None or _in_gang(pod):
            return
        queue = world.named("queues").get(books.queue_of(pod, world, self._terms.default_queue))
        if books.holds(pod) and stands_in_line(change.before) and fifo(queue):
            self.judged += 1
            self._passed += [(change, other) for other in ahead(pod, world, self._terms.default_queue)]

    def passed_by(self) -> Iterator[Violation]:
        """Those who were known to stand before somebody who was let in, and went on waiting.

        Of two whose lifts are under way at once either may be stored first, so whoever follows soon has not been passed by; and
        where somebody was disturbed he may follow once that is over.
        """
        for change, other in self._passed:
            uid, metadata = other["metadata"]["uid"], other["metadata"]
            about = f"{metadata.get('namespace')}/{metadata['name']}"
            entry = change.entry
            if about in self._refused or self._known[uid] >= self._calm.known_since(
                entry.began, self._terms.known_after_s
            ):
                continue
            due = self._calm.calm_from(entry.ended, self._terms.prompt_s) + self._terms.prompt_s
            if self._left.get(uid, float("inf")) > due:
                text = f"let in before {about}, who stands before it in the line of the queue"
                yield Violation("line", entry.ended, change.about, text, change.proof)
