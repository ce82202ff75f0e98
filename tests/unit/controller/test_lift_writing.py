"""The way of a lift into the API server: retried outside its slot, checked before each try, taken back on certainty alone."""

import asyncio
from dataclasses import replace

import pytest

from controller.flight import FAILED_S, UNANSWERED_S
from controller.lift_writing import PER_NAMESPACE
from core import reasons
from kube import errors
from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import (
    BROKEN,
    CHANGED,
    CUT,
    FORBIDDEN,
    GATEWAY,
    GONE,
    SLOW_DOWN,
    TESTED,
    World,
    lifted,
    pod,
)

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


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", [CHANGED, TESTED])
async def test_a_pod_that_has_changed_is_decided_anew_by_what_was_read_before_the_watch_shows_it(
    refusal: errors.KubeError,
) -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(refusal)
    world.stores(pod("a", 1, version="2"))
    async with world.running():
        await asyncio.sleep(0.2)
        assert world.names() == ["a", "a"]
        assert "'value': '2'" in str(world.writer.writes[1].body)


async def test_a_pod_that_is_gone_gives_its_quota_to_the_next_before_the_watch_shows_it() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(GONE)
    del world.writer.stored["ml/a"]
    async with world.running():
        await asyncio.sleep(0.2)
        assert world.names() == ["a", "b"]
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(0.2)
        assert (world.names(), world.used()) == (["a", "b"], 1)


async def test_another_pod_of_the_name_is_not_taken_for_the_one_that_was_lifted() -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(TESTED)
    world.stores(pod("a", 5, version="9").uid("another"))
    async with world.running():
        await asyncio.sleep(0.2)
        assert (world.names(), world.used()) == (["a"], 0)
        show(world.caches.pods, "ml/a", None)
        world.shows(pod("a", 5, version="9").uid("another"))
        await asyncio.sleep(0.2)
        assert world.names() == ["a", "a"]
        assert "another" in str(world.writer.writes[1].body)
        assert world.used() == 1


async def test_a_pod_made_anew_is_lifted_whatever_becomes_of_the_request_for_the_former_one() -> None:
    """The answer about the former pod comes when the lift of the new one is under way, and then has to be repeated."""
    world = World(pod("a", 1))
    world.writer.latency_s = lambda _name: 2.0
    world.writer.answers.extend([GONE, SLOW_DOWN])
    async with world.running():
        anew = pod("a", 5, version="9").uid("another")
        show(world.caches.pods, "ml/a", None)
        world.stores(anew)
        world.shows(anew)
        await asyncio.sleep(20)
        assert world.names() == ["a", "a", "a"]
        assert ["another" in str(write.body) for write in world.writer.writes] == [False, True, True]


async def test_what_a_policy_forbids_gives_its_quota_back_is_told_and_is_tried_again_with_patience() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: FORBIDDEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(2)
        assert world.names() == ["a", "b"], "nobody waits behind a pod that cannot be lifted"
        assert ("Pod a", reasons.LIFT_REFUSED) in [event[:2] for event in world.recorder.emitted]
        world.shows_queue(2)
        await asyncio.sleep(100)
        assert 2 <= world.names().count("a") <= 4


async def test_a_pod_whose_webhook_is_down_gives_its_quota_back_only_when_no_try_can_be_stored_any_more() -> (
    None
):
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: BROKEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(40)
        given = next(write.at for write in world.writer.writes if write.name == "b")
        tries = [write.at for write in world.writer.writes if write.name == "a" and write.at < given]
        assert given - tries[-1] >= FAILED_S
        assert len(tries) == 6


async def test_a_try_without_an_answer_may_be_stored_for_longer_than_it_is_waited_for() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: CUT if name == "a" else None
    async with world.running():
        await asyncio.sleep(100)
        given = next(write.at for write in world.writer.writes if write.name == "b")
        last = max(write.at for write in world.writer.writes if write.name == "a" and write.at < given)
        assert given - last >= UNANSWERED_S


