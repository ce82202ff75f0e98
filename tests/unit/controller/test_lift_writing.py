"""The way of a lift into the API server: retried outside its slot, checked before each try, taken back on certainty alone."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from controller.flight import TRIES, UNANSWERED_S
from controller.lift_writing import LiftWriter
from core.plan.decision import Lift
from core.plan.lift import Planner
from kube import errors
from kube.client import Json
from tests.builders import a_node, a_pod
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import show
from tests.unit.controller.fakes import term
from tests.unit.controller.lift_world import BROKEN, CHANGED, CUT, GATEWAY, SLOW_DOWN, World, lifted, pod

pytestmark = pytest.mark.looptime


# -- answers that say nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [CUT, BROKEN, GATEWAY])
async def test_after_a_lost_answer_the_pod_is_read_and_the_same_patch_repeated(
    lost: errors.KubeError,
) -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.extend([lost, lost])
    async with world.running():
        await asyncio.sleep(10)
        assert world.names() == ["a", "a", "a"]
        assert world.writer.reads == ["a", "a"]
        assert len({str(write.body) for write in world.writer.writes}) == 1
        assert world.used() == 1


async def test_a_lift_that_was_stored_is_found_by_the_read_and_not_written_again() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(CUT)
    async with world.running():
        world.stores(lifted("a"))
        await asyncio.sleep(30)
        assert world.names() == ["a"]
        assert world.used() == 1


async def test_a_stored_lift_whose_answer_was_lost_is_never_taken_back_however_late_the_watch_is() -> None:
    """Three cards given of two: the repetition was refused, and a second later the booking was retracted."""
    world = World(pod("a", 1), pod("b", 2), pod("c", 3), quota=2)
    world.writer.answers.append(CUT)
    world.writer.failing_reads.extend([CUT] * 4)
    async with world.running():
        world.stores(lifted("a"))
        world.writer.answer_to = lambda name: CHANGED if name == "a" else None
        for _ in range(60):
            await asyncio.sleep(1)
            assert world.used() == 2
        assert set(world.names()) == {"a", "b"}
        world.shows(lifted("a"))
        await asyncio.sleep(1)
        assert set(world.names()) == {"a", "b"}


async def test_the_time_that_the_server_asks_for_is_waited() -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(SLOW_DOWN)
    async with world.running():
        await asyncio.sleep(30)
    first, second = world.writer.writes
    assert second.at - first.at == pytest.approx(7.0, abs=0.01)


async def test_the_time_that_the_server_asks_for_is_waited_however_often_the_pod_changes_meanwhile() -> None:
    """Its tenant writes a label each second, and each time it is another pod."""
    world = World(pod("a", 1))
    world.writer.answers.append(SLOW_DOWN)
    async with world.running():
        for version in range(2, 22):
            await asyncio.sleep(1)
            if len(world.writer.writes) == 1:
                world.shows(pod("a", 1, version=str(version)))
                assert world.used() == 1, "and others do not get its quota"
    first, second = world.writer.writes
    assert 7.0 <= second.at - first.at <= 8.1


@pytest.mark.parametrize(
    ("said", "waited_s"),
    [
        ("0", 0.2),
        ("1", 1),
        ("30", 30),
        ("31", 31),
        ("60", 60),
        ("300", 300),
        ("301", 300),
        ("soon", 0.2),
        ("-5", 0.2),
        ("nan", 0.2),
        ("inf", 0.2),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.2),
    ],
)
async def test_the_server_is_believed_when_it_asks_for_up_to_five_minutes(said: str, waited_s: float) -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(errors.from_response(429, {"Retry-After": said}, b"slow down"))
    async with world.running():
        await asyncio.sleep(320)
    first, second = world.writer.writes
    assert second.at - first.at == pytest.approx(waited_s, abs=0.1)


@pytest.mark.parametrize("answer", [429, 503])
async def test_a_lift_that_is_put_off_for_long_gives_its_quota_to_the_next_meanwhile(answer: int) -> None:
    """Of a 503 only when it cannot be stored any more, which is long before the server wants to be asked again."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(errors.from_response(answer, {"Retry-After": "120"}, b"slow down"))
    async with world.running():
        await asyncio.sleep(UNANSWERED_S + 3)
        assert world.names() == ["a", "b"]
        world.shows(lifted("b"))
        world.shows_queue(2)
        await asyncio.sleep(110 - UNANSWERED_S - 3)
        assert world.names() == ["a", "b"]
        await asyncio.sleep(20)
        assert world.names() == ["a", "b", "a"]


