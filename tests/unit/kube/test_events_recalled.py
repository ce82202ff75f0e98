"""What was said before this process began is listed, and not said again."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest

from kube.event_store import PAGE, RECALL_S, Past
from kube.events import Reference
from kube.listing import Page
from kube.resources import PODS
from tests.fakes.apiserver import background
from tests.unit.kube.event_sink import POD, Sink, pods, queued, recorder_of, stored


@pytest.mark.looptime
async def test_what_was_said_before_is_listed_in_pages_and_not_said_again() -> None:
    """By this name alone; what is emitted meanwhile waits until it is clear whether it is news."""
    sink, past = Sink(), list[Past]()
    sink.stored, sink.list_s = [stored(number) for number in range(600)], 1.5
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
async def test_a_slow_list_is_read_to_its_end() -> None:
    """However long all of it takes: each page comes."""
    sink, past = Sink(), list[Past]()
    sink.stored, sink.list_s = [stored(number) for number in range(5000)], 8.0
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        await recorder.recall(past.append)
        assert asyncio.get_running_loop().time() > 60.0
        assert len(past) == 5000
        recorder.emit(pods(5000)[4999], "Warning", "R", "note", "A")
        await asyncio.sleep(1)
    assert sink.sent_at == []


@pytest.mark.looptime
async def test_of_sixty_thousand_events_all_are_told_of_and_some_thousand_objects_remembered() -> None:
    """Who takes them knows which objects there are; what is kept here is bounded, however many events there are."""
    sink, told = Sink(), 0
    sink.stored = [stored(number) for number in range(60_000)]
    recorder, _ = recorder_of(sink)

    def take(_: Past) -> None:
        nonlocal told
        told += 1

    await recorder.recall(take)
    assert told == 60_000
    assert len(recorder._objects) == 4096


@pytest.mark.looptime
async def test_a_list_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write events may put our name on as many as there is room for."""
    sink, told = Sink(), 0

    async def endless(*_: Any, **__: Any) -> AsyncGenerator[Page]:
        while True:
            yield Page([stored(0)], "1")

    def take(_: Past) -> None:
        nonlocal told
        told += 1

    monkeypatch.setattr(sink, "list", endless)
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        await recorder.recall(take)
        recorder.emit(pods(2)[1], "Warning", "R", "note", "A")
        await asyncio.sleep(1)
    assert 500_000 <= told * PAGE <= 2_000_000, "of a large cluster all are read"
    assert sink.about == ["p1"]


@pytest.mark.looptime
async def test_who_reads_no_further_lets_what_waits_for_it_be_written() -> None:
    """As a leader whose term ends while the API server is slow."""
    sink, past = Sink(), list[Past]()
    sink.stored, sink.list_s = [stored(number) for number in range(5000)], 8.0
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        async with background(recorder.recall(past.append)):
            await asyncio.sleep(20)
            recorder.emit(POD, "Warning", "R", "note", "A")
            await asyncio.sleep(20)
            assert sink.sent_at == []
        assert asyncio.get_running_loop().time() == 40.0
        await asyncio.sleep(1)
    assert sink.about == ["p"]


@pytest.mark.looptime
async def test_words_that_are_longer_than_any_of_ours_are_not_kept() -> None:
    """Who writes events by the older API may store a megabyte under our name."""
    sink, past = Sink(), list[Past]()
    sink.stored = [
        stored(0, "x" * 5000),
        stored(1, reason="x" * 5000),
        stored(2, "ä" * 512),
        stored(3, "\U0001f600" * 257),
    ]
    recorder, _ = recorder_of(sink)
    await recorder.recall(past.append)
    assert [each.regarding.name for each in past] == ["p2"]


@pytest.mark.looptime
async def test_of_one_object_few_events_are_remembered_however_many_there_are() -> None:
    sink = Sink()
    sink.stored = [stored(0, f"note {number}") for number in range(1000)]
    recorder, _ = recorder_of(sink)
    await recorder.recall(lambda _: None)
    ((about,),) = [recorder._objects.values()]
    assert len(about.said) == 3


@pytest.mark.looptime
async def test_whoever_writes_that_an_object_of_others_is_in_his_namespace_is_told_nothing_of_it() -> None:
    """Its UID is known to many; what there is to say of it is said where it is."""
    sink = Sink()
    forged = Reference.of(PODS, "p", "b", POD.uid)
    sink.stored = [stored(0, regarding=asdict(forged) | {"apiVersion": "v1"})]
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        await recorder.recall(lambda past: None)
        recorder.emit(POD, "Warning", "R", "note", "A", topic="t")
        await asyncio.sleep(1)
    ((namespace, body),) = sink.created
    assert (namespace, body["regarding"]["namespace"]) == ("a", "a")


@pytest.mark.looptime
async def test_what_waits_while_it_is_read_is_not_taken_for_said_by_words_from_another_namespace() -> None:
    sink = Sink()
    forged = Reference.of(PODS, "p", "b", POD.uid)
    sink.stored, sink.list_s = [stored(0, regarding=asdict(forged) | {"apiVersion": "v1"})], 1.0
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()), background(recorder.recall(lambda _: None)):
        await asyncio.sleep(0.5)
        recorder.emit(POD, "Warning", "R", "note", "A")
        await asyncio.sleep(5)
    assert [namespace for namespace, _ in sink.created] == ["a"]


@pytest.mark.looptime
async def test_a_list_that_goes_on_for_ever_is_read_for_a_quarter_of_an_hour() -> None:
    sink = Sink()
    sink.stored, sink.list_s = [stored(number) for number in range(50_000)], 15.5
    recorder, _ = recorder_of(sink)
    await recorder.recall(lambda _: None)
    assert asyncio.get_running_loop().time() == RECALL_S


@pytest.mark.looptime
async def test_what_waits_while_it_is_read_is_begun_some_at_a_time_whatever_happens_meanwhile() -> None:
    """It comes, goes and is taken back; and a term that ends, or another recall that begins, loses nothing."""
    sink, objects = Sink(0.0), pods(3000)
    sink.stored, sink.list_s = [stored(5000)], 1.0
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        async with background(recorder.recall(lambda _: None)):
            await asyncio.sleep(0.5)
            for pod in objects:
                recorder.emit(pod, "Warning", "R", "note", "A", topic="t")
        for _ in range(6):
            await asyncio.sleep(0)
        assert 0 < len(recorder._unread) < 3000
        assert recorder.retract(objects[2999].uid, "t")
        recorder.gone(objects[2998].uid)
        recorder.emit(objects[2997], "Warning", "R", "newer", "A", topic="t")
        async with background(recorder.recall(lambda _: None)):
            recorder.emit(POD, "Warning", "R", "note", "A")
            await asyncio.sleep(2.0)
        await asyncio.sleep(100)
    assert set(sink.about) == {"p", *(pod.name for pod in objects[:2999])}
    assert (len(sink.created), sink.notes.count("newer"), queued(registry)) == (3000, 1, 0.0)
    assert not recorder._unread


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
