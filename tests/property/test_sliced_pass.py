"""A pass in slices with events between any two of them: no quota is broken.

Nobody is forgotten, nothing is left booked, and a costly gang costs itself.
"""

from collections.abc import Callable, Generator
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from core import names
from core.objects import Pod
from core.plan import effort, rotation
from core.plan.decision import Decision, Hold, Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.property.pieces import pieces
from tests.property.sliced import books_of, one_by_one
from tests.property.test_controller_invariants import CHOICES, Controller


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
    one_by_one(monkeypatch)
    if request.cls in (TestSlicedFinely, TestSlicedFinelyAndUniform):
        for module, name in pieces():
            monkeypatch.setattr(module, name, 1)
    if request.cls in (TestSlicedAndCut, TestSlicedAndUniform):
        monkeypatch.setattr(effort, "OF_A_PASS", 2)
        monkeypatch.setattr(effort, "OF_A_UNIT", 1)
        monkeypatch.setattr(rotation, "BEFORE_OTHERS", 0)
