"""PodGroups, Jobs, namespaces, and queues for some alone send pods from queue to queue; who is not left behind is booked as if the books were made anew."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.objects import Pod
from core.queues import backlog
from core.queues.attribution import recorded
from core.queues.ledger import Ledger
from core.settings import Settings
from core.stage import Stage
from core.steps import Steps, finish
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder

QUEUES = ("", "q", "r")
NAMES = ("p0", "p1")
Change = Callable[[Ledger], None]

JOB = "batch.volcano.sh/v1alpha1"

queues = st.sampled_from(QUEUES)
pods = st.sampled_from(NAMES)


def in_group(pod: PodBuilder) -> PodBuilder:
    return pod.in_group("g")


def beside_group(pod: PodBuilder) -> PodBuilder:
    return pod.in_group("g").in_gang("gang", 2)


def of_job(pod: PodBuilder) -> PodBuilder:
    return pod.owned_by("Job", "j", api_version=JOB)


def carded(pod: PodBuilder) -> PodBuilder:
    return pod.card("A").gpu(1)


def let_in(pod: PodBuilder) -> PodBuilder:
    return carded(pod).assigned({"A": 1})


LIVES: tuple[tuple[Callable[[PodBuilder, str], PodBuilder], ...], ...] = (
    (
        lambda pod, _: carded(pod).gated(),
        lambda pod, queue: let_in(pod).charged(queue),
        lambda pod, queue: let_in(pod).charged(queue).needs_node("card", "A"),
        lambda pod, queue: let_in(pod).charged(queue).bound_to("n", phase="Pending"),
        lambda pod, queue: let_in(pod).charged(queue).bound_to("n"),
        lambda pod, queue: let_in(pod).charged(queue).bound_to("n").phase("Succeeded"),
    ),
    (
        lambda pod, _: carded(pod).gated(),
        lambda pod, _: let_in(pod),
        lambda pod, _: let_in(pod).needs_node("card", "A"),
        lambda pod, _: let_in(pod).bound_to("n", phase="Pending"),
        lambda pod, _: let_in(pod).bound_to("n"),
        lambda pod, _: let_in(pod).bound_to("n").phase("Succeeded"),
    ),
    (
        lambda pod, _: carded(pod),
        lambda pod, _: carded(pod).bound_to("n"),
        lambda pod, queue: let_in(pod).charged(queue).bound_to("n"),
    ),
    (
        lambda pod, _: pod.request("cpu", 1),
        lambda pod, _: pod.request("cpu", 1).bound_to("n"),
    ),
)
"""With a record of its queue; from a version that wrote none; never gated; without cards. A pod is seen in these states, in order."""


REFERENCES: tuple[Callable[[PodBuilder], PodBuilder], ...] = (in_group, beside_group, of_job, lambda pod: pod)


def group_says(queue: str) -> Change:
    return lambda ledger: ledger.put_group(a_group("g").in_queue(queue).min_member(1).view())


def job_says(queue: str, uid: str) -> Change:
    return lambda ledger: ledger.put_job(a_job("j").in_queue(queue).uid(uid).view())


def namespace_says(queue: str, team: str = "") -> Change:
    made = a_namespace().in_queue(queue) if queue else a_namespace()
    made = made.label("team", team) if team else made
    return lambda ledger: ledger.put_namespace(made.view())


def queue_is_for(namespaces: str | None, selector: str | None = None) -> Change:
    made = a_queue("q").cards({"A": 64}).capability(cpu=100).used_by(namespaces, selector)
    return lambda ledger: ledger.put_queue(made.view())


CHANGES: dict[str, tuple[Sequence[Change], Change]] = {
    "group": ([group_says(queue) for queue in QUEUES], lambda ledger: ledger.drop_group("ml/g")),
    "job": (
        [*(job_says(queue, "uid-j") for queue in QUEUES), job_says("q", "another")],
        lambda ledger: ledger.drop_job("ml/j"),
    ),
    "namespace": (
        [namespace_says(queue, team) for queue in QUEUES for team in ("", "own")],
        lambda ledger: ledger.drop_namespace("ml"),
    ),
    "queue": (
        [queue_is_for(None), queue_is_for("ml"), queue_is_for("web"), queue_is_for("", "team=own")],
        lambda ledger: ledger.drop_queue("q"),
    ),
}
"""What an object may say, and what takes it out of the books."""


@st.composite
def lives(draw: st.DrawFn) -> Sequence[PodBuilder]:
    """The states of one pod that are still to be seen."""
    refers, life, queue = (draw(st.sampled_from(REFERENCES)), draw(st.sampled_from(LIVES)), draw(queues))
    return [state(refers(a_pod()), queue) for state in life[draw(st.integers(0, len(life) - 1)) :]]


a_life = lives()


class Moves(RuleBasedStateMachine):
    """Every change has somebody wait: none is few enough to be taken in at once."""

    limits: ClassVar[dict[str, int]] = {"AT_ONCE": -1}

    def __init__(self) -> None:
        super().__init__()
        self.few = [mock.patch.object(backlog, name, most) for name, most in self.limits.items()]
        for each in self.few:
            each.start()
        self.stored: dict[str, Pod] = {}
        self.to_come: dict[str, deque[Pod]] = {name: deque() for name in NAMES}
        self.fixed: dict[str, str] = {}
        self.objects: dict[str, Change] = {}
        self.ledger = self.empty()
        self.settling: Steps[None] | None = None

    def teardown(self) -> None:
        for each in self.few:
            each.stop()

    @staticmethod
    def empty() -> Ledger:
        ledger = Ledger(Settings())
        ledger.put_node(a_node("n").card("A", 64).view())
        for queue in ("r", "default"):
            ledger.put_queue(a_queue(queue).cards({"A": 64}).capability(cpu=100).view())
        return ledger

    @initialize(pods=st.lists(a_life, min_size=len(NAMES), max_size=len(NAMES)), said=st.data())
    def there_are_pods_and_a_group(self, pods: list[Sequence[PodBuilder]], said: st.DataObject) -> None:
        for name, life in zip(NAMES, pods, strict=True):
            self.pod_is_made(name, life)
        for thing in CHANGES:
            self.says(thing, said.draw(st.sampled_from(CHANGES[thing][0])))

    @rule(name=pods, life=a_life)
    def pod_is_made(self, name: str, life: Sequence[PodBuilder]) -> None:
        """Also in the place of one with this name and UID, which is gone then."""
        self.to_come[name] = deque(replace(state.view(), name=name, uid=name) for state in life)
        self.stored.pop(name, None)
        self.fixed.pop(name, None)
        self.ledger.drop_pod(name)
        self.pod_is_seen(name)

    @rule(name=pods)
    def pod_is_seen(self, name: str) -> None:
        if self.to_come[name]:
            pod = self.to_come[name].popleft()
            self.stored[pod.uid] = pod
            self.ledger.put_pod(pod)

    @rule(thing=st.sampled_from(sorted(CHANGES)), data=st.data())
    def an_object_says_something(self, thing: str, data: st.DataObject) -> None:
        self.says(thing, data.draw(st.sampled_from(CHANGES[thing][0])))

    def says(self, thing: str, put: Change) -> None:
        self.objects[thing] = put
        put(self.ledger)

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def an_object_goes(self, data: st.DataObject) -> None:
        thing = data.draw(st.sampled_from(sorted(self.objects)))
        del self.objects[thing]
        CHANGES[thing][1](self.ledger)

    @rule(name=pods)
    def leader_fixes(self, name: str) -> None:
        pod = self.stored.get(name)
        if pod is not None and not pod.gated:
            self.fixed[pod.uid] = self.ledger.fix_queue(pod)

    @rule()
    def leader_ends(self) -> None:
        self.fixed.clear()
        self.ledger.release_queues()

    @rule()
    def a_step_is_taken(self) -> None:
        self.settling = self.settling or self.ledger.settle()
        if next(self.settling, self) is self:
            self.settling = None

    @rule()
    def all_is_settled(self) -> None:
        finish(self.ledger.settle())
        assert self.ledger.settled

    @invariant()
    def who_is_not_left_behind_is_booked_as_in_new_books(self) -> None:
        fresh = self.empty()
        for put in self.objects.values():
            put(fresh)
        behind = {uid for uid in self.stored if self.ledger.left_behind(uid)}
        for uid, pod in self.stored.items():
            if uid not in behind and uid in self.fixed and recorded(pod) is None:
                entry = self.ledger.entry(uid)
                assert entry is None or entry.queue == self.fixed[uid]
            elif uid not in behind:
                fresh.put_pod(pod)
                assert self.ledger.entry(uid) == fresh.entry(uid)
                assert _weight(self.ledger, uid) == _weight(fresh, uid)

    @invariant()
    def nobody_who_holds_something_is_left_behind_once_the_sums_are_settled(self) -> None:
        if not self.ledger.sums_settled:
            return
        for uid in self.stored:
            entry = self.ledger.entry(uid)
            holds = entry is not None and entry.stage is not Stage.WAITING and not entry.unlifted
            assert not (holds and self.ledger.left_behind(uid))


class MovesOfCrowds(Moves):
    """Nobody knows of anybody in that event whether he holds something."""

    limits: ClassVar[dict[str, int]] = {"AT_ONCE": -1, "SIFTED_AT_ONCE": -1, "_SIFTED_IN_ONE_STEP": 1}


def _weight(ledger: Ledger, uid: str) -> object:
    return next((rest for one, *rest in ledger.cpu_memory.weights() if one == uid), None)


for moves in (Moves, MovesOfCrowds):
    moves.TestCase.settings = settings(max_examples=200, stateful_step_count=30)
TestMoves = Moves.TestCase
TestMovesOfCrowds = MovesOfCrowds.TestCase
