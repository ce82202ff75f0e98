"""Pauses of a real event loop: noticed, measured, named, and told once. How much longer they show is not asserted."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kube.certificates import FollowedPair, follow_secret
from kube.metrics import Metrics
from kube.process import Frame, ProcessOptions
from kube.serving import application
from kube.stalls import StallWatch
from kube.tls import ServingCertificate
from tests.fakes.apiserver import FakeApiServer

LONG_S = 0.25


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


def sleeps_in_the_loop() -> None:
    time.sleep(LONG_S)


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
    with asyncio.Runner() as runner:
        runner.run(watched(watch, block))
    assert watch.longest_s >= LONG_S
    assert stalls(metrics) >= 1
    assert sampled(metrics, "cardquota_loop_stall_seconds_sum") >= LONG_S
    assert sampled(metrics, "cardquota_loop_longest_pause_seconds") == watch.longest_s
    line = line_about(block, caplog)
    assert (line["levelno"], line["untold"]) == (logging.WARNING, 0)
    assert line["seconds"] >= LONG_S


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


async def test_the_thread_ends_with_the_block_and_a_stall_at_its_end_counts(metrics: Metrics) -> None:
    """Before the loop has come to another beat; and the same watch can be started again."""
    watch, before = StallWatch(metrics), threading.active_count()
    for number in (1, 2):
        with watch.watching():
            assert threading.active_count() == before + 1
            sleeps_in_the_loop()
        assert threading.active_count() == before
        assert stalls(metrics) >= number


async def test_the_longest_pause_can_be_measured_anew(metrics: Metrics) -> None:
    """Of one thing after the other, by whoever measures."""
    watch = StallWatch(metrics)
    with watch.watching():
        sleeps_in_the_loop()
        await asyncio.sleep(0.03)
        assert watch.longest_s >= LONG_S
        watch.reset()
        assert watch.longest_s == 0
        await asyncio.sleep(0.03)
        assert watch.longest_s > 0


async def test_a_loop_that_stalls_all_the_time_is_told_of_once_and_counted_throughout(
    metrics: Metrics, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next line, some seconds later, says how many were not told."""
    monkeypatch.setattr("kube.stalls._TELL_EVERY_S", math.inf)
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
