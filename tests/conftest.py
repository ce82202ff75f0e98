"""What holds for all tests: the hypothesis profile, no event loop left over, programs built before the clock runs, the real
control plane, one per test process, and a look at the rights that were used in all of them.

The profile is chosen by `--hypothesis-profile`, else `ci` where the environment has CI set, else `dev`.
"""

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from hack.controlplane import ControlPlane
from hack.toolchain import BINARIES, Reporter, Store, ToolchainError
from kube import logs
from tests import rights_of_the_run
from tests.own_plane import own_plane

# No deadline: the machines that run this are shared, and a slow example is not a wrong one.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# The loop-time plugin asks the policy for the current loop before every test, a synchronous one included. Where none
# was ever set, Python makes one then, and nobody closes it; where it was set to none, there is none.
asyncio.set_event_loop(None)


def pytest_configure(config: pytest.Config) -> None:
    rights_of_the_run.watch(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the chosen tests run: that takes minutes, once, and must not count as the time of the first of them.

    What was collected stays until the end, half a million objects: looked at in each full collection of garbage, they kept
    this process, and all that a test serves in it, from everything else for up to two seconds every few seconds.
    """
    gc.collect()
    gc.freeze()
    marks = {mark.name for item in session.items for mark in item.iter_markers()}
    needed = [*BINARIES] if "apiserver" in marks else ["helm"] if "chart" in marks else []
    if session.config.option.collectonly or not needed:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(line, file=sys.stderr, flush=True)  # noqa: T201  a first build must show life

    try:
        Store().ensure(needed, Reporter(say))
    except ToolchainError as error:
        pytest.exit(f"the tests need programs that cannot be built: {error}", returncode=1)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command that sets up logs within this process leaves them to the test, and not to all that follow.

    Its stream is closed by then: each later line would be answered with a trace of that, and a million of them fill the memory.
    """
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
    logs.take_off()


@pytest.fixture(scope="session")
def progress(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Write a line past pytest's capture: a first build takes minutes and must show life."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(line, file=sys.stderr, flush=True)  # noqa: T201  the purpose of this function

    return say


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest, progress: Callable[[str], None]) -> Iterator[ControlPlane]:
    """A control plane with scheduler, controller manager and kwok; its logs are kept when a test failed."""
    with own_plane(request, progress=progress) as plane:
        yield plane
