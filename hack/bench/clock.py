"""Measuring: processor time, pairs of figure and floor taken in turns, and the pauses of the garbage collector."""

import asyncio
import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

from kube import runtime

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Pair:
    """Medians over the rounds; the ratio is taken in each round, so that a slow spell hits both of its sides."""

    figure: float
    floor: float
    ratio: float


def pair(figures: Sequence[float], floors: Sequence[float]) -> Pair:
    """The medians of what was measured in turns."""
    ratios = [quotient(figure, floor) for figure, floor in zip(figures, floors, strict=True)]
    return Pair(median(figures), median(floors), median(ratios))


def quotient(figure: float, floor: float) -> float:
    """The ratio; infinite where the floor is too small for the clock."""
    return figure / floor if floor else math.inf


def in_turns(figure: Callable[[], float], floor: Callable[[], float], *, rounds: int, limit_s: float) -> Pair:
    """Measures floor and figure by turns: at least one round, at most `rounds`, none begun after `limit_s`."""
    figures: list[float] = []
    floors: list[float] = []
    for _ in bounded(rounds, limit_s):
        floors.append(floor())
        figures.append(figure())
    return pair(figures, floors)


def bounded(rounds: int, limit_s: float) -> Iterator[int]:
    """Counts rounds: at least one, and none is begun after `limit_s` seconds."""
    started = time.monotonic()
    for number in range(rounds):
        if number and time.monotonic() - started > limit_s:
            return
        yield number


def cpu_ms(work: Callable[[], object]) -> float:
    """Processor time of a piece of work that waits for nothing: what it takes on a machine that is otherwise idle."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def cpu_s_of(pid: int) -> float:
    """Processor time that another process has used so far, in steps of a clock tick (10 ms as a rule)."""
    # The second field is the program's name in brackets, which may hold blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def machine_cpu_s() -> float:
    """Processor time that all programs of this machine have used so far."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, irq, softirq, *_ = map(int, fields)
    return (user + nice + system + irq + softirq) / _TICKS_PER_S


def resident_mib(pid: int | None = None) -> float:
    """The resident memory of this process, or of another one."""
    return int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1]) * _PAGE_BYTES / 2**20


@contextmanager
def settled() -> Iterator[None]:
    """The garbage collector as the processes set it once their caches are filled; as before afterwards."""
    thresholds = gc.get_threshold()
    # Whatever is run this way gets the pace of a process of ours, until it is set back below.
    runtime.run(_nothing)
    runtime.settle_gc()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _nothing(_stop: asyncio.Event) -> int:
    return 0


class Pauses:
    """The collections during a `with` block: how many, and the processor time of the longest."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_ms = 0.0
        self._started = 0.0

    def __enter__(self) -> Self:
        gc.callbacks.append(self._on_collection)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.thread_time()
        else:
            self.count += 1
            self.longest_ms = max(self.longest_ms, (time.thread_time() - self._started) * 1000)
