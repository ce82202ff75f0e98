"""`python -m tests.chaos.stepped FOLDER ARGS...`: a process of ours, whose wall clock somebody else may step while it runs.

By how many seconds it is wrong stands in a file in FOLDER that has the process id for a name: a double, mapped into the memory of
both. What counts time that has passed (`time.monotonic`, the event loop, timers of the kernel) goes on as it did, as where an
administrator or NTP sets the clock of a node.
"""

import datetime as dt
import mmap
import os
import struct
import sys
import time
from pathlib import Path
from typing import Self

_SECONDS = struct.Struct("=d")


def step(folder: Path, pid: int, seconds: float) -> None:
    """Puts the clock of a process so far from the right time, from now on. One that has ended takes no notice."""
    with (folder / str(pid)).open("r+b") as file:
        file.write(_SECONDS.pack(seconds))


def can_step(folder: Path, pid: int) -> bool:
    """Whether the process has begun to ask the file for the time: one that was only just started has not."""
    return (folder / str(pid)).exists()


def make_steppable(folder: Path) -> None:
    """From now on this process asks the file for the time; to be called before others take functions of the clock."""
    file = folder / str(os.getpid())
    file.write_bytes(_SECONDS.pack(0.0))
    with file.open("rb") as opened:
        shared = mmap.mmap(opened.fileno(), _SECONDS.size, prot=mmap.PROT_READ)
    right, right_ns, of_class = time.time, time.time_ns, dt.datetime

    def seconds() -> float:
        return float(_SECONDS.unpack_from(shared)[0])

    class Stepped(of_class):  # type: ignore[misc, valid-type]  # the class in whose place it is put
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Self:
            found: Self = cls.fromtimestamp(time.time(), tz)
            return found

    time.time = lambda: right() + seconds()
    time.time_ns = lambda: right_ns() + int(seconds() * 1e9)
    dt.datetime = Stepped  # type: ignore[misc]


def main(arguments: list[str]) -> int:
    """Runs the command; its exit status."""
    folder, *command = arguments
    make_steppable(Path(folder))
    from cli.main import main as product

    return product(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
