"""No gang is left partial once writes go through, whatever was refused and whenever the controller restarted."""

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from core.names import CARD_NAME_ANNOTATION as CARD
from core.objects import Group
from core.plan.lift import Planner
from core.queues.group_minimum import counts
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue, a_scheduling_group
from tests.property.stored_pods import OnePlanner

QUOTA = {"A": 5, "B": 3}
CHOICES = ("A", "B", "A|B", "B|A")
TASKS = st.dictionaries(st.sampled_from("vw"), st.integers(1, 3))
"""Together at times more than the group must have; then they count for nothing."""


class Gangs(OnePlanner):
    """Groups in one queue, an API that refuses some writes, a watch that lags, a controller that is killed."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, Group] = {}
        self.changed: set[str] = set()
        self.may_hold_each_other_up: set[str] = set()
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
        kubernetes=st.booleans(),
        minimum=st.integers(0, 4),
        tasks=TASKS,
        members=st.lists(st.tuples(st.sampled_from("vw"), st.sampled_from(CHOICES)), min_size=1, max_size=4),
        priority=st.integers(0, 2),
    )
    def create(
        self,
        kubernetes: bool,
        minimum: int,
        tasks: dict[str, int],
        members: list[tuple[str, str]],
        priority: int,
    ) -> None:
        """A PodGroup, of Volcano or of Kubernetes, and its pods; fewer pods than the minimum are possible. Two have one name."""
        name = f"g{len(self.groups) // 2}"
        built = a_group(name).in_queue("q").min_member(minimum)
        for task, count in tasks.items():
            built = built.min_task(task, count)
        group = a_scheduling_group(name).min_count(minimum).view() if kubernetes else built.view()
        if group.key in self.groups:
            return
        self.groups[group.key] = group
        self.ledger.put_group(group)
        for number, (task, choice) in enumerate(members):
            pod = a_pod(f"{name}-{number}-{kubernetes}").gpu(1).card(choice).task(task).gated().in_queue("q")
            pod = pod.in_scheduling_group(name) if kubernetes else pod.in_group(name)
            self.store(pod.priority(priority).view())

    @rule(data=st.data(), minimum=st.integers(0, 4), tasks=TASKS)
    def change_minimum(self, data: st.DataObject, minimum: int, tasks: dict[str, int]) -> None:
        """Somebody raises or lowers what a PodGroup, or each of its tasks, must have, whether members wait, were let in or both."""
        if self.groups:
            key = data.draw(st.sampled_from(sorted(self.groups)))
            self.changed.add(key)
            old = self.groups[key]
            self.groups[key] = replace(
                old, min_member=minimum, min_task_member={} if old.kubernetes else tasks
            )
            self.ledger.put_group(self.groups[key])

    def started(self, key: str) -> Counter[str]:
        """The members of a group that are in, by task."""
        members = (pod for pod in self.stored.values() if pod.group_key == key)
        return Counter(pod.task for pod in members if counts(pod, self.ledger.stages))

    @invariant()
    def notice_gangs_that_were_cut_together(self) -> None:
        """Of two that lack members with a choice of cards one may take what the other one needs; who has none comes first."""
        lacking = {
            pod.group_key for pod in self.stored.values() if pod.gated and "|" in pod.annotations[CARD]
        }
        cut = {key for key in lacking if 0 < self.started(key).total() < self.groups[key].min_member}
        if len(cut) > 1:
            self.may_hold_each_other_up |= cut

    def teardown(self) -> None:
        """Everything is shown, every write goes through: then no gang stands between nothing and its minimum."""
        self.watch(len(self.unseen))
        while self.decide(lambda: True):
            self.watch(len(self.unseen))
        used = {card: self.ledger.used("q", card) // 1000 for card in QUOTA}
        assert all(used[card] <= QUOTA[card] for card in QUOTA), used
        for name, group in self.groups.items():
            started = self.started(name)
            assert not self.could_be_filled(group, started), (name, started, group)
            if not started or name in self.changed | self.may_hold_each_other_up:
                continue
            assert started.total() >= group.min_member, (name, started, group.min_member)
            tasks = group.min_task_member
            if sum(tasks.values()) <= group.min_member:
                assert all(started[task] >= count for task, count in tasks.items()), (name, started, tasks)

    def could_be_filled(self, group: Group, started: Counter[str]) -> bool:
        """Whether a group lacks members that wait, of each of its tasks, and whatever each takes, there is quota for them."""
        tasks = group.min_task_member if sum(group.min_task_member.values()) <= group.min_member else {}
        of_tasks = Counter({task: max(0, count - started[task]) for task, count in tasks.items()})
        lacking = max(group.min_member - started.total(), of_tasks.total())
        waiting = Counter(
            pod.task for pod in self.stored.values() if pod.group_key == group.key and pod.gated
        )
        free = min(limit - self.ledger.used("q", card) // 1000 for card, limit in QUOTA.items())
        return of_tasks <= waiting and 0 < lacking <= min(waiting.total(), free)


TestGangs = Gangs.TestCase
