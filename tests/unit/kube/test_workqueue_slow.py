"""Lanes that are slow, or that begin to hang: they share with each other, and others have their slots soon."""

import asyncio
from collections import Counter
from collections.abc import Callable
from math import ceil

import looptime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.workqueue import IDLE, SLOW_S, WorkQueue
from tests.fakes.apiserver import background
from tests.unit.kube.desk import by_namespace

SLOTS = 16
PER_LANE = 8
HANGS_S = 4.0
"""For so long a request is waited for."""
QUICK_S = 0.001

pytestmark = pytest.mark.looptime


class Bureau:
    """Works that take as long, and end, as a test says for each key."""

    def __init__(
        self,
        takes_s: Callable[[str], float],
        ends: Callable[[str], float | None] = lambda _: None,
        *,
        slots: int = SLOTS,
        per_lane: int = PER_LANE,
        unheard: int | None = None,
    ) -> None:
        self.takes_s = takes_s
        self.ends = ends
        self.begun: dict[str, float] = {}
        """When each was begun last."""
        self.done: Counter[str] = Counter()
        """How many works have ended in each lane."""
        self.running: Counter[str] = Counter()
        """How many works run in each lane."""
        self.at_once: Counter[str] = Counter()
        """The most of that."""
        self.most = 0
        self._under_way: set[str] = set()
        self._begins = asyncio.Event()
        self.queue = WorkQueue(self._work, slots=slots, per_lane=per_lane, unheard=unheard, lane=by_namespace)

    async def _work(self, key: str) -> float | None:
        assert key not in self._under_way, "two workers on one key"
        lane = by_namespace(key)
        self._under_way.add(key)
        self.running[lane] += 1
        self.at_once[lane] = max(self.at_once[lane], self.running[lane])
        self.most = max(self.most, len(self._under_way))
        self.begun[key] = asyncio.get_running_loop().time()
        self._begins.set()
        try:
            await asyncio.sleep(self.takes_s(key))
            return self.ends(key)
        finally:
            self.done[lane] += 1
            self.running[lane] -= 1
            self._under_way.discard(key)

    def add(self, lane: str, count: int, name: str = "") -> list[str]:
        keys = [f"{lane}/{name}{number}" for number in range(count)]
        for key in keys:
            self.queue.add(key)
        return keys

    async def begins_s(self, lane: str, count: int, name: str = "") -> float:
        """After how long the last of so many keys of a lane is begun."""
        added = asyncio.get_running_loop().time()
        keys = self.add(lane, count, name)
        while any(self.begun.get(key, -1.0) < added for key in keys):
            self._begins.clear()
            await self._begins.wait()
        return max(self.begun[key] for key in keys) - added


def seconds(bad_s: float) -> Callable[[str], float]:
    """The first work of each bad lane comes back at once, all others take so long."""
    return lambda key: bad_s if key.startswith("bad") and not key.endswith("/0") else QUICK_S


def failing(key: str) -> float | None:
    return 1.0 if key.startswith("bad") and not key.endswith("/0") else None


@pytest.mark.parametrize("unheard", [None, 128])
@pytest.mark.parametrize("lanes", [1, 2, 4, 16, 100])
@pytest.mark.parametrize(
    ("bad_s", "ends"),
    [(3.5, lambda _: None), (HANGS_S, failing), (HANGS_S, lambda _: None)],
    ids=["slow", "hang and fail", "hang"],
)
async def test_lanes_that_become_slow_hold_up_another_one_for_moments_only(
    bad_s: float, ends: Callable[[str], float | None], lanes: int, unheard: int | None
) -> None:
    bureau = Bureau(seconds(bad_s), ends, unheard=unheard)
    async with background(bureau.queue.run()):
        alone = await bureau.begins_s("quick", 30)
        for lane in range(lanes):
            bureau.add(f"bad{lane}", 20)
        beside = await bureau.begins_s("quick", 30)
        assert beside < alone + ceil(lanes / SLOTS) * SLOW_S + 0.1
        assert max(bureau.at_once.values()) <= PER_LANE
        for number in range(20):
            await asyncio.sleep(0.7)
            again = await bureau.begins_s("quick", 30, f"{number}-")
            settled = (number + 1) * 0.7 > 2 * ceil(lanes / SLOTS) * SLOW_S + HANGS_S
            assert again < alone + (0.1 if settled else SLOW_S + 0.1)


async def test_lanes_that_fail_at_once_wait_for_none_that_fail_after_a_long_time() -> None:
    bureau = Bureau(seconds(HANGS_S), lambda key: None if key.endswith("/0") else 1.0)
    async with background(bureau.queue.run()):
        for lane in range(200):
            bureau.add(f"bad{lane}", 3)
        bureau.add("refused", 2)
        # Each has failed once.
        await asyncio.sleep(60)
        assert await bureau.begins_s("refused", 5, "more") < 5 * QUICK_S + 5 * SLOW_S
        await asyncio.sleep(200)
        assert await bureau.begins_s("refused", 5, "others") < 0.1


@pytest.mark.parametrize("lanes", [1, 2, 4, 40])
async def test_when_all_lanes_are_slow_as_much_is_done_as_if_none_were(lanes: int) -> None:
    bureau = Bureau(lambda _: 1.5)
    async with background(bureau.queue.run()):
        for lane in range(lanes):
            bureau.add(f"n{lane}", 1000)
        await asyncio.sleep(60)
    each = min(PER_LANE, SLOTS / lanes) * 60 / 1.5
    assert all(bureau.done[f"n{lane}"] >= int(each) - 1 for lane in range(lanes))


