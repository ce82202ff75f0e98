"""Who uses what: every pod that asks for something of ours, the queue it charges, and the sums.

The ledger is derived from API objects alone and follows them one change at a time; each change costs what it
touches, not what exists. What the controller has decided but the watch has not shown yet is laid over the observed
pods (`assume`) and taken back when the write fails (`forget`).
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from operator import attrgetter
from typing import Final

from core.cards.discovery import CardStock
from core.cards.expression import BAR, split
from core.cards.inventory import Inventory
from core.index import Index
from core.names import MGPU_RESOURCES
from core.objects import Group, Job, Namespace, Node, Pod, Queue
from core.queues.access_book import AccessBook, asks_admission
from core.queues.attribution import Attribution
from core.queues.capacity import Capacity
from core.queues.cpu_memory_book import CpuMemoryBook
from core.queues.demand import Demand, demand_of
from core.queues.devices import Devices
from core.queues.entries import Entries
from core.queues.entry import Entry
from core.queues.group_book import GroupBook
from core.queues.limits import Limits, limits_of
from core.queues.occupants import Occupants, occupies
from core.queues.sources import QueueSources
from core.queues.usage import card_resources, cpu_memory_of
from core.queues.wakeups import Wakeups
from core.settings import Settings
from core.stage import Stage, holds_quota, stage_of
from core.steps import Steps

AT_ONCE: Final = 64
"""So many pods are booked anew in the very event that asks for it; more of them wait for `settle`."""
_IN_ONE_STEP: Final = 8

_terms = attrgetter("card_quota", "capability", "state", "fifo", "has_capability")


class Ledger:
    """The books of all queues. Not safe for use from several threads.

    `queues`, `limits`, `accounts` and `nodes` are read by name; a queue that does not exist has an account as long as
    pods charge it. `capacity` and `cpu_memory` say what queues may use and use of CPU and memory, `devices` the same of
    the devices that pods claim; claims and their templates are put there. `access` says who may use which queue. `wakeups` is
    told what each change may have helped. `changes` grows with every change, whoever made it.

    A change that concerns many pods (a namespace or a PodGroup that names another queue, a queue that is closed to many, a
    card that is another resource)
    is taken in at once; the pods that it concerns are booked anew by `settle`, and until then as they were before.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.wakeups = Wakeups()
        self.inventory = Inventory(settings.cards.resources)
        self.occupants = Occupants()
        self.groups = GroupBook()
        self.nodes: dict[str, Node] = {}
        self.nodes_version = 0
        """Grows whenever a node comes, changes or goes, but not with its pods."""
        self.changes = 0
        self.queues: dict[str, Queue] = {}
        self.limits: dict[str, Limits] = {}
        self.access = AccessBook(self.queues, settings.queue.access)
        self._entries = Entries(self.wakeups, self.queues, self.access)
        self.accounts = self._entries.accounts
        self.capacity = Capacity(settings.cards.unset_cpu_memory)
        self.cpu_memory = CpuMemoryBook()
        self.devices = Devices(settings, self.wakeups.changed)
        self._sources = QueueSources(settings.queue.default)
        self._pods: dict[str, Pod] = {}
        self._assumed: dict[str, Pod] = {}
        self._unsettled: dict[str, None] = {}
        self._by_card = Index()
        self._unnamed = Index()
        """Pods that may turn out to ask for a card without naming it, by resource."""
        self._card_resources: frozenset[str] = frozenset()

    # -- what others read ------------------------------------------------------------------------------------

    def entry(self, uid: str) -> Entry | None:
        """The books' view of a pod: as assumed where a decision is under way, else as observed."""
        return self._entries.by_uid.get(uid)

    def current(self, entry: Entry) -> Entry | None:
        """The entry of the pod as it is now; None when what decides about the pod is not what it was."""
        now = self.entry(entry.pod.uid)
        return now if now is entry or (now is not None and entry.alike(now)) else None

    def entries(self) -> Iterable[Entry]:
        """Every pod in the books, in the order in which they were first seen."""
        return self._entries.by_uid.values()

    def assumed(self, uid: str) -> Pod | None:
        """A pod as a decision under way has left it; None where there is none, or the watch has shown its outcome."""
        return self._assumed.get(uid)

    def observed(self, uid: str) -> Pod | None:
        """A pod as the cluster has it, whatever was decided meanwhile."""
        return self._pods.get(uid)

    def pod(self, uid: str) -> Pod | None:
        """A pod as assumed, else as observed; CPU pods included."""
        return self._assumed.get(uid) or self._pods.get(uid)

    def pods_on(self, node: str) -> list[Pod]:
        """The pods that occupy a node physically, in the order in which they came."""
        found = (self.pod(uid) for uid in self.occupants.on(node))
        return [pod for pod in found if pod is not None]

    def used(self, queue: str, key: str) -> int:
        """What a queue has allocated and reserved of one key."""
        account = self.accounts.get(queue)
        return account.used(key) if account is not None else 0

    def reserved(self, key: str) -> int:
        """What all queues together have reserved of one key."""
        return self._entries.reserved(key)

    @property
    def reserved_shares(self) -> Mapping[str, Entry]:
        """The mGPU pods that are lifted but have no node yet, by UID."""
        return self._entries.shares

    @property
    def reserved_shares_changes(self) -> int:
        """Grows whenever one of them comes, changes or goes."""
        return self._entries.shares_changes

    def waiting(self, queue: str) -> list[Entry]:
        """The waiting pods of a queue in the order in which they are considered."""
        account = self.accounts.get(queue)
        return account.line.entries() if account is not None else []

    def group_of(self, pod: Pod) -> Group | None:
        """The PodGroup that a pod names, None while it does not exist."""
        return self._sources.group_of(pod)

    def queues_with(self, group: str) -> Collection[str]:
        """The queues in which members of a PodGroup, `namespace/name`, wait."""
        return self._entries.queues_with(group)

    def members(self, group: Group) -> list[Pod]:
        """All pods of a PodGroup, those that ask for nothing of ours and those that have ended too."""
        found = (self.pod(uid) for uid in self._sources.members(group.key))
        return [pod for pod in found if pod is not None]

    def entries_of(self, group: str) -> Iterable[Entry]:
        """The books' view of the members of a PodGroup, `namespace/name`; of those that are in the books."""
        found = (self.entry(uid) for uid in self._sources.members(group))
        return (entry for entry in found if entry is not None)

    def attribution(self, pod: Pod) -> Attribution:
        """The queue that a pod charges: by its record where it was let in, else by the objects known now."""
        return self._sources.attribution(pod)

    def fix_queue(self, pod: Pod) -> str:
        """From now on a pod that was let in without a record charges the queue that it does now, whatever changes."""
        return self._sources.fix(pod)

    def release_queues(self) -> None:
        """Takes `fix_queue` back: the time of leading is over, and another leader has its own view of such pods."""
        self._rebook(self._sources.release())

    # -- pods ------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod as observed.

        Left out is a pod that asks for nothing of ours, uses nothing of a queue or a node, and belongs to no group.
        """
        if not (pod.asks or pod.gated or pod.group_name or occupies(pod) or holds_quota(pod)):
            self.drop_pod(pod.uid)
            return
        self.changes += 1
        self._pods[pod.uid] = pod
        assumed = self._assumed.get(pod.uid)
        if assumed is not None and _overtaken(assumed, pod):
            del self._assumed[pod.uid]
            assumed = None
        self._book(assumed or pod)

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod that is gone. Unknown UIDs are fine: a missed delete may be found twice."""
        self.changes += 1
        pod = self.pod(uid)
        self._pods.pop(uid, None)
        self._assumed.pop(uid, None)
        if pod is not None and self.groups.drop_pod(uid):
            self._group_changed(f"{pod.namespace}/{pod.group_name}")
        entry = self.entry(uid)
        if entry is not None:
            self._entries.replace(entry, None)
        self._sources.unfollow(uid)
        self._by_card.put(uid)
        self._unnamed.put(uid)
        self.wakeups.cpu_memory_freed(self.cpu_memory.drop(uid))
        self.devices.drop_pod(uid)
        self._left(self.occupants.drop(uid))

    def assume(self, pod: Pod) -> None:
        """Books a pod as it will be once the write under way, a lift or a bind, has gone through."""
        self.changes += 1
        self._assumed[pod.uid] = pod
        self.groups.put_pod(pod)
        old = self.entry(pod.uid)
        if old is None:
            self._book(pod)
            return
        if pod.bound:
            self._left(self.occupants.put(pod))
        # Neither write changes the queue, and a lift nothing of what a pod asks for that had no choice.
        lifts = old.stage is Stage.WAITING and not pod.bound and BAR not in pod.card_name
        self._enter(pod, old, self._entry_of(pod, old.attribution, old.demand if lifts else None))

    def forget(self, uid: str) -> None:
        """Takes an assumption back: the write has failed for good."""
        if self._assumed.pop(uid, None) is None:
            return
        if uid in self._pods:
            self._book(self._pods[uid])
        else:
            # Assumed before the watch showed the pod at all.
            self.drop_pod(uid)

    def retract(self, assumed: Pod) -> None:
        """Takes this very assumption back; nothing when another one, of a bind, has taken its place."""
        if self._assumed.get(assumed.uid) is assumed:
            self.forget(assumed.uid)

    def forget_all(self) -> None:
        """Takes every assumption back: the time of leading is over."""
        for uid in tuple(self._assumed):
            self.forget(uid)

    # -- what pods depend on -----------------------------------------------------------------------------------

    def put_queue(self, queue: Queue) -> None:
        """Takes in a queue; its waiting pods are looked at again when quota or state changed."""
        self.changes += 1
        old = self.queues.get(queue.name)
        self.queues[queue.name] = queue
        self.limits[queue.name] = limits_of(queue)
        self.wakeups.publish(queue.name)
        self.devices.put_queue(queue)
        if self.capacity.put_queue(queue):
            self.wakeups.capacity_changed()
        if old is None or _terms(old) != _terms(queue):
            self.wakeups.help(queue.name)
        self._rebook(self.access.queue_changed(queue.name, old, queue))

    def drop_queue(self, name: str) -> None:
        """Takes out a queue; its pods stay booked under its name and are charged when it comes back."""
        self.changes += 1
        old = self.queues.pop(name, None)
        self.limits.pop(name, None)
        self.devices.drop_queue(name)
        if self.capacity.drop_queue(name):
            self.wakeups.capacity_changed()
        self.wakeups.help(name)
        self.wakeups.publish(name)
        self._entries.forget_unused(name)
        self._rebook(self.access.queue_changed(name, old, None))

    def put_group(self, group: Group) -> None:
        """Takes in a PodGroup; its pods may charge another queue now, and fewer of them may be enough."""
        self.changes += 1
        self.groups.put_group(group)
        self._rebook(self._sources.put_group(group))
        self._group_changed(group.key)

    def drop_group(self, key: str) -> None:
        """Takes out a PodGroup; nothing holds its pods together any more."""
        self.changes += 1
        self.groups.drop_group(key)
        self._rebook(self._sources.drop_group(key))
        self._group_changed(key)

    def put_job(self, job: Job) -> None:
        """Takes in a Volcano Job; its pods may charge another queue now."""
        self.changes += 1
        self._rebook(self._sources.put_job(job))

    def drop_job(self, key: str) -> None:
        """Takes out a Volcano Job."""
        self.changes += 1
        self._rebook(self._sources.drop_job(key))

    def put_namespace(self, namespace: Namespace) -> None:
        """Takes in a namespace; its pods may charge another queue now, or may not use the one that they charge."""
        self.changes += 1
        judged_anew = self.access.put_namespace(namespace)
        self._rebook({**dict.fromkeys(self._sources.put_namespace(namespace)), **dict.fromkeys(judged_anew)})

    def drop_namespace(self, name: str) -> None:
        """Takes out a namespace."""
        self._sources.drop_namespace(name)
        self._rebook(self.access.drop_namespace(name))

    def put_node(self, node: Node) -> None:
        """Takes in a node. Pods are counted anew that are on it, and those of a card that is another resource now."""
        before = self.inventory.on_node(node.name)
        self.nodes[node.name] = node
        if self.capacity.put_node(node):
            self.wakeups.capacity_changed()
        remapped = self.inventory.put(node)
        self.occupants.node_changed(node.name)
        self._node_changed(node.name, before, remapped)

    def drop_node(self, name: str) -> None:
        """Takes out a node."""
        before = self.inventory.on_node(name)
        if self.nodes.pop(name, None) is not None:
            if self.capacity.drop_node(name):
                self.wakeups.capacity_changed()
            remapped = self.inventory.drop(name)
            self.occupants.node_gone(name)
            self._node_changed(name, before, remapped)

    # -- what is to be counted anew ------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether every pod is booked by what is known now."""
        return not self._unsettled

    def settle(self) -> Steps[None]:
        """Books anew the pods that changes of something else have left behind, however many come meanwhile."""
        while self._unsettled:
            for uid in tuple(islice(self._unsettled, _IN_ONE_STEP)):
                del self._unsettled[uid]
                self._book_again(uid)
            yield

    def _rebook(self, uids: Collection[str]) -> None:
        """Has pods booked anew: at once where they are few, else in `settle`."""
        if len(uids) + len(self._unsettled) > AT_ONCE:
            self._unsettled.update(dict.fromkeys(uids))
            return
        for uid in tuple(uids):
            self._book_again(uid)

    def _book_again(self, uid: str) -> None:
        pod = self.pod(uid)
        if pod is not None:
            self.changes += 1
            self._book(pod)

    def _node_changed(self, name: str, before: Mapping[str, CardStock], remapped: Collection[str]) -> None:
        self.changes += 1
        self.nodes_version += 1
        for card in sorted(remapped):
            self._rebook(self._by_card.get(card))
        if remapped:
            self._card_resources_changed()
        now = self.inventory.on_node(name)
        if before != now:
            self._rebook(self.occupants.on(name))
        # New room may let in any pod that waits for room, whatever its queue.
        self.wakeups.room_freed({*before, *now, *self._shares_on(name)})

    def _card_resources_changed(self) -> None:
        """Weighs the pods anew that ask for a resource of which it is now known, or no more, that it is a card's."""
        if not self.settings.cards.unlimited_cpu_memory:
            return
        before, self._card_resources = self._card_resources, card_resources(self.inventory)
        for resource in sorted(before ^ self._card_resources):
            self._rebook(self._unnamed.get(resource))

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _book(self, pod: Pod) -> None:
        self._sources.follow(pod)
        if self.groups.put_pod(pod):
            self._group_changed(f"{pod.namespace}/{pod.group_name}")
        if occupies(pod):
            self._by_card.put(pod.uid, *split(pod.card_name))
            if self.settings.cards.unlimited_cpu_memory and not pod.card_name:
                self._unnamed.put(pod.uid, *(name for name in pod.requests if "/" in name))
            self._left(self.occupants.put(pod))
        self._enter(pod, self.entry(pod.uid), self._entry_of(pod, None, None))

    def _enter(self, pod: Pod, old: Entry | None, new: Entry | None) -> None:
        """Puts the new entry of a pod in the place of the old one."""
        self._weigh(pod, new)
        if old != new:
            self.devices.put_pod(pod, *((new.stage, new.queue) if new is not None else (Stage.IGNORED, "")))
            self._entries.replace(old, new)

    def _weigh(self, pod: Pod, entry: Entry | None) -> None:
        """Books CPU and memory. Of a pod that asks for nothing of ours only where it has a node: nobody keeps it back."""
        if entry is None and not holds_quota(pod):
            self.wakeups.cpu_memory_freed(self.cpu_memory.drop(pod.uid))
            return
        if entry is not None and entry.stage is Stage.WAITING:
            freed = self.cpu_memory.drop(pod.uid)
        elif entry is not None:
            freed = self.cpu_memory.put(pod.uid, entry.queue, entry.demand.cpu_memory)
        else:
            weight = cpu_memory_of(pod, self._card_resources, self.settings, has_cards=False)
            freed = self.cpu_memory.put(pod.uid, self.attribution(pod).queue, weight)
        self.wakeups.cpu_memory_freed(freed)

    def _entry_of(self, pod: Pod, queue: Attribution | None, asked: Demand | None) -> Entry | None:
        """`queue` is what the pod charges, `asked` what it asks for; None to find out."""
        stage = stage_of(pod)
        if stage is Stage.IGNORED:
            return None
        demand = asked or demand_of(pod, self.inventory, self._card_resources, self.settings)
        charged = queue or self.attribution(pod)
        if not asks_admission(stage, pod):
            return Entry.of(pod, stage, charged, demand)
        allowed = self.access.allows(charged.queue, pod.namespace)
        return Entry.of(pod, stage if allowed else Stage.WAITING, charged, demand, allowed=allowed)

    def _group_changed(self, key: str) -> None:
        """Has the waiting members looked at again: their number may suffice now."""
        self.wakeups.help(*self._entries.queues_with(key))

    def _left(self, node: str) -> None:
        """Room came free on a node, for whatever it carries; '' for nowhere."""
        if node and self.wakeups.room_awaited:
            self.wakeups.room_freed({*self.inventory.on_node(node), *self._shares_on(node)})

    def _shares_on(self, node: str) -> list[str]:
        """The mGPU resources that a node carries."""
        carried = self.nodes[node].allocatable if node in self.nodes else ()
        return [key for key in MGPU_RESOURCES if key in carried]


def _overtaken(assumed: Pod, observed: Pod) -> bool:
    """Whether the watch shows what was assumed (a lift or a bind), or the pod's end, which comes before either."""
    if observed.bound or observed.deleting or observed.terminal:
        return True
    return not observed.gated and not assumed.bound
