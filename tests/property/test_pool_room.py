"""Who waits for a node that a pool has yet to bring is on no node of another card, and is not told never to run: `can-run` and `advise`."""

from dataclasses import dataclass

from hypothesis import event, given, settings
from hypothesis import strategies as st

from core.answers.fitting import fit
from core.answers.whatif import Change
from core.answers.would_run import Verdict, verdicts
from core.objects import Pod
from core.queues.ledger import Ledger
from core.settings import Settings
from core.settings.model import CardSettings, PoolSettings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.books import books_of
from tests.builders.pods import GPU

_POOLED = "C"
"""The card of a pool that an autoscaler has taken to zero."""


@dataclass(frozen=True)
class World:
    """Nodes with cards A, quota for A and C, and pods at the gate."""

    cards: int
    """Of each node."""
    quota: int
    """Of C."""
    pods: tuple[Pod, ...]

    def ledger(self) -> Ledger:
        """Books that have taken in all of it."""
        pool = PoolSettings(labels={"pool": "c"}, resource=GPU)
        nodes = [a_node(name).card("A", self.cards).view() for name in ("n1", "n2")]
        queue = a_queue("q").cards({"A": 2, _POOLED: self.quota}).view()
        return books_of(Settings(cards=CardSettings(pools={_POOLED: pool})), [*nodes, queue, *self.pods])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Some pods name the card that is still to come, some have a choice."""
    cards = draw(st.lists(st.sampled_from((_POOLED, _POOLED, "A", "C|A", "A|C")), min_size=1, max_size=6))
    made = [
        a_pod(f"p{number}").card(card).gpu(draw(st.integers(1, 3))).in_queue("q").gated()
        for number, card in enumerate(cards)
    ]
    return World(draw(st.integers(1, 8)), draw(st.integers(0, 9)), tuple(pod.view() for pod in made))


def _is_right(found: list[Verdict], largest: int) -> None:
    for one in found:
        if one.hold is not None:
            continue
        if set(one.cards) == {_POOLED}:
            assert (one.seat.node, one.seat.pool, one.never) == ("", _POOLED, "")
            assert one.seat.problem == f"none has {_POOLED} yet, and its pool brings one"
        else:
            assert not one.seat.pool
            assert not one.seat.node or sum(one.cards.values()) <= largest


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_who_is_let_in_for_a_card_that_is_to_come_is_on_no_node_that_is_there(world: World) -> None:
    found = verdicts(world.ledger(), world.pods, {})
    event(f"{sum(set(one.cards) == {_POOLED} for one in found)} wait for the pool")
    _is_right(found, world.cards)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_nor_is_who_would_be_let_in_by_the_quota_that_is_advised(world: World) -> None:
    ledger = world.ledger()
    advised = fit(ledger, "q", [pod.uid for pod in world.pods])
    assert not advised.holds
    found = verdicts(ledger, world.pods, {}, advised.change if advised.changed else Change.none())
    assert all(one.hold is None for one in found)
    _is_right(found, world.cards)


def test_quota_is_advised_as_well_for_who_would_have_to_take_the_card_of_the_pool_beside_those_that_wait() -> (
    None
):
    """With its quota of A p2 takes the room there p3 is let in for now; with that of C alone p3 goes to the pool."""
    asked = (("C", 2), ("A", 1), ("A", 2), ("C|A", 1))
    made = [
        a_pod(f"p{n}").card(card).gpu(count).in_queue("q").gated() for n, (card, count) in enumerate(asked)
    ]
    world = World(cards=1, quota=2, pods=tuple(pod.view() for pod in made))
    advised = fit(world.ledger(), "q", [pod.uid for pod in world.pods])
    assert not advised.holds
    assert {need.key: need.needed for need in advised.needs} == {"A": 3000, "C": 3000}
