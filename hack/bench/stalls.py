"""For how long a controller is deaf: what happens to it, each in a process of its own, beside a core that is busy anyway."""

import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import orjson

from hack.bench.effort import Effort
from hack.bench.peers import BenchError
from hack.bench.pulse import Deaf
from hack.bench.report import Row, Sheet, Target
from hack.bench.scenes import SCENES, Scene
from hack.bench.watched import Outcome

_PROCESS_S: Final = 170.0
"""A process that takes longer is deaf for good, as far as anybody would wait."""
_QUIET_S: Final = 1.5
_SPIN_S: Final = 600

_DEAF: Final = Target("figure", "<=", 50)
_OTHERS: Final = Target("figure", "<=", 2000)
_NEVER: Final = Target("figure", "<=", 0)

_SPINNER: Final = f"""
import os, time
parent, end = os.getppid(), time.monotonic() + {_SPIN_S}
while time.monotonic() < end and os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """All scenes, one after the other."""
    outcomes: list[tuple[Scene, Outcome]] = []
    for name, scene in SCENES.items():
        with busy_core():
            outcome = measured(name, effort.share)
        progress(_told(scene, outcome))
        outcomes.append((scene, outcome))
    return rows(outcomes, effort.share)


def measured(name: str, share: float) -> Outcome:
    """What a controller does in one scene. Raises BenchError when it cannot be measured."""
    quiet_s = _QUIET_S if share >= 1 else _QUIET_S * max(share, 0.2)
    command = [sys.executable, "-m", "hack.bench.watched", name, str(share), str(quiet_s)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=_PROCESS_S, check=True)
    except subprocess.TimeoutExpired:
        return Outcome(deaf=Deaf(math.inf, math.inf), ended=False, took_s=_PROCESS_S, problem="")
    except subprocess.SubprocessError as error:
        raise BenchError(f"{name}: {error}") from error
    found = orjson.loads(done.stdout)
    outcome = Outcome(**found | {part: Deaf(**found[part]) for part in ("deaf", "quiet")})
    if outcome.problem:
        raise BenchError(f"{name}: {outcome.problem}")
    return outcome


def rows(outcomes: Sequence[tuple[Scene, Outcome]], share: float) -> list[Row]:
    """One block for each kind of figure; at a smaller size none is judged."""
    row = Sheet("stalls", share >= 1, after="" if share >= 1 else f" ({share:.0%} of it)").row
    idle = "the same loop beside the same busy core while nothing happens"
    texts = "orjson reading all that the controller is told"
    lost = sum(not outcome.led for _, outcome in outcomes)
    unfinished = sum(not outcome.ended for _, outcome in outcomes)
    return [
        *(
            row(f"{scene.what}: deaf", "ms", seen.deaf.longest_ms, seen.quiet.longest_ms, idle, _DEAF)
            for scene, seen in outcomes
        ),
        *(
            row(f"{scene.what}: less waiting", "ms", seen.deaf.net_ms, seen.quiet.net_ms, idle, _DEAF)
            for scene, seen in outcomes
        ),
        *(
            row(f"{scene.what}: another's lift", "ms", seen.waited_ms, seen.quiet_waited_ms, idle, _OTHERS)
            for scene, seen in outcomes
            if scene.hostile
        ),
        *(row(f"{scene.what}: in all", "s", seen.took_s, seen.read_s, texts) for scene, seen in outcomes),
        row("scenes in which the lease changed hands", "", lost, 0, "none", _NEVER),
        row("scenes that were not over in time", "", unfinished, 0, "none", _NEVER),
    ]


def _told(scene: Scene, outcome: Outcome) -> str:
    """One line for each scene, and one for each of the longest pauses with what was running."""
    deaf = outcome.deaf
    lines = [
        f"{scene.what}: deaf {deaf.longest_ms:.0f} ms, less waiting for a processor {deaf.net_ms:.0f} ms, "
        f"longest collection {deaf.collection_ms:.0f} ms, in all {outcome.took_s:.1f} s"
        + ("" if outcome.ended else ", given up")
        + ("" if outcome.led else ", LEASE LOST")
    ]
    lines += [
        f"  {net_ms:.0f} ms ({longest_ms:.0f} ms with waiting): {running}"
        for net_ms, longest_ms, running in deaf.running
    ]
    return "\n  ".join(lines)


@contextmanager
def busy_core() -> Iterator[int]:
    """Another process, whose id is given, keeps one core busy; it ends with this block, with this process, or after some minutes.

    Raises BenchError at the end of the block if it has ended before.
    """
    spinner = subprocess.Popen([sys.executable, "-c", _SPINNER])
    try:
        yield spinner.pid
        if spinner.poll() is not None:
            raise BenchError("the process that keeps a core busy has ended by itself")
    finally:
        spinner.kill()
        spinner.wait()
