"""No gang is left partial once writes go through, whatever was refused and whenever the controller restarted."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from core.objects import Group, Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.group_minimum import counts
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue

QUOTA = {"A": 5, "B": 3}
CHOICES = ("A", "B", "A|B", "B|A")


class Gangs(RuleBasedStateMachine):
    """Groups in one queue, an API that refuses some writes, a watch that lags, a controller that is killed."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Pod] = {}
        self.groups: dict[str, Group] = {}
        self.unseen: list[str] = []
        self.start()

    def start(self) -> None:
        """A controller that knows nothing but what it lists."""
        self.ledger = Ledger(Settings())
        self.ledger.put_node(a_node("a").card("A", 16).view())
        self.ledger.put_node(a_node("b").card("B", 16).view())
        self.ledger.put_queue(a_queue("q").cards(QUOTA).view())
        for group in self.groups.values():
            self.ledger.put_group(group)
        for pod in self.stored.values():
            self.ledger.put_pod(pod)
        self.unseen.clear()
        self.planner = Planner(self.ledger)

    @rule(
        minimum=st.integers(0, 4),
        tasks=st.dictionaries(st.sampled_from("vw"), st.integers(1, 3)),
        members=st.lists(st.tuples(st.sampled_from("vw"), st.sampled_from(CHOICES)), min_size=1, max_size=4),
        priority=st.integers(0, 2),
    )
    def create(
        self, minimum: int, tasks: dict[str, int], members: list[tuple[str, str]], priority: int
    ) -> None:
        """A PodGroup and its pods; fewer pods than the minimum are possible."""
        name = f"g{len(self.groups)}"
        built = a_group(name).in_queue("q").min_member(minimum)
        for task, count in tasks.items():
            built = built.min_task(task, count)
        group = built.view()
        self.groups[name] = group
        self.ledger.put_group(group)
        for number, (task, choice) in enumerate(members):
            pod = a_pod(f"{name}-{number}").gpu(1).card(choice).in_group(name).task(task).gated()
            self.store(pod.priority(priority).view())

    def store(self, pod: Pod) -> None:
        self.stored[pod.uid] = replace(pod, resource_version=str(int(pod.resource_version or 0) + 1))
        self.unseen.append(pod.uid)

    @rule(shown=st.integers(1, 8))
    def watch(self, shown: int) -> None:
        """The watch shows a prefix of what happened."""
        for uid in self.unseen[:shown]:
            self.ledger.put_pod(self.stored[uid])
        del self.unseen[:shown]

    @rule(data=st.data())
    def quota_pass(self, data: st.DataObject) -> None:
        """One pass; each of its writes goes through or is refused."""
        self.decide(lambda: data.draw(st.booleans()))

    @rule(data=st.data())
    def killed_in_a_pass(self, data: st.DataObject) -> None:
        """One pass of which only some writes go out before the controller is killed."""
        self.decide(lambda: data.draw(st.booleans()), forget=False)
        self.start()

    def decide(self, accepted: Callable[[], bool], *, forget: bool = True) -> bool:
        lifts = [decision for decision in self.planner.decide("q") if isinstance(decision, Lift)]
        for lift in lifts:
            stored = self.stored[lift.pod.uid]
            fresh = stored.resource_version == lift.pod.resource_version
            if fresh and accepted():
                self.store(replace(stored, gates=(), annotations={**stored.annotations, **lift.records}))
            elif forget:
                self.ledger.forget(lift.pod.uid)
        return bool(lifts)

    def teardown(self) -> None:
        """Everything is shown, every write goes through: then no gang stands between nothing and its minimum."""
        self.watch(len(self.unseen))
        while self.decide(lambda: True):
            self.watch(len(self.unseen))
        used = {card: self.ledger.used("q", card) // 1000 for card in QUOTA}
        assert all(used[card] <= QUOTA[card] for card in QUOTA), used
        for name, group in self.groups.items():
            started = Counter(
                pod.task
                for pod in self.stored.values()
                if pod.group_name == name and counts(pod, self.ledger.stages)
            )
            if not started:
                continue
            assert started.total() >= group.min_member, (name, started, group.min_member)
            tasks = group.min_task_member
            if sum(tasks.values()) <= group.min_member:
                assert all(started[task] >= count for task, count in tasks.items()), (name, started, tasks)


TestGangs = Gangs.TestCase
