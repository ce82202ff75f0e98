"""Never over quota, under any order of events, failed writes, stale watches and restarts of the controller."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from core import names
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.account import NOTHING
from core.queues.audit import audit
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod, a_queue
from tests.property.stored_pods import StoredPods

QUEUES = ("red", "blue")
CARDS = ("A", "B")
CHOICES = ("A", "B", "A|B")


class Cluster(StoredPods):
    """The API server's truth, a watch that lags behind it, and a controller that decides on what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.quota = {queue: {"A": 2, "B": 1} for queue in QUEUES}
        self.start()

    def start(self) -> None:
        """A controller that knows nothing but what it lists."""
        self.ledger = Ledger(Settings())
        self.ledger.put_node(a_node("a").card("A", 4).view())
        self.ledger.put_node(a_node("b").card("B", 4).view())
        for queue in QUEUES:
            self.ledger.put_queue(a_queue(queue).cards(self.quota[queue]).view())
        for pod in self.stored.values():
            self.ledger.put_pod(pod)
        self.unseen.clear()
        self.planner = Planner(self.ledger)
        self.ledger.wakeups.look_at(*QUEUES)

    def admitted(self, queue: str, card: str) -> int:
        """Cards of stored pods that may run or do run."""
        return sum(
            pod.requests["nvidia.com/gpu"] // 1000
            for pod in self.stored.values()
            if pod.annotations[names.QUEUE_NAME_ANNOTATION] == queue
            and not pod.gated
            and not pod.deleting
            and not pod.terminal
            and f'"{card}":' in pod.annotations[names.ASSIGNED_ANNOTATION]
        )

    @rule(queue=st.sampled_from(QUEUES), choice=st.sampled_from(CHOICES), count=st.integers(0, 3))
    def create(self, queue: str, choice: str, count: int) -> None:
        self.serial += 1
        pod = a_pod(f"p{self.serial}").gpu(count).card(choice).in_queue(queue).gated().view()
        self.store(pod)

    @rule(data=st.data())
    def watch(self, data: st.DataObject) -> None:
        """The watch shows a prefix of what happened."""
        if self.unseen:
            shown = data.draw(st.integers(1, len(self.unseen)))
            self.show(shown)

    @rule(data=st.data())
    def quota_pass(self, data: st.DataObject) -> None:
        """One pass; each write goes through, is refused, or is lost on the way back."""
        dirty = self.ledger.wakeups.take_queues()
        for queue in self.planner.order(dirty):
            for decision in self.planner.decide(queue):
                if isinstance(decision, Lift):
                    self.write(decision, data.draw(st.sampled_from(("done", "refused"))))

    def write(self, lift: Lift, outcome: str) -> None:
        stored = self.stored.get(lift.pod.uid)
        if outcome == "refused" or stored is None or stored.resource_version != lift.pod.resource_version:
            self.ledger.forget(lift.pod.uid)
            return
        queue = lift.queue
        for card, count in lift.assigned.items():
            total = self.admitted(queue, card) + count
            assert count == 0 or total <= self.quota[queue][card], (queue, card, total)
        assigned = "".join(f'{{"{card}":{count}}}' for card, count in lift.assigned.items())
        self.store(
            replace(stored, gates=(), annotations={**stored.annotations, names.ASSIGNED_ANNOTATION: assigned})
        )

    @rule(queue=st.sampled_from(QUEUES), card=st.sampled_from(CARDS), count=st.integers(0, 4))
    def set_quota(self, queue: str, card: str, count: int) -> None:
        self.quota[queue] = {**self.quota[queue], card: count}
        self.ledger.put_queue(a_queue(queue).cards(self.quota[queue]).view())

    @rule()
    def restart(self) -> None:
        self.start()

    @invariant()
    def an_audit_of_the_books_finds_nothing(self) -> None:
        """Whatever is under way or unseen: the books are audited by what has been seen."""
        known = (self.ledger.pod(uid) for uid in {*self.stored, *self.unseen})
        assert finish(audit(self.ledger, {pod.key: pod for pod in known if pod is not None})) == []

    @precondition(lambda self: not self.unseen)
    @invariant()
    def the_books_agree_with_the_api(self) -> None:
        """With nothing under way and nothing unseen, the ledger equals one built from the stored pods alone."""
        fresh = Ledger(Settings())
        for node in self.ledger.nodes.values():
            fresh.put_node(node)
        for pod in self.stored.values():
            fresh.put_pod(pod)
        for queue in QUEUES:
            ours, theirs = (ledger.accounts.get(queue, NOTHING) for ledger in (self.ledger, fresh))
            assert (ours.allocated, ours.reserved, ours.waiting) == (
                theirs.allocated,
                theirs.reserved,
                theirs.waiting,
            )


TestCluster = Cluster.TestCase
