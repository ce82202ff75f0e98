"""Who uses what: every pod that asks for something of ours, the queue it charges, and the sums.

The ledger is derived from API objects alone and follows them one change at a time; each change costs what it
touches, not what exists. What the controller has decided but the watch has not shown yet is laid over the observed
pods (`assume`) and taken back when the write fails (`forget`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.cards.inventory import Inventory
from core.objects import Group, Job, Namespace, Node, Pod, Queue
from core.queues.attribution import Attribution, attribute, owned_by_job
from core.queues.demand import Demand, Stage, demand_of, stage_of
from core.queues.index import Index
from core.queues.limits import Limits, limits_of
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod in the books."""

    pod: Pod
    stage: Stage
    attribution: Attribution
    demand: Demand
    charged: Mapping[str, int]

    @property
    def queue(self) -> str:
        """The queue that is charged."""
        return self.attribution.queue

    @property
    def order(self) -> tuple[int, int, str]:
        """Place among the waiting pods of a queue: priority, age, name."""
        return (-self.pod.priority, self.pod.created, self.pod.key)


class Account:
    """One queue's sums in thousandths, by stage, and its waiting pods by UID."""

    __slots__ = ("allocated", "reserved", "waiting", "waiting_pods")

    def __init__(self) -> None:
        self.allocated: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.waiting: dict[str, int] = {}
        self.waiting_pods: dict[str, Entry] = {}

    def used(self, key: str) -> int:
        """Allocated plus reserved."""
        return self.allocated.get(key, 0) + self.reserved.get(key, 0)

    def add(self, entry: Entry, sign: int) -> None:
        """Books an entry in (`sign` 1) or out (-1)."""
        if entry.stage is Stage.WAITING:
            if sign > 0:
                self.waiting_pods[entry.pod.uid] = entry
            else:
                self.waiting_pods.pop(entry.pod.uid, None)
        sums = {Stage.ALLOCATED: self.allocated, Stage.RESERVED: self.reserved, Stage.WAITING: self.waiting}[
            entry.stage
        ]
        for key, amount in entry.charged.items():
            left = sums.get(key, 0) + sign * amount
            if left:
                sums[key] = left
            else:
                sums.pop(key, None)


