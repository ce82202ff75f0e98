"""Gangs whose queues share the quota of a queue above (`cards.hierarchy`): all that holds of those in one queue.

They are decided on in passes that have hardly any effort for anybody and that are paused, with something shown by the watch at
each pause. Nobody takes what an unfinished gang lacks of the quota above: unless a member was lost, or quota taken away, no gang
is ever left in part, even where nothing is given back.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from core.plan import effort, rotation, together
from core.plan.decision import Decision
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.property.test_gang_choices import STOCK, Choices, quotas

PARENTS = {"org": "", "left": "org", "l1": "left", "l2": "left", "r1": "org"}
HOMES = ("l1", "l2", "left", "l1")
"""The queues of the groups, in their order: one beside the other, and the one above."""
PLENTY = {"A": 9, "B": 9}


def hardly_any_effort(patch: pytest.MonkeyPatch) -> None:
    """Whoever takes more than a step is put off, and a gang takes one for each member."""
    patch.setattr(effort, "OF_A_PASS", 1)
    patch.setattr(effort, "OF_A_UNIT", 1)
    patch.setattr(rotation, "BEFORE_OTHERS", 0)
    patch.setattr(together, "_IN_ONE_STEP", 1)


class InATree(Choices):
    """The quota is that of `left`, with two queues below it; the queues above and below have plenty."""

    @initialize(single=st.booleans(), quota=quotas, little=st.booleans())
    def start(self, single: bool, quota: dict[str, int], little: bool = False) -> None:
        self.patch = pytest.MonkeyPatch()
        if little:
            hardly_any_effort(self.patch)
        self.pauses: list[int] = []
        super().start(single, quota)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if hasattr(self, "patch"):
                self.patch.undo()

    def restart(self) -> None:
        cards = {"multiCardTask": "single" if self.single else "spread", "hierarchy": True}
        self.settings = Settings.model_validate({"cards": cards})
        super().restart()
        self.ledger.wakeups.look_at(*self.ledger.accounts)

    # -- the queues ------------------------------------------------------------------------------------------------

    def put_queues(self) -> None:
        for name, parent in PARENTS.items():
            built = a_queue(name).cards(self.quota if name == "left" else PLENTY)
            self.ledger.put_queue((built.child_of(parent) if parent else built).view())

    def home(self, name: str) -> str:
        return HOMES[int(name[1:]) % len(HOMES)]

    def left(self, name: str, card: str) -> int:
        """All groups are in `left` or below it."""
        used = sum(self.ledger.used(queue, card) for queue in ("left", "l1", "l2")) // 1000
        return max(0, min(self.quota[card], STOCK[card]) - used)

    def passed(self) -> Iterator[Decision | None]:
        """Passes until one has lifted somebody, or nothing is left to be looked at. The watch goes on at the pauses."""
        lifted = False
        while not lifted and (queues := self.ledger.wakeups.take_queues()):
            for decision in self.planner.run(queues):
                lifted = lifted or hasattr(decision, "lifted")
                if self.pauses and (shown := self.pauses.pop()):
                    self.the_watch_of_pods_shows(shown)
                yield decision

    @rule(pauses=st.lists(st.integers(0, 2), max_size=30))
    def the_watch_goes_on_in_a_pass(self, pauses: list[int]) -> None:
        self.pauses = pauses
        self.decide(lambda: True)
        self.pauses = []


TestInATree = InATree.TestCase


gangs = st.lists(
    st.tuples(st.sampled_from(("l1", "l2", "left")), st.integers(2, 5), st.integers(0, 4)),
    min_size=1,
    max_size=4,
)
"""The queue, the members, and how many of them are in."""


@given(
    gangs,
    st.integers(0, 2),
    st.lists(st.sampled_from(("l1", "l2", "left", "org")), max_size=6),
    st.booleans(),
)
def test_whoever_waits_below_leaves_what_gangs_lack_that_have_begun(
    gangs: list[tuple[str, int, int]], spare: int, alone: list[str], little: bool
) -> None:
    """The quota above suffices for all that have begun, and for a few more pods."""
    begun = {f"g{number}": size for number, (_, size, inside) in enumerate(gangs) if 0 < inside < size}
    ledger = Ledger(Settings.model_validate({"cards": {"hierarchy": True}}))
    ledger.put_node(a_node("a").card("A", 64).view())
    for name, parent in PARENTS.items():
        built = a_queue(name).cards({"A": sum(begun.values()) + spare if name in ("left", "org") else 64})
        ledger.put_queue((built.child_of(parent) if parent else built).view())
    for number, (queue, size, inside) in enumerate(gangs):
        ledger.put_group(a_group(f"g{number}").in_queue(queue).min_member(size).uid(f"g{number}").view())
        for place in range(size):
            pod = a_pod(f"g{number}-{place}").gpu(1).card("A").in_group(f"g{number}").in_queue(queue)
            halved = 0 < inside < size and place < inside
            pod = pod.assigned({"A": 1}).charged(queue).together(size) if halved else pod.gated()
            ledger.put_pod(pod.view())
    for number, queue in enumerate(alone):
        ledger.put_pod(a_pod(f"p{number}").gpu(1).card("A").in_queue(queue).priority(9).gated().view())
    planner = Planner(ledger)
    with pytest.MonkeyPatch.context() as patch:
        if little:
            hardly_any_effort(patch)
        while queues := ledger.wakeups.take_queues():
            for _ in planner.run(queues):
                pass
    for name, size in begun.items():
        members = [
            found for each in range(size) if (found := ledger.pod(f"uid-ml-{name}-{each}")) is not None
        ]
        assert not any(member.gated for member in members), f"{name} was left in part"
