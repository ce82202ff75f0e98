"""Who uses what: every pod that asks for something of ours, the queue it charges, and the sums.

The ledger is derived from API objects alone and follows them one change at a time; each change costs what it
touches, not what exists. What the controller has decided but the watch has not shown yet is laid over the observed
pods (`assume`) and taken back when the write fails (`forget`).
"""

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Final

from core.cards.expression import BAR, split
from core.index import Index
from core.objects import DeviceClass, Group, Job, Namespace, Node, Pod, Queue
from core.queues.access_book import AccessBook, asks_admission
from core.queues.attribution import Attribution, Source
from core.queues.backlog import Backlog
from core.queues.capacity import Capacity
from core.queues.demand import Demand, demand_of
from core.queues.devices import Devices
from core.queues.entries import Entries
from core.queues.entry import Entry, ShareKey
from core.queues.group_book import GroupBook
from core.queues.journal import Journal
from core.queues.limits import Limits, limits_of
from core.queues.naming import Naming
from core.queues.occupants import occupies
from core.queues.pod_states import PodStates
from core.queues.premises import NodeChange, Premises
from core.queues.sources import QueueSources
from core.queues.wakeups import Wakeups
from core.queues.weights import Weights
from core.settings import Settings
from core.stage import Stage, Stages
from core.steps import Steps