class Ledger:
    """The books of all queues. Not safe for use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.inventory = Inventory(settings.cards.resources)
        self.nodes: dict[str, Node] = {}
        self.nodes_version = 0
        """Grows whenever a node comes, changes or goes."""
        self.queues: dict[str, Queue] = {}
        self.limits: dict[str, Limits] = {}
        self.accounts: defaultdict[str, Account] = defaultdict(Account)
        self.on_node = Index()
        """Node name -> UIDs of the pods that occupy it physically: bound and not ended, terminating ones too."""
        self.dirty: set[str] = set()
        """Queues for which something happened that may let a waiting pod in; the planner empties it."""
        self.wants_room: set[str] = set()
        """Queues in which a pod has quota but no node has room; the planner adds, freed room moves them to `dirty`."""
        self.touched: set[str] = set()
        """Queues whose sums or limits changed; whoever publishes them empties it."""
        self.reserved_shares: set[str] = set()
        """UIDs of the mGPU pods that are lifted but have no node yet."""
        self._groups: dict[str, Group] = {}
        self._jobs: dict[str, Job] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._pods: dict[str, Pod] = {}
        self._entries: dict[str, Entry] = {}
        self._assumed: dict[str, Pod] = {}
        self.occupancy: defaultdict[str, int] = defaultdict(int)
        """Node name -> a number that grows whenever the node or a pod on it changes."""
        self.occupancy_changes = 0
        """Grows with any of them."""
        self._by_group = Index()
        self._by_job = Index()
        self._by_namespace = Index()
        self._by_card = Index()

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
        """The pods that occupy a node physically, in a stable order."""
        found = (self.pod(uid) for uid in self.on_node.get(node))
        return sorted((pod for pod in found if pod is not None), key=lambda pod: (pod.created, pod.uid))

    def used(self, queue: str, key: str) -> int:
        """What a queue has allocated and reserved of one key."""
        account = self.accounts.get(queue)
        return account.used(key) if account is not None else 0

    def waiting(self, queue: str) -> list[Entry]:
        """The waiting pods of a queue in the order in which they are considered."""
        account = self.accounts.get(queue)
        return sorted(account.waiting_pods.values(), key=lambda entry: entry.order) if account else []

    # -- pods ------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod as observed. A pod that neither asks for anything of ours nor uses a device is left out."""
        if not (pod.asks or pod.gated or any("/" in name for name in pod.requests)):
            self.drop_pod(pod.uid)
            return
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
        self._unbook(uid)
        self._unindex(uid)

    def assume(self, pod: Pod) -> None:
        """Books a pod as it will be once the write under way has gone through."""
        self._assumed[pod.uid] = pod
        self._book(pod)

    def forget(self, uid: str) -> None:
        """Takes an assumption back: the write has failed for good."""
        if self._assumed.pop(uid, None) is None:
            return
        if uid in self._pods:
            self._book(self._pods[uid])
        else:
            # Assumed before the watch showed the pod at all.
            self.drop_pod(uid)

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
        if old is None or (old.card_quota, old.capability, old.state, old.fifo, old.has_capability) != (
            queue.card_quota,
            queue.capability,
            queue.state,
            queue.fifo,
            queue.has_capability,
        ):
            self.dirty.add(queue.name)

    def drop_queue(self, name: str) -> None:
        """Takes out a queue; its pods stay booked under its name and are charged when it comes back."""
        self.queues.pop(name, None)
        self.limits.pop(name, None)
        self._mark(name)

    def put_group(self, group: Group) -> None:
        """Takes in a PodGroup; its pods may charge another queue now."""
        self._groups[group.key] = group
        self._rebook(self._by_group.get(group.key))

    def drop_group(self, key: str) -> None:
        """Takes out a PodGroup."""
        self._groups.pop(key, None)
        self._rebook(self._by_group.get(key))

    def put_job(self, job: Job) -> None:
        """Takes in a Volcano Job; its pods may charge another queue now."""
        self._jobs[job.key] = job
        self._rebook(self._by_job.get(job.key))

    def drop_job(self, key: str) -> None:
        """Takes out a Volcano Job."""
        self._jobs.pop(key, None)
        self._rebook(self._by_job.get(key))

    def put_namespace(self, namespace: Namespace) -> None:
        """Takes in a namespace; its pods may charge another queue now."""
        old = self._namespaces.get(namespace.name)
        self._namespaces[namespace.name] = namespace
        if (old.queue if old else "") != namespace.queue:
            self._rebook(self._by_namespace.get(namespace.name))

    def drop_namespace(self, name: str) -> None:
        """Takes out a namespace."""
        self._namespaces.pop(name, None)

    def put_node(self, node: Node) -> None:
        """Takes in a node; pods of the cards it brings or changes are counted anew."""
        self.nodes[node.name] = node
        self.nodes_version += 1
        self._occupied(node.name)
        self._cards_changed(self.inventory.put(node), node.name)

    def drop_node(self, name: str) -> None:
        """Takes out a node."""
        if self.nodes.pop(name, None) is not None:
            self.nodes_version += 1
            self._occupied(name)
            self._cards_changed(self.inventory.drop(name), name)

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _cards_changed(self, cards: Iterable[str], node: str) -> None:
        # New room may let in any pod that waits for room, whatever its queue.
        self.dirty.update(name for name, account in self.accounts.items() if account.waiting_pods)
        for card in cards:
            self._rebook(self._by_card.get(card))
        self._rebook(self.on_node.get(node))

    def _mark(self, queue: str) -> None:
        self.dirty.add(queue)
        self.touched.add(queue)

    def _rebook(self, uids: Iterable[str]) -> None:
        for uid in tuple(uids):
            pod = self.pod(uid)
            if pod is not None:
                self._book(pod)

    def _book(self, pod: Pod) -> None:
        old = self._entries.get(pod.uid)
        self._index(pod)
        new = self._entry_of(pod)
        if old == new:
            return
        if old is not None:
            self._unbook(pod.uid)
        if new is not None:
            self._entries[pod.uid] = new
            self.accounts[new.queue].add(new, 1)
            if new.stage is Stage.RESERVED and new.demand.mgpu is not None:
                self.reserved_shares.add(pod.uid)
            self.touched.add(new.queue)
            if new.stage is Stage.WAITING:
                self.dirty.add(new.queue)

    def _unbook(self, uid: str) -> None:
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        account = self.accounts[entry.queue]
        account.add(entry, -1)
        self.reserved_shares.discard(uid)
        self.touched.add(entry.queue)
        if entry.stage is not Stage.WAITING:
            self._room_freed()
        if account.waiting_pods:
            self.dirty.add(entry.queue)
        if (
            not (account.waiting_pods or account.allocated or account.reserved)
            and entry.queue not in self.queues
        ):
            del self.accounts[entry.queue]

    def _entry_of(self, pod: Pod) -> Entry | None:
        stage = stage_of(pod)
        if stage is Stage.IGNORED:
            return None
        demand = demand_of(pod, self.inventory, self.settings)
        return Entry(pod, stage, self.attribution(pod), demand, demand.amounts)

    def attribution(self, pod: Pod) -> Attribution:
        """The queue that a pod charges, by the objects known now."""
        group = self._groups.get(f"{pod.namespace}/{pod.group_name}") if pod.group_name else None
        job = self._jobs.get(f"{pod.namespace}/{pod.owner.name}") if pod.owner and owned_by_job(pod) else None
        if job is not None and pod.owner is not None and pod.owner.uid and job.uid != pod.owner.uid:
            job = None
        namespace = self._namespaces.get(pod.namespace)
        return attribute(pod, group, job, namespace, self.settings.queue.default)

    def _index(self, pod: Pod) -> None:
        uid, asks = pod.uid, pod.asks
        self._by_group.put(uid, f"{pod.namespace}/{pod.group_name}" if asks and pod.group_name else None)
        self._by_job.put(
            uid, f"{pod.namespace}/{pod.owner.name}" if asks and pod.owner and owned_by_job(pod) else None
        )
        self._by_namespace.put(uid, pod.namespace if asks else None)
        self._by_card.put(uid, *pod.card_name.split("|") if pod.card_name else ())
        # The node that a pod leaves changes too: a bind that was assumed and taken back must give its room back.
        for node in {*self.on_node.values(uid), pod.node_name} - {""}:
            self._occupied(node)
        if self.on_node.put(uid, pod.node_name if pod.bound and not pod.terminal else None):
            self._room_freed()

    def _unindex(self, uid: str) -> None:
        for node in self.on_node.values(uid):
            self._occupied(node)
        for index in (self._by_group, self._by_job, self._by_namespace, self._by_card):
            index.put(uid)
        if self.on_node.put(uid):
            self._room_freed()

    def _occupied(self, node: str) -> None:
        self.occupancy[node] += 1
        self.occupancy_changes += 1

    def _room_freed(self) -> None:
        self.dirty |= self.wants_room
        self.wants_room.clear()


def _overtaken(assumed: Pod, observed: Pod) -> bool:
    """Whether the watch shows what was assumed (a lift or a bind), or the pod's end, which comes before either."""
    if observed.bound or observed.deleting or observed.terminal:
        return True
    return not observed.gated and not assumed.bound
