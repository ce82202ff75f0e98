"""The event recorder: what is written, what waits and for how long, and that nothing is lost in between."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import errors, event_store
from kube.events import Reference
from kube.resources import NODES, PODS
from tests.fakes.apiserver import background
from tests.unit.kube.event_sink import POD, Sink, dropped, queued, recorder_of


@pytest.mark.looptime
async def test_an_event_carries_what_the_api_asks_for() -> None:
    """Everything that events.k8s.io/v1 requires, in the namespace of its object."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(POD, "Warning", "QueueNotFound", "no queue q", "Gate")
        await asyncio.sleep(1)
    ((namespace, body),) = sink.created
    assert namespace == "a"
    name = body["metadata"].pop("name")
    assert name.startswith("p.")
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "a"},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "type": "Warning",
        "reason": "QueueNotFound",
        "action": "Gate",
        "note": "no queue q",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "a", "uid": "uid-1"},
        "reportingController": "cardquota.io/controller",
        "reportingInstance": "host-1",
    }


@pytest.mark.looptime
async def test_an_event_about_a_cluster_scoped_object_lives_in_default() -> None:
    """The API server takes it nowhere else."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(Reference.of(NODES, "n"), "Normal", "R", "note", "A")
        await asyncio.sleep(1)
    assert sink.created[0][0] == "default"
    assert "namespace" not in sink.created[0][1]["regarding"]


@pytest.mark.looptime
async def test_repeats_are_counted_on_the_first_event_and_written_no_more_often_than_each_ten_minutes() -> (
    None
):
    """While one waits in the same write; within ten minutes not at all; after that by a patch. Other words are news."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        for _ in range(3):
            recorder.emit(POD, "Normal", "R", "note", "A")
        for _ in range(50):
            await asyncio.sleep(10)
            recorder.emit(POD, "Normal", "R", "note", "A")
        recorder.emit(POD, "Normal", "R", "other", "A")
        await asyncio.sleep(1)
        assert sink.notes == ["note", "other"]
        assert sink.created[0][1]["series"]["count"] == 3
        assert sink.patched == []
        await asyncio.sleep(100)
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
    assert len(sink.created) == 2
    ((name, patch),) = sink.patched
    assert name == sink.created[0][1]["metadata"]["name"]
    assert patch["series"]["count"] == 54


@pytest.mark.looptime
async def test_a_series_whose_event_expired_starts_anew() -> None:
    """Events live for an hour; the patch of a gone one becomes a creation."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(4000)
        sink.refusals.append(errors.NotFound(404))
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
    assert len(sink.created) == 2
    assert sink.patched == []


@pytest.mark.looptime
async def test_one_object_gets_a_burst_and_then_one_each_five_minutes() -> None:
    """Whatever flaps; what comes beyond that is said later, as the newest on its topic; others are not held back."""
    sink = Sink()
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for number in range(40):
            recorder.emit(POD, "Normal", "R", f"note {number}", "A", topic="t")
            await asyncio.sleep(1)
        recorder.emit(Reference.of(PODS, "q", "a"), "Normal", "R", "note", "A")
        await asyncio.sleep(1)
        assert sink.notes == [*(f"note {number}" for number in range(25)), "note"]
        await asyncio.sleep(300)
        assert sink.notes[26:] == ["note 39"]
        assert queued(registry) == 0.0


@pytest.mark.looptime
async def test_of_very_many_different_events_about_one_object_the_newest_wait() -> None:
    """Memory is bounded by the objects there are."""
    recorder, registry = recorder_of(Sink())
    for number in range(1000):
        recorder.emit(POD, "Normal", "R", f"note {number}", "A")
    assert queued(registry) == 25.0
    assert dropped(registry, "full") == 975.0


@given(note=st.text(max_size=600) | st.text("ä中𝄞", min_size=200, max_size=1100))
def test_a_note_fits_its_limit_in_bytes(note: str) -> None:
    """The API server counts bytes; no character is cut in two."""
    cut = event_store.cut(note)
    assert len(cut.encode()) <= event_store.NOTE_LIMIT
    if len(note.encode("utf-8", errors="replace")) <= event_store.NOTE_LIMIT:
        assert cut == note.encode("utf-8", errors="replace").decode()
    else:
        assert note.startswith(cut.removesuffix("..."))
        assert len(cut.encode()) > event_store.NOTE_LIMIT - 4
