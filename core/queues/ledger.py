"""Who uses what: every pod that asks for something of ours, the queue it charges, and the sums.

The ledger is derived from API objects alone and follows them one change at a time; each change costs what it
touches, not what exists. What the controller has decided but the watch has not shown yet is laid over the observed
pods (`assume`) and taken back when the write fails (`forget`).
"""

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from operator import attrgetter

from core import names
from core.cards.expression import BAR, split
from core.index import Index
from core.objects import DeviceClass, Group, Job, Namespace, Node, Pod, Queue
from core.queues.amounts import CPU_AND_MEMORY
from core.queues.backlog import Backlog
from core.queues.books import Books
from core.queues.counting import Counting
from core.queues.entry import Entry
from core.queues.limits import limits_of
from core.queues.membership import Membership
from core.queues.occupants import occupies
from core.queues.premises import NodeChange
from core.settings import Settings
from core.stage import Stage
from core.steps import Steps

_terms = attrgetter("card_quota", "capability", "state", "fifo", "has_capability")


_BESIDE = 100
"""Pods whose queue is looked at again when a PodGroup changes that they name beside a gang of their own."""


class Ledger(Books):
    """The books of all queues, kept. Not safe for use from several threads.

    Claims and their templates are put into `devices`.

    A change that concerns many pods (a namespace or a PodGroup that names another queue, a queue that is closed to many, a
    card that is another resource) is taken in at once; the pods that it concerns are booked anew by `settle`, and until then
    as they were before.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._backlog = Backlog(self._book_again, self._waits)
        self._by_card = Index()
        self._counting = Counting(
            settings, self.stages, self.inventory, self._weights, self.access, self._sources
        )
        self._membership = Membership(self.groups, self._sources, self._group_changed)

    # -- pods ------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod as observed.

        Left out is a pod that asks for nothing of ours, uses nothing of a queue or a node, and belongs to no group.
        """
        if not (pod.asks or pod.gated or pod.group_key or occupies(pod) or self.stages.holds(pod)):
            self.drop_pod(pod.uid)
            return
        self._touch(pod.uid)
        self._book(self._states.see(self.naming.named(pod)))

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod that is gone. Unknown UIDs are fine: a missed delete may be found twice."""
        self._touch(uid)
        self._membership.drop(uid, self._states.drop(uid))
        entry = self.entry(uid)
        if entry is not None:
            self._entries.replace(entry, None)
        self._sources.unfollow(uid)
        self.naming.drop(uid)
        self._by_card.put(uid)
        self.stages.overrun.discard(uid)
        self._cpu_memory_freed(self._weights.drop(uid))
        self.devices.drop_pod(uid)
        self._left(self.occupants.drop(uid))

    def assume(self, pod: Pod) -> None:
        """Books a pod as it will be once the write under way, a lift or a bind, has gone through."""
        self._touch(pod.uid)
        self._states.assumed[pod.uid] = pod
        self.groups.put_pod(pod)
        old = self.entry(pod.uid)
        if old is None:
            self._book(pod)
            return
        if pod.bound:
            self._left(self.occupants.put(pod))
        # Neither write changes the queue, and a lift nothing of what a pod asks for that had no choice.
        # Of shares it finds out the card.
        lifts = old.stage is Stage.WAITING and not pod.bound and BAR not in pod.card_name
        lifts = lifts and names.SHARE_CARD_ANNOTATION not in pod.annotations
        self._enter(pod, old, self._counting.entry_of(pod, old.attribution, old.demand if lifts else None))

    def let_in(self, pod: Pod) -> None:
        """`assume` for the lift of a pod that waits for the only card that it names, in a queue that exists.

        It has the record of that card, and our gate no more. Wakes nobody: what it takes from others of its queue helps none
        of them.
        """
        self.changes += 1
        self.admissions += 1
        self._states.assumed[pod.uid] = pod
        if pod.group_key:
            self.groups.put_pod(pod)
        waiting = self._entries.by_uid[pod.uid]
        lifted = waiting.lifted(pod)
        self.cpu_memory.put(pod.uid, lifted.queue, lifted.demand.cpu_memory)
        self.devices.put_pod(pod, lifted.stage, lifted.queue)
        self._entries.let_in(waiting, lifted)

    def forget(self, uid: str) -> None:
        """Takes an assumption back: the write has failed for good."""
        if self._states.assumed.pop(uid, None) is None:
            return
        self.touched.note(uid)
        unnamed = self.naming.as_it_is(uid)
        observed = self._states.see(self.naming.named(unnamed)) if unnamed is not None else self.pod(uid)
        if observed is not None:
            self._book(observed)
        else:
            # Assumed before the watch showed the pod at all.
            self.drop_pod(uid)

    def retract(self, assumed: Pod) -> None:
        """Takes this very assumption back; nothing when another one, of a bind, has taken its place."""
        if self.assumed(assumed.uid) is assumed:
            self.forget(assumed.uid)

    def retract_all(self, assumed: Iterable[Pod]) -> None:
        """Takes these assumptions back. Many pods stay booked by them until `settle`."""
        self._forget_these([pod.uid for pod in assumed if self.assumed(pod.uid) is pod])

    def forget_all(self) -> None:
        """Takes every assumption and every move back: the time of leading is over. Many pods stay booked by them until `settle`."""
        moving = tuple(self._states.moving)
        self._states.moving.clear()
        self._forget_these((*self._states.assumed, *moving))

    def _forget_these(self, uids: Collection[str]) -> None:
        for uid in uids:
            self._states.assumed.pop(uid, None)
        self._backlog.put(uids)

    def move_room(self, uid: str, node: str) -> None:
        """Books the room of a pod on another node than the one that it was nominated for; it is to be nominated for this one."""
        self._states.moving[uid] = node
        self._book_moved(uid)

    def keep_room(self, uid: str) -> None:
        """Takes a move back: the pod stays nominated for the node that it was; nothing where none is under way."""
        if self._states.moving.pop(uid, None) is not None:
            self._book_moved(uid)

    def _book_moved(self, uid: str) -> None:
        pod = self.pod(uid)
        if pod is not None:
            self._touch(uid)
            self._book(pod)

    def fix_queue(self, pod: Pod) -> str:
        """From now on a pod that was let in without a record charges the queue that it does now, whatever changes."""
        return self._sources.fix(pod)

    def release_queues(self) -> None:
        """Takes `fix_queue` back: the time of leading is over, and another leader has its own view of such pods."""
        self._backlog.put(self._sources.release())

    # -- what pods depend on -----------------------------------------------------------------------------------

    def put_queue(self, queue: Queue) -> None:
        """Takes in a queue; its waiting pods are looked at again when quota or state changed."""
        self.changes += 1
        old = self.queues.get(queue.name)
        self.queues[queue.name] = queue
        self.limits[queue.name] = limits_of(queue)
        self.wakeups.publish(queue.name)
        moved = self.tree.put(queue.name, queue.parent)
        self.devices.put_queue(queue, moved=moved)
        if self.subtrees is not None:
            self._limits_changed(old, queue, moved=moved)
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
        self.tree.drop(name)
        self.devices.drop_queue(name)
        if self.subtrees is not None:
            self.subtrees.moved(name)
        if self.capacity.drop_queue(name):
            self.wakeups.capacity_changed()
        self.wakeups.help(name)
        self.wakeups.publish(name)
        self._entries.forget_unused(name)
        self._backlog.put(self.access.queue_changed(name, old, None))

    def _limits_changed(self, old: Queue | None, new: Queue, *, moved: bool) -> None:
        """Has those below a queue charged and looked at by what it says now."""
        assert self.subtrees is not None
        if moved:
            self.subtrees.moved(new.name)
        if old is None or _terms(old) != _terms(new):
            self.subtrees.queue_changed(new.name)

    def put_group(self, group: Group) -> None:
        """Takes in a PodGroup; its pods may charge another queue now, and fewer of them may be enough."""
        self.changes += 1
        if group.kubernetes:
            self.serve_groups(True, names.KUBERNETES_GROUPS)
        old = self._sources.group(group.key)
        self.groups.put_group(group)
        self._backlog.put(self._sources.put_group(group))
        self._group_changed(group.key)
        if old is None or old.min_member != group.min_member:
            # Gangs that such pods name themselves may start with it, or wait for it; they are of one queue.
            beside = (self.entry(uid) for uid in islice(self._sources.beside(group.key), _BESIDE))
            self.wakeups.help(*{entry.queue for entry in beside if entry is not None})

    def drop_group(self, key: str) -> None:
        """Takes out a PodGroup; nothing holds its pods together any more."""
        self.changes += 1
        self.groups.drop_group(key)
        self._backlog.put(self._sources.drop_group(key))
        self._group_changed(key)

    def serve_groups(self, served: bool, of: str = names.VOLCANO_GROUPS) -> None:
        """Takes in whether there are PodGroups of an API group at all.

        That there are none is not believed any more once there were.
        """
        if served and of not in self.groups_served:
            self.changes += 1
            self.groups_served.add(of)

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

    @property
    def sums_settled(self) -> bool:
        """Whether all that holds or uses something is: then nobody is let in beyond a quota."""
        return not self._backlog.of_sums

    def settle(self) -> Steps[None]:
        """Books anew the pods that changes of something else have left behind.

        Afterwards the sums are right. Pods at the gate may be left behind again by changes that came meanwhile.
        """
        yield from self._backlog.settle()

    def left_behind(self, uid: str) -> bool:
        """Whether a pod is still to be booked by what is known now: until then nothing is decided on it."""
        return uid in self._backlog

    def current(self, entry: Entry) -> Entry | None:
        """The entry of the pod as it is now; None when what decides about the pod is not what it was, or is not booked yet."""
        return None if self.left_behind(entry.pod.uid) else super().current(entry)

    def _waits(self, uid: str) -> bool:
        entry = self.entry(uid)
        return entry is not None and entry.stage is Stage.WAITING

    def counted_anew(self, pod: Pod) -> Entry | None:
        """What the books should have of a pod by what is known now; None where it has no place in them."""
        return self._counting.entry_of(pod)

    def entry_before_end(self, pod: Pod) -> Entry:
        """What the books would have had of a pod that has ended, by its records and by what is known now."""
        return self._counting.entry_before_end(pod)

    def follow(self, follower: Callable[[str], None]) -> None:
        """Tells the UID of each pod from now on whose place in the books changes; there is one follower."""
        self._entries.follower = self.devices.book.follower = follower

    def _book_again(self, uid: str) -> None:
        unnamed = self.naming.as_it_is(uid)
        if unnamed is not None and self.assumed(uid) is None:
            self.put_pod(unnamed)
            return
        pod = self.pod(uid)
        if pod is not None:
            self._touch(uid)
            self._book(pod)
        elif self.entry(uid) is not None:
            # Assumed before the watch showed the pod at all, and taken back since.
            self.drop_pod(uid)

    def _node_changed(self, name: str, change: NodeChange) -> None:
        self.changes += 1
        for card in sorted(change.remapped):
            self._backlog.put(self._by_card.get(card))
        if change.remapped:
            for uids in self._weights.relearn(self.inventory):
                self._backlog.put(uids)
            self._backlog.put(self.naming.relearn())
            # What there is to say about a queue may hang on which resource a card is.
            self.wakeups.publish(*self.queues)
        if change.recarded:
            self._backlog.put(self.occupants.on(name))
        # New room may let in any pod that waits for room, whatever its queue.
        self.wakeups.room_freed(change.room)

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _touch(self, uid: str) -> None:
        """Notes a change of a pod."""
        self.changes += 1
        self.touched.note(uid)

    def _book(self, pod: Pod) -> None:
        self._sources.follow(pod)
        self._membership.put(pod)
        if occupies(pod):
            self._by_card.put(pod.uid, *split(pod.card_name))
            self._weights.follow(pod)
            self._left(self.occupants.put(pod))
        else:
            self._left(self.occupants.put_beside(pod))
        self._enter(pod, self.entry(pod.uid), self._counting.entry_of(pod))

    def _enter(self, pod: Pod, old: Entry | None, new: Entry | None) -> None:
        """Puts the new entry of a pod in the place of the old one."""
        self._cpu_memory_freed(self._weights.put(pod, new))
        if old != new:
            self.devices.put_pod(pod, *((new.stage, new.queue) if new is not None else (Stage.IGNORED, "")))
            self._entries.replace(old, new)

    def _group_changed(self, key: str) -> None:
        """Has the waiting members looked at again: their number may suffice now."""
        self.wakeups.help(*self._entries.queues_with(key))

    def _cpu_memory_freed(self, queue: str) -> None:
        """CPU or memory came free in a queue; '' for in none."""
        self.wakeups.cpu_memory_freed(queue)
        if queue and self.subtrees is not None:
            self.subtrees.freed(queue, CPU_AND_MEMORY)

    def _left(self, node: str) -> None:
        """Room came free on a node, for whatever it carries; '' for nowhere."""
        if node and self.wakeups.room_awaited:
            self.wakeups.room_freed(self._premises.room_on(node))
