"""Lifts that the API server refuses: what has changed is decided anew, what cannot be lifted gives its quota back."""

import asyncio

import pytest

from controller.flight import UNANSWERED_S, Flight, Key
from controller.late_writes import STORED_LATE_S
from controller.lift_requests import SLOTS
from core import reasons
from core.plan.decision import Lift
from core.plan.lift import Planner
from kube import errors
from tests.builders import a_group
from tests.fakes.patches import applied
from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import (
    BROKEN,
    CHANGED,
    CUT,
    FORBIDDEN,
    GONE,
    SLOW_DOWN,
    TESTED,
    World,
    lifted,
    pod,
)

pytestmark = pytest.mark.looptime


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
        assert 2 <= world.names().count("a") + world.asked().count("a") <= 4


@pytest.mark.parametrize("watch_is_faster", [False, True])
async def test_a_gate_that_somebody_puts_back_on_the_way_in_gives_its_quota_back_and_is_tried_again_with_patience(
    *, watch_is_faster: bool
) -> None:
    """A webhook that undoes the lift: the write is answered as every other, and nothing would ever come of it."""
    world = World(pod("a", 1), pod("b", 2))
    put_back = pod("a", 1, version="2")
    world.writer.answered["a"] = put_back.build()
    world.writer.latency_s = lambda _name: 0.5
    async with world.running():
        if watch_is_faster:
            world.shows(put_back)
        await asyncio.sleep(2)
        assert world.names() == ["a", "b"], "nobody waits behind a pod that cannot be lifted"
        (held,) = [event for event in world.recorder.emitted if event[:2] == ("Pod a", reasons.LIFT_REFUSED)]
        assert "the gate is still there" in str(held)
        world.shows_queue(2)
        world.shows(put_back)
        await asyncio.sleep(100)
        assert (world.names().count("a"), world.asked().count("a")) == (1, 2), (
            "asked about before it is written again"
        )
        assert world.caches.ledger.assumed("uid-ml-a") is None
        assert world.used() == 1
        world.writer.answered["a"] = lifted("a", "3").build()
        world.writer.latency_s = lambda _name: 0.01
        await asyncio.sleep(300)
        assert (world.names().count("a"), world.asked().count("a")) == (2, 3)
        latest = world.caches.latest("ml/a")
        assert latest is not None
        assert (latest.gated, world.used()) == (False, 2)
        await asyncio.sleep(600)
        assert (world.names().count("a"), world.asked().count("a")) == (2, 3)


