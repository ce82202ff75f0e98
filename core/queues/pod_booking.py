"""Pods in the books: taken in and out, assumed and taken back, and booked anew when something else has changed."""

from collections.abc import Callable, Collection, Iterable

from core import names
from core.cards.expression import BAR, split
from core.index import Index
from core.objects import Pod
from core.queues.amounts import CPU_AND_MEMORY
from core.queues.backlog import Backlog
from core.queues.books import Books
from core.queues.counting import Counting
from core.queues.entry import Entry
from core.queues.membership import Membership
from core.queues.occupants import occupies, on_its_node
from core.settings import Settings
from core.stage import Stage
from core.steps import Steps


class PodBooking(Books):
    """The books as far as pods change them; what pods depend on is the ledger's."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._not_taken_in: dict[str, Pod] = {}
        """Of some who wait to be booked anew, the state in which they were observed last."""
        self._backlog = Backlog(self._book_again, self._book_devices, self._granted, self._leave_behind)
        behind = self.devices.book.behind
        behind.defer, behind.coming = self._defer, lambda: self._backlog.coming
        self._by_card = Index()
        self._counting = Counting(
            settings, self.stages, self.inventory, self._weights, self.access, self._sources
        )
        self._membership = Membership(self.groups, self._sources, self._group_changed)
        self.devices.book.follower = self._claims_changed

    # -- pods ------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod as observed.

        Left out is a pod that asks for nothing of ours, uses nothing of a node, and belongs to no group. One that has given its
        quota back uses its node until it ends.
        """
        if not (pod.asks or pod.gated or pod.group_key or occupies(pod) or on_its_node(pod)):
            self.drop_pod(pod.uid)
            return
        self._touch(pod.uid)
        self._not_taken_in.pop(pod.uid, None)
        counts = self._states.see(self.naming.named(pod))
        old = self.entry(pod.uid)
        if old is not None and self._is_restated(old, counts):
            self._follow(counts)
            self.devices.put_pod(counts, old.stage, old.queue)
            self._entries.restate(old.restated(counts))
        else:
            self._book(counts)

    def put_all(self, pods: Collection[Pod]) -> None:
        """Takes in pods as observed. Many stay what they were until `settle`, unless somebody puts or drops them before."""
        for pod in pods:
            self._not_taken_in[pod.uid] = pod
        self._backlog.put([pod.uid for pod in pods])

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod that is gone. Unknown UIDs are fine: a missed delete may be found twice."""
        self._touch(uid)
        self._not_taken_in.pop(uid, None)
        self._membership.drop(uid, self._states.drop(uid))
        entry = self.entry(uid)
        if entry is not None:
            self._entries.replace(entry, None)
        self._sources.unfollow(uid)
        self.naming.drop(uid)
        self._by_card.put(uid)
        self.stages.count_no_more(uid)
        self._cpu_memory_freed(self._weights.drop(uid))
        self.devices.drop_pod(uid)
        self._left(self.occupants.drop(uid))

    def assume(self, pod: Pod) -> None:
        """Books a pod as it will be once the write under way, a lift or a bind, has gone through."""
        self._touch(pod.uid)
        self._states.assumed[pod.uid] = pod
        self.groups.put_pod(pod)
        old = self.entry(pod.uid)
        if old is None or self.left_behind(pod.uid):
            # Of one without gate that is bound before it was booked anew, the record names another queue than the books do.
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
        self._backlog.note_granted(pod.uid)

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
        booked = self._states.assumed
        self._forget_these([pod.uid for pod in assumed if booked.get(pod.uid) is pod])

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

    # -- what is to be counted anew ------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether every pod is booked by what is known now."""
        return not self._backlog

    @property
    def sums_settled(self) -> bool:
        """Whether all is that holds or uses what somebody granted it: then nobody is let in beyond a quota.

        Of very many that are left behind it is known after `sift` alone; until then it is said that it may not be so.
        """
        return not self._backlog.of_sums

    def settle(self) -> Steps[None]:
        """Books anew the pods that changes of something else have left behind.

        Afterwards the sums of what was granted are right. Pods to which nothing was may be left behind again by changes that came
        meanwhile.
        """
        yield from self._backlog.settle()

    def settle_sums(self) -> Steps[None]:
        """The same of those alone that hold what somebody granted them."""
        yield from self._backlog.settle_sums()

    def sift(self) -> Steps[None]:
        """Finds out whether those who are left behind hold what somebody granted them, for whoever asks for `sums_settled`."""
        yield from self._backlog.sift()

    def left_behind(self, uid: str) -> bool:
        """Whether a pod is still to be booked by what is known now: until then nothing is decided on it."""
        return uid in self._backlog

    def current(self, entry: Entry) -> Entry | None:
        """The entry of the pod as it is now; None when what decides about the pod is not what it was, or is not booked yet."""
        return None if self.left_behind(entry.pod.uid) else super().current(entry)

    def _granted(self, uid: str) -> bool:
        """Whether a pod holds what somebody granted it. A pod without gate that nobody let in is judged at its bind."""
        entry = self.entry(uid)
        return entry is not None and entry.stage is not Stage.WAITING and not entry.unlifted

    def counted_anew(self, pod: Pod) -> Entry | None:
        """What the books should have of a pod by what is known now; None where it has no place in them."""
        return self._counting.entry_of(pod)

    def entry_before_end(self, pod: Pod) -> Entry:
        """What the books would have had of a pod that has ended, by its records and by what is known now."""
        return self._counting.entry_before_end(pod)

    def follow_left_behind(self, follower: Callable[[], None]) -> None:
        """Calls from now on whenever a change has left pods behind, for whoever sees to it that `settle` is run."""
        self._backlog.follower = follower

    def follow(self, follower: Callable[[str], None]) -> None:
        """Tells the UID of each pod from now on whose place in the books changes; there is one follower."""
        self._entries.follower = follower

    def _defer(self, uids: Collection[str]) -> bool:
        """Has pods booked anew by `settle` for whom something has changed on which devices depend, if they are many."""
        if not self._backlog.put_devices(uids):
            return False
        # Whoever decides on one of them at present has read what is not so any more.
        self.changes += len(uids)
        self.touched.note_all(uids)
        return True

    def _leave_behind(self, uid: str) -> None:
        """Has the devices of a pod counted anew when it is booked next; it may have gone meanwhile."""
        if self.pod(uid) is not None:
            self.devices.book.behind.note(uid)

    def _book_again(self, uid: str) -> None:
        seen = self._not_taken_in.get(uid)
        if seen is not None:
            self.put_pod(seen)
            return
        unnamed = self.naming.as_it_is(uid)
        if unnamed is not None and self.assumed(uid) is None:
            # It is at our gate, so that it is booked anew and not only stated anew.
            self.put_pod(unnamed)
            return
        pod = self.pod(uid)
        if pod is not None:
            self._touch(uid)
            self._book(pod)
        elif self.entry(uid) is not None:
            # Assumed before the watch showed the pod at all, and taken back since.
            self.drop_pod(uid)

    def _book_devices(self, uid: str) -> None:
        """Has the devices of a pod booked anew; all else in its entry is what it was."""
        entry = self.entry(uid)
        if entry is None:
            self._book_again(uid)
            return
        self._touch(uid)
        self.devices.put_pod(entry.pod, entry.stage, entry.queue)

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _touch(self, uid: str) -> None:
        """Notes a change of a pod."""
        self.changes += 1
        self.touched.note(uid)

    def _claims_changed(self, uid: str) -> None:
        """Notes that the claims of a pod are counted as others by what is known of them now; whoever decides has read the old ones."""
        self._touch(uid)
        if self._entries.follower is not None:
            self._entries.follower(uid)

    def _book(self, pod: Pod) -> None:
        self._follow(pod)
        if occupies(pod):
            self._by_card.put(pod.uid, *split(pod.card_name))
            self._weights.follow(pod)
            self._left(self.occupants.put(pod))
        else:
            self._left(self.occupants.put_beside(pod))
        self._enter(pod, self.entry(pod.uid), self._counting.entry_of(pod))

    def _follow(self, pod: Pod) -> None:
        """Takes in what a pod says of its queue, and of those with whom it starts: its lift is stored, and others may go by that."""
        self._sources.follow(pod)
        self._membership.put(pod)

    def _is_restated(self, old: Entry, pod: Pod) -> bool:
        """Whether no sum is otherwise in this state of a pod that was let in: its lift is stored, or it runs on its node.

        What has changed beside such a pod is booked by whoever says so. Its record may name the queue that nobody named before.
        Whether a pod runs may decide about its claims, and about the cards of its shares.
        """
        return (
            pod.let_in
            and old.demand.mgpu is None
            and not old.uncounted
            and pod.restates(old.pod)
            and self.stages.of(pod) is old.stage
            and self._sources.attribution(pod) == old.attribution
            and not (self.devices.concerns(old.pod) or self.devices.concerns(pod))
        )

    def _enter(self, pod: Pod, old: Entry | None, new: Entry | None) -> None:
        """Puts the new entry of a pod in the place of the old one."""
        self._cpu_memory_freed(self._weights.put(pod, new))
        changed = old != new
        if changed or self.devices.is_behind(pod.uid):
            self.devices.put_pod(pod, *((new.stage, new.queue) if new is not None else (Stage.IGNORED, "")))
        if changed:
            self._entries.replace(old, new)
            if self._backlog and self._granted(pod.uid):
                self._backlog.note_granted(pod.uid)

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
