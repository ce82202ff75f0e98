"""What was said before this process began is listed, and not said again."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from kube import errors
from kube.event_store import Past
from tests.fakes.apiserver import background
from tests.unit.kube.event_sink import Json, Sink, pods, recorder_of


def stored(number: int, note: str = "note", **fields: Any) -> Json:
    """An event as the API server has it."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": f"p{number}",
        "namespace": "a",
        "uid": f"uid-a-{number}",
    }
    return {
        "metadata": {"name": f"p{number}.x", "creationTimestamp": "2029-12-31T23:50:00Z"},
        "regarding": pod,
        "type": "Warning",
        "reason": "R",
        "note": note,
        "action": "A",
        "eventTime": "2029-12-31T23:50:00.000000Z",
    } | fields


@pytest.mark.looptime
async def test_what_was_said_before_is_listed_in_pages_and_not_said_again() -> None:
    """By this name alone; what is emitted meanwhile waits until it is clear whether it is news."""
    sink, past = Sink(), list[Past]()
    sink.stored, sink.list_s = [stored(number) for number in range(600)], 1.0
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()), background(recorder.recall(past.append)):
        await asyncio.sleep(0.5)
        for pod in pods(601):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(2)
        assert sink.sent_at == []
        await asyncio.sleep(10)
    assert sink.selectors == ["reportingController=cardquota.io/controller"]
    assert sink.about == ["p600"]
    assert sink.patched == []
    assert len(past) == 600
    assert past[0].regarding == pods(1)[0]
    assert (past[0].words.reason, past[0].words.note, past[0].count) == ("R", "note", 1)
    assert past[0].at == datetime(2029, 12, 31, 23, 50, tzinfo=UTC)


@pytest.mark.looptime
async def test_the_time_of_a_series_is_that_of_its_last_event() -> None:
    sink, past = Sink(), list[Past]()
    series = {"count": 7, "lastObservedTime": "2029-12-31T23:59:00.000000Z"}
    sink.stored = [stored(0, series=series), stored(1, eventTime=None, regarding=None) | {"note": None}]
    recorder, _ = recorder_of(sink)
    await recorder.recall(past.append)
    assert (past[0].count, past[0].at) == (7, datetime(2029, 12, 31, 23, 59, tzinfo=UTC))
    assert (past[1].at, past[1].regarding.uid) == (datetime(2029, 12, 31, 23, 50, tzinfo=UTC), "")


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("fails", "list_s"), [(errors.Forbidden(403), 0.0), (errors.ServerError(500), 0.0), (None, 4.0)]
)
async def test_without_the_list_or_with_a_part_of_it_it_goes_on(
    fails: errors.KubeError | None, list_s: float
) -> None:
    sink, past = Sink(), list[Past]()
    sink.stored, sink.list_fails, sink.list_s = [stored(n) for n in range(1000)], fails, list_s
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        await recorder.recall(past.append)
        assert asyncio.get_running_loop().time() <= 10.0
        assert len(past) == (500 if list_s else 0)
        recorder.emit(pods(1000)[999], "Warning", "R", "note", "A")
        await asyncio.sleep(1)
    assert sink.about == ["p999"]


@pytest.mark.parametrize(
    "time", ["0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.000000-10:00", "10000-01-01T00:00:00Z", 7]
)
async def test_an_event_with_an_absurd_time_is_passed_over_and_ends_nobody(time: object) -> None:
    """The API server stores them, and whoever may write events may put our name on one."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    known = {"metadata": {"name": "x", "namespace": "a", "creationTimestamp": "2024-01-01T00:00:00Z"}}
    sink.stored += [
        known | {"eventTime": time, "regarding": {}},
        known | {"series": {"lastObservedTime": time}},
    ]
    sink.stored.append(known | {"regarding": {"uid": "u"}, "reason": "Sound"})
    found: list[str] = []

    await recorder.recall(lambda past: found.append(past.words.reason))
    assert found == ["Sound"]
