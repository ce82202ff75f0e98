"""The event recorder: what is written, what waits and for how long, and that nothing is lost in between."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kube import errors, event_store
from kube.client import JsonPatch, Page, PatchType
from kube.event_store import Past
from kube.events import EventRecorder, Reference
from kube.metrics import Metrics
from kube.resources import NODES, PODS, Resource
from tests.fakes.apiserver import background

Json = dict[str, Any]

POD = Reference.of(PODS, "p", "a", "uid-1")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Sink:
    """Takes events as an API server does, some time after they were sent, and may refuse some or hang with some."""

    def __init__(self, latency_s: float = 0.01) -> None:
        self.latency_s = latency_s
        self.created: list[tuple[str | None, Json]] = []
        self.patched: list[tuple[str, Json]] = []
        self.sent_at: list[float] = []
        self.refusals: list[errors.KubeError] = []
        self.refuses: Callable[[Json], errors.KubeError | None] = lambda _: None
        self.hangs: Callable[[Json], bool] = lambda _: False
        self.stored: list[Json] = []
        self.list_s = 0.0
        self.list_fails: errors.KubeError | None = None
        self.selectors: list[str | None] = []

    async def create(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 5.0
    ) -> Json:
        await self._answer(body, timeout_s)
        assert str(resource) == "events.events.k8s.io"
        if body["metadata"]["name"] in {each["metadata"]["name"] for _, each in self.created}:
            raise errors.AlreadyExists(409)
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
        timeout_s: float = 5.0,
    ) -> Json:
        assert isinstance(body, dict)
        assert (patch_type, str(resource), bool(namespace)) == (
            PatchType.MERGE,
            "events.events.k8s.io",
            True,
        )
        await self._answer(body, timeout_s)
        self.patched.append((name, body))
        return body

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        field_selector: str | None = None,
        limit: int = 250,
        timeout_s: float = 5.0,
    ) -> AsyncGenerator[Page]:
        assert (namespace, bool(resource), timeout_s) == (None, True, 5.0)
        self.selectors.append(field_selector)
        if self.list_fails is not None:
            raise self.list_fails
        for first in range(0, len(self.stored), limit):
            await asyncio.sleep(self.list_s)
            yield Page(self.stored[first : first + limit], "1")

    async def _answer(self, body: Json, timeout_s: float) -> None:
        self.sent_at.append(asyncio.get_running_loop().time())
        if self.hangs(body):
            await asyncio.sleep(timeout_s)
            raise errors.ConnectionFailed("timed out")
        await asyncio.sleep(self.latency_s)
        refusal = self.refusals.pop(0) if self.refusals else self.refuses(body)
        if refusal is not None:
            raise refusal

    @property
    def notes(self) -> Sequence[str]:
        return [body["note"] for _, body in self.created]

    @property
    def about(self) -> Sequence[str]:
        return [body["regarding"]["name"] for _, body in self.created]


def recorder_of(sink: Sink, **options: Any) -> tuple[EventRecorder, CollectorRegistry]:
    metrics = Metrics(CollectorRegistry())
    made = EventRecorder(
        sink,
        "cardquota.io/controller",
        "host-1",
        now=lambda: NOW,
        rng=Random(1),
        metrics=metrics,
        **options,
    )
    return made, metrics.registry


def dropped(registry: CollectorRegistry, cause: str) -> float | None:
    return registry.get_sample_value("cardquota_events_dropped_total", {"cause": cause})


def queued(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("cardquota_events_queued")


def pods(count: int, namespace: str = "a") -> list[Reference]:
    return [Reference.of(PODS, f"p{n}", namespace, f"uid-{namespace}-{n}") for n in range(count)]


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
        assert len(sink.sent_at) < 300 + 100, "not each of them is tried in vain"
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
@pytest.mark.parametrize(
    "refusal", [errors.Forbidden(403, "Forbidden", "is being terminated"), errors.NotFound(404)]
)
async def test_a_refusal_ends_it(refusal: errors.KubeError) -> None:
    """A namespace that is going away takes no events; the next event is written."""
    sink = Sink()
    recorder, registry = recorder_of(sink)
    sink.refusals = [refusal]
    async with background(recorder.run()):
        recorder.emit(POD, "Normal", "R", "first", "A")
        await asyncio.sleep(1)
        recorder.emit(POD, "Normal", "R", "second", "A")
        await asyncio.sleep(100)
    assert sink.notes == ["second"]
    assert len(sink.sent_at) == 2
    assert dropped(registry, "failed") == 1.0


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
