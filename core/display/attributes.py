"""What a queue may use, should have and does use: the figures by which queues are compared and shown.

All queues are on one level, whatever `spec.parent` says, but where a tree is given. The card quota is limit, guarantee and
deserved share in one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.hierarchy import QueueTree
from core.names import ROOT_QUEUE
from core.objects import Group, Pod, Queue
from core.queues.amounts import Amounts, cpu_memory, total
from core.queues.capacity import Unset, cpu_memory_capability, deserved_of, real_capability
from core.queues.guarantees import Guarantees
from core.queues.ledger import Ledger
from core.queues.limits import limits_of
from core.queues.usage import GroupUsage, card_resources, cluster_total, group_usage, pod_usage


@dataclass(frozen=True, slots=True)
class Attributes:
    """One queue, in thousandths; keys as of `Amounts`. A card that is absent equals zero.

    `capability` is what checks go by. CPU or memory is absent there only when it is not limited: the queue does not name
    it, and no node tells how much of it there is. What is asked for with a choice still open is found under the whole expression.
    """

    capability: Amounts
    guarantee: Amounts
    real_capability: Amounts
    deserved: Amounts
    allocated: Amounts
    request: Amounts
    inqueue: Amounts
    elastic: Amounts


def overview(ledger: Ledger, pods: Iterable[Pod]) -> Mapping[str, Attributes]:
    """Every queue that exists, by name; `pods` are all pods, those that the ledger leaves out too."""
    settings, inventory = ledger.settings, ledger.inventory
    known = card_resources(inventory)
    members: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    groups: dict[tuple[str, str], Group | None] = {}
    for pod in pods:
        group = ledger.group_of(pod)
        key = (ledger.attribution(pod).queue, group.key if group else pod.uid)
        members[key].append(pod)
        groups[key] = group
    by_queue: dict[str, list[GroupUsage]] = defaultdict(list)
    for key, together in members.items():
        weighed = [pod_usage(pod, inventory, known, settings, ledger.stages) for pod in together]
        usage = group_usage(groups[key], weighed, known, settings)
        for queue in ledger.with_those_above(key[0]):
            by_queue[queue].append(usage)
    cluster = cluster_total(ledger.nodes.values(), inventory.totals())
    tree = ledger.tree if settings.cards.hierarchy else None
    unset = settings.cards.unset_cpu_memory
    return attributes(cluster, ledger.queues.values(), by_queue, unset=unset, tree=tree)


def attributes(
    cluster: Amounts,
    queues: Iterable[Queue],
    groups: Mapping[str, Sequence[GroupUsage]],
    *,
    unset: Unset,
    tree: QueueTree | None = None,
) -> dict[str, Attributes]:
    """The attributes of each queue by its name.

    `cluster` as by `usage.cluster_total`; `groups` are those that charge each queue, pods without a group among them. With a
    `tree` they are those of the queues below as well, and what is guaranteed counts nothing twice.
    """
    listed = [(queue, limits_of(queue).cards) for queue in queues]
    guarantees = {queue.name: {**cpu_memory(queue.guarantee), **cards} for queue, cards in listed}
    guaranteed = total(guarantees.values())
    levels = None if tree is None else Guarantees(tree, lambda name: guarantees.get(name, {}))
    if levels is not None:
        guaranteed = dict(levels.of(ROOT_QUEUE))
    found = {}
    for queue, cards in listed:
        name, own = queue.name, guarantees[queue.name]
        real = levels.real(cluster, name) if levels is not None else real_capability(cluster, guaranteed, own)
        found[name] = _queue(queue, cards, real, own, groups.get(name, ()), unset)
    return found


def _queue(
    queue: Queue,
    cards: Amounts,
    real: Amounts,
    guarantee: Amounts,
    groups: Sequence[GroupUsage],
    unset: Unset,
) -> Attributes:
    return Attributes(
        capability={**cpu_memory_capability(queue, real, unset), **cards},
        guarantee=guarantee,
        real_capability=real,
        deserved=deserved_of({**cpu_memory(queue.deserved), **cards}, real, guarantee),
        allocated=total(group.allocated for group in groups),
        request=total(group.request for group in groups),
        inqueue=total(group.inqueue for group in groups),
        elastic=total(group.elastic for group in groups),
    )
