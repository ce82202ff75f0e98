"""Queues on three levels (`cards.hierarchy`): none of them is ever above its limit, and nobody is forgotten."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from core import names
from core.cards.assigned import read_assigned
from core.objects import Group, Pod, Queue
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.audit import audit
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.property.stored_pods import StoredPods

PARENTS = {"org": "", "left": "org", "right": "org", "l1": "left", "l2": "left", "r1": "right"}
QUEUES = tuple(PARENTS)
LEAVES = ("l1", "l2", "r1", "left")
"""Where most pods go; one of them is a parent as well."""
CARDS = ("A", "B")
CHOICES = ("A", "B", "A|B")
SETTINGS = Settings.model_validate({"cards": {"hierarchy": True}})

Counts = dict[str, int]


class Levels(StoredPods):
    """What the API server has, a watch that lags behind it, and a controller that decides on what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, Group] = {}
        self.parents = dict(PARENTS)
        self.quota: dict[str, Counts] = {queue: {"A": 2, "B": 1} for queue in QUEUES}
        self.cpu: dict[str, int | None] = dict.fromkeys(QUEUES)
        self.start()

    # -- the cluster -----------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        built = a_queue(name).cards(self.quota[name])
        built = built.child_of(self.parents[name]) if self.parents[name] else built
        cpu = self.cpu[name]
        return (built if cpu is None else built.capability(cpu=cpu)).view()

    def books(self) -> Ledger:
        """What somebody finds who lists everything."""
        ledger = Ledger(SETTINGS)
        ledger.put_node(a_node("a").card("A", 16).view())
        ledger.put_node(a_node("b").card("B", 16).view())
        for name in self.parents:
            ledger.put_queue(self.queue(name))
        for group in self.groups.values():
            ledger.put_group(group)
        for pod in self.stored.values():
            ledger.put_pod(pod)
        return ledger

    def start(self) -> None:
        self.ledger = self.books()
        self.unseen.clear()
        self.planner = Planner(self.ledger)
        self.ledger.wakeups.look_at(*self.ledger.accounts)

    def chain(self, queue: str) -> Iterator[str]:
        """The queues whose limits count, found out without the code under test."""
        while queue:
            assert queue in self.parents, f"{queue} is not there, and somebody was let in below it"
            yield queue
            queue = self.parents[queue]

    def admitted(self, level: str) -> Iterator[Pod]:
        """Pods that may run or do run, in a queue or below it."""
        for pod in self.stored.values():
            over = pod.gated or pod.deleting or pod.terminal
            if not over and level in self.reached(pod.annotations[names.QUEUE_NAME_ANNOTATION]):
                yield pod

    def reached(self, queue: str) -> list[str]:
        found = [queue]
        while found[-1] in self.parents and self.parents[found[-1]]:
            found.append(self.parents[found[-1]])
        return found

    # -- the controller --------------------------------------------------------------------------------------

    def decide(self, accepted: Callable[[], bool]) -> bool:
        """One pass as the controller makes it, and its writes; whether anything was lifted."""
        passed = self.planner.run(self.ledger.wakeups.take_queues())
        lifts = [decision for decision in passed if isinstance(decision, Lift)]
        for lift in lifts:
            stored = self.stored.get(lift.pod.uid)
            stale = stored is None or stored.resource_version != lift.pod.resource_version
            if stored is None or stale or not accepted():
                self.ledger.forget(lift.pod.uid)
            else:
                self.within_limits(lift)
                self.store(replace(stored, gates=(), annotations={**stored.annotations, **lift.records}))
        return bool(lifts)

    def within_limits(self, lift: Lift) -> None:
        """The lift fits into its queue and into every one above that lists what it takes."""
        for level in self.chain(lift.queue):
            for card, count in lift.assigned.items():
                limit = self.quota[level].get(card, 0 if level == lift.queue else None)
                used = sum(assigned(pod).get(card, 0) for pod in self.admitted(level))
                assert count == 0 or limit is None or used + count <= limit, (level, card, used, count, limit)
            cpu, wanted = self.cpu[level], lift.pod.requests.get("cpu", 0)
            used = sum(pod.requests.get("cpu", 0) for pod in self.admitted(level))
            assert cpu is None or wanted == 0 or used + wanted <= cpu * 1000, (level, used, wanted, cpu)

    def settle(self) -> None:
        """Everything is seen, decided and written, until nothing is left to do."""
        self.show(len(self.unseen))
        while self.ledger.wakeups.pending:
            self.decide(lambda: True)
            self.show(len(self.unseen))

    # -- what happens ----------------------------------------------------------------------------------------

    @rule(
        queue=st.sampled_from((*LEAVES, "org")),
        choice=st.sampled_from(CHOICES),
        count=st.integers(0, 2),
        cpu=st.integers(0, 2),
        members=st.integers(1, 3),
    )
    def create(self, queue: str, choice: str, count: int, cpu: int, members: int) -> None:
        """A pod, or a gang."""
        self.serial += 1
        name = f"g{self.serial}"
        if members > 1:
            self.groups[name] = a_group(name).min_member(members).view()
            self.ledger.put_group(self.groups[name])
        for number in range(members):
            built = a_pod(f"p{self.serial}-{number}").gpu(count).card(choice).in_queue(queue).gated()
            built = built.in_group(name) if members > 1 else built
            self.store((built.request("cpu", cpu) if cpu else built).view())

    @rule(shown=st.integers(1, 6))
    def watch(self, shown: int) -> None:
        self.show(shown)

    @rule(data=st.data())
    def quota_pass(self, data: st.DataObject) -> None:
        self.decide(lambda: data.draw(st.booleans()))

    @rule(
        name=st.sampled_from(QUEUES),
        card=st.sampled_from(CARDS),
        count=st.none() | st.integers(0, 4),
        cpu=st.none() | st.integers(0, 6),
    )
    def set_limits(self, name: str, card: str, count: int | None, cpu: int | None) -> None:
        """Another quota of one card, or none; another limit of CPU, or none."""
        if name in self.parents:
            self.quota[name].pop(card, None)
            self.quota[name] |= {} if count is None else {card: count}
            self.cpu[name] = cpu
            self.ledger.put_queue(self.queue(name))

    @rule(
        name=st.sampled_from(("l1", "l2", "r1", "left")), parent=st.sampled_from(("", "org", "left", "right"))
    )
    def move(self, name: str, parent: str) -> None:
        if name != parent and name in self.parents:
            self.parents[name] = parent
            self.ledger.put_queue(self.queue(name))

    @rule(name=st.sampled_from(("left", "l1", "org")))
    def drop_and_come_back(self, name: str) -> None:
        """A queue goes, or one that went is made again."""
        if name in self.parents:
            del self.parents[name]
            self.ledger.drop_queue(name)
        else:
            self.parents[name] = PARENTS[name]
            self.ledger.put_queue(self.queue(name))

    @rule()
    def restart(self) -> None:
        self.start()

    # -- what holds ------------------------------------------------------------------------------------------

    @rule()
    def nobody_is_forgotten(self) -> None:
        """Once nothing is left to do, one who looks at everything anew would let in nobody."""
        self.settle()
        fresh = self.books()
        left = plan(fresh, self.stored.values())
        assert {key for key, planned in left.pods.items() if planned.decision == "lift"} == set()

    @rule()
    def a_plan_says_what_a_controller_does(self) -> None:
        before = {uid for uid, pod in self.stored.items() if pod.gated}
        planned = plan(self.books(), self.stored.values())
        said = {key: dict(one.assigned or {}) for key, one in planned.pods.items() if one.decision == "lift"}
        self.start()
        self.settle()
        done = (self.stored[uid] for uid in before if uid in self.stored and not self.stored[uid].gated)
        assert {pod.key: assigned(pod) for pod in done} == said

    @invariant()
    def an_audit_of_the_books_finds_nothing(self) -> None:
        known = (self.ledger.pod(uid) for uid in {*self.stored, *self.unseen})
        assert finish(audit(self.ledger, {pod.key: pod for pod in known if pod is not None})) == []

    @precondition(lambda self: not self.unseen)
    @invariant()
    def the_books_agree_with_those_made_anew(self) -> None:
        fresh = self.books()
        for name in (*QUEUES, names.ROOT_QUEUE):
            ours, theirs = self.ledger.sums(name), fresh.sums(name)
            assert (ours.allocated, ours.reserved) == (theirs.allocated, theirs.reserved), name
            assert self.ledger.subtrees is not None
            assert fresh.subtrees is not None
            for key in ("cpu", "memory"):
                cpu = self.ledger.subtrees.cpu_memory_used(name, key)
                assert cpu == fresh.subtrees.cpu_memory_used(name, key)


def assigned(pod: Pod) -> Counts:
    """The cards on a pod's record, as it says how many of which."""
    record = read_assigned(pod.annotations.get(names.ASSIGNED_ANNOTATION, ""))
    return {} if record is None else {record[0]: record[1]}


TestLevels = Levels.TestCase
