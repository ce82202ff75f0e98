"""A pass in slices: without events it is one uninterrupted pass, with events between any two slices no quota is broken.

Nobody is forgotten, nothing is left booked, and a costly gang costs itself.
"""

from collections.abc import Callable, Generator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from core import names
from core.objects import Pod
from core.plan import effort, rotation
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.queues import backlog
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.property.pieces import pieces
from tests.property.test_controller_invariants import CHOICES, Controller

# -- without events ------------------------------------------------------------------------------------------

QUEUES = ("red", "blue", "green")
pods = st.tuples(
    st.sampled_from(QUEUES),
    st.sampled_from((*CHOICES, "", "C|A")),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(("", "zone-1", "zone-2")),
)
gangs = st.tuples(st.sampled_from(QUEUES), st.integers(0, 4), st.lists(pods, min_size=1, max_size=5))
quotas = st.tuples(
    st.dictionaries(st.sampled_from("AB"), st.integers(0, 6)),
    st.none() | st.integers(0, 8),
    st.booleans(),
    st.integers(0, 2),
)


Wish = tuple[str, str, int, int, int, str]
Gang = tuple[str, int, list[Wish]]
Quota = tuple[dict[str, int], int | None, bool, int]


def a_view(name: str, wish: Wish, group: str = "") -> Pod:
    queue, choice, count, cpu, priority, zone = wish
    pod = a_pod(name).request("cpu", cpu).priority(priority).gated()
    pod = pod.gpu(count).card(choice) if choice else pod.mgpu(core=30 * count, memory=512)
    pod = pod.selects("zone", zone) if zone else pod
    return (pod.in_group(group) if group else pod.in_queue(queue)).view()


def listed(
    alone: list[Wish], together: list[Gang], quotas: dict[str, Quota], *, uniform: bool = False
) -> Ledger:
    way = "uniform" if uniform else "spread"
    ledger = Ledger(Settings.model_validate({"cards": {"multiCardJob": way}}))
    ledger.put_node(a_node("a1").card("A", 3).label("zone", "zone-1").allocatable("cpu", 9).view())
    ledger.put_node(a_node("a2").card("A", 2).label("zone", "zone-2").view())
    ledger.put_node(a_node("b1").card("B", 4).label("zone", "zone-1").view())
    ledger.put_node(a_node("m1").mgpu(2, memory=4096).label("zone", "zone-2").view())
    for queue, (cards, cpu, fifo, priority) in quotas.items():
        built = a_queue(queue).cards(cards).priority(priority)
        built = built if cpu is None else built.capability(cpu=cpu)
        ledger.put_queue((built.fifo() if fifo else built).view())
    for number, (queue, minimum, members) in enumerate(together):
        ledger.put_group(a_group(f"g{number}").in_queue(queue).min_member(minimum).view())
        for place, wish in enumerate(members):
            ledger.put_pod(a_view(f"g{number}-{place}", wish, f"g{number}"))
    for number, wish in enumerate(alone):
        ledger.put_pod(a_view(f"p{number}", wish))
    return ledger


@given(
    alone=st.lists(pods, max_size=12),
    together=st.lists(gangs, max_size=4),
    quotas=st.fixed_dictionaries(dict.fromkeys(QUEUES, quotas)),
    uniform=st.booleans(),
)
def test_without_events_a_pass_in_slices_is_one_uninterrupted_pass(
    alone: list[Wish], together: list[Gang], quotas: dict[str, Quota], uniform: bool
) -> None:
    whole, sliced = (listed(alone, together, quotas, uniform=uniform) for _ in range(2))
    planner = Planner(whole)
    expected = [decision for queue in planner.order(QUEUES) for decision in planner.decide(queue)]
    found = [decision for decision in Planner(sliced).run(QUEUES) if decision is not None]
    assert lifts(found) == lifts(expected)
    assert holds(found) == holds(expected)
    assert set(books_of(sliced)) == {d.pod.uid for d in found if isinstance(d, Lift)}