async def test_no_more_than_the_slots_run_at_once_as_soon_as_lanes_are_known_to_be_slow() -> None:
    """While that is found out, one slot lends so many as fit into the time that a work takes."""
    bureau = Bureau(lambda _: HANGS_S)
    async with background(bureau.queue.run()):
        for lane in range(200):
            bureau.add(f"n{lane}", 20)
        await asyncio.sleep(60)
        assert SLOTS < bureau.most <= SLOTS * (HANGS_S / SLOW_S + 1)
        assert bureau.running.total() == SLOTS


async def test_a_slow_lane_is_an_ordinary_one_after_a_work_that_comes_back_in_time() -> None:
    bureau = Bureau(lambda key: QUICK_S if key.startswith("good/well") else 3.5)
    async with background(bureau.queue.run()):
        for lane in range(SLOTS):
            bureau.add(f"bad{lane}", 100)
        bureau.queue.add("good/later", 100)
        bureau.queue.add("good/slow")
        await asyncio.sleep(1)
        assert await bureau.begins_s("good", 1, "well") > SLOW_S, "it has its turn among those that are slow"
        assert await bureau.begins_s("good", 30, "well-") < 0.1


async def test_work_that_tried_nothing_leaves_a_slow_lane_what_it_is() -> None:
    """Else each change of a pod whose lift is under way would have more of its namespace begin."""

    def idle(key: str) -> bool:
        return key.endswith(("1", "3", "5", "7", "9"))

    bureau = Bureau(lambda key: QUICK_S if idle(key) else 3.5, lambda key: IDLE if idle(key) else None)
    async with background(bureau.queue.run()):
        for lane in range(SLOTS):
            bureau.add(f"n{lane}", 1000)
        await asyncio.sleep(10)
        bureau.most = 0
        await asyncio.sleep(30)
        assert bureau.most == SLOTS


async def test_a_lane_that_is_known_to_be_slow_has_its_turn_however_many_new_ones_are_slow_too() -> None:
    """They come without end, and each hangs for the first time."""
    bureau = Bureau(lambda _: HANGS_S, slots=8)
    loop = asyncio.get_running_loop()
    async with background(bureau.queue.run()):
        bureau.add("known", 1)
        await asyncio.sleep(SLOW_S / 2)
        bureau.add("known", 1)
        first = bureau.begun["known/0"]
        for number in range(400):
            bureau.add(f"new{number}", 1)
            await asyncio.sleep(SLOW_S / 10)
        assert first + HANGS_S <= bureau.begun["known/0"] <= first + HANGS_S + SLOW_S
        assert loop.time() > first + 3 * HANGS_S
        assert bureau.most <= 8 * (HANGS_S / SLOW_S + 1)


async def test_with_a_single_slot_works_come_one_after_the_other_however_long_they_take() -> None:
    bureau = Bureau(lambda _: 3.0, slots=1)
    async with background(bureau.queue.run()):
        for lane in "abc":
            bureau.add(lane, 2)
        await asyncio.sleep(30)
    assert bureau.done.total() == 6
    assert bureau.most == 1


def left_in(queue: WorkQueue[str]) -> list[object]:
    """What a queue keeps of lanes and keys."""
    used, turns = any(queue._used), any(queue._turns)
    kept = (queue._ready, queue._running, queue._failing, queue._slow, queue._heard, queue._retries)
    return [held for held in (*kept, queue._keys, queue._busy, queue._later, used, turns) if held]


async def test_when_all_keys_are_taken_off_no_lane_is_remembered() -> None:
    bureau = Bureau(lambda _: 3.5, lambda key: 1000.0 if key.startswith("bad") else None)
    async with background(bureau.queue.run()):
        for lane in ("slow", "bad"):
            bureau.add(lane, 1)
            bureau.queue.add(f"{lane}/later", 1000)
        await asyncio.sleep(10)
        assert bureau.done.total() == 2
        bureau.queue.clear()
        assert left_in(bureau.queue) == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add"] * 6 + ["discard", "clear"]),
        st.sampled_from("abcd"),
        st.integers(0, 5),
        st.sampled_from([0.0, 0.0, 0.3, 2.0]),
    ),
    max_size=40,
)
TIMES = st.lists(
    st.tuples(st.sampled_from([QUICK_S, 0.4, 0.6, 3.5]), st.sampled_from([None, None, IDLE, 0.2])),
    max_size=30,
)


@pytest.mark.looptime(False)
@given(STEPS, TIMES, st.sampled_from([None, 1, 3]))
def test_whatever_works_take_slots_are_bounded_and_all_are_worked_on_and_nothing_is_left(
    steps: list[tuple[str, str, int, float]],
    times: list[tuple[float, float | None]],
    unheard: int | None,
) -> None:
    slots, per_lane, coming = 3, 2, list(times)

    def ends(_key: str) -> float | None:
        return coming.pop()[1] if coming else None

    async def main() -> None:
        bureau = Bureau(
            lambda _: coming[-1][0] if coming else QUICK_S,
            ends,
            slots=slots,
            per_lane=per_lane,
            unheard=unheard,
        )
        async with background(bureau.queue.run()):
            wanted = dict[str, float]()
            for what, lane, number, pause_s in steps:
                key = f"{lane}/{number}"
                if what == "add":
                    wanted[key] = asyncio.get_running_loop().time()
                    bureau.queue.add(key, pause_s)
                elif what == "discard":
                    wanted.pop(key, None)
                    bureau.queue.discard(key)
                else:
                    wanted.clear()
                    bureau.queue.clear()
                await asyncio.sleep(pause_s)
            await asyncio.sleep(1000)
            assert all(bureau.begun[key] >= added for key, added in wanted.items())
            assert max(bureau.at_once.values(), default=0) <= per_lane
            assert bureau.most <= 2 * slots * (3.5 / SLOW_S + 1) + (unheard or 0)
            assert left_in(bureau.queue) == []

    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        runner.run(main())
