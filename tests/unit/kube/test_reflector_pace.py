"""How often a reflector asks, and how long it waits: no server is hammered, a dead connection is noticed soon."""

import pytest
from prometheus_client import CollectorRegistry

from kube import reflector
from kube.errors import ConnectionFailed, ServerError, Throttled
from kube.metrics import Metrics
from tests.fakes.listwatch import ScriptedSource, Step, added, bookmark
from tests.unit.kube.reflecting import GONE, play

pytestmark = pytest.mark.looptime


async def test_failures_are_paced_from_under_two_to_thirty_seconds() -> None:
    """Growing, bounded on both sides, and different from process to process."""
    failing: list[list[Exception]] = [[ServerError(503)]] * 12
    first, second = ScriptedSource(lists=list(failing)), ScriptedSource(lists=list(failing))
    await play(first, seed=1)
    await play(second, seed=2)
    pauses = first.pauses[:12]
    assert 0.8 <= pauses[0] <= 1.6
    assert all(0.8 <= pause <= 30.0 for pause in pauses)
    assert all(pause >= 15.0 for pause in pauses[6:])
    assert pauses != second.pauses[:12]


async def test_the_pace_starts_over_after_a_watch_that_held() -> None:
    """One cut after hours costs a second or two, whatever happened before."""
    lost = ConnectionFailed("cut")
    source = ScriptedSource(watches=[*[[lost]] * 8, [bookmark(10), 3600.0, lost]])
    await play(source)
    assert source.pauses[-2] >= 15.0
    assert 3600.8 <= source.pauses[-1] <= 3601.6


async def test_a_throttled_request_waits_as_long_as_the_server_asks() -> None:
    """Retry-After counts where it is longer than our own pause."""
    source = ScriptedSource(watches=[[Throttled(429, retry_after=17.0)]])
    await play(source)
    assert source.order == ["list", "watch@10", "watch@10"]
    assert source.pauses[1] >= 17.0


async def test_a_server_that_ends_each_watch_at_once_is_not_hammered() -> None:
    """An orderly end after no time is paced like a failure; one after minutes is taken up at once."""
    source = ScriptedSource(watches=[[], [], [], [300.0], []])
    await play(source)
    assert all(pause >= 0.8 for pause in source.pauses[1:4])
    assert source.pauses[4] == pytest.approx(300.0)


async def test_a_server_of_one_event_and_a_410_is_not_hammered() -> None:
    """An event between two refusals does not make the pace start over."""
    source = ScriptedSource(watches=[[added("p", 11), GONE] for _ in range(8)])
    await play(source)
    listed = [time for kind, time, _ in source.calls if kind == "list"]
    assert listed[-1] - listed[-2] >= 15.0


async def test_the_pace_does_not_start_over_for_a_server_that_takes_long_to_fail() -> None:
    """A watch that was never answered has not held, however long it was waited for."""
    lost = ConnectionFailed("timed out")
    source = ScriptedSource(watches=[[28.0, lost]] * 12)
    await play(source)
    assert all(pause >= 28.0 + 15.0 for pause in source.pauses[8:13])


async def test_watches_end_at_different_times() -> None:
    """Each asks for a length of its own between its bounds."""
    source = ScriptedSource(watches=[[added("p", 11), 300.0]] * 5)
    await play(source)
    assert len(set(source.timeouts)) == 6
    assert all(290 <= timeout <= 580 for timeout in source.timeouts)


async def test_while_nothing_changes_watches_are_short_and_nothing_has_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server sends a bookmark before the end of each, so the version moves; the next change makes them long again."""
    metrics = Metrics(CollectorRegistry())
    quiet: list[list[Step]] = [[8.5, bookmark(version), 1.5] for version in (11, 12, 13)]
    source = ScriptedSource(watches=[[11.0], *quiet, [added("p", 14), 11.0], [11.0]])
    with caplog.at_level("INFO"):
        await play(source, metrics=metrics)
    assert source.order == ["list", *(f"watch@{version}" for version in (10, 10, 11, 12, 13, 14, 14))]
    assert [timeout < 15 for timeout in source.timeouts] == [False, True, True, True, True, False, True]
    assert all(pause >= 10.0 for pause in source.pauses[1:])
    assert sum(sample.value for family in metrics.watch_failures.collect() for sample in family.samples) == 0
    assert caplog.records == []


async def test_a_dead_connection_is_noticed_within_fifteen_seconds() -> None:
    """By default: silence, and then the time for an answer to the watch that is taken up again."""
    source = ScriptedSource(watches=[[bookmark(11), 11.0]])
    await play(source)
    assert reflector.Timing().inactivity_s + source.answer_limits[1] < 15


async def test_a_slow_server_is_given_more_time_after_each_failure() -> None:
    """Up to half a minute; once it has answered, the time is as short as before."""
    lost = ConnectionFailed("timed out")
    source = ScriptedSource(watches=[*[[lost]] * 5, [bookmark(11)]])
    await play(source)
    assert source.answer_limits == [3.5, 7.0, 14.0, 28.0, 30.0, 30.0, 3.5]