@given(
    alone=st.lists(pods, max_size=12),
    together=st.lists(gangs, max_size=3),
    quotas=st.fixed_dictionaries(dict.fromkeys(QUEUES, quotas)),
    pauses=st.lists(st.integers(0, 30), min_size=2, max_size=2),
)
def test_where_the_effort_suffices_queues_that_are_woken_between_slices_are_served_after_the_pass(
    alone: list[Wish], together: list[Gang], quotas: dict[str, Quota], pauses: list[int]
) -> None:
    whole, sliced = (listed(alone, together, quotas) for _ in range(2))
    planner = Planner(whole)
    expected = planner.decide("red")
    expected += [decision for queue in planner.order(["blue", "green"]) for decision in planner.decide(queue)]
    with pytest.MonkeyPatch.context() as patch:
        # What a search costs is not known beforehand.
        patch.setattr(rotation, "BEFORE_OTHERS", 1_000_000)
        found = passes(
            sliced, dict(zip(["blue", "green"], sorted(pauses), strict=True)), together_at_last=True
        )
    assert lifts(found) == lifts(expected)
    assert holds(found) == holds(expected)


@given(
    alone=st.lists(pods, max_size=12),
    together=st.lists(gangs, max_size=3),
    quotas=st.fixed_dictionaries(dict.fromkeys(QUEUES, quotas)),
    pauses=st.lists(st.integers(0, 30), min_size=2, max_size=2),
    effort_of_a_pass=st.integers(1, 8),
)
def test_queues_that_come_in_between_have_nobody_forgotten_and_nobody_held_who_fits(
    alone: list[Wish],
    together: list[Gang],
    quotas: dict[str, Quota],
    pauses: list[int],
    effort_of_a_pass: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effort, "OF_A_PASS", effort_of_a_pass)
        patch.setattr(effort, "OF_A_UNIT", 1)
        patch.setattr(rotation, "BEFORE_OTHERS", 0)
        ledger = listed(alone, together, quotas)
        found = passes(ledger, dict(zip(["blue", "green"], pauses, strict=True)))
    lifted = [decision.pod.uid for decision in lifts(found)]
    assert len(lifted) == len(set(lifted))
    assert {decision.pod.uid for decision in found} == {entry.pod.uid for entry in ledger.entries()}
    assert set(lifted) == books_of(ledger)
    planner = Planner(ledger)
    assert [lift for queue in QUEUES for lift in lifts(planner.decide(queue))] == []


def passes(ledger: Ledger, woken: dict[str, int], *, together_at_last: bool = False) -> list[Decision]:
    """The decisions of a pass over `red` and of all that follow; other queues are woken after so many pauses."""
    ledger.wakeups.take_queues()
    planner, found, due, steps, rounds = Planner(ledger), list[Decision](), dict(woken), 0, 0
    queues = ["red"]
    while queues:
        rounds += 1
        assert rounds < 300, "passes without end"
        for decision in planner.run(queues):
            found += [decision] if decision is not None else []
            steps += 1
            for queue in [queue for queue, after in due.items() if after < steps]:
                del due[queue]
                ledger.wakeups.look_at(queue)
        if due and (together_at_last or not ledger.wakeups.pending):
            ledger.wakeups.look_at(*due)
            due.clear()
        queues = ledger.wakeups.take_queues()
    return found


def lifts(decisions: list[Decision]) -> list[Lift]:
    return [decision for decision in decisions if isinstance(decision, Lift)]


def holds(decisions: list[Decision]) -> set[tuple[str, str]]:
    """Who is held and why; not in which words, for the numbers in them are those at one's own turn or those at its end."""
    return {(each.pod.uid, each.why.code) for each in decisions if isinstance(each, Hold)}


