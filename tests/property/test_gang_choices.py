"""Gangs with choices, tasks and members above the minimum, that restart, lose members and wait for their PodGroups.

Whatever the watches show late, whichever writes fail and however quotas change: once all is at rest no gang holds quota in part,
without the members that its tasks have to have among them, none waits that one card for each task could serve, and with
`multiCardTask: single` no task has two cards.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from core.objects import Group, Pod
from core.plan.decision import Decision, Lift
from core.plan.lift import Planner
from core.plan.unfinished import UnfinishedGangs
from core.queues.group_minimum import counts
from core.queues.ledger import Ledger
from core.settings import ReservationSettings, Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.property.stored_pods import LateWatch

STOCK = {"A": 5, "B": 4}
CHOICES = ("A", "B", "A|B", "A|B", "B|A")
AFTER_S, SECOND = 1, 10**6
GIVES_BACK = ReservationSettings(unfinished_after_s=AFTER_S)

members = st.lists(st.tuples(st.sampled_from("vw"), st.sampled_from(CHOICES)), min_size=1, max_size=5)
minimums = st.dictionaries(st.sampled_from("vw"), st.integers(1, 3))
"""`minTaskMember`."""
quotas = st.fixed_dictionaries({"A": st.integers(0, 6), "B": st.integers(0, 6)})


@dataclass(frozen=True)
class Member:
    """What an owner makes anew when it is gone."""

    group: str
    task: str
    choice: str
    priority: int


class Choices(LateWatch):
    """One queue, two cards; owners, PodGroups that come and go, watches of pods and of groups that lag, a scheduler."""

    @initialize(single=st.booleans(), quota=quotas)
    def start(self, single: bool, quota: dict[str, int]) -> None:
        self.settings = Settings.model_validate(
            {"cards": {"multiCardTask": "single" if single else "spread"}}
        )
        self.single, self.quota = single, quota
        self.wanted: dict[str, Member] = {}
        self.groups: dict[str, Group] = {}
        self.specs: dict[str, Group] = {}
        self.made, self.now = 0, 0
        self.since: dict[str, int] = {}
        self.cut = False
        """Whether a member was lost, or quota taken away: then gangs may be left in part until they give that back."""
        self.restart()

    def restart(self) -> None:
        """A controller that knows nothing but what it lists."""
        self.unseen_groups: list[str] = []
        self.ledger = Ledger(self.settings)
        for card, count in STOCK.items():
            self.ledger.put_node(a_node(card.lower()).card(card, count).view())
        self.put_queues()
        for group in self.groups.values():
            self.ledger.put_group(group)
        for pod in self.stored.values():
            self.ledger.put_pod(pod)
        self.planner = Planner(self.ledger)
        self.gangs = UnfinishedGangs(self.ledger, GIVES_BACK, self.since.get)

    # -- the queue ---------------------------------------------------------------------------------------------------

    def put_queues(self) -> None:
        self.ledger.put_queue(a_queue("q").cards(self.quota).view())

    def home(self, name: str) -> str:
        """The queue of a group."""
        return "q"

    def passed(self) -> Iterable[Decision | None]:
        """What is decided in one pass."""
        return self.planner.decide("q")

    def left(self, name: str, card: str) -> int:
        """How much of a card a group may still have."""
        used = self.ledger.used("q", card) // 1000
        return max(0, min(self.quota[card], STOCK[card]) - used)

    # -- what users and owners do --------------------------------------------------------------------------------

    @precondition(lambda self: len(self.specs) < 4)
    @rule(
        minimum=st.integers(1, 4), tasks=minimums, of=members, priority=st.integers(0, 2), late=st.booleans()
    )
    def create(
        self, minimum: int, tasks: dict[str, int], of: list[tuple[str, str]], priority: int, late: bool
    ) -> None:
        """A PodGroup, maybe later, and its pods; they may be fewer than the minimum, or more."""
        name = f"g{len(self.specs)}"
        built = a_group(name).in_queue(self.home(name)).min_member(minimum)
        for task, count in tasks.items():
            built = built.min_task(task, count)
        self.specs[name] = built.view()
        if not late:
            self.group_comes(name)
        for task, choice in of:
            self.make(Member(name, task, choice, priority))

    @precondition(lambda self: self.specs.keys() - self.groups.keys())
    @rule(data=st.data())
    def a_group_comes(self, data: st.DataObject) -> None:
        self.group_comes(data.draw(st.sampled_from(sorted(self.specs.keys() - self.groups.keys()))))

    def group_comes(self, name: str) -> None:
        self.made += 1
        self.groups[name] = replace(self.specs[name], uid=f"{name}-{self.made}")
        self.unseen_groups.append(name)

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), again=st.booleans())
    def a_job_restarts(self, data: st.DataObject, again: bool) -> None:
        """The PodGroup goes, and the pods are made anew; it comes back at once, or some time."""
        name = data.draw(st.sampled_from(sorted(self.groups)))
        del self.groups[name]
        self.unseen_groups.append(name)
        for uid in [uid for uid, pod in self.stored.items() if pod.group_name == name]:
            self.lose(uid)
        if again:
            self.group_comes(name)

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def a_pod_is_lost(self, data: st.DataObject) -> None:
        self.lose(data.draw(st.sampled_from(sorted(self.stored))))

    @rule(quota=quotas)
    def the_quota_changes(self, quota: dict[str, int]) -> None:
        self.cut = self.cut or any(quota[card] < self.quota[card] for card in quota)
        self.quota = quota
        self.put_queues()

    def make(self, member: Member) -> None:
        self.made += 1
        pod = a_pod(f"p{self.made}").gpu(1).card(member.choice).in_group(member.group).task(member.task)
        pod = pod.priority(member.priority).owned_by("Job", member.group).gated()
        view = pod.created(f"2024-01-01T00:{self.made // 60 % 60:02}:{self.made % 60:02}Z").view()
        self.wanted[view.uid] = member
        self.store(view)

    def lose(self, uid: str) -> None:
        """A pod is gone, and its owner makes another one."""
        self.cut = True
        del self.stored[uid]
        self.unseen.append(uid)
        self.make(self.wanted.pop(uid))

    def store(self, pod: Pod) -> None:
        super().store(pod)
        if not pod.gated:
            self.since.setdefault(pod.uid, self.now)

    # -- watches, the controller, a scheduler ----------------------------------------------------------------------

    @rule(shown=st.integers(1, 8))
    def the_watch_of_pods_shows(self, shown: int) -> None:
        self.show(shown)

    @rule(shown=st.integers(1, 2))
    def the_watch_of_groups_shows(self, shown: int) -> None:
        for name in self.unseen_groups[:shown]:
            if name in self.groups:
                self.ledger.put_group(self.groups[name])
            else:
                self.ledger.drop_group(f"ml/{name}")
        del self.unseen_groups[:shown]

    @rule(data=st.data())
    def a_pass(self, data: st.DataObject) -> None:
        """Each of its writes goes through or is refused."""
        self.decide(lambda: data.draw(st.booleans()))

    @rule()
    def a_whole_pass(self) -> None:
        self.decide(lambda: True)

    @rule(data=st.data())
    def killed_in_a_pass(self, data: st.DataObject) -> None:
        self.decide(lambda: data.draw(st.booleans()), forget=False)
        self.restart()

    def decide(self, accepted: Callable[[], bool], *, forget: bool = True) -> bool:
        lifts = [decision for decision in self.passed() if isinstance(decision, Lift)]
        for lift in lifts:
            assert self.ledger.group_of(lift.pod) is not None, "nobody goes before his PodGroup"
            stored = self.stored.get(lift.pod.uid)
            fresh = stored is not None and stored.resource_version == lift.pod.resource_version
            if stored is not None and fresh and accepted():
                self.store(replace(stored, gates=(), annotations={**stored.annotations, **lift.records}))
            elif forget:
                self.ledger.forget(lift.pod.uid)
        return bool(lifts)

    @rule()
    def the_scheduler_binds(self) -> None:
        """Gangs that are whole, as far as the nodes have room."""
        free = Counter(STOCK)
        free.subtract(_card(pod) for pod in self.stored.values() if pod.bound)
        for name, group in self.groups.items():
            if not self.may_start(name, group):
                continue
            for pod in [pod for pod in self.of(name) if not pod.gated and not pod.bound]:
                if free[_card(pod)] > 0:
                    free[_card(pod)] -= 1
                    self.store(replace(pod, node_name=_card(pod).lower(), phase="Running"))

    # -- at rest ---------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for name in sorted(self.specs.keys() - self.groups.keys()):
            self.group_comes(name)
        for _ in range((len(self.specs) + 2) * (2 * AFTER_S + 3)):
            self.catch_up()
            while self.decide(lambda: True):
                self.catch_up()
            for name, group in self.groups.items():
                begun = self.members_in(name).total() and not self.cut
                assert not begun or self.may_start(name, group), f"{name} was left in part"
            self.the_scheduler_binds()
            self.catch_up()
            self.now += SECOND
            finish(self.gangs.look(self.now))
            for pod in finish(self.gangs.take_condemned(self.now)):
                self.lose(pod.uid)
        self.catch_up()
        assert not self.decide(lambda: True)
        for name, group in self.groups.items():
            self.check(name, group)

    def catch_up(self) -> None:
        self.the_watch_of_groups_shows(len(self.unseen_groups))
        self.the_watch_of_pods_shows(len(self.unseen))

    def check(self, name: str, group: Group) -> None:
        unbound = [pod for pod in self.of(name) if not pod.gated and not pod.bound]
        assert self.may_start(name, group) or not unbound, f"{name} holds quota in part"
        waiting = [self.wanted[pod.uid] for pod in self.of(name) if pod.gated]
        held = self.held(name)
        if self.single and group.min_member > 1:
            assert all(len(cards) == 1 for cards in held.values()), (
                f"{name} has several cards in a task: {held}"
            )
        confined = held if self.single and group.min_member > 1 else {}
        left = {card: self.left(name, card) for card in STOCK}
        assert not one_card_each_serves(waiting, self.lacking(name, group), confined, left), (
            f"{name} waits, and one card for each task would serve it: {waiting}, {left}"
        )

    def held(self, name: str) -> Mapping[tuple[str, str], set[str]]:
        """The cards of those that are in and had a choice, by task and choice."""
        found: dict[tuple[str, str], set[str]] = {}
        for pod in self.of(name):
            member = self.wanted[pod.uid]
            if not pod.gated and "|" in member.choice:
                found.setdefault((member.task, member.choice), set()).add(_card(pod))
        return found

    def of(self, name: str) -> list[Pod]:
        return [pod for pod in self.stored.values() if pod.group_name == name]

    def members_in(self, name: str) -> Counter[str]:
        """How many of each task."""
        return Counter(pod.task for pod in self.of(name) if counts(pod, self.ledger.stages))

    def lacking(self, name: str, group: Group) -> "Lacking":
        """What the group lacks to start, by what its PodGroup says."""
        has, tasks = self.members_in(name), group.min_task_member
        if sum(tasks.values()) > group.min_member:
            tasks = {}  # as Volcano has it
        return Lacking(
            max(0, group.min_member - has.total()),
            {task: count - has[task] for task, count in tasks.items() if count > has[task]},
        )

    def may_start(self, name: str, group: Group) -> bool:
        """Whether Volcano's scheduler would begin with the members that are in."""
        lacking = self.lacking(name, group)
        return not (lacking.members or lacking.of_tasks)


