"""The garbage collector's pace: which collections come when, and what they look at."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from kube import runtime


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """As in a process of ours that begins; afterwards what stays is set aside again, as tests/conftest.py has it."""
    threshold = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.set_threshold(*threshold)
    gc.freeze()


def test_settled_objects_are_left_out_of_collections() -> None:
    """What exists is frozen."""
    runtime.settle_gc()
    assert gc.get_freeze_count() > 1000


def test_a_process_collects_garbage_seldom() -> None:
    """From before the first list on: that is when the most short-lived objects come."""

    async def main(_stop: asyncio.Event) -> int:
        return gc.get_threshold()[0]

    assert runtime.run(main) >= 25_000


def test_no_collection_but_a_full_one_looks_at_more_than_a_pause_allows() -> None:
    """A hundred thousand objects take 25 ms, and twice that on a busy machine."""

    async def main(_stop: asyncio.Event) -> int:
        young, middle, _ = gc.get_threshold()
        return young * (middle + 1)

    assert runtime.run(main) <= 50_000


@pytest.fixture
def looked_at() -> Iterator[list[int]]:
    """The generations of all collections."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def test_young_objects_are_looked_at_by_time_and_not_only_by_number(looked_at: list[int]) -> None:
    """Where ten thousand pods are booked anew as much goes as comes, and Python counts the difference."""
    now = 1_000_000.0
    collector = runtime._Collector(lambda: now)
    del looked_at[:]
    for _ in range(83):
        now += 0.01
        collector.between_rounds()
    assert looked_at == [0, 1] * 8


def test_young_objects_are_looked_at_between_two_rounds_and_not_while_nothing_happens(
    looked_at: list[int],
) -> None:
    """A process that is woken ten times a second has no rest, nor has the node that it runs on."""
    counts: list[int] = []

    async def main(_stop: asyncio.Event) -> int:
        del looked_at[:]
        await asyncio.sleep(0.6)
        counts.append(len(looked_at))
        for _ in range(30):
            await asyncio.sleep(0.02)
        counts.append(len(looked_at))
        return 0

    assert runtime.run(main) == 0
    idle, busy = counts
    assert idle <= 1
    assert busy >= 4


class _Collecting:
    """Drives a collector by fake clocks: each collection takes as long as is said for its generation."""

    def __init__(self) -> None:
        self._now = self._processor = 0.0
        self.takes_s = {0: 0.0001, 1: 0.00075, 2: 0.001}
        self._collector = runtime._Collector(lambda: self._now, lambda: self._processor)
        self.counting = self._collector.counting

    def round_ends(self, after_s: float = 0.0) -> None:
        self._now += after_s
        self._collector.between_rounds()

    def rounds_end(self, number: int) -> None:
        """So far apart that young objects are looked at after each."""
        for _ in range(number):
            self.round_ends(runtime._COLLECT_S + 0.01)

    def on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._processor += self.takes_s[info["generation"]]


@pytest.fixture
def collecting(looked_at: list[int]) -> Iterator[_Collecting]:
    """With the pace of a process of ours, and out of sight what exists already, as there."""
    gc.set_threshold(*runtime._GC_THRESHOLDS)
    runtime.settle_gc()
    collecting = _Collecting()
    with collecting.counting():
        gc.callbacks.append(collecting.on_collection)
        del looked_at[:]
        yield collecting
        gc.callbacks.remove(collecting.on_collection)


class _Cycle:
    """Freed by nothing but a collection."""

    def __init__(self) -> None:
        self.itself = self


def _old(number: int) -> list[_Cycle]:
    """Objects that have grown old by a middle collection."""
    made = [_Cycle() for _ in range(number)]
    gc.collect(1)
    return made


def test_all_objects_are_looked_at_when_the_middle_collections_have_added_up(
    collecting: _Collecting, looked_at: list[int]
) -> None:
    """Not before, and after a round of its own: together they would be one pause."""
    for later_s in (0.0, 1.0, 0.0):
        collecting.rounds_end(12)
        assert looked_at == [0, 1] * 6
        collecting.round_ends(later_s)
        assert looked_at == [*[0, 1] * 6, 2]
        del looked_at[:]


def test_the_middle_collections_that_python_makes_by_itself_count(
    collecting: _Collecting, looked_at: list[int]
) -> None:
    """They come in bursts, within one round; the full one comes with the next, for together they would be one pause."""
    collecting.takes_s[1] = 0.005
    kept = [[number] for number in range(110_000)]
    assert len(kept) == 110_000
    assert looked_at.count(1) == 1
    collecting.round_ends()
    assert 2 not in looked_at
    kept += [[number] for number in range(110_000)]
    assert looked_at.count(1) > 1
    assert 2 not in looked_at
    made = len(looked_at)
    collecting.round_ends(1.0)
    assert len(looked_at) == made
    collecting.round_ends()
    assert looked_at[made:] == [2]