def books_of(ledger: Ledger) -> set[str]:
    """The pods about which something is assumed."""
    return {entry.pod.uid for entry in ledger.entries() if ledger.assumed(entry.pod.uid) is not None}


# -- with events ---------------------------------------------------------------------------------------------


class Sliced(Controller):
    """The machine of the controller, whose passes are given out step by step, with everything else in between.

    Every lift is looked at when it is booked: by a fresh list of what has been shown it must be within the quota. It is
    written later, by the rules of the LiftWriter.
    """

    most_at_a_time = 3

    def __init__(self) -> None:
        self.under_way: Generator[Decision | None] | None = None
        self.flights: dict[str, Lift] = {}
        self.passes = 0
        super().__init__()

    @rule()
    def restart(self) -> None:
        self.under_way = None
        self.flights = {}
        super().restart()
        for verb in ("assume", "let_in"):
            setattr(self.ledger, verb, self.checked(getattr(self.ledger, verb)))

    def checked(self, book: Callable[[Pod], None]) -> Callable[[Pod], None]:
        def booked(pod: Pod) -> None:
            book(pod)
            self.is_within_what_is_shown(pod)

        return booked

    def is_within_what_is_shown(self, pod: Pod) -> None:
        """By a ledger that has listed what this one has been shown, and takes nothing over from it."""
        truth = Ledger(self.settings)
        truth.put_namespace(self.namespace)
        for queue in self.queues.values():
            truth.put_queue(queue)
        for group in self.groups.values():
            truth.put_group(group)
        for node in self.nodes.values():
            truth.put_node(node)
        for entry in self.ledger.entries():
            truth.put_pod(self.ledger.pod(entry.pod.uid) or entry.pod)
        for seen in self.stored.values():
            if self.ledger.pod(seen.uid) is None and not seen.asks:
                truth.put_pod(seen)
        name, booked = truth.attribution(pod).queue, truth.entry(pod.uid)
        assert booked is not None
        assert truth.queues[name].open
        for card, milli in booked.charged.items():
            assert truth.used(name, card) <= truth.limits[name].cards.get(card, 0), (name, card, milli)

    # -- the pass --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        finish(self.ledger.settle())
        self.under_way = self.planner.run(self.ledger.wakeups.take_queues())

    @rule(steps=st.integers(1, 6))
    def quota_pass(self, steps: int) -> None:
        """So many steps of the pass that is under way, or of a new one."""
        if self.under_way is None:
            self.begin()
        for _ in range(steps):
            if not self.step():
                return

    def step(self) -> bool:
        """Whether the pass goes on."""
        assert self.under_way is not None
        try:
            decision = next(self.under_way)
        except StopIteration:
            self.under_way = None
            return False
        if isinstance(decision, Lift):
            self.holds.pop(decision.pod.uid, None)
            self.flights[decision.pod.uid] = decision
        elif isinstance(decision, Hold):
            self.holds[decision.pod.uid] = decision
        return True

    @precondition(lambda self: self.under_way is not None)
    @rule()
    def give_the_pass_up(self) -> None:
        """At whatever pause: nothing stays booked but what was given out."""
        assert self.under_way is not None
        self.under_way.close()
        self.under_way = None
        assert books_of(self.ledger) <= self.flights.keys() | set(self.unseen)
        self.ledger.wakeups.look_at(*self.ledger.accounts)

    @rule()
    def settle(self) -> None:
        next(self.ledger.settle(), None)

    # -- the writes ------------------------------------------------------------------------------------------

    @precondition(lambda self: self.flights)
    @rule(data=st.data(), accepted=st.booleans())
    def write_one(self, data: st.DataObject, accepted: bool) -> None:
        self.carry_out(data.draw(st.sampled_from(sorted(self.flights))), accepted)

    def carry_out(self, uid: str, accepted: bool) -> None:
        lift, ledger = self.flights.pop(uid), self.ledger
        finish(ledger.settle())
        if ledger.assumed(uid) is not lift.lifted:
            return
        seen = ledger.observed(uid)
        refused = seen is None or seen.resource_version != lift.pod.resource_version
        stored = self.stored.get(uid)
        refused = refused or not accepted or not self.planner.stands(lift)
        if refused or stored is None or stored.resource_version != lift.pod.resource_version:
            ledger.retract(lift.lifted)
            ledger.wakeups.look_at(lift.queue)
            return
        self.store(replace(stored, gates=(), annotations={**stored.annotations, **lift.records}))
        self.is_within_quota(lift)

    def decide(self, accepted: Callable[[], bool]) -> bool:
        """Passes to their end, and all that is to be written."""
        self.passes += 1
        assert self.passes < 300, "passes without end"
        if self.under_way is None:
            self.begin()
        lifted = False
        while self.under_way is not None:
            self.step()
        for uid in sorted(self.flights):
            lifted = True
            self.carry_out(uid, accepted())
        return lifted or bool(self.ledger.wakeups.pending) or not self.ledger.settled

    # -- more that happens -----------------------------------------------------------------------------------

    @rule(data=st.data(), choice=st.sampled_from(CHOICES))
    def change_a_waiting_pod(self, data: st.DataObject, choice: str) -> None:
        gated = sorted(uid for uid, pod in self.stored.items() if pod.gated)
        if gated:
            pod = self.stored[data.draw(st.sampled_from(gated))]
            changed = {**pod.annotations, names.CARD_NAME_ANNOTATION: choice}
            self.store(replace(pod, annotations=changed))

    @rule(data=st.data())
    def delete_a_waiting_pod(self, data: st.DataObject) -> None:
        gated = sorted(uid for uid, pod in self.stored.items() if pod.gated)
        if gated:
            uid = data.draw(st.sampled_from(gated))
            del self.stored[uid]
            self.unseen.append(uid)

    def figures_are_comparable(self) -> bool:
        return not self.unseen and not self.flights and self.under_way is None and self.ledger.settled

    def nothing_leaks(self) -> None:
        if self.figures_are_comparable():
            super().nothing_leaks()


