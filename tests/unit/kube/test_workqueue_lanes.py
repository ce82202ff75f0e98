"""The lanes of a work queue: slots in turn, and what hangs or fails in one costs the others nothing."""

import asyncio
from collections import OrderedDict

import pytest

from kube import workqueue
from kube.workqueue import IDLE, SLOW_S, WorkQueue
from tests.fakes.apiserver import background
from tests.unit.kube.desk import Desk, by_namespace, during, queue_of

pytestmark = pytest.mark.looptime


async def test_no_more_works_run_at_once_than_there_are_slots_as_long_as_none_is_slow() -> None:
    desk = Desk()
    desk.hang(*(f"n{n}/1" for n in range(9)))
    queue = queue_of(desk.work, slots=4)
    for n in range(9):
        queue.add(f"n{n}/1")
    await during(queue, 0.9 * SLOW_S)
    assert desk.most == 4


async def test_a_lane_has_no_more_slots_than_its_own() -> None:
    desk = Desk()
    desk.hang(*(f"a/{n}" for n in range(9)))
    queue = queue_of(desk.work, slots=4, per_lane=2)
    for n in range(9):
        queue.add(f"a/{n}")
    queue.add("b/1")
    await during(queue, 1)
    assert sorted(desk.begun) == ["a/0", "a/1", "b/1"]


async def test_lanes_take_turns_however_many_keys_one_of_them_has() -> None:
    desk = Desk()
    queue = queue_of(desk.work, slots=1)
    for n in range(50):
        queue.add(f"a/{n}")
    queue.add("b/1")
    queue.add("c/1")
    await during(queue, 1)
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

    queue = queue_of(work, slots=16, per_lane=8)
    for n in range(200):
        queue.add(f"broken/{n}")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(during(queue, 90))
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
    queue = WorkQueue(desk.work, slots=2, per_lane=2, unheard=3, lane=by_namespace)
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
    queue = WorkQueue(desk.work, slots=4, unheard=1, lane=by_namespace)
    queue.add("ml/a")
    await during(queue, 1)
    desk.hang("ml/b", "ml/c")
    queue.add("ml/b")
    queue.add("ml/c")
    await during(queue, 1)
    assert desk.begun == ["ml/a", "ml/b"]


async def test_work_that_tried_nothing_leaves_a_failing_lane_what_it_is() -> None:
    """Else each change of a pod that waits to be tried again would take a slot from those who can be helped."""
    begun: list[str] = []

    async def work(key: str) -> float | None:
        if key == "a/idle":
            return IDLE
        begun.append(key)
        await asyncio.sleep(4)
        return 1.0

    queue = queue_of(work, slots=4)
    queue.add("a/0")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(during(queue, 7))
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
    queue = queue_of(desk.work, slots=4)
    queue.add("a/0")
    await during(queue, 5)
    desk.hang(*(f"a/{n}" for n in range(4)))
    for n in range(4):
        queue.add(f"a/{n}")
    await during(queue, 1)
    assert desk.most == 4


async def test_in_a_lane_what_failed_comes_after_all_others() -> None:
    """One good key behind fifty broken ones waits for one of them at the most."""
    begun: list[str] = []

    async def work(key: str) -> float | None:
        begun.append(key)
        await asyncio.sleep(4)
        return None if key == "a/good" else 0.2

    queue = queue_of(work, slots=4)
    for n in range(50):
        queue.add(f"a/{n}")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(during(queue, 400))
        await asyncio.sleep(300)
        before = len(begun)
        queue.add("a/good")
    assert begun.index("a/good") - before <= 1


async def test_a_lane_of_few_keys_is_in_plain_dictionaries_and_many_keep_their_order() -> None:
    """Where each key has a lane of its own there are a hundred thousand lanes; the collector went through two OrderedDicts of each."""
    line = workqueue._Line[str]()
    kinds = set()
    keys = [f"k{number}" for number in range(200)]
    for key in keys:
        line.put(key, failed=False)
        line.put(f"again-{key}", failed=True)
        kinds.add((len(line) > 2 * workqueue._FEW, type(line.fresh), type(line.retried)))
    assert kinds == {(False, dict, dict), (True, OrderedDict, OrderedDict)}
    line.drop("k7")
    line.drop("again-k7")
    keys.remove("k7")
    taken = [line.take() for _ in range(len(line))]
    assert taken == [*keys, *(f"again-{key}" for key in keys)]
    assert not line