async def test_a_refused_pod_that_is_lifted_by_somebody_else_is_forgotten() -> None:
    world = World(pod("a", 1))
    world.writer.answer_to = lambda _name: FORBIDDEN
    async with world.running():
        await asyncio.sleep(1)
        world.shows(lifted("a"))
        await asyncio.sleep(200)
        assert world.names() == ["a"]


# -- reads that are late, and watches that are -------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [SLOW_DOWN, errors.Throttled(429, "TooManyRequests", "policy", None, 3600.0)]
)
async def test_a_pod_that_is_put_off_without_end_gives_its_quota_back(answer: errors.KubeError) -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: answer if name == "a" else None
    async with world.running():
        await asyncio.sleep(90)
        assert "b" in world.names()


async def test_quota_is_not_held_by_those_who_wait_behind_hanging_lifts() -> None:
    """Two hundred pods in one namespace, each of whose lifts hangs for 4 s: a pod elsewhere has its quota in minutes."""
    world = World(*(pod(f"bad{n:03}", 1, namespace="broken") for n in range(200)), pod("good", 2), quota=200)
    world.writer.answer_to = lambda name: BROKEN if name.startswith("bad") else None
    world.writer.latency_s = lambda name: 4.0 if name.startswith("bad") else 0.001
    async with world.running():
        await asyncio.sleep(60)
        assert "good" in world.names()


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


# -- whether it still holds ------------------------------------------------------------------------------------


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


# -- answers that say what is stored -----------------------------------------------------------------------------


# -- others ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [16, 200])
async def test_pods_behind_a_broken_webhook_hold_up_nobody_in_another_namespace(count: int) -> None:
    """Each of their lifts hangs for 4 s and fails; elsewhere lifts arrive as if they were not there."""
    world = World(*(pod(f"bad{n}", 1, namespace="broken") for n in range(count)), quota=count + 200)
    world.writer.answer_to = lambda name: BROKEN if name.startswith("bad") else None
    world.writer.latency_s = lambda name: 4.0 if name.startswith("bad") else 0.001
    loop = asyncio.get_running_loop()
    async with world.running():
        for n in range(90):
            created = loop.time()
            world.stores(pod(f"good{n}", 2, namespace="fine"))
            world.shows(pod(f"good{n}", 2, namespace="fine"))
            await asyncio.sleep(1)
            (written,) = [write.at for write in world.writer.writes if write.name == f"good{n}"]
            assert written - created < 0.1


@pytest.mark.parametrize("hanging", [1, 2, 16, 100])
async def test_however_many_namespaces_hang_from_the_first_lifts_elsewhere_arrive_as_if_alone(
    hanging: int,
) -> None:
    """Nobody knows of them yet: two of them had all slots for as long as a request is waited for."""
    per_namespace, good = 20, 30
    bad = [
        pod(f"bad{number}-{each}", 1, namespace=f"broken{number}")
        for number in range(hanging)
        for each in range(per_namespace)
    ]
    fine = [pod(f"good{each}", 2, namespace="fine") for each in range(good)]
    alone, beside = World(*fine, quota=10_000), World(*bad, *fine, quota=10_000)
    took: list[list[float]] = []
    for world in (alone, beside):
        world.writer.stuck.update(each.view().name for each in bad)
        async with world.running():
            await asyncio.sleep(3)
            writes = [write.at for write in world.writer.writes if write.name.startswith("good")]
            began = min(write.at for write in world.writer.writes)
            took.append([at - began for at in writes])
    assert len(took[1]) == good
    assert took[1] == pytest.approx(took[0], abs=0.1)


async def test_once_a_lift_of_it_is_answered_a_namespace_has_all_its_slots() -> None:
    world = World(*(pod(f"p{number:03}", 1) for number in range(1 + 20 * PER_NAMESPACE)), quota=1000)
    world.writer.latency_s = lambda _name: 1.0
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with world.running():
        await asyncio.sleep(60)
    assert len(world.writer.writes) == 1 + 20 * PER_NAMESPACE
    assert world.writer.writes[-1].at - begun == pytest.approx(1 + 19, abs=0.5)
