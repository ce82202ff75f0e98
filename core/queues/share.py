"""How full a queue is, by which queues are put in order."""

from core.queues.ledger import Ledger


def share_of(ledger: Ledger, queue: str) -> float:
    """The largest part of what the queue deserves that is allocated or reserved; for order and display only.

    Of each card it deserves its quota, of an mGPU resource and of devices its limit, of CPU and memory what it names, as
    far as the cluster can give that.
    """
    limits = ledger.limits.get(queue)
    if limits is None:
        return 0.0
    parts = [ledger.devices.book.share(queue)]
    bounds = [*limits.cards.items(), *limits.shares.items()]
    used = ledger.used if ledger.subtrees is None else ledger.subtrees.used
    parts += [used(queue, key) / limit for key, limit in bounds if limit > 0]
    deserved = ledger.capacity.deserved(queue)
    parts += [ledger.cpu_memory.used(queue, key) / limit for key, limit in deserved.items() if limit > 0]
    return max(parts)
