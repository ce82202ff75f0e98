"""The quota of a bind through the tree of queues: a pod that was never lifted needs room in every queue above its own."""

import pytest

from core import reasons
from core.refusal import Refusal
from tests.builders import a_pod, a_queue
from tests.builders.objects import PodBuilder, QueueBuilder
from tests.unit.core.binding.deciding import binder, granted, refused
from tests.unit.core.plan.levels import TEAMS, books, org, running, team


def unlifted(name: str, queue: str, card: str = "A", count: int = 1) -> PodBuilder:
    """A pod without gate and without record: its gate was forced off, or it never had one."""
    return a_pod(name).gpu(count).card(card).in_queue(queue)


@pytest.mark.parametrize(
    ("quota", "others", "fits"),
    [
        ({"A": 3}, [running("r", "red", 2)], True),
        ({"A": 2}, [running("r", "red", 2)], False),
        ({"A": 1}, [unlifted("another", "red")], True),
        ({"B": 0}, [running("r", "red", 2)], True),
    ],
)
def test_a_pod_that_nobody_lifted_needs_room_above_as_well(
    quota: dict[str, int], others: list[PodBuilder], fits: bool
) -> None:
    """What was granted to nobody counts in no queue, here or above."""
    pod = unlifted("p", "blue")
    answer = binder(books(org(**quota), *TEAMS, *others, pod)).decide(pod.view(), "a")
    if fits:
        assert granted(answer) == {"A": 1}
    else:
        short = refused(answer)
        assert short.code == reasons.INSUFFICIENT_SCALAR_QUOTA
        assert "Queue <org>" in short.message
        assert "queue blue is below it" in short.message


@pytest.mark.parametrize("room", [True, False])
def test_another_card_of_its_node_needs_room_above_as_well(room: bool) -> None:
    """Lifted for A, sent to a node of B; what it holds itself does not stand in its own way."""
    pod = unlifted("p", "blue", "A|B").assigned({"A": 1})
    answer = binder(books(org(A=1, B=1 if room else 0), *TEAMS, pod)).decide(pod.view(), "b")
    if room:
        assert granted(answer) == {"B": 1}
    else:
        assert "Queue <org> has insufficient <B> quota" in refused(answer).message


@pytest.mark.parametrize("queues", [(team("blue", "gone"),), (team("blue", "red"), team("red", "blue"))])
def test_below_a_broken_chain_nothing_is_bound_that_was_not_lifted(queues: tuple[QueueBuilder, ...]) -> None:
    pod, shares = unlifted("p", "blue"), a_pod("s").mgpu(core=10, memory=1024).in_queue("blue")
    binds = binder(books(*queues, pod, shares))
    assert refused(binds.decide(pod.view(), "a")).code == reasons.QUEUE_HIERARCHY_BROKEN
    assert refused(binds.decide(shares.view(), "m")).code == reasons.QUEUE_HIERARCHY_BROKEN


@pytest.mark.parametrize("queues", [(team("blue", "gone"),), (team("blue", "red"), team("red", "blue"))])
def test_nor_does_a_pod_get_another_card_there_than_it_was_lifted_for(
    queues: tuple[QueueBuilder, ...],
) -> None:
    pod = unlifted("p", "blue", "A|B").assigned({"A": 1})
    answer = binder(books(*queues, pod)).decide(pod.view(), "b")
    assert refused(answer).code == reasons.QUEUE_HIERARCHY_BROKEN


def test_a_pod_that_was_lifted_is_bound_whatever_became_of_the_queues_above() -> None:
    """Its quota was paid for; nothing is evicted for a cut, and nothing stopped half-way."""
    pod = unlifted("p", "blue").assigned({"A": 1})
    for queues in ((org(A=0), *TEAMS), (team("blue", "gone"),)):
        assert granted(binder(books(*queues, pod)).decide(pod.view(), "a")) == {"A": 1}


def test_shares_need_room_above_as_well() -> None:
    queues = (a_queue("org").shares(core=100), *TEAMS)
    first = a_pod("x").mgpu(core=60, memory=1024).in_queue("red").bound_to("m")
    pod = a_pod("y").mgpu(core=60, memory=1024).in_queue("blue")
    answer = binder(books(*queues, first, pod)).decide(pod.view(), "m")
    assert isinstance(answer, Refusal)
    assert "Queue <org>" in answer.message
