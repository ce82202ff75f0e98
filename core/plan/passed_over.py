"""What pods are told that were not looked at themselves: as others that ask for the same, or as who comes before them."""

from collections.abc import Hashable, Mapping
from dataclasses import replace

from core.plan.decision import Hold
from core.plan.turn import Turn
from core.queues.access import not_allowed
from core.queues.entry import Entry


def like_others(entry: Entry, held: Mapping[Hashable, Hold], turn: Turn) -> Hold | None:
    """What a pod is told that was not looked at itself; None where that is still to come."""
    if turn.head is not None:
        return behind(entry, turn.head)
    like = held.get(entry.wish)
    return None if like is None else Hold(entry.pod, like.queue, like.why, like.announced)


def behind(entry: Entry, head: Hold) -> Hold:
    """What a pod of a fifo queue is told while `head`, which comes before it, waits."""
    if not entry.allowed:
        return Hold(entry.pod, entry.queue, not_allowed(entry.queue, entry.pod.namespace))
    text = f"Queue <{entry.queue}> is first in, first out: behind {head.pod.key}, which waits: {head.why.message}"
    why = replace(head.why, message=text)
    return Hold(entry.pod, entry.queue, why, announced=False, behind=head.pod)