class Lacking(NamedTuple):
    """Members in all, and those of tasks among them."""

    members: int
    of_tasks: Mapping[str, int]


def one_card_each_serves(
    waiting: Iterable[Member],
    lacking: Lacking,
    confined: Mapping[tuple[str, str], set[str]],
    left: Mapping[str, int],
) -> bool:
    """Whether what the group lacks, or one more where it lacks nothing, fits with one card for each task and choice."""
    asks = Counter((member.task, member.choice) for member in waiting)
    wanted = max(1, lacking.members, sum(lacking.of_tasks.values()))
    cards = [sorted(confined.get(ask, ask[1].split("|"))) for ask in asks]
    for chosen in product(*cards):
        for numbers in product(*(range(count + 1) for count in asks.values())):
            by_card, by_task = Counter[str](), Counter[str]()
            for (task, _), card, number in zip(asks, chosen, numbers, strict=True):
                by_card[card] += number
                by_task[task] += number
            fits = all(number <= left[card] for card, number in by_card.items())
            begins = all(by_task[task] >= number for task, number in lacking.of_tasks.items())
            if fits and begins and sum(numbers) >= wanted:
                return True
    return False


def _card(pod: Pod) -> str:
    record = pod.annotations["cardquota.io/assigned"]
    return record.split('"')[1]


TestChoices = Choices.TestCase
