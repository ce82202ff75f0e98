"""Pauses of a real event loop: noticed, measured, named, and told once. How much longer they show is not asserted."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

import pytest
from prometheus_client import CollectorRegistry

from kube.certificates import FollowedPair, follow_secret
from kube.metrics import Metrics
from kube.process import Frame, ProcessOptions
from kube.serving import application
from kube.stalls import Loop, StallWatch, of_running_loop
from kube.tls import ServingCertificate
from tests.fakes.apiserver import FakeApiServer

LONG_S = 0.25

P = ParamSpec("P")


def on_our_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs a test on a loop whose rounds can be followed, as the processes have it."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(test(*args, **kwargs))

    return run


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.fixture(autouse=True)
def every_stall_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine there may be others than the test makes."""
    monkeypatch.setattr("kube.stalls._TELL_EVERY_S", 0.0)


def sampled(metrics: Metrics, name: str) -> float:
    value = metrics.registry.get_sample_value(name)
    assert value is not None
    return value


def stalls(metrics: Metrics) -> float:
    return sampled(metrics, "cardquota_loop_stall_seconds_count")


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.__dict__ for record in caplog.records if record.message == "the event loop stood still"]


def line_about(function: Callable[[], None], caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """What was told of the stall in which this ran."""
    return next(line for line in told(caplog) if function.__name__ in line["running"])


def sleeps_in_the_loop(times: int = 1) -> None:
    time.sleep(times * LONG_S)


def computes_in_the_loop() -> None:
    end = time.monotonic() + LONG_S
    while time.monotonic() < end:
        sum(range(100))


def computes_in_c() -> None:
    """Holds the interpreter lock throughout: nobody can look before it is over."""
    end = time.monotonic() + LONG_S
    while time.monotonic() < end:
        sum(range(10_000_000))


async def watched(watch: StallWatch, block: Callable[[], None]) -> None:
    with watch.watching():
        await asyncio.sleep(0.03)
        block()
        await asyncio.sleep(0.03)


@pytest.mark.parametrize("block", [sleeps_in_the_loop, computes_in_the_loop, computes_in_c])
def test_a_stall_is_measured_and_says_what_ran(
    metrics: Metrics,
    caplog: pytest.LogCaptureFixture,
    block: Callable[[], None],
) -> None:
    watch = StallWatch(metrics)
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(watched(watch, block))
    assert watch.longest_s >= LONG_S
    assert stalls(metrics) >= 1
    assert sampled(metrics, "cardquota_loop_stall_seconds_sum") >= LONG_S
    assert sampled(metrics, "cardquota_loop_longest_pause_seconds") == watch.longest_s
    line = line_about(block, caplog)
    assert (line["levelno"], line["untold"]) == (logging.WARNING, 0)
    assert line["seconds"] >= LONG_S


@on_our_loop
async def test_what_our_own_packages_run_is_named_beneath_what_they_call(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    """The innermost call alone would only say that something is being compared, decoded or sorted."""
    source = "def decides(block):\n    block()\n"
    ours: dict[str, Any] = {"__name__": "core.plan.lift"}
    exec(source, ours)
    await watched(StallWatch(metrics), lambda: ours["decides"](sleeps_in_the_loop))
    running = line_about(sleeps_in_the_loop, caplog)["running"].split(" < ")
    assert running[0].endswith(".sleeps_in_the_loop")
    assert running[1] == "core.plan.lift.decides"


@on_our_loop
async def test_the_thread_ends_with_the_block_and_a_stall_at_its_end_counts(metrics: Metrics) -> None:
    """Before its round has come to an end; and the same watch can be started again."""
    watch, before = StallWatch(metrics), threading.active_count()
    for number in (1, 2):
        with watch.watching():
            assert threading.active_count() == before + 1
            sleeps_in_the_loop()
        assert threading.active_count() == before
        assert stalls(metrics) >= number


@on_our_loop
async def test_the_longest_pause_can_be_measured_anew(metrics: Metrics) -> None:
    """Of one thing after the other, by whoever measures."""
    watch = StallWatch(metrics)
    with watch.watching():
        sleeps_in_the_loop()
        await asyncio.sleep(0.03)
        assert watch.longest_s >= LONG_S
        watch.longest_s = 0.0
        assert watch.longest_s == 0
        await asyncio.sleep(0.03)
        assert watch.longest_s > 0


@on_our_loop
async def test_a_loop_that_stalls_all_the_time_is_told_of_once_and_counted_throughout(
    metrics: Metrics, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next line, some seconds later, says how many were not told."""
    monkeypatch.setattr("kube.stalls._TELL_EVERY_S", math.inf)
    monkeypatch.setattr("kube.stalls._TELL_FROM", math.inf)
    watch = StallWatch(metrics)
    with watch.watching():
        for _ in range(3):
            sleeps_in_the_loop()
            await asyncio.sleep(0.02)
        assert stalls(metrics) >= 3
        assert len(told(caplog)) == 1
        monkeypatch.setattr("kube.stalls._TELL_EVERY_S", 0.0)
        sleeps_in_the_loop()
        await asyncio.sleep(0.02)
    assert told(caplog)[0]["untold"] == 0
    assert told(caplog)[1]["untold"] >= 2


@on_our_loop
async def test_a_stall_of_twice_the_length_is_told_of_among_many_that_are_not(
    metrics: Metrics, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the one that made somebody wait would never be named, if a short one came just before it and none came after."""
    monkeypatch.setattr("kube.stalls._TELL_EVERY_S", math.inf)
    watch = StallWatch(metrics)
    with watch.watching():
        for times in (1, 1, 4, 2):
            sleeps_in_the_loop(times)
            await asyncio.sleep(0.02)
    assert watch.longest_s < 2 * max(line["seconds"] for line in told(caplog))
    assert len(told(caplog)) < stalls(metrics)


@on_our_loop
async def test_both_processes_are_watched_while_their_ports_are_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In the frame that they share; before that nobody can be kept waiting."""
    async with FakeApiServer() as api:
        options = ProcessOptions(
            namespace="n",
            cert_secret="c",
            service="s",
            port=0,
            metrics_port=0,
            bind_address="127.0.0.1",
            drain_s=0,
        )
        async with api.client() as client:
            serving, secret = ServingCertificate(), follow_secret(client, "n", "c")
            frame = Frame(options, serving, FollowedPair(secret, [serving]))
        async with frame.listening(application(), "test"):
            sleeps_in_the_loop()
            await asyncio.sleep(0.02)
    assert line_about(sleeps_in_the_loop, caplog)["seconds"] >= LONG_S


@on_our_loop
async def test_while_nothing_happens_nobody_is_woken(
    metrics: Metrics, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the loop nor the thread beside it; and what happens afterwards is looked at all the same."""
    rounds, looks = [0], [0]
    slept_through = StallWatch._slept_through

    def counted(watch: StallWatch) -> bool:
        looks[0] += 1
        return slept_through(watch)

    def begins(_timeout_s: float | None, _something_came: bool) -> None:
        rounds[0] += 1

    monkeypatch.setattr(StallWatch, "_slept_through", counted)
    followed = of_running_loop()
    assert followed is not None
    with StallWatch(metrics).watching(), followed.calling(begins=begins):
        await asyncio.sleep(0.2)
        rounds[0] = looks[0] = 0
        await asyncio.sleep(1.0)
        # To look every 40 ms would be 25 times; the last sleep ends in a few rounds, and whatever wakes the thread has it look twice.
        assert rounds[0] <= 5
        assert looks[0] <= 8
        sleeps_in_the_loop()
        await asyncio.sleep(0.02)
    assert line_about(sleeps_in_the_loop, caplog)["seconds"] >= LONG_S


def test_who_is_not_let_run_while_it_sleeps_wakes_up_late(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that was stopped, or got no processor, was deaf too, though nothing ran in it."""
    watch = StallWatch(metrics)
    watch._slept_at = time.monotonic() - 2.5
    watch._begins(2.0, False)
    assert stalls(metrics) == 1
    assert watch.longest_s == pytest.approx(0.5, abs=0.1)
    assert told(caplog)[0]["running"] == "nothing: the process was not let run"


@pytest.mark.parametrize("timeout_s", [None, 1.0])
def test_to_have_slept_is_no_pause(metrics: Metrics, timeout_s: float | None) -> None:
    """However long nothing came, and when something came just before it would have woken."""
    watch = StallWatch(metrics)
    watch._slept_at = time.monotonic() - 60.0
    watch._begins(timeout_s, timeout_s is not None)
    assert stalls(metrics) == 0


async def test_a_loop_of_another_make_is_left_alone(metrics: Metrics) -> None:
    """Under a test runner, for one."""
    watch, before = StallWatch(metrics), threading.active_count()
    with watch.watching():
        assert threading.active_count() == before
    assert stalls(metrics) == 0
