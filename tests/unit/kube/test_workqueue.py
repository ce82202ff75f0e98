"""The work queue: one worker for a key, each at its time and once, failures that cost themselves."""

import asyncio

import pytest

from kube.workqueue import WorkQueue
from tests.fakes.apiserver import background
from tests.fakes.counted import calls_of
from tests.unit.kube.desk import Desk, during, queue_of

pytestmark = pytest.mark.looptime


async def test_a_key_added_twice_is_worked_on_once() -> None:
    desk = Desk()
    queue = queue_of(desk.work)
    queue.add("a/1")
    queue.add("a/1")
    assert len(queue) == 1
    await during(queue, 1)
    assert desk.begun == ["a/1"]
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_on_is_worked_on_once_more() -> None:
    desk = Desk()
    desk.hang("a/1")
    queue = queue_of(desk.work)
    queue.add("a/1")
    async with asyncio.TaskGroup() as tasks:
        runner = tasks.create_task(during(queue, 10))
        await asyncio.sleep(1)
        queue.add("a/1")
        queue.add("a/1")
        await asyncio.sleep(1)
        assert desk.begun == ["a/1"]
        desk.gates["a/1"].set()
        await runner
    assert desk.begun == ["a/1", "a/1"]


async def test_work_that_failed_is_tried_again_after_the_time_it_asks_for_and_not_earlier() -> None:
    loop, at = asyncio.get_running_loop(), []

    async def work(_key: str) -> float | None:
        at.append(round(loop.time(), 1))
        return 5.0 if len(at) < 3 else None

    queue = queue_of(work)
    started = round(loop.time(), 1)
    queue.add("a/1")
    await during(queue, 60)
    assert [round(time - started, 1) for time in at] == [0.0, 5.0, 10.0]


async def test_the_earlier_of_two_delays_counts() -> None:
    loop, at = asyncio.get_running_loop(), []

    async def work(_key: str) -> float | None:
        at.append(loop.time())
        return None

    queue, started = queue_of(work), loop.time()
    queue.add("a/1", 30)
    queue.add("a/1", 10)
    queue.add("a/1", 20)
    await during(queue, 60)
    assert [round(time - started) for time in at] == [10]


async def test_a_key_that_is_taken_off_is_not_worked_on_and_leaves_nothing() -> None:
    desk = Desk()
    desk.failing = lambda _key: 1.0
    desk.hang("a/1")
    queue = queue_of(desk.work)
    for key in ("a/1", "a/2", "b/1"):
        queue.add(key, 1)
    queue.discard("a/2")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(during(queue, 10))
        await asyncio.sleep(2)
        queue.discard("a/1")
        queue.discard("b/1")
        desk.gates["a/1"].set()
    assert desk.begun == ["a/1", "b/1"]
    assert len(queue) == 0
    assert "a/1" not in queue


async def test_a_key_that_is_taken_off_after_it_was_asked_for_once_more_is_not_worked_on_again() -> None:
    desk = Desk()
    desk.hang("a/1")
    queue = queue_of(desk.work)
    queue.add("a/1")
    async with background(queue.run()):
        await asyncio.sleep(1)
        queue.add("a/1")
        queue.discard("a/1")
        desk.gates["a/1"].set()
        await asyncio.sleep(10)
    assert desk.begun == ["a/1"]
    assert len(queue) == 0


async def test_an_exception_of_the_work_ends_the_queue() -> None:
    async def work(_key: str) -> float | None:
        raise LookupError("broken")

    queue = queue_of(work)
    queue.add("a/1")
    with pytest.raises(ExceptionGroup) as caught:
        await queue.run()
    assert caught.group_contains(LookupError, match="broken")


async def test_a_timer_that_fires_a_hair_early_makes_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock here knows microseconds; the moments that are computed from it, such as 14.001 + 16.01, are finer."""
    desk, looks, take_due = Desk(), 0, WorkQueue._take_due

    def counted(queue: WorkQueue[str], now: float) -> None:
        nonlocal looks
        looks += 1
        assert looks < 1000
        take_due(queue, now)

    monkeypatch.setattr(WorkQueue, "_take_due", counted)
    queue = queue_of(desk.work)
    for number in range(50):
        await asyncio.sleep(1.001)
        queue.add(f"a/{number}", 16.01)
        await during(queue, 17)
    assert len(desk.begun) == 50


async def test_what_waits_is_kept_once_however_often_it_is_asked_for() -> None:
    """Somebody who changes an object every second, which is due in five minutes only, fills no memory."""
    desk = Desk()
    queue = queue_of(desk.work)
    for _ in range(1000):
        queue.add("a/1", 300)
        queue.add("a/1")
        await during(queue, 0.01)
    queue.add("a/2", 300)
    assert len(desk.begun) == 1000
    assert len(queue._timers) < 100


async def test_very_many_keys_that_are_due_together_become_ready_a_part_at_a_time() -> None:
    """And every one of them is worked on, without anything else that happens."""
    done: list[int] = []
    all_done = asyncio.Event()

    async def work(key: int) -> None:
        done.append(key)
        if len(done) == 3500:
            all_done.set()

    queue: WorkQueue[int] = WorkQueue(work, slots=50)
    for key in range(3500):
        queue.add(key)
    queue._take_due(asyncio.get_running_loop().time() + 1)
    assert sum(len(line) for line in queue._ready.values()) == 1000
    async with background(queue.run()):
        await all_done.wait()
    assert sorted(done) == list(range(3500))


@pytest.mark.parametrize("lanes", [1, 50])
async def test_to_take_all_keys_off_costs_the_same_however_many_they_are(lanes: int) -> None:
    """The end of leading is one moment, with a hundred thousand records still to be written."""

    async def never(_key: int) -> None:
        raise AssertionError("nothing is worked on")

    def cleared(keys: int) -> int:
        queue: WorkQueue[int] = WorkQueue(never, slots=1, lane=lambda key: key % lanes)
        for key in range(keys):
            queue.add(key, key % 2)
        queue._take_due(asyncio.get_running_loop().time())
        calls = calls_of(queue.clear)
        assert not queue
        assert not any(key in queue for key in range(keys))
        queue.add(1)
        assert len(queue) == 1
        return calls

    cleared(100)
    assert cleared(4000) == cleared(100)


async def test_what_is_worked_on_when_all_is_taken_off_is_not_repeated() -> None:
    desk = Desk()
    desk.hang("a/1")
    desk.failing = lambda _: 1.0
    queue = queue_of(desk.work)
    async with background(queue.run()):
        for key in ("a/1", "a/2", "b/1"):
            queue.add(key, 0 if key == "a/1" else 5)
        await asyncio.sleep(0.1)
        queue.clear()
        assert len(queue) == 1
        desk.gates["a/1"].set()
        await asyncio.sleep(60)
        assert desk.begun == ["a/1"]
        assert not queue
        desk.failing = lambda _: None
        queue.add("a/2")
        await asyncio.sleep(0.1)
    assert desk.begun == ["a/1", "a/2"]
    assert not queue
