"""Events where the store of events hangs, refuses or is away: none is lost, none said twice, none delays another."""

import asyncio

import pytest

from kube import errors
from kube.events import EventRecorder, Reference
from kube.resources import PODS
from tests.fakes.apiserver import background
from tests.unit.kube.event_sink import POD, Sink, dropped, pods, queued, recorder_of


@pytest.mark.looptime
async def test_five_thousand_objects_at_once_are_all_written_about() -> None:
    sink = Sink(latency_s=0.02)
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for pod in pods(5000):
            recorder.emit(pod, "Warning", "R", "note", "A", topic="hold")
        assert queued(registry) == 5000.0
        await asyncio.sleep(20)
    assert len(set(sink.about)) == len(sink.about) == 5000
    assert queued(registry) == 0.0


@pytest.mark.looptime
@pytest.mark.parametrize("namespace", ["a", "b"])
async def test_an_object_with_which_the_store_hangs_delays_no_other(namespace: str) -> None:
    """In its own namespace and elsewhere, from the first moment on and as long as it lasts."""
    sink = Sink(latency_s=0.02)
    sink.hangs = lambda body: body["regarding"]["name"] == "stuck"
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(Reference.of(PODS, "stuck", "a", "stuck"), "Warning", "R", "note", "A")
        for number, pod in enumerate(pods(100, namespace)):
            recorder.emit(pod, "Warning", "R", "note", "A")
            await asyncio.sleep(0.1)
            assert len(sink.created) == number + 1
            await asyncio.sleep(3)
        assert queued(registry) == 1.0
        sink.hangs = lambda _: False
        await asyncio.sleep(40)
    assert "stuck" in sink.about


@pytest.mark.looptime
async def test_a_namespace_where_every_write_hangs_leaves_the_others_alone() -> None:
    sink = Sink(latency_s=0.02)
    sink.hangs = lambda body: body["metadata"]["namespace"] == "a"
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        for pod in (*pods(300), *pods(300, "b")):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(4)
        assert len(sink.created) == 300
        await asyncio.sleep(300)
        assert len(sink.sent_at) < 300 + 150, "not each of them is tried in vain"
        sink.hangs = lambda _: False
        await asyncio.sleep(60)
    assert len(set(sink.about)) == 300
    assert len(sink.created) == 600


@pytest.mark.looptime
async def test_a_store_that_asks_to_be_left_alone_is_and_nothing_is_lost() -> None:
    sink = Sink()
    sink.refuses = lambda _: errors.ServerError(503, "ServiceUnavailable", retry_after=30.0)
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for pod in pods(100):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(29)
        assert max(sink.sent_at) == 0.0
        assert len(sink.sent_at) <= 6
        sink.refuses = lambda _: None
        await asyncio.sleep(10)
    assert len(set(sink.about)) == len(sink.created) == 100
    assert min(at for at in sink.sent_at if at) >= 30.0
    assert dropped(registry, "failed") is None


@pytest.mark.looptime
async def test_a_server_that_is_away_for_an_hour_is_told_the_newest_afterwards() -> None:
    sink = Sink()
    sink.refuses = lambda _: errors.ConnectionFailed("refused")
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for number in range(36):
            for pod in pods(20):
                recorder.emit(pod, "Warning", "R", f"note {number}", "A", topic="hold")
            await asyncio.sleep(100)
        assert queued(registry) == 20.0
        sink.refuses = lambda _: None
        await asyncio.sleep(40)
    assert sink.notes == ["note 35"] * 20
    assert len(set(sink.about)) == 20


@pytest.mark.looptime
async def test_what_a_lost_answer_hid_is_not_stored_twice() -> None:
    sink = Sink()
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(POD, "Warning", "R", "note", "A")
        await asyncio.sleep(0.005)
        sink.created.append(("a", {"metadata": {"name": _only_name(recorder)}, "note": "note"}))
        await asyncio.sleep(5)
    assert len(sink.created) == 1
    assert (queued(registry), dropped(registry, "failed")) == (0.0, None)


def _only_name(recorder: EventRecorder) -> str:
    ((news,),) = [tuple(about.news.values()) for about in recorder._objects.values()]
    return news.name


@pytest.mark.looptime
async def test_what_may_be_stored_may_be_so_still_after_a_later_try_was_refused() -> None:
    sink = Sink()
    sink.refusals = [errors.ConnectionFailed("cut")]
    sink.refuses = lambda _: errors.ServerError(500)
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(POD, "Normal", "R", "note", "A", topic="t")
        await asyncio.sleep(10)
        assert len(sink.sent_at) > 1
        assert not recorder.retract("uid-1", "t")


@pytest.mark.looptime
async def test_what_is_taken_back_is_not_said() -> None:
    """Whether it may be stored all the same is told, for then it need not be said again."""
    sink = Sink()
    recorder, registry = recorder_of(sink)
    recorder.emit(POD, "Normal", "R", "note", "A", topic="t")
    assert not recorder.retract("uid-1", "other")
    assert recorder.retract("uid-1", "t")
    assert not recorder.retract("uid-1", "t")
    async with background(recorder.run()):
        await asyncio.sleep(1)
        assert sink.sent_at == []
        recorder.emit(POD, "Normal", "R", "note", "A", topic="t")
        await asyncio.sleep(0.005)
        assert not recorder.retract("uid-1", "t")
        await asyncio.sleep(1)
    assert (sink.notes, queued(registry)) == (["note"], 0.0)


@pytest.mark.looptime
async def test_what_waits_about_an_object_that_is_gone_is_tried_once() -> None:
    """It may be about its end; after that the object is forgotten."""
    sink = Sink()
    sink.refuses = lambda _: errors.ServerError(500)
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(POD, "Normal", "R", "deleted", "A")
        recorder.gone("uid-1")
        await asyncio.sleep(100)
        assert len(sink.sent_at) == 1
        sink.refuses = lambda _: None
        for pod in pods(50):
            recorder.emit(pod, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
        for pod in pods(50):
            recorder.gone(pod.uid)
        recorder.gone("never heard of")
    assert len(sink.created) == 50
    assert (recorder._objects, recorder._idle) == ({}, {})
    assert queued(registry) == 0.0


@pytest.mark.looptime
async def test_of_objects_that_nobody_says_are_gone_some_thousand_are_remembered() -> None:
    sink = Sink(latency_s=0.0)
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        for pod in pods(6000):
            recorder.emit(pod, "Normal", "R", "note", "A")
        await asyncio.sleep(60)
    assert len(sink.created) == 6000
    assert len(recorder._objects) == 4096


@pytest.mark.looptime
@pytest.mark.parametrize("failures", [1, 2])
async def test_what_is_said_anew_while_the_words_before_it_fail_waits_in_one_place_only(
    failures: int,
) -> None:
    """Were it in both, it would be tried twice as often as anything else, and in slots that are not for what fails."""
    sink = Sink(latency_s=1)
    sink.refuses = lambda body: errors.ServerError(503) if body["note"] == "first" else None
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(POD, "Warning", "R", "first", "A", topic="t")
        for _ in range(2000):
            await asyncio.sleep(0.01)
            if len(sink.sent_at) == failures:
                break
        assert not recorder.retract("uid-1", "t")
        recorder.emit(POD, "Warning", "R", "second", "A", topic="t")
        for _ in range(80):
            await asyncio.sleep(0.01)
            assert len(recorder._first) + len(recorder._again) == 1
        await asyncio.sleep(60)
        assert sink.notes == ["second"]
        assert len(sink.sent_at) == failures + 1
        assert len(recorder._first) + len(recorder._again) == 0
