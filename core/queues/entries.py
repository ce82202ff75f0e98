"""Every pod that is in the books of a queue, the sums by queue, and whom a change of them may help."""

from collections import Counter
from collections.abc import Callable, Collection, Container

from core.mgpu.destination import booked_on, led_to
from core.queues.access_book import AccessBook
from core.queues.account import Account
from core.queues.amounts import add
from core.queues.entry import Entry, ShareKey
from core.queues.journal import Journal
from core.queues.queue_counts import QueueCounts
from core.queues.recount import Recount
from core.queues.subtrees import Subtrees
from core.queues.wakeups import Wakeups
from core.sharded import Sharded
from core.stage import Stage


class Entries:
    """The entries by UID and the accounts by queue.

    `queues` are those that exist; of another one nothing is kept once nobody charges it. `access` follows who waits.
    """

    def __init__(self, wakeups: Wakeups, queues: Container[str], access: AccessBook) -> None:
        self.by_uid = Sharded[Entry]()
        self.accounts = Sharded[Account]()
        self.shares: dict[ShareKey, Entry] = {}
        """The mGPU pods that are lifted but have no node yet."""
        self.shares_to: dict[str, dict[str, Entry]] = {}
        """Those of them that were led to a node, by UID, by that node."""
        self.shares_of: dict[str, dict[str, Counter[str]]] = {}
        """How many of them were narrowed to which node, empty for none, by group and task."""
        self.shares_changed = Journal[ShareKey]()
        """Which of them have come, changed or gone."""
        self.subtrees: Subtrees | None = None
        """Where everything is added up in the queues above as well; None where it is not."""
        self.follower: Callable[[str], None] | None = None
        """Is told the UID of each pod whose entry has come, changed or gone."""
        self.recount: Recount | None = None
        """Counts all entries anew at present, and is told of each change."""
        self._wakeups = wakeups
        self._queues = queues
        self._access = access
        self._reserved: dict[str, int] = {}
        """What is reserved in all queues together."""
        self._waiting_members = QueueCounts()
        """The queues in which members of a group wait, by group."""
        self._waiting_beside = QueueCounts()
        """The queues in which pods wait that name a PodGroup and start with others than its members, by PodGroup."""

    def reserved(self, key: str) -> int:
        """What all queues together have reserved of a card, mGPU shares of it left out: those are on other nodes."""
        return self._reserved.get(key, 0)

    def queues_with(self, group: str) -> Collection[str]:
        """The queues in which members of a group wait."""
        return self._waiting_members.queues(group)

    def queues_beside(self, group: str) -> Collection[str]:
        """The queues in which pods wait that name this PodGroup and start with others than its members."""
        return self._waiting_beside.queues(group)

    def replace(self, old: Entry | None, new: Entry | None) -> None:
        """Puts the new entry of a pod in the place of the old one; None for one that is in no book."""
        if old is not None:
            self._unbook(old)
        if new is not None:
            self.by_uid.add(new.pod.uid, new)
            self.accounts.opened(new.queue, Account).book(new)
            self._access.book(new)
            self._count(new, 1)
            self._wakeups.publish(new.queue)
        if self.subtrees is not None:
            self.subtrees.replace(old, new)
        if old is not None:
            # Only now: a queue that nobody charges for a moment has not lost whom it is to be looked at for.
            self.forget_unused(old.queue)
        self._wake(old, new)
        if self.recount is not None:
            self.recount.replace(old, new)
        changed = new or old
        if self.follower is not None and changed is not None:
            self.follower(changed.pod.uid)

    def let_in(self, waiting: Entry, lifted: Entry) -> None:
        """`replace` for a waiting pod that its own queue lets in with all its records: that helps nobody who waits there."""
        self.by_uid[lifted.pod.uid] = lifted
        self.accounts[waiting.queue].let_in(waiting)
        self._access.let_in(waiting)
        # Only where shares count against a card are they to be told from whole ones.
        add(self._reserved, lifted.demand.whole_cards if lifted.demand.share_milli else lifted.charged, 1)
        if lifted.demand.mgpu is not None:
            self._count_share(lifted, 1)
        if self._waiting_members or self._waiting_beside:
            self._count(waiting, -1)
        if self.subtrees is not None:
            self.subtrees.replace(waiting, lifted)
        if self.recount is not None:
            self.recount.replace(waiting, lifted)
        if self.follower is not None:
            self.follower(lifted.pod.uid)
        self._wakeups.publish(waiting.queue)

    def restate(self, restated: Entry) -> None:
        """`replace` for a pod that takes, gives and is charged with what it was before: it is only in a later state."""
        self.by_uid[restated.pod.uid] = restated

    def _unbook(self, entry: Entry) -> None:
        del self.by_uid[entry.pod.uid]
        self.accounts.opened(entry.queue, Account).unbook(entry)
        self._access.unbook(entry)
        self._count(entry, -1)
        self._wakeups.publish(entry.queue)

    def _count(self, entry: Entry, sign: int) -> None:
        """Adds an entry to what is kept beside the sums of its queue, or takes it out."""
        if entry.stage is Stage.RESERVED:
            add(self._reserved, entry.demand.whole_cards if entry.demand.share_milli else entry.charged, sign)
        if entry.holds_share:
            self._count_share(entry, sign)
        if entry.stage is Stage.WAITING:
            self._count_waiting(entry, sign)

    def _count_waiting(self, entry: Entry, sign: int) -> None:
        group = entry.pod.group_key
        if group:
            self._waiting_members.count(group, entry.queue, sign)
        for named in entry.pod.pod_groups:
            if named != group:
                self._waiting_beside.count(named, entry.queue, sign)

    def _count_share(self, entry: Entry, sign: int) -> None:
        self.shares_changed.note(entry.share_key)
        if entry.pod.group_key:
            self._count_in_task(entry, sign)
        if sign > 0:
            self.shares[entry.share_key] = entry
            for node in booked_on(entry.pod):
                self.shares_to.setdefault(node, {})[entry.pod.uid] = entry
            return
        del self.shares[entry.share_key]
        for node in dict.fromkeys(booked_on(entry.pod)):
            led = self.shares_to[node]
            del led[entry.pod.uid]
            if not led:
                del self.shares_to[node]

    def _count_in_task(self, entry: Entry, sign: int) -> None:
        pod = entry.pod
        key = pod.group_key
        tasks = self.shares_of.setdefault(key, {})
        nodes = tasks.setdefault(pod.task, Counter())
        for node in led_to(pod) or ("",):
            nodes[node] += sign
            if not nodes[node]:
                del nodes[node]
        if not nodes:
            del tasks[pod.task]
        if not tasks:
            del self.shares_of[key]

    def forget_unused(self, queue: str) -> None:
        """Keeps nothing of a queue that does not exist and that nobody charges."""
        account = self.accounts.get(queue)
        if queue in self._queues or (account is not None and not account.empty):
            return
        if account is not None:
            del self.accounts[queue]
        self._wakeups.forget(queue)
        if self.subtrees is not None:
            self.subtrees.forget(queue)

    def _wake(self, old: Entry | None, new: Entry | None) -> None:
        """Has the queues looked at where somebody may be let in now; most updates of a pod's status help nobody."""
        if old is not None and new is not None and old.alike(new):
            return
        if new is not None and new.stage is Stage.WAITING:
            self._wakeups.look_at(new.queue)
        if old is None:
            return
        if old.stage is not Stage.WAITING:
            self._wakeups.room_freed(old.demand.cards)
            if new is not None and new.stage is not Stage.WAITING and old.charge == new.charge:
                return
            if self.subtrees is not None:
                self.subtrees.freed(old.queue, {*old.charged, *old.demand.cards})
        account = self.accounts.get(old.queue)
        if account is not None and account.waiting_pods:
            self._wakeups.help(old.queue)
