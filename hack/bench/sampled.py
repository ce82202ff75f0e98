"""`python -m hack.bench.sampled FILE COMMAND...`: a command of the product, and where its processor time went.

Looks every few milliseconds of processor time at what runs, so that waiting counts for nothing and measuring costs little.
FILE is text: the part of each function itself, then of each with all that it calls; of the product and of other packages.
"""

import signal
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Final

from cli.main import main as product

_EVERY_S: Final = 0.004
_LINES: Final = 60


class Samples:
    """How often each function was found, running itself and anywhere above."""

    def __init__(self) -> None:
        self.count = 0
        self.itself: Counter[str] = Counter()
        self.above: Counter[str] = Counter()

    def start(self) -> None:
        """From now on, until the process ends."""
        signal.signal(signal.SIGPROF, self._take)
        signal.setitimer(signal.ITIMER_PROF, _EVERY_S, _EVERY_S)

    def stop(self) -> None:
        """No further samples."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _take(self, _number: int, frame: FrameType | None) -> None:
        names: list[str] = []
        while frame is not None:
            names.append(f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}")
            frame = frame.f_back
        self.count += 1
        self.itself.update(names[:1])
        self.above.update(set(names))

    def text(self) -> str:
        """Both tables."""
        return "\n".join(
            (
                f"{self.count} samples of {_EVERY_S * 1000:.0f} ms",
                "itself",
                *self._lines(self.itself),
                "with what it calls",
                *self._lines(self.above),
                "",
            )
        )

    def _lines(self, found: Counter[str]) -> Iterable[str]:
        return (
            f"  {100 * times / max(1, self.count):5.1f} %  {name}"
            for name, times in found.most_common(_LINES)
        )


def main(arguments: list[str]) -> int:
    """Runs the command; its exit status."""
    file, *command = arguments
    samples = Samples()
    samples.start()
    try:
        return product(command)
    finally:
        samples.stop()
        Path(file).write_text(samples.text(), "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
