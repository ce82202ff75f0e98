"""Who uses what, for whoever asks: pods and their queues, sums, and what has changed since one looked last."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from core import names
from core.hierarchy import QueueTree
from core.mgpu.arrangement import Places
from core.objects import Group, Node, Pod, Queue, group_key
from core.queues.access_book import AccessBook
from core.queues.account import NOTHING, Account, Sums
from core.queues.attribution import Attribution, Source
from core.queues.capacity import Capacity
from core.queues.cpu_memory_book import CpuMemoryBook
from core.queues.devices import Devices
from core.queues.entries import Entries
from core.queues.entry import Entry, ShareKey
from core.queues.group_book import GroupBook
from core.queues.group_minimum import minimum_of
from core.queues.journal import Journal
from core.queues.limits import Limits
from core.queues.naming import Naming
from core.queues.pod_states import PodStates
from core.queues.premises import Premises
from core.queues.sources import QueueSources
from core.queues.subtrees import Subtrees
from core.queues.wakeups import Wakeups
from core.queues.weights import Weights
from core.settings import Settings
from core.stage import Stages
from core.steps import Steps, finish

_NOBODY: Final[Mapping[str, Entry]] = {}
_NO_TASKS: Final[Mapping[str, Mapping[str, int]]] = {}


class Books:
    """The books of all queues as they are; nothing here changes them, see core.queues.ledger.

    `queues`, `limits`, `accounts` and `nodes` are read by name; a queue that does not exist has an account as long as
    pods charge it. `capacity` and `cpu_memory` say what queues may use and use of CPU and memory, `devices` the same of
    the devices that pods claim. `access` says who may use which queue. `wakeups` is told what each change may have helped.
    `changes` grows with every change, whoever made it. What is a Mapping or a Set here is the owner's own, to be read alone.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stages = Stages(settings)
        self.wakeups = Wakeups()
        self._premises = Premises(settings)
        self.nodes: Final[Mapping[str, Node]] = self._premises.nodes
        self.inventory = self._premises.inventory
        self.occupants = self._premises.occupants
        self.groups = GroupBook(self.stages)
        self._groups_served = set[str]()
        self.groups_served: Final[AbstractSet[str]] = self._groups_served
        """The API groups of which PodGroups can be made here: who goes by those of one names it on each pod, sooner or later."""
        self._places: dict[str, Places] = {}
        self.places: Final[Mapping[str, Places]] = self._places
        """By node, where those on their way there had room at once when it was asked last; nothing is right because of it."""
        self.changes = 0
        self.touched = Journal[str]()
        """The pods that came, changed or went, and of which something was assumed or taken back, by UID; but not let in."""
        self.admissions = 0
        """How many of the changes have let a pod in that waited for one card, and done nothing else."""
        self._queues: dict[str, Queue] = {}
        self.queues: Final[Mapping[str, Queue]] = self._queues
        self._limits: dict[str, Limits] = {}
        self.limits: Final[Mapping[str, Limits]] = self._limits
        self.access = AccessBook(self.queues, settings.queue.access)
        self.tree = QueueTree()
        """The queues by their parents; whether that says anything about their limits is a question of the settings."""
        self._entries = Entries(self.wakeups, self.queues, self.access)
        self.accounts: Final[Mapping[str, Account]] = self._entries.accounts
        self.subtrees: Subtrees | None = None
        """What is used below each queue; None where card quotas do not hold through the tree."""
        self.cpu_memory = CpuMemoryBook()
        if settings.cards.hierarchy:
            self.subtrees = Subtrees(self.tree, self.accounts, self.queues, self.limits, self.wakeups)
            self.cpu_memory = self.subtrees.cpu
        self._entries.subtrees = self.subtrees
        levels = self.tree if settings.cards.hierarchy else None
        self.capacity = Capacity(settings.cards.unset_cpu_memory, levels)
        self._weights = Weights(
            settings, self.stages, lambda pod: self.attribution(pod).queue, self.cpu_memory
        )
        self.devices = Devices(settings, self.tree, self.wakeups.changed, self.inventory, self.limits)
        if self.subtrees is not None and self.devices.linked:
            self.subtrees.devices = self.devices
        self._sources = QueueSources(settings.queue.default, self.access)
        self.naming = Naming(settings, self.inventory)
        self._states = PodStates(self.stages)

    def entry(self, uid: str) -> Entry | None:
        """The books' view of a pod: as assumed where a decision is under way, else as observed."""
        return self._entries.by_uid.get(uid)

    def current(self, entry: Entry) -> Entry | None:
        """The entry of the pod as it is now; None when what decides about the pod is not what it was."""
        now = self.entry(entry.pod.uid)
        return now if now is entry or (now is not None and entry.alike(now)) else None

    def entries(self) -> Iterable[Entry]:
        """Every pod in the books; of thousands the order differs from process to process."""
        return self._entries.by_uid.values()

    @property
    def by_uid(self) -> Mapping[str, Entry]:
        """The same by UID."""
        return self._entries.by_uid

    def assumed(self, uid: str) -> Pod | None:
        """A pod as a decision under way has left it; None where there is none, or the watch has shown its outcome."""
        return self._states.assumed.get(uid)

    def moving_to(self, uid: str) -> str:
        """The node to which the room of a pod is being moved; empty where none is."""
        return self._states.moving.get(uid, "")

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
        """What a queue itself has allocated and reserved of one key; of a card by claims as well, where these are the same devices."""
        if key in self.devices.linked:
            return self.devices.card_used(queue, key)
        account = self.accounts.get(queue)
        return account.used(key) if account is not None else 0

    def sums(self, queue: str) -> Sums:
        """What the pods of a queue use, hold and wait for, those below it among them where quotas hold for these too."""
        own: Sums = self.accounts.get(queue, NOTHING)
        below = self.subtrees.below(queue) if self.subtrees is not None else NOTHING
        if below is NOTHING:
            return own
        both = Sums()
        both.add_all(own, 1)
        both.add_all(below, 1)
        return both

    def with_those_above(self, queue: str) -> Sequence[str]:
        """The queue, and the queues above it whose card quotas hold for it."""
        return (queue,) if self.subtrees is None else self.subtrees.chain(queue).queues

    def reserved(self, key: str) -> int:
        """What all queues together have reserved of a card, mGPU shares of it left out: those are on other nodes."""
        return self._entries.reserved(key)

    @property
    def reserved_shares(self) -> Mapping[ShareKey, Entry]:
        """The mGPU pods that are lifted but have no node yet."""
        return self._entries.shares

    def led_to(self, node: str) -> Mapping[str, Entry]:
        """Those of them for which room is booked on a node, by UID."""
        return self._entries.shares_to.get(node, _NOBODY)

    def tasks_led(self, group: str) -> Mapping[str, Mapping[str, int]]:
        """How many of them that are members of a PodGroup, `namespace/name`, were narrowed to which node, by task.

        Those that may go anywhere are under no name.
        """
        return self._entries.shares_of.get(group, _NO_TASKS)

    @property
    def shares_changed(self) -> Journal[ShareKey]:
        """Which of them have come, changed or gone."""
        return self._entries.shares_changed

    def waiting(self, queue: str) -> list[Entry]:
        """The waiting pods of a queue in the order in which they are considered."""
        return finish(self.line_of(queue))

    def line_of(self, queue: str) -> Steps[list[Entry]]:
        """The same in steps, of those who neither come nor go meanwhile."""
        account = self.accounts.get(queue)
        return (yield from account.line.entries()) if account is not None else []

    def group_of(self, pod: Pod) -> Group | None:
        """Those with whom a pod starts: its gang, or the PodGroup that it names; None while that does not exist."""
        return self._sources.group_of(pod)

    def pod_group_of(self, pod: Pod) -> Group | None:
        """The PodGroup of Volcano that a pod names, None while it does not exist."""
        return self._sources.pod_group_of(pod)

    def missing_group(self, pod: Pod) -> str | None:
        """The key of the first PodGroup that a pod names and that is not there; None when all are.

        None of Kubernetes is missed where the API server has no such kind to read.
        """
        for key in pod.pod_groups:
            if self._sources.group(key) is None and (
                not group_key.is_kubernetes(key) or names.KUBERNETES_GROUPS in self.groups_served
            ):
                return key
        return None

    def group(self, key: str) -> Group | None:
        """The PodGroup, or the gang, of this key; None while it does not exist."""
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

    def has_members(self, group: Group) -> bool:
        """Whether there is any of these."""
        return bool(self._sources.members(group.key))

    def others_are_in(self, pod: Pod) -> bool:
        """Whether another member of the pod's gang or PodGroup is seen lifted or bound and has not ended; lifts under way do not count.

        The PodGroup itself need not be there. Members that ask for nothing of ours are not looked at.
        """
        return self._others_in(pod) > 0

    def others_wait_for(self, pod: Pod, together: int) -> bool:
        """Whether others of the pod's gang are in, as for `others_are_in`, that may not start without it: so many have to be.

        Where tasks have a minimum of their own it may be the one that a task lacks, however many are in.
        """
        others = self._others_in(pod)
        return others > 0 and (others < together or bool(minimum_of(self.group_of(pod)).tasks))

    def _others_in(self, pod: Pod) -> int:
        return self._states.begun.by_others(self.observed(pod.uid) or pod)

    def members_of(self, group: str) -> Collection[str]:
        """The UIDs of all members of a PodGroup, `namespace/name`, as of now: it may change while they are gone through."""
        return tuple(self._sources.members(group))

    def entries_of(self, group: str) -> Iterable[Entry]:
        """The books' view of the members of a PodGroup, `namespace/name`; of those that are in the books."""
        found = (self.entry(uid) for uid in self.members_of(group))
        return (entry for entry in found if entry is not None)

    def attribution(self, pod: Pod) -> Attribution:
        """The queue that a pod charges: by its record where it was let in, else by the objects known now."""
        return self._sources.attribution(pod)

    def queue_source(self, pod: Pod) -> Source:
        """What says that a pod charges its queue."""
        return self._sources.source(pod)
