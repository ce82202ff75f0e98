"""One search in a process of its own: `python -m tests.fuzz.engine TARGET LIBFUZZER-ARGUMENT...`."""

import importlib
import importlib.util
import re
import sys
import time
from collections.abc import Callable


def main(name: str, arguments: list[str]) -> None:
    """Does not return when atheris searches: it ends the process."""
    if importlib.util.find_spec("atheris") is None:
        _without_coverage(_target(name), _seconds(arguments))
        return
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["core", "kube", "cli"]):
        target = _target(name)
    atheris.Setup([sys.argv[0], *arguments], target)
    atheris.Fuzz()


def _target(name: str) -> Callable[[bytes], None]:
    from tests.fuzz.targets import TARGETS

    return TARGETS[name]


def _seconds(arguments: list[str]) -> int:
    return int(next(found[1] for one in arguments if (found := re.fullmatch(r"-max_total_time=(\d+)", one))))


def _without_coverage(target: Callable[[bytes], None], seconds: int) -> None:
    """Examples of hypothesis until the time is over; the first that breaks the target is made small and told."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    print("without atheris: bytes are drawn blindly")

    @settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=1024))
    def searched(data: bytes) -> None:
        if time.monotonic() < ends:
            target(data)

    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        searched()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
