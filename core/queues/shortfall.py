"""Why something does not fit a queue, in the words that users have in their alerts.

The texts of the five oldest reasons are those of Volcano's own card plugin: angle brackets are literal, cards are counted
in thousandths.
"""

from collections.abc import Sequence
from typing import Final

from core import names, reasons
from core.objects import Group, Pod, Queue
from core.queues.limits import Limits
from core.queues.numbers import go_float
from core.queues.whole import Use, in_cards, in_units
from core.refusal import Refusal

_TOLD: Final = 3
"""Gates that are named; a pod may carry any number."""


def card_shortage(
    queue: str,
    limits: Limits,
    card: str,
    milli: int,
    total: int,
    limit: int,
    *,
    denied: str,
    uses: Sequence[Use] = (),
) -> Refusal:
    """What is said when `milli` more of a card would make `total`, beyond `limit`.

    `denied` is the step that is not taken: `allocate` for a pod, `enqueue` for a group. `uses` tells of each card
    that would do, where there are several.
    """
    requested = go_float(milli)
    if limits.malformed:
        return Refusal(
            reasons.CARD_QUOTA_MALFORMED,
            f"Queue <{queue}> has no cards, its card quota cannot be read: {limits.malformed}; "
            f"requested <{requested}> of <{card}>",
        )
    if not limits.declared:
        return Refusal(
            reasons.EMPTY_QUEUE_CAPABILITY,
            f"Queue <{queue}> capability <cpu 0.00, memory 0.00> is empty, deny it to {denied}: "
            f"requested <{requested}> of <{card}>. The queue has no card quota: set {names.CARD_QUOTA_ANNOTATION} on it.",
        )
    short = _short_of(queue, card, requested, go_float(total), go_float(limit))
    told = in_cards(milli, uses or (Use(card, total - milli, limit),))
    return Refusal(reasons.INSUFFICIENT_SCALAR_QUOTA, f"{short}. {told}")


def share_shortage(queue: str, key: str, milli: int, total: int, limit: int) -> Refusal:
    """The same of an mGPU resource."""
    short = _short_of(queue, key, str(milli), str(total), str(limit))
    told = in_units(key, milli, total - milli, limit)
    return Refusal(reasons.INSUFFICIENT_SCALAR_QUOTA, f"{short}. {told}")


def scalar_shortage(queue: str, key: str, requested: str, total: str, limit: str) -> Refusal:
    """What is said when a key is asked for beyond its limit; the numbers as they are to be shown."""
    return Refusal(reasons.INSUFFICIENT_SCALAR_QUOTA, _short_of(queue, key, requested, total, limit))


def _short_of(queue: str, key: str, requested: str, total: str, limit: str) -> str:
    return (
        f"Queue <{queue}> has insufficient <{key}> quota: requested <{requested}>, "
        f"total would be <{total}>, but capability is <{limit}>"
    )


def uncountable(queue: str, problem: str) -> Refusal:
    """What is said when nobody can tell how much a pod asks for."""
    return Refusal(
        reasons.GET_TASK_REQUEST_RESOURCE_FAILED,
        f"Get request resource failed, Queue <{queue}>, error: {problem}",
    )


def queue_missing(queue: str, near: str = "") -> Refusal:
    """What is said when the queue that a pod charges is not there; `near` is the one that may have been meant."""
    meant = f"; did you mean <{near}>?" if near else ""
    text = f"Queue <{queue}> does not exist; the pod waits until it is created{meant}"
    return Refusal(reasons.QUEUE_NOT_FOUND, text)


def queue_closed(queue: Queue) -> Refusal:
    """What is said when a queue is not open."""
    return Refusal(reasons.QUEUE_NOT_OPEN, f"Queue <{queue.name}> is {queue.state}; it takes in no pods")


def card_not_named(queue: str, pod: Pod) -> Refusal:
    """What is said of a pod that waits for a card, when neither it nor its namespace says which."""
    asked = ", ".join(f"<{resource}>" for resource in sorted(pod.extended)[:_TOLD])
    text = (
        f"Queue <{queue}>: {asked} is asked for without a card name; name it with {names.CARD_NAME_ANNOTATION} on the "
        f"pod, or with {names.DEFAULT_CARD_ANNOTATION} on namespace {pod.namespace}"
    )
    return Refusal(reasons.CARD_NAME_MISSING, text)


def gang_malformed(queue: str, problem: str) -> Refusal:
    """What is said of a pod whose gang cannot be told, for it came past the webhook that refuses such."""
    text = f"Queue <{queue}>: nobody can tell with whom the pod starts: annotation {problem}"
    return Refusal(reasons.GANG_MALFORMED, text)


def gang_too_small(queue: str, group: Group, size: int) -> Refusal:
    """What is said of a pod whose gang is smaller than the PodGroup by which its scheduler goes."""
    text = (
        f"Queue <{queue}>: {names.GANG_SIZE_ANNOTATION} says {size}, and {group.title} has a "
        f"{group.minimum_field} of {group.min_member}: the scheduler would start none of so few"
    )
    return Refusal(reasons.GANG_MALFORMED, text)


def waits_for_others(queue: str, gates: Sequence[str]) -> Refusal:
    """What is said when gates have to go before ours."""
    text = f"Queue <{queue}>: {_gates_left(gates)}; quota is given once ours is the last"
    return Refusal(reasons.OTHER_GATES, text)


def held_by_others(gates: Sequence[str]) -> Refusal:
    """What is said of a pod that no quota is given to, when gates have to go."""
    text = f"{_gates_left(gates)}; no scheduler looks at the pod before they are gone"
    return Refusal(reasons.OTHER_GATES, text)


def _gates_left(gates: Sequence[str]) -> str:
    told = ", ".join(f"<{gate}>" for gate in gates[:_TOLD])
    more = f" and {len(gates) - _TOLD} more" if len(gates) > _TOLD else ""
    return f"scheduling gates of others are left: {told}{more}"
