"""Binds while very many pods are still to be counted anew: they wait for the sums of what queues use, within the hook's time."""

import asyncio
from itertools import count

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from core import reasons
from core.admission.request import Decision
from core.settings import Settings
from core.steps import finish
from kube.turns import Turns
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import binding, code
from tests.unit.core.crossquota.ruling import gpu_node, ruled

RUNNING = 65
"""One more than are counted anew at once."""
LATE = a_node("late").allocatable("nvidia.com/gpu", RUNNING)


def asking(name: str, card: str = "A") -> PodBuilder:
    return a_pod(name).gpu(1).card(card).in_queue("q")


def one_step_a_round() -> Turns:
    """Eight pods are counted anew in it."""
    ticks = count()
    return Turns(1.0, lambda: next(ticks) * 0.6)


def no_time() -> Turns:
    """Others come first for ever."""
    return Turns(0.0)


class World:
    """65 pods without a record run on a node that has just shown that its cards are As."""

    def __init__(
        self,
        *pods: PodBuilder,
        quota: int = RUNNING,
        turns: Turns | None = None,
        settings: Settings | None = None,
        hook_timeout_s: float = 5.0,
    ) -> None:
        settings = settings or Settings()
        running = [asking(f"r{number}", "B|A").bound_to("late") for number in range(RUNNING)]
        nodes = [a_node("a").card("A", 8), a_node("b").card("B", 8), gpu_node("g1"), LATE]
        views = [pod.view() for pod in (*running, *pods)]
        self.caches = caches([node.view() for node in nodes], views, settings, turns)
        show(self.caches.queues, "q", a_queue("q").cards({"A": quota}).view())
        self.reader = Pods(*(pod.build() for pod in pods))
        metrics = Metrics(CollectorRegistry())
        self.hook = BindingHook(self.reader, self.caches, settings, metrics, hook_timeout_s=hook_timeout_s)
        self.hook.start(term())
        finish(self.caches.ledger.settle())
        show(self.caches.nodes, "late", LATE.card("A", RUNNING).view())
        assert not self.caches.ledger.sums_settled

    async def bind(self, name: str = "p", node: str = "a") -> Decision:
        return await self.hook.review(binding(name, node=node))


@pytest.mark.parametrize(("quota", "allowed"), [(RUNNING, False), (RUNNING + 1, True)])
async def test_what_a_node_that_shows_its_card_has_charged_counts_at_the_next_bind(
    quota: int, *, allowed: bool
) -> None:
    world = World(asking("p"), quota=quota)
    answer = await world.bind()
    assert answer.allowed is allowed
    assert allowed or code(answer) == reasons.INSUFFICIENT_SCALAR_QUOTA


async def test_of_many_that_wait_side_by_side_no_more_are_granted_than_there_is_quota() -> None:
    pods = [asking(f"p{number}") for number in range(20)]
    world = World(*pods, quota=RUNNING + 3, turns=one_step_a_round())
    answers = await asyncio.gather(*(world.bind(f"p{number}") for number in range(20)))
    assert sum(answer.allowed for answer in answers) == 3


async def test_the_pod_is_looked_at_anew_after_the_wait() -> None:
    world = World(asking("p"), quota=RUNNING + 1, turns=one_step_a_round())
    answer = asyncio.create_task(world.bind())
    await asyncio.sleep(0)
    show(world.caches.pods, "ml/p", None)
    world.reader.stored.clear()
    assert code(await answer) == reasons.POD_NOT_FOUND
    assert world.caches.ledger.pod(asking("p").view().uid) is None


async def test_sums_that_are_left_behind_during_a_read_are_waited_for_as_well() -> None:
    """The cache has not seen the gate go."""
    world = World(asking("p").gated())
    finish(world.caches.ledger.settle())
    world.reader.stored["ml/p"] = asking("p").build()

    def changed_back_and_forth() -> None:
        world.reader.meanwhile = lambda: None
        for node in (LATE, LATE.card("A", RUNNING)):
            show(world.caches.nodes, "late", node.view())

    world.reader.meanwhile = changed_back_and_forth
    assert code(await world.bind()) == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert world.reader.reads == 2


async def test_what_does_not_come_in_time_is_refused_for_now_and_books_nothing() -> None:
    world = World(asking("p"), quota=RUNNING + 1, turns=no_time(), hook_timeout_s=0.2)
    async with asyncio.timeout(2):
        answer = await world.bind()
    assert code(answer) == reasons.BOOKS_UNSETTLED
    assert answer.denial is not None
    assert (answer.denial.status, answer.denial.reason) == (409, "Conflict")
    assert world.caches.ledger.pods_on("a") == []
    finish(world.caches.ledger.settle_sums())
    assert (await world.bind()).allowed


async def test_what_needs_no_quota_at_its_bind_does_not_wait() -> None:
    """A pod that stays with the card it was lifted for, and one that only CrossQuota is asked about."""
    settings = ruled(quota={"cpu": 4}, guardBind=True)
    lifted, guest = asking("lifted").assigned({"A": 1}), a_pod("guest").request("cpu", 2)
    world = World(lifted, guest, turns=no_time(), settings=settings)
    assert (await world.bind("lifted", "a")).allowed
    assert (await world.bind("guest", "g1")).allowed
    assert world.caches.guests.used("g1")["cpu"] == 2000
    assert not world.caches.ledger.sums_settled
