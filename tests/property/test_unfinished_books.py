"""A look at gangs that were cut short goes through those that have changed, and finds what a look at all of them finds."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from core.plan.unfinished import UnfinishedGangs
from core.queues.ledger import Ledger
from core.settings import ReservationSettings, Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

GANGS = ("g0", "g1")
NUMBERS = range(3)
QUEUES = ("q0", "q1")

gangs = st.sampled_from(GANGS)
members = st.tuples(gangs, st.sampled_from(NUMBERS))
queues = st.sampled_from(QUEUES)


def member(gang: str, number: int) -> PodBuilder:
    return a_pod(f"{gang}-{number}").gpu(1).card("A").in_group(gang).owned_by("Job", gang)


def lifted(gang: str, number: int) -> PodBuilder:
    return member(gang, number).together(3).assigned({"A": 1})


KINDS: tuple[Callable[[str, int, str], PodBuilder], ...] = (
    lambda gang, number, _: member(gang, number).gated(),
    lambda gang, number, queue: lifted(gang, number).charged(queue),
    lambda gang, number, _: lifted(gang, number),
    lambda gang, number, queue: lifted(gang, number).charged(queue).bound_to("n"),
    lambda gang, number, queue: lifted(gang, number).charged(queue).bound_to("n").phase("Succeeded"),
    lambda gang, number, queue: lifted(gang, number).charged(queue).priority(5),
)


class Books(RuleBasedStateMachine):
    """Two who look at the same books, one of them at everything."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(Settings())
        self.ledger.put_node(a_node("n").card("A", 64).view())
        for queue in QUEUES:
            self.ledger.put_queue(a_queue(queue).cards({"A": 64}).view())
        settings = ReservationSettings(warn_after_s=10, unfinished_after_s=10)
        self.gangs = UnfinishedGangs(self.ledger, settings, lambda _: 0)
        self.thorough = UnfinishedGangs(self.ledger, settings, lambda _: 0)
        self.now = 0

    @rule(member=members, kind=st.sampled_from(KINDS), queue=queues)
    def is_seen(
        self, member: tuple[str, int], kind: Callable[[str, int, str], PodBuilder], queue: str
    ) -> None:
        self.ledger.put_pod(kind(*member, queue).view())

    @rule(member=members)
    def goes(self, member: tuple[str, int]) -> None:
        gang, number = member
        self.ledger.drop_pod(f"uid-ml-{gang}-{number}")

    @rule(member=members)
    def is_lifted(self, member: tuple[str, int]) -> None:
        gang, number = member
        pod = self.ledger.observed(f"uid-ml-{gang}-{number}")
        if pod is not None and pod.gated:
            records = lifted(gang, number).charged("q0").view().annotations
            self.ledger.assume(replace(pod, gates=(), annotations=records))

    @rule(member=members)
    def lift_fails(self, member: tuple[str, int]) -> None:
        gang, number = member
        self.ledger.forget(f"uid-ml-{gang}-{number}")

    @rule(gang=gangs, minimum=st.integers(1, 3), queue=queues)
    def group_is_seen(self, gang: str, minimum: int, queue: str) -> None:
        self.ledger.put_group(a_group(gang).in_queue(queue).min_member(minimum).view())
        finish(self.ledger.settle())

    @rule(gang=gangs)
    def group_goes(self, gang: str) -> None:
        self.ledger.drop_group(f"ml/{gang}")
        finish(self.ledger.settle())

    @precondition(lambda self: self.now > 0)
    @rule()
    def leads_anew(self) -> None:
        self.gangs.restart()
        self.thorough.restart()

    @rule()
    def both_look(self) -> None:
        self.now += 1
        self.thorough._looked = -1  # Long ago: what has changed since is not known any more.
        for gangs in (self.gangs, self.thorough):
            finish(gangs.look(self.now))
        assert self.gangs._since == self.thorough._since
        assert self.gangs._gangs == self.thorough._gangs


TestBooks = Books.TestCase
