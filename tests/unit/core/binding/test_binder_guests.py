"""Binds of card pods that CrossQuota limits too: their card is none of the resources that make a GPU pod."""

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.queues.ledger import Ledger
from core.refusal import Refusal
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.core.crossquota.ruling import ruled

GUARDED = ruled(gpuResourceNames=["example.com/gpu"], quota={"cpu": 4}, guardBind=True)
NODES = [a_node(name).card("A", 8).allocatable("example.com/gpu", 8) for name in ("a1", "a2")]
RECORD = {names.CHARGED_QUEUE_ANNOTATION: "q", names.ASSIGNED_ANNOTATION: '{"A":1}'}


def asking(name: str, cpu: int, *, lifted: bool = False) -> PodBuilder:
    pod = a_pod(name).gpu(1).request("cpu", cpu).card("A").in_queue("q")
    return pod.assigned(RECORD[names.ASSIGNED_ANNOTATION]) if lifted else pod


class World:
    """Both books over two nodes of the card, each with four cores for guests."""

    def __init__(self, *pods: PodBuilder) -> None:
        views = [pod.view() for pod in pods]
        self.ledger = Ledger(GUARDED)
        self.ledger.put_queue(a_queue("q").cards({"A": 2}).view())
        for node in NODES:
            self.ledger.put_node(node.view())
        for view in views:
            self.ledger.put_pod(view)
        self.guests = guest_book([node.view() for node in NODES], views, GUARDED)
        self.binds = Binder(self.ledger, self.guests, GUARDED, lambda: None)

    def bind(self, pod: PodBuilder, node: str) -> dict[str, str] | str:
        """The records of a bind that is granted, the code of one that is not."""
        answer = self.binds.decide(pod.view(), node)
        if isinstance(answer, Refusal):
            return answer.code
        self.binds.book(pod.view(), node, answer)
        return dict(answer)

    def used(self) -> tuple[int, int, int]:
        """Cores on both nodes, and cards of the queue."""
        first, second = (self.guests.used(node).get("cpu", 0) // 1000 for node in ("a1", "a2"))
        return first, second, self.ledger.used("q", "A") // 1000


@pytest.mark.parametrize("pod", [asking("p", 3), asking("p", 3, lifted=True)], ids=["never lifted", "lifted"])
def test_both_books_have_what_is_granted_and_lose_what_is_taken_back(pod: PodBuilder) -> None:
    world = World(pod)
    assert not world.binds.certain(pod.view(), "a1")
    assert world.bind(pod, "a1") == RECORD
    assert world.used() == (3, 0, 1)
    world.binds.take_back(pod.view().uid)
    assert world.used()[:2] == (0, 0)


def test_a_lifted_pod_passes_without_a_leader_and_one_that_was_never_lifted_does_not() -> None:
    lifted, never = asking("p", 9, lifted=True), asking("n", 9)
    binds = World(lifted, never).binds
    assert binds.passes_unasked(lifted.view(), "a1")
    assert not binds.passes_unasked(never.view(), "a1")


def test_neither_a_lift_nor_cards_left_in_the_queue_make_room_on_the_node() -> None:
    world = World(asking("there", 3).bound_to("a1"))
    for pod in (asking("p", 2), asking("p", 2, lifted=True)):
        assert world.bind(pod, "a1") == reasons.CROSS_QUOTA_EXCEEDED
    assert world.used() == (3, 0, 1)


def test_room_on_the_node_makes_no_cards() -> None:
    world = World(asking("there", 1).bound_to("a1"), asking("more", 1).bound_to("a1"))
    assert world.bind(asking("p", 1), "a1") == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert world.used() == (2, 0, 2)


@pytest.mark.parametrize(("cpu", "may"), [(1, True), (2, False)])
def test_a_granted_pod_may_move_to_a_node_of_its_card_where_there_is_room(cpu: int, *, may: bool) -> None:
    world, pod = World(asking("there", 3).bound_to("a2")), asking("p", cpu, lifted=True)
    world.bind(pod, "a1")
    granted = world.ledger.pod(pod.view().uid)
    assert granted is not None
    answer = world.binds.decide_again(pod.view(), granted, "a2")
    assert isinstance(answer, Refusal) is not may
