"""Who uses what: every pod that asks for something of ours, the queue it charges, and the sums; and what pods depend on.

The ledger is derived from API objects alone and follows them one change at a time; each change costs what it
touches, not what exists. What the controller has decided but the watch has not shown yet is laid over the observed
pods (`assume`) and taken back when the write fails (`forget`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter

from core import names
from core.mgpu.arrangement import Places
from core.objects import DeviceClass, Group, Job, Namespace, Node, Queue
from core.queues.limits import limits_of
from core.queues.pod_booking import PodBooking
from core.queues.premises import NodeChange
from core.queues.recount import Recount

_terms = attrgetter("card_quota", "capability", "state", "fifo", "has_capability")


class Ledger(PodBooking):
    """The books of all queues, kept. Not safe for use from several threads.

    Claims and their templates are put into `devices`.

    A change that concerns many pods (a namespace or a PodGroup that names another queue, a queue that is closed to many, a
    card that is another resource) is taken in at once; the pods that it concerns are booked anew by `settle`, and until then
    as they were before.
    """

    def put_queue(self, queue: Queue) -> None:
        """Takes in a queue; its waiting pods are looked at again when quota or state changed."""
        self.changes += 1
        old = self.queues.get(queue.name)
        self._queues[queue.name] = queue
        self._limits[queue.name] = limits_of(queue)
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
        old = self._queues.pop(name, None)
        self._limits.pop(name, None)
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
            # Gangs that such pods name themselves may start with it, or wait for it.
            self.wakeups.help(*self._entries.queues_beside(group.key))

    def drop_group(self, key: str) -> None:
        """Takes out a PodGroup; nothing holds its pods together any more."""
        self.changes += 1
        self.groups.drop_group(key)
        self._backlog.put(self._sources.drop_group(key))
        self._group_changed(key)
        # Those of other gangs are told what they wait for.
        self.wakeups.help(*self._entries.queues_beside(key))

    def serve_groups(self, served: bool, of: str = names.VOLCANO_GROUPS) -> None:
        """Takes in whether there are PodGroups of an API group at all.

        That there are none is not believed any more once there were.
        """
        if served and of not in self.groups_served:
            self.changes += 1
            self._groups_served.add(of)

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
        self._backlog.put([*moved, *judged_anew, *renamed])

    def drop_namespace(self, name: str) -> None:
        """Takes out a namespace."""
        self.changes += 1
        judged_anew = self.access.drop_namespace(name)
        moved = self._sources.drop_namespace(name)
        renamed = self.naming.drop_namespace(name)
        self._backlog.put([*moved, *judged_anew, *renamed])

    def put_node(self, node: Node) -> None:
        """Takes in a node. Pods are counted anew that are on it, and those of a card that is another resource now."""
        if self.capacity.put_node(node):
            self.wakeups.capacity_changed()
        self._node_changed(node.name, self._premises.put(node))

    def drop_node(self, name: str) -> None:
        """Takes out a node."""
        self._places.pop(name, None)
        change = self._premises.drop(name)
        if change is not None:
            if self.capacity.drop_node(name):
                self.wakeups.capacity_changed()
            self._node_changed(name, change)

    def keep_places(self, node: str, places: Places) -> None:
        """Keeps in mind where one that is bound and those on their way to a node have room at once, if it is of use."""
        if len(places) > 1:
            self._places[node] = places
        elif len(self.led_to(node)) <= 1:
            self._places.pop(node, None)

    def put_class(self, device_class: DeviceClass) -> None:
        """Takes in a DeviceClass; it may serve extended resources, and give out devices that queues know as cards."""
        self.devices.put_class(device_class)
        self.wakeups.publish(*self.queues)

    def drop_class(self, name: str) -> None:
        """Takes out a DeviceClass; what it serves costs the same until `release_resource`, or until another one serves it."""
        self.devices.drop_class(name)
        self.wakeups.publish(*self.queues)

    def release_resource(self, resource: str) -> None:
        """An extended resource whose DeviceClass is gone costs nothing any more."""
        self.devices.release_resource(resource)

    @contextmanager
    def recounted(self) -> Iterator[Recount]:
        """A recount of all entries that is told of each change until the end; one at a time."""
        recount = self._entries.recount = Recount(self.with_those_above)
        try:
            yield recount
        finally:
            if self._entries.recount is recount:
                self._entries.recount = None

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
