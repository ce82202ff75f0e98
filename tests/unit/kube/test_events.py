import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kube import errors, events
from kube.client import JsonPatch, PatchType
from kube.events import EventRecorder, Reference
from kube.metrics import Metrics
from kube.resources import NODES, PODS, Resource
from tests.fakes.apiserver import background

Json = dict[str, Any]

POD = Reference.of(PODS, "p", "a", "uid-1")


class Sink:
    """Takes events as an API server does, and may refuse some."""

    def __init__(self) -> None:
        self.created: list[tuple[str | None, Json]] = []
        self.patched: list[tuple[str, Json]] = []
        self.refusals: list[Exception] = []

    async def create(self, resource: Resource, body: Json, namespace: str | None = None) -> Json:
        await asyncio.sleep(0.01)
        if self.refusals:
            raise self.refusals.pop(0)
        self.created.append((namespace, body))
        return body

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Json | JsonPatch,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
    ) -> Json:
        await asyncio.sleep(0.01)
        if self.refusals:
            raise self.refusals.pop(0)
        assert isinstance(body, dict)
        assert patch_type is PatchType.MERGE
        self.patched.append((name, body))
        return body


def recorder_of(sink: Sink, **options: Any) -> tuple[EventRecorder, CollectorRegistry]:
    metrics = Metrics(CollectorRegistry())
    made = EventRecorder(
        sink,
        "cardquota.io/controller",
        "host-1",
        now=lambda: datetime(2030, 1, 1, tzinfo=UTC),
        rng=Random(1),
        metrics=metrics,
        **options,
    )
    return made, metrics.registry


def dropped(registry: CollectorRegistry, cause: str) -> float | None:
    return registry.get_sample_value("cardquota_events_dropped_total", {"cause": cause})


@pytest.mark.looptime
async def test_an_event_carries_what_the_api_asks_for() -> None:
    """Everything that events.k8s.io/v1 requires, in the namespace of its object."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        assert recorder.emit(POD, "Warning", "QueueNotFound", "no queue q", "Gate")
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
async def test_repeats_are_counted_on_the_first_event() -> None:
    """While queued in one write, afterwards by a patch; another note is another event; after a pause a new one."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        for _ in range(3):
            recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
        recorder.emit(POD, "Normal", "R", "other", "A")
        await asyncio.sleep(700)
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
    assert [body["note"] for _, body in sink.created] == ["note", "other", "note"]
    assert sink.created[0][1]["series"]["count"] == 3
    ((name, patch),) = sink.patched
    assert name == sink.created[0][1]["metadata"]["name"]
    assert patch["series"]["count"] == 4
    assert "series" not in sink.created[2][1]


@pytest.mark.looptime
async def test_a_series_whose_event_expired_starts_anew() -> None:
    """Events live for an hour; the patch of a gone one becomes a creation."""
    sink = Sink()
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
        sink.refusals.append(errors.NotFound(404))
        recorder.emit(POD, "Normal", "R", "note", "A")
        await asyncio.sleep(1)
    assert len(sink.created) == 2
    assert sink.patched == []


@pytest.mark.looptime
async def test_one_object_gets_a_burst_and_then_one_each_five_minutes() -> None:
    """Whatever flaps; other objects are not held back by it."""
    recorder, registry = recorder_of(Sink())
    taken = [recorder.emit(POD, "Normal", "R", f"note {number}", "A") for number in range(40)]
    assert taken == [True] * 25 + [False] * 15
    assert dropped(registry, "rate") == 15.0
    assert recorder.emit(Reference.of(PODS, "q", "a"), "Normal", "R", "note", "A")
    await asyncio.sleep(301)
    assert recorder.emit(POD, "Normal", "R", "late", "A")
    assert not recorder.emit(POD, "Normal", "R", "later", "A")


@pytest.mark.looptime
async def test_a_full_queue_drops_and_counts() -> None:
    """The work goes on without a wait; repeats of a queued event still fit."""
    recorder, registry = recorder_of(Sink(), limit=2)
    pods = [Reference.of(PODS, name, "a") for name in "pqr"]
    assert [recorder.emit(pod, "Normal", "R", "note", "A") for pod in pods] == [True, True, False]
    assert recorder.emit(pods[0], "Normal", "R", "note", "A")
    assert dropped(registry, "full") == 1.0
    assert registry.get_sample_value("cardquota_events_queued") == 2.0


@pytest.mark.looptime
async def test_a_passing_failure_is_tried_again_and_a_refusal_is_not() -> None:
    """Three tries for a server that is away; one for an event that it does not want; the next event is written."""
    sink = Sink()
    recorder, registry = recorder_of(sink)
    sink.refusals = [errors.ConnectionFailed("x"), errors.Throttled(429), errors.Forbidden(403)]
    async with background(recorder.run()):
        recorder.emit(POD, "Normal", "R", "first", "A")
        recorder.emit(POD, "Normal", "R", "second", "A")
        await asyncio.sleep(20)
        assert [body["note"] for _, body in sink.created] == ["second"]
        assert dropped(registry, "failed") == 1.0
        sink.refusals = [errors.ServerError(500)] * 3
        recorder.emit(POD, "Normal", "R", "third", "A")
        recorder.emit(POD, "Normal", "R", "fourth", "A")
        await asyncio.sleep(20)
    assert [body["note"] for _, body in sink.created] == ["second", "fourth"]
    assert dropped(registry, "failed") == 2.0


@given(note=st.text(max_size=600) | st.text("ä中𝄞", min_size=200, max_size=1100))
def test_a_note_fits_its_limit_in_bytes(note: str) -> None:
    """The API server counts bytes; no character is cut in two."""
    cut = events._cut(note)
    assert len(cut.encode()) <= events.NOTE_LIMIT
    if len(note.encode("utf-8", errors="replace")) <= events.NOTE_LIMIT:
        assert cut == note.encode("utf-8", errors="replace").decode()
    else:
        assert note.startswith(cut.removesuffix("..."))
        assert len(cut.encode()) > events.NOTE_LIMIT - 4
