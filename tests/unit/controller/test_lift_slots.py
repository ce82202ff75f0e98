"""A slot is held by a request alone: who waits to be tried again keeps nobody in the same namespace from being lifted."""

import asyncio

import pytest

from controller.flight import WRITE_TIMEOUT_S
from controller.lift_writing import PER_NAMESPACE
from kube import errors
from tests.unit.controller.lift_world import CUT, FORBIDDEN, GATEWAY, SLOW_DOWN, TESTED, World, pod

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
    assert max(await waits_s(world)) < AT_ONCE_S
    assert world.names().count("bad0") > 1, "it is tried again meanwhile"


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