class SlicedAndUniform(Sliced):
    settings = Settings.model_validate({"cards": {"multiCardJob": "uniform", "unlimitedCpuMemory": True}})


class SlicedAndCut(Sliced):
    """With passes that end after two steps."""


class SlicedFinely(Sliced):
    """With a pause wherever there is one in queues and gangs of any size."""


class SlicedFinelyAndUniform(SlicedAndUniform):
    """The same."""


TestSliced = Sliced.TestCase
TestSlicedAndCut = SlicedAndCut.TestCase
TestSlicedAndUniform = SlicedAndUniform.TestCase
TestSlicedFinely = SlicedFinely.TestCase
TestSlicedFinelyAndUniform = SlicedFinelyAndUniform.TestCase
for _case in (
    TestSliced,
    TestSlicedAndCut,
    TestSlicedAndUniform,
    TestSlicedFinely,
    TestSlicedFinelyAndUniform,
):
    _case.settings = settings(stateful_step_count=60)
del _case  # or it is another test


@pytest.fixture(autouse=True)
def hurried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of pause comes often: hardly any effort for a pass, and pods that are booked anew one by one."""
    monkeypatch.setattr(backlog, "AT_ONCE", 0)
    monkeypatch.setattr(backlog, "_IN_ONE_STEP", 1)
    if request.cls in (TestSlicedFinely, TestSlicedFinelyAndUniform):
        for module, name in pieces():
            monkeypatch.setattr(module, name, 1)
    if request.cls in (TestSlicedAndCut, TestSlicedAndUniform):
        monkeypatch.setattr(effort, "OF_A_PASS", 2)
        monkeypatch.setattr(effort, "OF_A_UNIT", 1)
        monkeypatch.setattr(rotation, "BEFORE_OTHERS", 0)
