"""Who waits for its first try comes to its turn when that is due, and costs nothing until then."""

import asyncio
from random import Random

import pytest

from kube import errors
from kube.first_tries import FirstTries

pytestmark = pytest.mark.looptime(start=1_000_000)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("early_ms", [0, 1, 2, 3, 1000])
@pytest.mark.parametrize("moment", range(8))
async def test_who_comes_any_number_of_milliseconds_early_is_begun_in_time(
    early_ms: int, moment: int
) -> None:
    """Whatever the sums of such times are rounded to: were its line asked at once again and again, the clock here would stand still."""
    begun: list[tuple[str, float]] = []
    clock = asyncio.get_running_loop().time
    tries = FirstTries[str](Random(0), lambda key: begun.append((key, clock())), patience=0)
    running = asyncio.create_task(tries.run())
    await asyncio.sleep(moment / 7)
    tries.failed("lane", "first", errors.Throttled(429, "TooManyRequests", "later", None, 3.0))
    due = clock() + 3.0
    await asyncio.sleep(3.0 - early_ms / 1000)
    if tries.waits("lane", "second"):
        await asyncio.sleep(2.0)
        assert dict(begun) == {"second": pytest.approx(due, abs=0.003)}
    else:
        assert clock() == pytest.approx(due, abs=0.003)
    running.cancel()
    await asyncio.wait({running})
