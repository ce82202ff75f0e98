"""Claims that very many pods refer to are made anew again and again: what comes of that to passes, binds and records."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.caches import Caches
from controller.metrics import Metrics
from core import names, reasons
from core.queues.backlog import AT_ONCE
from core.settings import Settings
from kube.changes import Listed
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.pods import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import binding, code
from tests.unit.controller.test_queue_records import World

pytestmark = pytest.mark.looptime

MANY = AT_ONCE + 1


def holding(number: int) -> PodBuilder:
    return a_pod(f"p{number}").claim("dev", name="c").in_queue("q")


def makes_anew(found: Caches, count: int) -> None:
    show(found.claims, "ml/c", a_claim("c").exactly("r", "gpu", count=count).uid(f"uid-{count}").view())


def waited_for(found: Caches) -> int:
    return found.ledger.devices.waiting("q").get("deviceclass/gpu", 0) // 1000


FIRST = '{"dev":{"uid":"uid-1","deviceclass/gpu":"1"}}'
SECOND = '{"dev":{"uid":"uid-2","unasked":"true","deviceclass/gpu":"2"}}'


def claims_written(world: World) -> list[str]:
    written = [write.body["metadata"]["annotations"] for write in world.writer.writes]
    return [each[names.CLAIMS_ANNOTATION] for each in written if names.CLAIMS_ANNOTATION in each]


async def ended(found: Caches) -> None:
    """Breaks, of caches that are told everything by the test."""
    for informer in found._informers():
        informer._take(Listed("1"))
    await found.end_breaks()


def hook_of(found: Caches, *pods: PodBuilder) -> BindingHook:
    reader = Pods(*(pod.build() for pod in pods))
    hook = BindingHook(reader, found, Settings(), Metrics(CollectorRegistry()), hook_timeout_s=5.0)
    hook.start(term())
    return hook


async def test_after_each_change_there_is_a_second_in_which_the_books_stay_as_they_are() -> None:
    found = caches([], [holding(number).gated().view() for number in range(MANY)])
    async with background(ended(found)):
        await asyncio.sleep(1)
        shown, told = list[int](), list[str]()
        found.ledger.wakeups.take_queues()
        for count in range(1, 41):
            makes_anew(found, count)
            await asyncio.sleep(0.1)
            await found.settled()
            shown.append(waited_for(found))
            told += found.ledger.wakeups.take_queues()
        assert len(set(shown)) <= 5, "forty times in four seconds"
        assert told == ["q"] * len(set(shown)), "whoever decides is told each time"
        await asyncio.sleep(1)
        await found.settled()
        assert waited_for(found) == 40
        await asyncio.sleep(1)
        assert not found.ledger.devices.breaks
        makes_anew(found, 1)
        assert not found.ledger.settled, "after a break that nobody needed the next change comes at once"


@pytest.mark.parametrize("let_in", [False, True])
async def test_the_bind_of_a_pod_whose_claim_is_another_one_by_now_waits_until_the_books_know(
    *, let_in: bool
) -> None:
    """It would be let through as if its claim were what it was, or with the one that was counted."""
    ungated = [holding(number) for number in range(MANY)]
    if let_in:
        ungated = [pod.charged("q").annotation(names.CLAIMS_ANNOTATION, FIRST) for pod in ungated]
    free = a_pod("free").gpu(1).card("A").in_queue("q")
    found = caches([a_node("a").card("A", 8).view()], [pod.view() for pod in (*ungated, free)])
    show(found.queues, "q", a_queue("q").cards({"A": 8}).view())
    hook = hook_of(found, *ungated, free)
    async with background(ended(found)):
        await asyncio.sleep(1)
        makes_anew(found, 1)
        assert (await hook.review(binding("p0", node="a"))).allowed
        makes_anew(found, 2)
        assert code(await hook.review(binding("p1", node="a"))) == reasons.BOOKS_UNSETTLED
        assert (await hook.review(binding("free", node="a"))).allowed
        await asyncio.sleep(2)
        assert (await hook.review(binding("p1", node="a"))).allowed


async def test_what_runs_with_a_claim_that_the_books_do_not_know_yet_has_it_put_on_record_once_they_do() -> (
    None
):
    world = World(*(holding(number).charged("q").bound_to("n") for number in range(MANY)))
    async with background(ended(world.caches)), world.leading():
        await asyncio.sleep(1)
        for count in (1, 2):
            show(world.caches.claims, "ml/c", None)
            makes_anew(world.caches, count)
        assert world.caches.ledger.devices.awaits("ml/c")
        await asyncio.sleep(60)
    assert claims_written(world) == [SECOND] * MANY


async def test_who_begins_to_lead_while_a_change_is_kept_puts_the_claim_on_record_once_it_is_known() -> None:
    world = World(*(holding(number).charged("q").bound_to("n") for number in range(MANY)))
    async with background(ended(world.caches)):
        await asyncio.sleep(1)
        makes_anew(world.caches, 1)
        show(world.caches.claims, "ml/c", None)
        await asyncio.sleep(1.5)
        makes_anew(world.caches, 2)
        assert world.caches.ledger.devices.awaits("ml/c")
        async with world.leading():
            await asyncio.sleep(60)
    assert claims_written(world) == [SECOND] * MANY


async def test_a_pod_that_comes_while_a_change_of_its_claim_is_kept_has_not_the_old_one_put_on_record() -> (
    None
):
    world = World(*(holding(number).gated() for number in range(MANY)))
    async with background(ended(world.caches)), world.leading():
        await asyncio.sleep(1)
        for count in (1, 2):
            makes_anew(world.caches, count)
        world.shows(a_pod("past").claim("dev", name="c").in_queue("q").charged("q").bound_to("n"))
        await asyncio.sleep(60)
    assert claims_written(world) == [SECOND]


async def test_binds_of_those_who_share_a_claim_are_not_kept_waiting_by_its_devices_being_given_out() -> None:
    lifted = [
        holding(number).charged("q").annotation(names.CLAIMS_ANNOTATION, FIRST) for number in range(MANY)
    ]
    found = caches([a_node("n").view()], [pod.view() for pod in lifted])
    hook = hook_of(found, *lifted)
    async with background(ended(found)):
        await asyncio.sleep(1)
        makes_anew(found, 1)
        show(found.claims, "ml/c", a_claim("c").exactly("r", "gpu").uid("uid-1").allocated("r").view())
        assert found.ledger.devices.awaits("ml/c")
        assert [(await hook.review(binding(f"p{number}", node="n"))).allowed for number in range(3)] == [
            True
        ] * 3
