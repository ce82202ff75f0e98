"""The work queue: one worker for a key, slots in turn, failures that cost themselves."""

import asyncio
from collections.abc import Callable

import pytest

from kube.workqueue import IDLE, Work, WorkQueue
from tests.fakes.apiserver import background
from tests.fakes.counted import calls_of

pytestmark = pytest.mark.looptime


class Desk:
    """Works that last until they are let go, and what was begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.running: set[str] = set()
        self.most = 0
        self.failing: Callable[[str], float | None] = lambda _: None
        self.gates: dict[str, asyncio.Event] = {}

    def hang(self, *keys: str) -> None:
        for key in keys:
            self.gates[key] = asyncio.Event()

    async def work(self, key: str) -> float | None:
        assert key not in self.running, "two workers on one key"
        self.begun.append(key)
        self.running.add(key)
        self.most = max(self.most, len(self.running))
        try:
            if key in self.gates:
                await self.gates[key].wait()
            return self.failing(key)
        finally:
            self.running.discard(key)


async def _during(queue: WorkQueue[str], seconds: float) -> None:
    """Runs the queue for so long."""
    try:
        async with asyncio.timeout(seconds):
            await queue.run()
    except TimeoutError:
        return


def _by_namespace(key: str) -> str:
    return key.partition("/")[0]


def _queue(work: Work[str], slots: int = 4, per_lane: int | None = None) -> WorkQueue[str]:
    return WorkQueue(work, slots=slots, per_lane=per_lane, lane=_by_namespace)


async def test_a_key_added_twice_is_worked_on_once() -> None:
    desk = Desk()
    queue = _queue(desk.work)
    queue.add("a/1")
    queue.add("a/1")
    assert len(queue) == 1
    await _during(queue, 1)
    assert desk.begun == ["a/1"]
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_on_is_worked_on_once_more() -> None:
    desk = Desk()
    desk.hang("a/1")
    queue = _queue(desk.work)
    queue.add("a/1")
    async with asyncio.TaskGroup() as tasks:
        runner = tasks.create_task(_during(queue, 10))
        await asyncio.sleep(1)
        queue.add("a/1")
        queue.add("a/1")
        await asyncio.sleep(1)
        assert desk.begun == ["a/1"]
        desk.gates["a/1"].set()
        await runner
    assert desk.begun == ["a/1", "a/1"]


async def test_no_more_works_run_at_once_than_there_are_slots() -> None:
    desk = Desk()
    desk.hang(*(f"n{n}/1" for n in range(9)))
    queue = _queue(desk.work, slots=4)
    for n in range(9):
        queue.add(f"n{n}/1")
    await _during(queue, 1)
    assert desk.most == 4


async def test_a_lane_has_no_more_slots_than_its_own() -> None:
    desk = Desk()
    desk.hang(*(f"a/{n}" for n in range(9)))
    queue = _queue(desk.work, slots=4, per_lane=2)
    for n in range(9):
        queue.add(f"a/{n}")
    queue.add("b/1")
    await _during(queue, 1)
    assert sorted(desk.begun) == ["a/0", "a/1", "b/1"]


async def test_lanes_take_turns_however_many_keys_one_of_them_has() -> None:
    desk = Desk()
    queue = _queue(desk.work, slots=1)
    for n in range(50):
        queue.add(f"a/{n}")
    queue.add("b/1")
    queue.add("c/1")
    await _during(queue, 1)
    assert desk.begun.index("b/1") <= 2
    assert desk.begun.index("c/1") <= 3
    assert len(desk.begun) == 52


async def test_a_lane_whose_works_hang_and_fail_takes_no_slot_from_the_others() -> None:
    """200 keys that hang for 4 s and fail: a key elsewhere is worked on at once, all the time."""
    waited: list[float] = []
    loop = asyncio.get_running_loop()
    asked: dict[str, float] = {}

    async def work(key: str) -> float | None:
        if key.startswith("broken/"):
            await asyncio.sleep(4)
            return 0.2
        waited.append(loop.time() - asked[key])
        return None

    queue = _queue(work, slots=16, per_lane=8)
    for n in range(200):
        queue.add(f"broken/{n}")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_during(queue, 90))
        for n in range(80):
            await asyncio.sleep(1)
            for lane in "abcdefgh":
                key = f"{lane}/{n}"
                asked[key] = loop.time()
                queue.add(key)
    assert len(waited) == 640
    assert max(waited) < 0.01


async def test_a_lane_has_a_single_slot_of_its_own_pool_until_a_work_of_it_has_come_back() -> None:
    desk = Desk()
    desk.hang(*(f"bad{number}/{each}" for number in range(3) for each in range(3)))
    queue = WorkQueue(desk.work, slots=2, per_lane=2, unheard=3, lane=_by_namespace)
    for number in range(3):
        for each in range(3):
            queue.add(f"bad{number}/{each}")
    queue.add("late/0")
    async with background(queue.run()):
        await asyncio.sleep(1)
        assert desk.begun == ["bad0/0", "bad1/0", "bad2/0"]
        desk.gates["bad1/0"].set()
        await asyncio.sleep(1)
        # The one that has come back has its slots in order now, and the next that nobody has heard of has its place.
        assert desk.begun[3:] == ["bad1/1", "bad1/2", "late/0"]
        assert len(desk.running) == 4


async def test_a_lane_in_which_nothing_is_left_is_not_remembered() -> None:
    desk = Desk()
    queue = WorkQueue(desk.work, slots=4, unheard=1, lane=_by_namespace)
    queue.add("ml/a")
    await _during(queue, 1)
    desk.hang("ml/b", "ml/c")
    queue.add("ml/b")
    queue.add("ml/c")
    await _during(queue, 1)
    assert desk.begun == ["ml/a", "ml/b"]


async def test_work_that_failed_is_tried_again_after_the_time_it_asks_for_and_not_earlier() -> None:
    loop, at = asyncio.get_running_loop(), []

    async def work(_key: str) -> float | None:
        at.append(round(loop.time(), 1))
        return 5.0 if len(at) < 3 else None

    queue = _queue(work)
    started = round(loop.time(), 1)
    queue.add("a/1")
    await _during(queue, 60)
    assert [round(time - started, 1) for time in at] == [0.0, 5.0, 10.0]


async def test_the_earlier_of_two_delays_counts() -> None:
    loop, at = asyncio.get_running_loop(), []

    async def work(_key: str) -> float | None:
        at.append(loop.time())
        return None

    queue, started = _queue(work), loop.time()
    queue.add("a/1", 30)
    queue.add("a/1", 10)
    queue.add("a/1", 20)
    await _during(queue, 60)
    assert [round(time - started) for time in at] == [10]


async def test_work_that_tried_nothing_leaves_a_failing_lane_what_it_is() -> None:
    """Else each change of a pod that waits to be tried again would take a slot from those who can be helped."""
    begun: list[str] = []

    async def work(key: str) -> float | None:
        if key == "a/idle":
            return IDLE
        begun.append(key)
        await asyncio.sleep(4)
        return 1.0

    queue = _queue(work, slots=4)
    queue.add("a/0")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_during(queue, 7))
        await asyncio.sleep(4.5)
        queue.add("a/idle")
        await asyncio.sleep(0.1)
        for n in range(1, 4):
            queue.add(f"a/{n}")
        await asyncio.sleep(1)
        assert begun == ["a/0", "a/1"]


async def test_a_lane_that_works_again_has_all_its_slots_back() -> None:
    desk = Desk()
    desk.failing = lambda _key: 1.0 if len(desk.begun) == 1 else None
    queue = _queue(desk.work, slots=4)
    queue.add("a/0")
    await _during(queue, 5)
    desk.hang(*(f"a/{n}" for n in range(4)))
    for n in range(4):
        queue.add(f"a/{n}")
    await _during(queue, 1)
    assert desk.most == 4


async def test_in_a_lane_what_failed_comes_after_all_others() -> None:
    """One good key behind fifty broken ones waits for one of them at the most."""
    begun: list[str] = []

    async def work(key: str) -> float | None:
        begun.append(key)
        await asyncio.sleep(4)
        return None if key == "a/good" else 0.2

    queue = _queue(work, slots=4)
    for n in range(50):
        queue.add(f"a/{n}")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_during(queue, 400))
        await asyncio.sleep(300)
        before = len(begun)
        queue.add("a/good")
    assert begun.index("a/good") - before <= 1


async def test_a_key_that_is_taken_off_is_not_worked_on_and_leaves_nothing() -> None:
    desk = Desk()
    desk.failing = lambda _key: 1.0
    desk.hang("a/1")
    queue = _queue(desk.work)
    for key in ("a/1", "a/2", "b/1"):
        queue.add(key, 1)
    queue.discard("a/2")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_during(queue, 10))
        await asyncio.sleep(2)
        queue.discard("a/1")
        queue.discard("b/1")
        desk.gates["a/1"].set()
    assert desk.begun == ["a/1", "b/1"]
    assert len(queue) == 0
    assert "a/1" not in queue


async def test_an_exception_of_the_work_ends_the_queue() -> None:
    async def work(_key: str) -> float | None:
        raise LookupError("broken")

    queue = _queue(work)
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
    queue = _queue(desk.work)
    for number in range(50):
        await asyncio.sleep(1.001)
        queue.add(f"a/{number}", 16.01)
        await _during(queue, 17)
    assert len(desk.begun) == 50


async def test_what_waits_is_kept_once_however_often_it_is_asked_for() -> None:
    """Somebody who changes an object every second, which is due in five minutes only, fills no memory."""
    desk = Desk()
    queue = _queue(desk.work)
    for _ in range(1000):
        queue.add("a/1", 300)
        queue.add("a/1")
        await _during(queue, 0.01)
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
    queue = _queue(desk.work)
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
