"""The attributes of all queues, from all objects at once: for people to look at, not for decisions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from core.objects import Group, Pod
from core.queues.attributes import Attributes, attributes
from core.queues.ledger import Ledger
from core.queues.usage import GroupUsage, card_resources, cluster_total, group_usage, pod_usage


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
        by_queue[key[0]].append(group_usage(groups[key], weighed, known, settings))
    cluster = cluster_total(ledger.nodes.values(), inventory.totals())
    return attributes(cluster, ledger.queues.values(), by_queue, unset=settings.cards.unset_cpu_memory)