_NOBODY: Final[Mapping[str, Entry]] = {}

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
        self.stages = Stages(settings)
        self.wakeups = Wakeups()
        self._premises = Premises(settings)
        self.nodes = self._premises.nodes
        self.inventory = self._premises.inventory
        self.occupants = self._premises.occupants
        self.groups = GroupBook(self.stages)
        self.nodes_version = 0
        """Grows whenever a node comes, changes or goes, but not with its pods."""
        self.groups_served = False
        """Whether PodGroups can be made here: then a scheduler that goes by them names one on each pod, sooner or later."""
        self.changes = 0
        self.queues: dict[str, Queue] = {}
        self.limits: dict[str, Limits] = {}
        self.access = AccessBook(self.queues, settings.queue.access)
        self._entries = Entries(self.wakeups, self.queues, self.access)
        self.accounts = self._entries.accounts
        self.capacity = Capacity(settings.cards.unset_cpu_memory)
        self._weights = Weights(settings, self.stages, lambda pod: self.attribution(pod).queue)
        self.cpu_memory = self._weights.book
        self.devices = Devices(settings, self.wakeups.changed)
        self._sources = QueueSources(settings.queue.default, self.access.allows)
        self.naming = Naming(settings, self.inventory)
        self._states = PodStates()
        self._backlog = Backlog(self._book_again)
        self._by_card = Index()

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
        return self._states.assumed.get(uid)

    def observed(self, uid: str) -> Pod | None:
        """A pod as the cluster has it, whatever was decided meanwhile."""
        return self._states.observed.get(uid)

    def pod(self, uid: str) -> Pod | None:
        """A pod as assumed, else as observed; CPU pods included."""
        return self._states.pod(uid)

    def pods_on(self, node: str) -> list[Pod]:
        """The pods that occupy a node physically, in the order in which they came."""
        return self._states.pods(self.occupants.on(node))

    def bystanders_on(self, node: str) -> list[Pod]:
        """The other pods on a node, which take nothing of it but CPU, memory and a place."""
        return self._states.pods(self.occupants.beside(node))

    def used(self, queue: str, key: str) -> int:
        """What a queue has allocated and reserved of one key."""
        account = self.accounts.get(queue)
        return account.used(key) if account is not None else 0

    def reserved(self, key: str) -> int:
        """What all queues together have reserved of one key."""
        return self._entries.reserved(key)

    @property
    def reserved_shares(self) -> Mapping[ShareKey, Entry]:
        """The mGPU pods that are lifted but have no node yet."""
        return self._entries.shares

    def led_to(self, node: str) -> Mapping[str, Entry]:
        """Those of them for which room is booked on a node, by UID."""
        return self._entries.shares_to.get(node, _NOBODY)

    @property
    def shares_changed(self) -> Journal[ShareKey]:
        """Which of them have come, changed or gone."""
        return self._entries.shares_changed

    def waiting(self, queue: str) -> list[Entry]:
        """The waiting pods of a queue in the order in which they are considered."""
        account = self.accounts.get(queue)
        return account.line.entries() if account is not None else []

    def group_of(self, pod: Pod) -> Group | None:
        """The PodGroup that a pod names, None while it does not exist."""
        return self._sources.group_of(pod)

    def group(self, key: str) -> Group | None:
        """The PodGroup `namespace/name`, None while it does not exist."""
        return self._sources.group(key)

    def as_stored(self, uid: str) -> Pod | None:
        """A pod as it was put, whatever name its namespace gives its card and whatever was decided meanwhile."""
        return self.naming.as_it_is(uid) or self.observed(uid)

    def queues_with(self, group: str) -> Collection[str]:
        """The queues in which members of a PodGroup, `namespace/name`, wait."""
        return self._entries.queues_with(group)

    def members(self, group: Group) -> list[Pod]:
        """All pods of a PodGroup, those that ask for nothing of ours and those that have ended too."""
        return self._states.pods(self._sources.members(group.key))

    def members_of(self, group: str) -> Collection[str]:
        """The UIDs of all members of a PodGroup, `namespace/name`, as of now: it may change while they are gone through."""
        return tuple(self._sources.members(group))

    def entries_of(self, group: str) -> Iterable[Entry]:
        """The books' view of the members of a PodGroup, `namespace/name`; of those that are in the books."""
        found = (self.entry(uid) for uid in self.members_of(group))
        return (entry for entry in found if entry is not None)

    def counted_anew(self, pod: Pod) -> Entry | None:
        """What the books should have of a pod by what is known now; None where it has no place in them."""
        return self._entry_of(pod, None, None)

    def attribution(self, pod: Pod) -> Attribution:
        """The queue that a pod charges: by its record where it was let in, else by the objects known now."""
        return self._sources.attribution(pod)

    def queue_source(self, pod: Pod) -> Source:
        """What says that a pod charges its queue."""
        return self._sources.source(pod)

    def fix_queue(self, pod: Pod) -> str:
        """From now on a pod that was let in without a record charges the queue that it does now, whatever changes."""
        return self._sources.fix(pod)

    def release_queues(self) -> None:
        """Takes `fix_queue` back: the time of leading is over, and another leader has its own view of such pods."""
        self._backlog.put(self._sources.release())

    # -- pods ------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod as observed.

        Left out is a pod that asks for nothing of ours, uses nothing of a queue or a node, and belongs to no group.
        """
        if not (pod.asks or pod.gated or pod.group_name or occupies(pod) or self.stages.holds(pod)):
            self.drop_pod(pod.uid)
            return
        self.changes += 1
        self._book(self._states.see(self.naming.named(pod)))

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod that is gone. Unknown UIDs are fine: a missed delete may be found twice."""
        self.changes += 1
        pod = self._states.drop(uid)
        if pod is not None and self.groups.drop_pod(uid):
            self._group_changed(f"{pod.namespace}/{pod.group_name}")
        entry = self.entry(uid)
        if entry is not None:
            self._entries.replace(entry, None)
        self._sources.unfollow(uid)
        self.naming.drop(uid)
        self._by_card.put(uid)
        self.stages.overrun.discard(uid)
        self.wakeups.cpu_memory_freed(self._weights.drop(uid))
        self.devices.drop_pod(uid)
        self._left(self.occupants.drop(uid))

    def assume(self, pod: Pod) -> None:
        """Books a pod as it will be once the write under way, a lift or a bind, has gone through."""
        self.changes += 1
        self._states.assumed[pod.uid] = pod
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
        if self._states.assumed.pop(uid, None) is None:
            return
        unnamed = self.naming.as_it_is(uid)
        observed = self._states.see(self.naming.named(unnamed)) if unnamed is not None else self.observed(uid)
        if observed is not None:
            self._book(observed)
        else:
            # Assumed before the watch showed the pod at all.
            self.drop_pod(uid)

    def retract(self, assumed: Pod) -> None:
        """Takes this very assumption back; nothing when another one, of a bind, has taken its place."""
        if self.assumed(assumed.uid) is assumed:
            self.forget(assumed.uid)

    def forget_all(self) -> None:
        """Takes every assumption back: the time of leading is over."""
        for uid in tuple(self._states.assumed):
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
        self._backlog.put(self.access.queue_changed(queue.name, old, queue))

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
        self._backlog.put(self.access.queue_changed(name, old, None))

    def put_group(self, group: Group) -> None:
        """Takes in a PodGroup; its pods may charge another queue now, and fewer of them may be enough."""
        self.changes += 1
        self.groups.put_group(group)
        self._backlog.put(self._sources.put_group(group))
        self._group_changed(group.key)

    def drop_group(self, key: str) -> None:
        """Takes out a PodGroup; nothing holds its pods together any more."""
        self.changes += 1
        self.groups.drop_group(key)
        self._backlog.put(self._sources.drop_group(key))
        self._group_changed(key)

    def serve_groups(self, served: bool) -> None:
        """Takes in whether there are PodGroups at all. That there are none is not believed any more once there were."""
        self.groups_served = self.groups_served or served

    def put_job(self, job: Job) -> None:
        """Takes in a Volcano Job; its pods may charge another queue now."""
        self.changes += 1
        self._backlog.put(self._sources.put_job(job))

    def drop_job(self, key: str) -> None:
        """Takes out a Volcano Job."""
        self.changes += 1
        self._backlog.put(self._sources.drop_job(key))

    def put_namespace(self, namespace: Namespace) -> None:
        """Takes in a namespace; its pods may charge another queue now, or may not use the one that they charge."""
        self.changes += 1
        judged_anew = self.access.put_namespace(namespace)
        moved = self._sources.put_namespace(namespace)
        renamed = self.naming.put_namespace(namespace)
        self._backlog.put(dict.fromkeys((*moved, *judged_anew, *renamed)).keys())

    def drop_namespace(self, name: str) -> None:
        """Takes out a namespace."""
        self._sources.drop_namespace(name)
        self.naming.drop_namespace(name)
        self._backlog.put(self.access.drop_namespace(name))

    def put_node(self, node: Node) -> None:
        """Takes in a node. Pods are counted anew that are on it, and those of a card that is another resource now."""
        if self.capacity.put_node(node):
            self.wakeups.capacity_changed()
        self._node_changed(node.name, self._premises.put(node))

    def drop_node(self, name: str) -> None:
        """Takes out a node."""
        change = self._premises.drop(name)
        if change is not None:
            if self.capacity.drop_node(name):
                self.wakeups.capacity_changed()
            self._node_changed(name, change)

    def put_class(self, device_class: DeviceClass) -> None:
        """Takes in a DeviceClass; it may serve extended resources, and give out devices that queues know as cards."""
        self.devices.put_class(device_class)
        self.wakeups.publish(*self.queues)

    def drop_class(self, name: str) -> None:
        """Takes out a DeviceClass."""
        self.devices.drop_class(name)
        self.wakeups.publish(*self.queues)

    # -- what is to be counted anew ------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether every pod is booked by what is known now."""
        return not self._backlog

    def settle(self) -> Steps[None]:
        """Books anew the pods that changes of something else have left behind, however many come meanwhile."""
        yield from self._backlog.settle()

    def _book_again(self, uid: str) -> None:
        unnamed = self.naming.as_it_is(uid)
        if unnamed is not None and self.assumed(uid) is None:
            self.put_pod(unnamed)
            return
        pod = self.pod(uid)
        if pod is not None:
            self.changes += 1
            self._book(pod)

    def _node_changed(self, name: str, change: NodeChange) -> None:
        self.changes += 1
        self.nodes_version += 1
        for card in sorted(change.remapped):
            self._backlog.put(self._by_card.get(card))
        if change.remapped:
            for uids in self._weights.relearn(self.inventory):
                self._backlog.put(uids)
            self._backlog.put(self.naming.relearn())
        if change.recarded:
            self._backlog.put(self.occupants.on(name))
        # New room may let in any pod that waits for room, whatever its queue.
        self.wakeups.room_freed(change.room)

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _book(self, pod: Pod) -> None:
        self._sources.follow(pod)
        if self.groups.put_pod(pod):
            self._group_changed(f"{pod.namespace}/{pod.group_name}")
        if occupies(pod):
            self._by_card.put(pod.uid, *split(pod.card_name))
            self._weights.follow(pod)
            self._left(self.occupants.put(pod))
        else:
            self._left(self.occupants.put_beside(pod))
        self._enter(pod, self.entry(pod.uid), self._entry_of(pod, None, None))

    def _enter(self, pod: Pod, old: Entry | None, new: Entry | None) -> None:
        """Puts the new entry of a pod in the place of the old one."""
        self.wakeups.cpu_memory_freed(self._weights.put(pod, new))
        if old != new:
            self.devices.put_pod(pod, *((new.stage, new.queue) if new is not None else (Stage.IGNORED, "")))
            self._entries.replace(old, new)

    def _entry_of(self, pod: Pod, queue: Attribution | None, asked: Demand | None) -> Entry | None:
        """`queue` is what the pod charges, `asked` what it asks for; None to find out."""
        stage = self.stages.of(pod)
        if stage is Stage.IGNORED:
            return None
        demand = asked or demand_of(pod, self.inventory, self._weights.card_resources, self.settings)
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
            self.wakeups.room_freed(self._premises.room_on(node))
