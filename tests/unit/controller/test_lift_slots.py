"""Slots for lifts: a request alone holds one, and neither who is tried again nor who hangs keeps others from theirs."""

import asyncio
from math import ceil

import pytest

from controller.flight import WRITE_TIMEOUT_S
from controller.lift_requests import PER_NAMESPACE, SLOTS
from kube import errors
from kube.workqueue import SLOW_S
from tests.unit.controller.lift_world import BROKEN, CUT, FORBIDDEN, GATEWAY, SLOW_DOWN, TESTED, World, pod

pytestmark = pytest.mark.looptime

GOOD = 40
AT_ONCE_S = 0.02
"""A pass begins ten milliseconds after the watch has shown a pod; what is under way then takes one or two."""

UNAVAILABLE = errors.ServerError(503, "ServiceUnavailable", "no backend", None, None)
GIVEN_UP = errors.ApiError(408, "Timeout", "the request took too long", None, None)


def with_bad_in_every_slot() -> World:
    """The namespace's first lift is answered; behind it there are as many pods as it has slots from then on."""
    bad = [pod(f"bad{number}", 1) for number in range(PER_NAMESPACE)]
    return World(pod("first"), *bad, quota=1 + PER_NAMESPACE + GOOD)


async def waits_s(world: World) -> list[float]:
    """How long each of the good pods waits for its lift, of which one comes every second."""
    loop, came = asyncio.get_running_loop(), dict[str, float]()
    async with world.running():
        begun = {write.name: write.at for write in reversed(world.writer.writes)}
        tried = [begun[f"bad{number}"] for number in range(PER_NAMESPACE)]
        assert max(tried) - min(tried) < 0.001, "each has a slot"
        for number in range(GOOD):
            await asyncio.sleep(1)
            fresh = pod(f"good{number}", 2)
            world.stores(fresh)
            world.shows(fresh)
            came[f"good{number}"] = loop.time()
        await asyncio.sleep(2 * WRITE_TIMEOUT_S)
    written = {write.name: write.at for write in world.writer.writes}
    assert came.keys() <= written.keys()
    return [written[name] - at for name, at in came.items()]


@pytest.mark.parametrize(
    "answer",
    [UNAVAILABLE, SLOW_DOWN, CUT, GATEWAY, GIVEN_UP, FORBIDDEN, TESTED],
    ids=["503", "429", "no answer", "504", "408", "403", "422"],
)
async def test_pods_that_are_answered_with_an_error_for_ever_hold_no_slot_between_two_tries(
    answer: errors.KubeError,
) -> None:
    world = with_bad_in_every_slot()
    world.writer.answer_to = lambda name: answer if name.startswith("bad") else None
    waits, asked = await waits_s(world), world.asked()
    # Who is asked about first is decided on in a second pass.
    passes = [2 if f"good{number}" in asked else 1 for number in range(GOOD)]
    assert all(wait_s < AT_ONCE_S * count for wait_s, count in zip(waits, passes, strict=True))
    assert sum(passes) <= GOOD + 1
    assert world.names().count("bad0") + asked.count("bad0") > 1, "it is tried again meanwhile"


async def test_pods_that_cannot_be_read_after_a_lost_answer_hold_no_slot_either() -> None:
    world = with_bad_in_every_slot()
    world.writer.answer_to = lambda name: CUT if name.startswith("bad") else None
    world.writer.failing_reads.extend([UNAVAILABLE] * 1000)
    assert max(await waits_s(world)) < AT_ONCE_S
    assert world.writer.reads.count("bad0") > 1


async def test_a_lift_that_hangs_holds_its_slot_for_as_long_as_it_is_waited_for_and_no_longer() -> None:
    world = with_bad_in_every_slot()
    world.writer.stuck.update(f"bad{number}" for number in range(PER_NAMESPACE))
    assert max(await waits_s(world)) < WRITE_TIMEOUT_S + AT_ONCE_S


@pytest.mark.parametrize("fifo", [False, True], ids=["traverse", "fifo"])
@pytest.mark.parametrize("count", [16, 200])
async def test_pods_behind_a_broken_webhook_hold_up_nobody_in_another_namespace(
    count: int, fifo: bool
) -> None:
    """Each of their lifts hangs for 4 s and fails; elsewhere lifts arrive as if they were not there, of younger pods too."""
    bad = [pod(f"bad{n}", 1, namespace="broken") for n in range(count)]
    world = World(*bad, quota=count + 200, fifo=fifo)
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


@pytest.mark.parametrize("breaking", [1, 2, 4, 16, 40])
@pytest.mark.parametrize("takes_s", [3.5, WRITE_TIMEOUT_S], ids=["slow", "hang"])
async def test_namespaces_whose_lifts_become_slow_or_hang_hold_up_another_one_for_moments_only(
    takes_s: float, breaking: int
) -> None:
    """The first lifts of each were answered at once; two of them had all slots for as long as a request is waited for."""
    bad = [
        pod(f"bad{number}-{each:02}", 1, namespace=f"broken{number}")
        for number in range(breaking)
        for each in range(30)
    ]
    world, loop = World(*bad, quota=10_000), asyncio.get_running_loop()
    world.writer.latency_s = lambda name: takes_s if name.startswith("bad") and name[-2:] > "03" else 0.001
    if takes_s == WRITE_TIMEOUT_S:
        world.writer.stuck.update(each.view().name for each in bad if each.view().name[-2:] > "03")
    came, good = dict[str, float](), 30
    async with world.running():
        for each in range(good):
            fresh = pod(f"good{each}", 2, namespace="fine")
            world.stores(fresh)
            world.shows(fresh)
            came[f"good{each}"] = loop.time()
        await asyncio.sleep(10)
        written = {write.name: write.at for write in world.writer.writes}
    assert sum(name.startswith("bad") for name in written) > 4 * breaking
    assert max(written[name] - at for name, at in came.items()) < ceil(breaking / SLOTS) * SLOW_S + 0.1
