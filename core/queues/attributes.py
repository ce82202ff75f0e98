"""What a queue may use, should have and does use: the figures by which queues are compared and shown.

All queues are on one level, whatever `spec.parent` says. The card quota is limit, guarantee and deserved share in one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from core.objects import Queue
from core.queues.amounts import CPU_AND_MEMORY, Amounts, beyond, cpu_memory, total
from core.queues.limits import limits_of
from core.queues.usage import GroupUsage

Unset = Literal["cluster", "zero"]
"""What a queue may use of CPU or memory when its capability does not name it: what the cluster has left, or nothing."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """One queue, in thousandths; keys as of `Amounts`. A card that is absent equals zero.

    `capability` is what checks go by. CPU or memory is absent there only when it is not limited: the queue does not name
    it, and no node tells how much of it there is. `total_guarantee` is that of all queues together. What is asked for
    with a choice still open is found under the whole expression.
    """

    capability: Amounts
    guarantee: Amounts
    total_guarantee: Amounts
    real_capability: Amounts
    deserved: Amounts
    allocated: Amounts
    request: Amounts
    inqueue: Amounts
    elastic: Amounts
    share: Fraction


def attributes(
    cluster: Amounts, queues: Iterable[Queue], groups: Mapping[str, Sequence[GroupUsage]], *, unset: Unset
) -> dict[str, Attributes]:
    """The attributes of each queue by its name.

    `cluster` as by `usage.cluster_total`; `groups` are those that charge each queue, pods without a group among them.
    """
    listed = [(queue, limits_of(queue).cards) for queue in queues]
    guarantees = {queue.name: {**cpu_memory(queue.guarantee), **cards} for queue, cards in listed}
    guaranteed = total(guarantees.values())
    return {
        queue.name: _queue(
            queue, cards, cluster, guarantees[queue.name], guaranteed, groups.get(queue.name, ()), unset
        )
        for queue, cards in listed
    }


def _queue(
    queue: Queue,
    cards: Amounts,
    cluster: Amounts,
    guarantee: Amounts,
    guaranteed: Amounts,
    groups: Sequence[GroupUsage],
    unset: Unset,
) -> Attributes:
    real = real_capability(cluster, guaranteed, guarantee)
    deserved = deserved_of({**cpu_memory(queue.deserved), **cards}, real, guarantee)
    allocated = total(group.allocated for group in groups)
    return Attributes(
        capability={**cpu_memory_capability(queue, real, unset), **cards},
        guarantee=guarantee,
        total_guarantee=guaranteed,
        real_capability=real,
        deserved=deserved,
        allocated=allocated,
        request=total(group.request for group in groups),
        inqueue=total(group.inqueue for group in groups),
        elastic=total(group.elastic for group in groups),
        share=share_of(allocated, deserved),
    )


def cpu_memory_capability(queue: Queue, real: Amounts, unset: Unset) -> dict[str, int]:
    """The queue's limits of CPU and memory; one that is absent does not limit."""
    otherwise = cpu_memory(real) if unset == "cluster" else dict.fromkeys(CPU_AND_MEMORY, 0)
    return {**otherwise, **cpu_memory(queue.capability)}


def real_capability(cluster: Amounts, guaranteed: Amounts, guarantee: Amounts) -> dict[str, int]:
    """What the cluster has beyond all guarantees (`guaranteed`), and the queue's own guarantee on top."""
    left = beyond(cluster, guaranteed)
    return {key: left.get(key, 0) + guarantee.get(key, 0) for key in {**cluster, **guarantee}}


def deserved_of(wanted: Amounts, real: Amounts, guarantee: Amounts) -> dict[str, int]:
    """What the queue wants, up to what it could really have, but at least its guarantee."""
    possible = {key: min(milli, real.get(key, milli)) for key, milli in wanted.items()}
    return {key: max(possible.get(key, 0), guarantee.get(key, 0)) for key in {**possible, **guarantee}}


def share_of(allocated: Amounts, deserved: Amounts) -> Fraction:
    """The largest part of what is deserved that is in use; above 1 beyond it, 0 where nothing is deserved."""
    return max(
        (Fraction(allocated.get(key, 0), milli) for key, milli in deserved.items() if milli > 0),
        default=Fraction(0),
    )
