"""Long work in slices: each gives way after its time, and several take turns."""

import asyncio

import pytest

from core.steps import Steps
from kube.turns import Turns
from tests.fakes.ticking import Ticking


def work(name: str, steps: int, log: list[str]) -> Steps[str]:
    for _ in range(steps):
        log.append(name)
        yield
    return name


async def test_others_are_served_after_each_slice() -> None:
    clock, log = Ticking(), list[str]()
    async with clock.beside():
        assert await clock.turns.finish(work("a", 100, log)) == "a"
    assert len(log) == 100
    assert clock.longest <= 7


async def test_works_take_turns_and_only_one_has_a_slice_at_a_time() -> None:
    clock, log = Ticking(), list[str]()
    turns = clock.turns
    async with clock.beside():
        await asyncio.gather(*(turns.finish(work(name, 50, log)) for name in "abc"))
    assert clock.longest <= 7
    assert {*log[:20]} == {"a", "b", "c"}, "each comes to its turn before any of them is done"


async def test_nobody_else_comes_to_his_turn_before_the_end_of_work_that_is_done_as_a_whole() -> None:
    clock, log = Ticking(), list[str]()
    turns = clock.turns
    async with clock.beside():
        await asyncio.gather(turns.finish(work("a", 50, log), whole=True), turns.finish(work("b", 50, log)))
    assert log == ["a"] * 50 + ["b"] * 50
    assert clock.longest <= 7


async def test_short_work_is_done_at_once() -> None:
    log: list[str] = []
    soon = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(soon.set_result, None)
    await Turns().finish(work("a", 1, log))
    assert not soon.done()
    await soon


async def test_an_error_passes_the_turn_on() -> None:
    def broken() -> Steps[None]:
        yield
        raise ValueError("broken")

    turns = Ticking().turns
    with pytest.raises(ValueError, match="broken"):
        await turns.finish(broken())
    assert await turns.finish(work("a", 1, [])) == "a"


async def test_who_is_cancelled_passes_the_turn_on() -> None:
    turns, log = Ticking().turns, list[str]()
    first, second = (asyncio.create_task(turns.finish(work(name, 10_000, log))) for name in "ab")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second.cancel()
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert await turns.finish(work("c", 1, log)) == "c"