def test_a_full_collection_of_somebody_else_is_as_good(collecting: _Collecting, looked_at: list[int]) -> None:
    collecting.rounds_end(12)
    runtime.settle_gc()
    del looked_at[:]
    collecting.rounds_end(12)
    assert looked_at == [0, 1] * 6


@pytest.mark.parametrize(
    ("takes_s", "garbage", "set_aside"),
    [
        pytest.param(0.003, 0, False, id="it was short"),
        pytest.param(0.005, 0, True, id="it was long"),
        pytest.param(0.005, 5000, False, id="it was long, for all the garbage"),
    ],
)
def test_what_lives_is_set_aside_only_after_a_long_collection(
    collecting: _Collecting, looked_at: list[int], takes_s: float, garbage: int, *, set_aside: bool
) -> None:
    """A cycle that is set aside before it is garbage is never freed: that has to be rare."""
    collecting.takes_s |= {1: 0.01, 2: takes_s}
    old = _old(1000 + garbage)
    del old[1000:]
    before = gc.get_freeze_count()
    for _ in range(2):
        collecting.round_ends()
    assert looked_at == [1, 2]
    assert (gc.get_freeze_count() - before >= len(old)) == set_aside


@pytest.mark.parametrize(("garbage", "counted"), [(0, 0), (runtime._FEW, 0), (runtime._FEW + 1, 1)])
def test_what_lives_is_counted_only_where_that_decides(
    collecting: _Collecting, monkeypatch: pytest.MonkeyPatch, garbage: int, counted: int
) -> None:
    """To have a list of a million objects made took 10 ms, in one pause with the collection."""
    collecting.takes_s |= {1: 0.01, 2: 0.005}
    old = _old(5000 + garbage)
    del old[5000:]
    before, times = gc.get_freeze_count(), list[int]()
    real = gc.get_objects

    def counting(generation: int) -> list[object]:
        times.append(generation)
        return real(generation)

    monkeypatch.setattr(gc, "get_objects", counting)
    for _ in range(2):
        collecting.round_ends()
    assert len(times) == counted
    assert gc.get_freeze_count() - before >= len(old)


def test_cycles_that_are_garbage_after_they_have_grown_old_are_freed(collecting: _Collecting) -> None:
    """Though others were set aside before; else a process grows for ever."""
    collecting.takes_s |= {1: 0.01, 2: 0.005}
    kept = _old(1000)
    for _ in range(2):
        collecting.round_ends()
    freed = 0

    def on_freed(_: object) -> None:
        nonlocal freed
        freed += 1

    collecting.takes_s |= {1: 0.001, 2: 0.003}
    watching = []
    for _ in range(40):
        watching += [weakref.ref(cycle, on_freed) for cycle in _old(100)]
        collecting.rounds_end(2)
    assert len(kept) == 1000
    assert len(watching) == 4000
    assert freed >= 3000


def test_a_process_makes_full_collections_and_leaves_nothing_behind_that_counts(
    looked_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_FULL_AFTER_S", 1e-9)
    before = [*gc.callbacks]

    async def main(_stop: asyncio.Event) -> int:
        del looked_at[:]
        for _ in range(30):
            await asyncio.sleep(0.02)
        return looked_at.count(2)

    assert runtime.run(main) >= 1
    assert gc.callbacks == before


def test_python_makes_no_full_collection_by_itself(looked_at: list[int]) -> None:
    """It would come in the middle of work, however long what has survived takes."""

    async def main(_stop: asyncio.Event) -> int:
        survived = [[number] for number in range(50_000)]
        for _ in range(6_001):
            gc.collect(1)
        del looked_at[:]
        survived += [[number] for number in range(110_000)]
        assert len(survived) == 160_000
        # The one that is due by now comes when this round has ended.
        generations.update(looked_at)
        return gc.get_threshold()[2]

    generations: set[int] = set()
    a_year_at_five_a_second = 5 * 86_400 * 365
    assert runtime.run(main) > a_year_at_five_a_second
    assert generations == {0, 1}


def test_what_is_imported_is_set_aside_before_the_loop_runs() -> None:
    """A hundred thousand objects, which the first full collection would look at."""

    async def main(_stop: asyncio.Event) -> int:
        return len(gc.get_objects())

    assert runtime.run(main) < 1000


@pytest.mark.looptime
async def test_what_is_listed_is_set_aside_while_the_list_goes_on() -> None:
    """Else a collection in the middle of it, or the one in the end, would look at everything listed so far."""
    kept: list[list[int]] = []
    collections: list[int] = []

    async def listed() -> None:
        for _ in range(5):
            kept.extend([] for _ in range(1000))
            await asyncio.sleep(0.2)
            collections.append(len(gc.get_objects()))

    before = gc.get_freeze_count()
    await runtime.filled(listed())
    assert gc.get_freeze_count() - before >= len(kept)
    # The collector sees no more than what came last, not what has been listed so far.
    assert max(collections) < 1000