async def test_a_try_without_an_answer_may_be_stored_for_longer_than_it_is_waited_for() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: CUT if name == "a" else None
    async with world.running():
        await asyncio.sleep(100)
        given = next(write.at for write in world.writer.writes if write.name == "b")
        last = max(write.at for write in world.writer.writes if write.name == "a" and write.at < given)
        assert given - last >= UNANSWERED_S


async def test_a_read_that_began_while_a_try_could_still_be_stored_does_not_take_it_back() -> None:
    """It is answered at once, and the answer takes 3.9 s to come; the lift is stored in between."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: CUT if name == "a" else None
    loop, read = asyncio.get_running_loop(), world.writer.get

    async def slow(*args: Any, **options: Any) -> Json:
        found = await read(*args, **options)
        left_s = world.writer.writes[-1].at + UNANSWERED_S - loop.time()
        if len(world.writer.writes) == TRIES and 0 < left_s < 3.9:
            world.stores(lifted("a"))
        await asyncio.sleep(3.9)
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(world.writer, "get", slow)
        async with world.running():
            await asyncio.sleep(120)
            assert world.names() == ["a"] * TRIES
            assert "gates" not in str(world.writer.stored["ml/a"]), "it was stored meanwhile"
            assert world.used() == 1


async def test_a_queue_that_closes_takes_nothing_back_before_the_pod_is_read_again() -> None:
    """The first try is stored after a read that found nothing, and before the server lets us try once more."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.extend([CUT, errors.from_response(429, {"Retry-After": "29"}, b"slow down")])
    async with world.running():
        await asyncio.sleep(20)
        assert world.writer.reads == ["a"]
        world.stores(lifted("a"))
        world.shows_queue(1, "Closed")
        await asyncio.sleep(20)
        world.shows_queue(1)
        await asyncio.sleep(20)
        assert (world.names(), world.used()) == (["a", "a"], 1)


# -- whether it still holds ------------------------------------------------------------------------------------


async def test_a_queue_that_is_closed_for_a_moment_costs_nobody_a_refusal() -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(CUT)
    async with world.running():
        world.shows_queue(1, "Closed")
        await asyncio.sleep(2.5)
        world.shows_queue(1)
        await asyncio.sleep(10)
        assert world.names() == ["a", "a"]
        assert not world.recorder.emitted


async def test_a_decision_is_checked_again_before_each_try() -> None:
    """40 lifts were written half a minute after their queue was closed."""
    world = World(*(pod(f"p{n:02}", n) for n in range(40)), quota=40)
    world.writer.answer_to = lambda _name: BROKEN
    async with world.running():
        world.shows_queue(40, "Closed")
        before = len(world.writer.writes)
        world.writer.answer_to = lambda _name: None
        await asyncio.sleep(60)
        assert len(world.writer.writes) == before
        assert world.used() == 0


async def test_a_quota_that_is_cut_takes_back_what_was_not_written_yet() -> None:
    world = World(pod("a", 1), pod("b", 2), quota=2)
    world.writer.answer_to = lambda _name: SLOW_DOWN
    async with world.running():
        assert world.used() == 2
        world.shows_queue(0)
        await asyncio.sleep(30)
        assert (sorted(world.names()), world.used()) == (["a", "b"], 0)


async def test_whether_a_lift_still_holds_is_judged_by_what_queues_use_now() -> None:
    """65 pods run on a node that shows only now that its cards are As; with them the quota is used up."""
    late = a_node("late").allocatable("nvidia.com/gpu", 65)
    running = [a_pod(f"r{n}").gpu(1).card("B|A").in_queue("q").bound_to("late") for n in range(65)]
    world = World(pod("a"), *running, quota=65)
    show(world.caches.nodes, "late", late.view())
    planner = Planner(world.caches.ledger)
    lift = next(step for step in planner.decide("q") if isinstance(step, Lift))
    show(world.caches.nodes, "late", late.card("A", 65).view())
    assert not world.caches.ledger.sums_settled
    writer = LiftWriter(world.writer, world.caches, world.metrics, lambda: None)
    async with background(writer.run(planner, term())):
        writer.write(lift)
        await asyncio.sleep(30)
    assert (world.names(), world.used()) == ([], 65)


async def test_a_lift_that_is_overtaken_by_its_bind_is_left_to_the_bind() -> None:
    """The answer to the lift was lost, and the scheduler saw it stored."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(CUT)
    async with world.running():
        booked = world.caches.ledger.pod("uid-ml-a")
        assert booked is not None
        world.caches.ledger.assume(replace(booked, node_name="n"))
        await asyncio.sleep(5)
        assert world.names() == ["a"]
        assert world.caches.ledger.accounts["q"].allocated == {"A": 1000}
