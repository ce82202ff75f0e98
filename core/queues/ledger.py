"""Who uses what: every pod that asks for something of ours, the queue it charges, and the sums.

The ledger is derived from API objects alone and follows them one change at a time; each change costs what it
touches, not what exists. What the controller has decided but the watch has not shown yet is laid over the observed
pods (`assume`) and taken back when the write fails (`forget`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from operator import attrgetter

from core.cards.expression import BAR, split
from core.cards.inventory import Inventory
from core.dra.book import Effect
from core.index import Index
from core.names import MGPU_RESOURCES
from core.objects import Group, Job, Namespace, Node, Pod, Queue
from core.queues.account import Account, Entry
from core.queues.amounts import add
from core.queues.attribution import Attribution
from core.queues.capacity import Capacity
from core.queues.cpu_memory_book import CpuMemoryBook
from core.queues.demand import Demand, demand_of
from core.queues.devices import Devices
from core.queues.limits import Limits, limits_of
from core.queues.occupants import Occupants, occupies
from core.queues.sources import QueueSources
from core.queues.usage import card_resources, cpu_memory_of
from core.settings import Settings
from core.stage import Stage, holds_quota, stage_of

Marks = tuple[set[str], set[str], dict[str, frozenset[str]], set[str]]
_terms = attrgetter("card_quota", "capability", "state", "fifo", "has_capability")


class Ledger:
    """The books of all queues. Not safe for use from several threads.

    `queues`, `limits`, `accounts` and `nodes` are read by name; a queue that does not exist has an account as long as
    pods charge it. `capacity` and `cpu_memory` say what queues may use and use of CPU and memory, `devices` the same of
    the devices that pods claim; claims and their templates are put there.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.inventory = Inventory(settings.cards.resources)
        self.occupants = Occupants()
        self.nodes: dict[str, Node] = {}
        self.nodes_version = 0
        """Grows whenever a node comes, changes or goes, but not with its pods."""
        self.queues: dict[str, Queue] = {}
        self.limits: dict[str, Limits] = {}
        self.accounts: defaultdict[str, Account] = defaultdict(Account)
        self.capacity = Capacity(settings.cards.unset_cpu_memory)
        self.cpu_memory = CpuMemoryBook()
        self.devices = Devices(settings, self._devices_changed)
        self.dirty: set[str] = set()
        """Queues for which something happened that may let a waiting pod in."""
        self.wants_room: dict[str, frozenset[str]] = {}
        """Queues in which a pod has quota but no node has room, and for which cards; these moved to `dirty` once freed."""
        self.wants_cpu_memory: set[str] = set()
        """Queues in which a pod has no CPU or memory left; what is given back there moves them to `dirty`."""
        self.touched: set[str] = set()
        """Queues whose sums, limits or stored status changed."""
        self.reserved_shares: dict[str, Entry] = {}
        """The mGPU pods that are lifted but have no node yet, by UID."""
        self.reserved_shares_changes = 0
        """Grows whenever one of them comes, changes or goes."""
        self._reserved: dict[str, int] = {}
        """What is reserved in all queues together."""
        self._sources = QueueSources(settings.queue.default)
        self._pods: dict[str, Pod] = {}
        self._entries: dict[str, Entry] = {}
        self._assumed: dict[str, Pod] = {}
        self._by_card = Index()
        self._unnamed = Index()
        """Pods that may turn out to ask for a card without naming it, by resource."""
        self._card_resources: frozenset[str] = frozenset()

    # -- what others read ------------------------------------------------------------------------------------

    def entry(self, uid: str) -> Entry | None:
        """The books' view of a pod: as assumed where a decision is under way, else as observed."""
        return self._entries.get(uid)

    def entries(self) -> Iterable[Entry]:
        """Every pod in the books, in the order in which they were first seen."""
        return self._entries.values()

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
        return self._reserved.get(key, 0)

    def waiting(self, queue: str) -> list[Entry]:
        """The waiting pods of a queue in the order in which they are considered."""
        account = self.accounts.get(queue)
        return sorted(account.waiting_pods.values(), key=lambda entry: entry.order) if account else []

    def group_of(self, pod: Pod) -> Group | None:
        """The PodGroup that a pod names, None while it does not exist."""
        return self._sources.group_of(pod)

    def members(self, group: Group) -> list[Pod]:
        """All pods of a PodGroup, those that ask for nothing of ours and those that have ended too."""
        found = (self.pod(uid) for uid in self._sources.members(group.key))
        return [pod for pod in found if pod is not None]

    def attribution(self, pod: Pod) -> Attribution:
        """The queue that a pod charges, by the objects known now."""
        return self._sources.attribution(pod)

    # -- what is to be done ------------------------------------------------------------------------------------

    def want_room(self, queue: str, cards: Collection[str]) -> None:
        """Has a queue looked at again when room for one of these cards, or mGPU resources, comes free."""
        self.wants_room[queue] = self.wants_room.get(queue, frozenset()) | frozenset(cards)

    def take_dirty(self) -> set[str]:
        """The queues to decide on; they are off the list, and on it again with the next event that may help."""
        dirty, self.dirty = self.dirty, set()
        return dirty

    def touch(self, names: Iterable[str]) -> None:
        """Has these queues published, whether or not they changed."""
        self.touched.update(names)

    def take_touched(self) -> set[str]:
        """The queues to publish; they are off the list until they change again."""
        touched, self.touched = self.touched, set()
        return touched

    def marks(self) -> Marks:
        """What is to be done, to be put back with `reset_marks` after a trial that came to nothing."""
        return set(self.dirty), set(self.touched), dict(self.wants_room), set(self.wants_cpu_memory)

    def reset_marks(self, marks: Marks) -> None:
        """Puts back what was to be done."""
        self.dirty, self.touched, self.wants_room, self.wants_cpu_memory = marks

    # -- pods ------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod as observed.

        Left out is a pod that asks for nothing of ours, uses nothing of a queue or a node, and belongs to no group.
        """
        if not (pod.asks or pod.gated or pod.group_name or occupies(pod) or holds_quota(pod)):
            self.drop_pod(pod.uid)
            return
        if pod.group_name and _standing(self._pods.get(pod.uid)) != _standing(pod):
            self._group_changed(f"{pod.namespace}/{pod.group_name}")
        self._pods[pod.uid] = pod
        assumed = self._assumed.get(pod.uid)
        if assumed is not None and _overtaken(assumed, pod):
            del self._assumed[pod.uid]
            assumed = None
        self._book(assumed or pod)

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod that is gone. Unknown UIDs are fine: a missed delete may be found twice."""
        self._pods.pop(uid, None)
        self._assumed.pop(uid, None)
        entry = self._entries.get(uid)
        if entry is not None:
            self._unbook(entry)
            self._wake(entry, None)
        self._sources.unfollow(uid)
        self._by_card.put(uid)
        self._unnamed.put(uid)
        self._given_back(self.cpu_memory.drop(uid))
        self.devices.drop_pod(uid)
        self._left(self.occupants.drop(uid))

    def assume(self, pod: Pod) -> None:
        """Books a pod as it will be once the write under way, a lift or a bind, has gone through."""
        self._assumed[pod.uid] = pod
        old = self._entries.get(pod.uid)
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
        old = self.queues.get(queue.name)
        self.queues[queue.name] = queue
        self.limits[queue.name] = limits_of(queue)
        self.touched.add(queue.name)
        self.devices.put_queue(queue)
        if self.capacity.put_queue(queue):
            self._capacity_changed()
        if old is None or _terms(old) != _terms(queue):
            self.dirty.add(queue.name)

    def drop_queue(self, name: str) -> None:
        """Takes out a queue; its pods stay booked under its name and are charged when it comes back."""
        self.queues.pop(name, None)
        self.limits.pop(name, None)
        self.devices.drop_queue(name)
        if self.capacity.drop_queue(name):
            self._capacity_changed()
        self._mark(name)

    def put_group(self, group: Group) -> None:
        """Takes in a PodGroup; its pods may charge another queue now, and fewer of them may be enough."""
        self._rebook(self._sources.put_group(group))
        self._group_changed(group.key)

    def drop_group(self, key: str) -> None:
        """Takes out a PodGroup; nothing holds its pods together any more."""
        self._rebook(self._sources.drop_group(key))
        self._group_changed(key)

    def put_job(self, job: Job) -> None:
        """Takes in a Volcano Job; its pods may charge another queue now."""
        self._rebook(self._sources.put_job(job))

    def drop_job(self, key: str) -> None:
        """Takes out a Volcano Job."""
        self._rebook(self._sources.drop_job(key))

    def put_namespace(self, namespace: Namespace) -> None:
        """Takes in a namespace; its pods may charge another queue now."""
        self._rebook(self._sources.put_namespace(namespace))

    def drop_namespace(self, name: str) -> None:
        """Takes out a namespace."""
        self._sources.drop_namespace(name)

    def put_node(self, node: Node) -> None:
        """Takes in a node; pods of the cards it brings or changes are counted anew."""
        self.nodes[node.name] = node
        self.capacity.put_node(node)
        self._node_changed(node.name, self.inventory.put(node))

    def drop_node(self, name: str) -> None:
        """Takes out a node."""
        if self.nodes.pop(name, None) is not None:
            self.capacity.drop_node(name)
            self._node_changed(name, self.inventory.drop(name))

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _node_changed(self, name: str, cards: Iterable[str]) -> None:
        self.nodes_version += 1
        self.occupants.node_changed(name)
        # New room may let in any pod that waits for room, whatever its queue.
        self.dirty.update(queue for queue, account in self.accounts.items() if account.waiting_pods)
        changed = tuple(cards)
        for card in changed:
            self._rebook(self._by_card.get(card))
        if changed:
            self._card_resources_changed()
        self._rebook(self.occupants.on(name))

    def _card_resources_changed(self) -> None:
        """Weighs the pods anew that ask for a resource of which it is now known, or no more, that it is a card's."""
        if not self.settings.cards.unlimited_cpu_memory:
            return
        before, self._card_resources = self._card_resources, card_resources(self.inventory)
        for resource in sorted(before ^ self._card_resources):
            self._rebook(self._unnamed.get(resource))

    def _mark(self, queue: str) -> None:
        self.dirty.add(queue)
        self.touched.add(queue)

    def _rebook(self, uids: Iterable[str]) -> None:
        for uid in tuple(uids):
            pod = self.pod(uid)
            if pod is not None:
                self._book(pod)

    def _book(self, pod: Pod) -> None:
        self._sources.follow(pod)
        if occupies(pod):
            self._by_card.put(pod.uid, *split(pod.card_name))
            if self.settings.cards.unlimited_cpu_memory and not pod.card_name:
                self._unnamed.put(pod.uid, *(name for name in pod.requests if "/" in name))
            self._left(self.occupants.put(pod))
        self._enter(pod, self._entries.get(pod.uid), self._entry_of(pod, None, None))

    def _enter(self, pod: Pod, old: Entry | None, new: Entry | None) -> None:
        """Puts the new entry of a pod in the place of the old one."""
        self._weigh(pod, new)
        if old == new:
            return
        self.devices.put_pod(pod, new.stage if new is not None else Stage.IGNORED, new.queue if new else "")
        if old is not None:
            self._unbook(old)
        if new is not None:
            self._entries[pod.uid] = new
            self.accounts[new.queue].book(new)
            if new.stage is Stage.RESERVED:
                add(self._reserved, new.charged, 1)
            if new.holds_share:
                self.reserved_shares[pod.uid] = new
                self.reserved_shares_changes += 1
            self.touched.add(new.queue)
        self._wake(old, new)

    def _unbook(self, entry: Entry) -> None:
        del self._entries[entry.pod.uid]
        account = self.accounts[entry.queue]
        account.unbook(entry)
        if entry.stage is Stage.RESERVED:
            add(self._reserved, entry.charged, -1)
        if entry.holds_share:
            del self.reserved_shares[entry.pod.uid]
            self.reserved_shares_changes += 1
        self.touched.add(entry.queue)
        if account.empty and entry.queue not in self.queues:
            del self.accounts[entry.queue]

    def _wake(self, old: Entry | None, new: Entry | None) -> None:
        """Has the queues looked at where somebody may be let in now; most updates of a pod's status help nobody."""
        if old is not None and new is not None and old.alike(new):
            return
        if new is not None and new.stage is Stage.WAITING:
            self.dirty.add(new.queue)
        if old is None:
            return
        if old.stage is not Stage.WAITING:
            self._room_freed(old.demand.cards)
            if new is not None and new.stage is not Stage.WAITING and old.charge == new.charge:
                return
        account = self.accounts.get(old.queue)
        if account is not None and account.waiting_pods:
            self.dirty.add(old.queue)

    def _weigh(self, pod: Pod, entry: Entry | None) -> None:
        """Books CPU and memory. Of a pod that asks for nothing of ours only where it has a node: nobody keeps it back."""
        if entry is None and not holds_quota(pod):
            self._given_back(self.cpu_memory.drop(pod.uid))
            return
        if entry is not None and entry.stage is Stage.WAITING:
            freed = self.cpu_memory.drop(pod.uid)
        elif entry is not None:
            freed = self.cpu_memory.put(pod.uid, entry.queue, entry.demand.cpu_memory)
        else:
            weight = cpu_memory_of(pod, self._card_resources, self.settings, has_cards=False)
            freed = self.cpu_memory.put(pod.uid, self.attribution(pod).queue, weight)
        self._given_back(freed)

    def _given_back(self, queue: str) -> None:
        if queue in self.wants_cpu_memory:
            self.wants_cpu_memory.discard(queue)
            self.dirty.add(queue)

    def _devices_changed(self, effect: Effect) -> None:
        self.touched |= effect.touched
        self.dirty |= effect.dirty

    def _capacity_changed(self) -> None:
        """What one queue is guaranteed is missing, or left, for all others."""
        self.dirty |= self.wants_cpu_memory
        self.wants_cpu_memory.clear()

    def _entry_of(self, pod: Pod, queue: Attribution | None, asked: Demand | None) -> Entry | None:
        """`queue` is what the pod charges, `asked` what it asks for; None to find out."""
        stage = stage_of(pod)
        if stage is Stage.IGNORED:
            return None
        demand = asked or demand_of(pod, self.inventory, self._card_resources, self.settings)
        return Entry.of(pod, stage, queue or self.attribution(pod), demand)

    def _group_changed(self, key: str) -> None:
        """Looks at the waiting members again: their number may suffice now."""
        for uid in self._sources.members(key):
            entry = self._entries.get(uid)
            if entry is not None and entry.stage is Stage.WAITING:
                self.dirty.add(entry.queue)

    def _left(self, node: str) -> None:
        """Room came free on a node, for whatever it carries; '' for nowhere."""
        if node and self.wants_room:
            carried = self.nodes[node].allocatable if node in self.nodes else ()
            self._room_freed(
                {*self.inventory.on_node(node), *(key for key in MGPU_RESOURCES if key in carried)}
            )

    def _room_freed(self, cards: Collection[str]) -> None:
        helped = [queue for queue, wanted in self.wants_room.items() if not wanted.isdisjoint(cards)]
        for queue in helped:
            del self.wants_room[queue]
        self.dirty.update(helped)


def _standing(pod: Pod | None) -> tuple[object, ...]:
    """What of a pod decides whether it counts towards its group's minimum."""
    return () if pod is None else (pod.group_name, pod.gated, pod.bound, pod.phase, pod.deleting)


def _overtaken(assumed: Pod, observed: Pod) -> bool:
    """Whether the watch shows what was assumed (a lift or a bind), or the pod's end, which comes before either."""
    if observed.bound or observed.deleting or observed.terminal:
        return True
    return not observed.gated and not assumed.bound