@pytest.mark.parametrize("stored", [False, True])
async def test_a_gate_that_was_put_back_gives_no_quota_back_while_an_earlier_try_may_be_stored(
    *, stored: bool
) -> None:
    """The webhook changes nothing by now, and the version stays: the try that was not answered is as good as ever."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(CUT)
    world.writer.answered["a"] = pod("a", 1).build()
    async with world.running():
        await asyncio.sleep(UNANSWERED_S - 2)
        assert world.names() == ["a", "a"]
        if stored:
            world.shows(lifted("a"))
            world.stores(lifted("a"))
        await asyncio.sleep(10)
        assert world.names() == (["a", "a"] if stored else ["a", "a", "b"])
        assert world.used() == 1


async def test_a_gate_that_is_put_back_is_noticed_without_an_answer() -> None:
    """A webhook that takes longer than a lift is waited for, and notes when it was called: the pod is another one each time."""
    world = World(pod("a", 1), pod("b", 2))

    def put_back(name: str) -> errors.KubeError | None:
        if name != "a":
            return None
        if world.writer.trials:
            return CUT
        written = pod("a", 1).build()
        assert applied(written, [each for each in world.writer.writes[-1].body if each["op"] != "test"])
        written["spec"]["schedulingGates"] = pod("a").raw["spec"]["schedulingGates"]
        written["metadata"]["resourceVersion"] = str(len(world.writer.writes) + 1)
        world.writer.stored["ml/a"] = written
        return CUT

    world.writer.answer_to = put_back
    async with world.running():
        await asyncio.sleep(2)
        assert world.names() == ["a", "b"], "nobody waits behind it"
        (held,) = [event for event in world.recorder.emitted if event[:2] == ("Pod a", reasons.LIFT_REFUSED)]
        assert "the gate is still there" in str(held)
        world.shows_queue(2)
        await asyncio.sleep(100)
        assert 2 <= world.names().count("a") + world.asked().count("a") <= 3


@pytest.mark.parametrize("refusal", [CHANGED, TESTED, SLOW_DOWN])
async def test_a_pod_whose_gate_was_put_back_once_is_decided_anew_when_it_changes(
    refusal: errors.KubeError,
) -> None:
    """What a lift before has written on it says nothing of one that was not taken in."""
    world = World(pod("a", 1))
    (lift,) = Planner(world.caches.ledger).decide("q")
    assert isinstance(lift, Lift)
    world.caches.ledger.forget(lift.pod.uid)
    undone = pod("a", 1).put("metadata", "annotations", value=dict(lift.lifted.annotations))
    world.shows(undone)
    world.writer.answers.append(refusal)
    later = undone.put("metadata", "resourceVersion", value="2")
    world.stores(later)
    async with world.running():
        world.shows(later)
        await asyncio.sleep(8)
        assert world.names() == ["a", "a"]
        assert reasons.LIFT_REFUSED not in {event[1] for event in world.recorder.emitted}


async def test_a_pod_whose_webhook_is_down_gives_its_quota_back_only_when_no_try_can_be_stored_any_more() -> (
    None
):
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: BROKEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(40)
        given = next(write.at for write in world.writer.writes if write.name == "b")
        tries = [write.at for write in world.writer.writes if write.name == "a" and write.at < given]
        assert given - tries[-1] >= STORED_LATE_S
        assert len(tries) == 6


async def test_a_refused_pod_that_is_lifted_by_somebody_else_is_forgotten() -> None:
    world = World(pod("a", 1))
    world.writer.answer_to = lambda _name: FORBIDDEN
    async with world.running():
        await asyncio.sleep(1)
        world.shows(lifted("a"))
        await asyncio.sleep(200)
        assert world.names() == ["a"]


@pytest.mark.parametrize("gone", ["while it is under way", "while it is put off"])
async def test_nothing_is_remembered_of_a_refused_lift_whose_pod_is_gone(gone: str) -> None:
    """The server asks to be left alone for longer than a lift is given, before or after the watch has shown that the pod is gone."""
    world = World(pod("a", 1))
    world.writer.answer_to = lambda _name: errors.Throttled(429, "TooManyRequests", "later", None, 60.0)
    world.writer.latency_s = lambda _name: 2.0
    async with world.running():
        await asyncio.sleep(0.5 if gone == "while it is under way" else 10)
        del world.writer.stored["ml/a"]
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(600)
        assert world.names() == ["a"]
        assert not world.lifter._writer._refused
        planner = world.lifter._writer._planner
        assert planner is not None
        assert not planner._judge.refused


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


async def test_lifts_that_are_stored_slowly_are_refused_by_nobody() -> None:
    """300 of one namespace, each of which takes 1.2 s: the last comes to its turn long after 30 s."""
    world = World(*(pod(f"p{n:03}", 1) for n in range(300)), quota=300)
    world.writer.latency_s = lambda _name: 1.2
    async with world.running():
        await asyncio.sleep(60)
        assert len(set(world.names())) == 300
        assert not [event for event in world.recorder.emitted if event[1] == reasons.LIFT_REFUSED]


async def test_a_lift_that_is_put_off_for_long_is_read_as_soon_as_that_shows_how_an_earlier_try_ended() -> (
    None
):
    """The answer of the first was lost; then the server wants to be left alone, the second time for five minutes."""
    world = World(pod("a", 1), pod("b", 2))
    put_off = [errors.Throttled(429, "TooManyRequests", "later", None, each) for each in (29.0, 300.0)]
    world.writer.answers.extend([CUT, *put_off])
    async with world.running():
        await asyncio.sleep(45)
        assert world.names() == ["a", "a", "a", "b"]


async def test_a_gang_is_given_up_whole_though_lifts_are_stored_again_in_the_middle_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of it would hold its cards for good, and start nothing."""
    count = 100
    world = World(*(pod(f"p{n:03}", 1).in_group("g") for n in range(count)), quota=count)
    show(world.caches.groups, "ml/g", a_group("g").in_queue("q").min_member(count).view())
    world.writer.stuck.update(f"p{n:03}" for n in range(count))
    held: list[str] = []
    writer = world.lifter._writer
    hold = writer._hold

    def recovering(key: Key, flight: Flight) -> None:
        hold(key, flight)
        held.append(key[1])
        if len(held) == count // 2:
            world.writer.stuck.clear()
            writer._untried.stored("ml")

    monkeypatch.setattr(writer, "_hold", recovering)
    async with world.running():
        await asyncio.sleep(45)
        assert len(held) >= count - 2 * SLOTS, "all but those that are being tried"
        assert world.used() <= 2 * SLOTS


async def test_a_refused_pod_is_left_alone_for_its_time_whoever_asks_for_it_earlier() -> None:
    """As the end of a question does that it waited for when it was refused."""
    world = World(pod("a", 1))
    world.writer.answer_to = lambda _name: FORBIDDEN
    async with world.running():
        for _ in range(25):
            world.lifter._writer._queue.add(("ml", "uid-ml-a"))
            await asyncio.sleep(1)
        assert (world.names(), world.asked(), world.used()) == (["a"], [], 0)
        await asyncio.sleep(10)
        assert (world.names(), world.asked()) == (["a"], ["a"])
