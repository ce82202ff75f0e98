"""Events that the API server forbids: for ever where the namespace ends, and for as long as it takes everywhere else."""

import asyncio
from collections import Counter

import pytest

from kube import errors, events
from kube.events import Reference
from kube.resources import PODS
from tests.fakes.apiserver import background
from tests.unit.kube.event_sink import POD, Json, Sink, dropped, pods, queued, recorder_of

pytestmark = pytest.mark.looptime

FULL = errors.Forbidden(
    403, "Forbidden", 'events.events.k8s.io "p.x" is forbidden: exceeded quota: few, limited: count/events=0'
)
ENDS = 'events.events.k8s.io "p.x" is forbidden: unable to create new content in namespace a because it is being terminated'
CAUSES = {"causes": [None, {"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
LONGEST_S = 300.0


def forbids(namespace: str = "a") -> Sink:
    sink = Sink()
    sink.refuses = lambda body: FULL if body["metadata"]["namespace"] == namespace else None
    return sink


@pytest.mark.parametrize(
    "refusal",
    [
        errors.Forbidden(403, "Forbidden", ENDS),
        errors.Forbidden(403, "Forbidden", "no", CAUSES),
        errors.NotFound(404),
        errors.Invalid(422),
    ],
)
async def test_a_refusal_ends_it(refusal: errors.KubeError) -> None:
    """A namespace that is going away, or has gone, takes no events, nor does any take one that is no good; the next event is
    written. Not what is merely forbidden: that was given up as well, and a quota on events or a mistake in the rights that
    passes lost for good what was to be said.
    """
    sink = Sink()
    recorder, registry = recorder_of(sink)
    sink.refusals = [refusal]
    async with background(recorder.run()):
        recorder.emit(POD, "Normal", "R", "first", "A")
        await asyncio.sleep(1)
        recorder.emit(POD, "Normal", "R", "second", "A")
        await asyncio.sleep(1000)
    assert sink.notes == ["second"]
    assert len(sink.sent_at) == 2
    assert dropped(registry, "failed") == 1.0


@pytest.mark.parametrize("details", [{}, {"causes": None}, {"causes": "x"}, {"causes": ["x"]}])
@pytest.mark.parametrize("count", [1, 10])
async def test_what_is_forbidden_for_a_while_is_written_later(count: int, details: Json) -> None:
    """The newest words, once."""
    sink = Sink()
    sink.refuses = lambda _: errors.Forbidden(403, "Forbidden", "no", details)
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for note in ("first", "second"):
            for pod in pods(count):
                recorder.emit(pod, "Warning", "R", note, "A", topic="t")
            await asyncio.sleep(60)
        assert (sink.created, queued(registry)) == ([], count)
        sink.refuses = lambda _: None
        await asyncio.sleep(LONGEST_S)
    assert sink.notes == ["second"] * count
    assert (dropped(registry, "failed"), queued(registry)) == (None, 0.0)


async def test_a_namespace_that_forbids_events_for_ever_costs_little_and_delays_nobody() -> None:
    """A thousand pods wait there for an hour; then one that is rid of its quota has them all told soon."""
    sink = forbids()
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for pod in pods(1000):
            recorder.emit(pod, "Warning", "R", "note", "A", topic="t")
        for number, pod in enumerate(pods(60, "b")):
            await asyncio.sleep(60)
            recorder.emit(pod, "Warning", "R", "note", "A", topic="t")
            await asyncio.sleep(0.1)
            assert len(sink.created) == number + 1
        in_vain = len(sink.sent_at) - 60
        assert 1000 < in_vain < 1000 + 3600 / 20, "each once, at one a second, and then few"
        assert max(Counter(int(at / 10) for at in sink.sent_at[100:]).values()) <= 10 + 5
        assert queued(registry) == 1000.0
        sink.refuses = lambda _: None
        await asyncio.sleep(LONGEST_S)
    assert len(set(sink.about)) == 1000
    assert len(sink.created) == 1060


async def test_what_is_forbidden_about_one_object_is_tried_less_and_less_and_delays_no_other() -> None:
    """As by a policy that looks at what is said."""
    sink = Sink()
    sink.refuses = lambda body: FULL if body["regarding"]["name"] == "bad" else None
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        recorder.emit(Reference.of(PODS, "bad", "a", "bad"), "Warning", "R", "note", "A")
        for number, pod in enumerate(pods(120)):
            await asyncio.sleep(30)
            recorder.emit(pod, "Warning", "R", "note", "A")
            await asyncio.sleep(0.1)
            assert len(sink.created) == number + 1
        assert 12 <= len(sink.sent_at) - 120 <= 30


async def test_of_objects_that_are_gone_a_bounded_number_wait_to_have_their_end_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pods come and go where events are forbidden: those that are there wait, of the others the newest."""
    monkeypatch.setattr(events, "_REMEMBERED", 100)
    sink = forbids()
    recorder, registry = recorder_of(sink)
    stays, *come = pods(601)
    async with background(recorder.run()):
        recorder.emit(stays, "Warning", "R", "note", "A")
        for pod in come:
            recorder.emit(pod, "Warning", "R", "note", "A")
            recorder.emit(pod, "Warning", "R", "other", "A")
            await asyncio.sleep(0.5)
            recorder.gone(pod.uid)
        assert len(recorder._objects) <= 101
        assert queued(registry) == 201.0
        assert 4 < len(sink.sent_at) < 300 + 300 / 5
        assert dropped(registry, "full") == 1000 - (dropped(registry, "failed") or 0.0)
        sink.refuses = lambda _: None
        await asyncio.sleep(LONGEST_S)
    assert len(sink.created) == 201
    assert {"p0", "p600"} <= set(sink.about)
    assert "p1" not in sink.about
    assert (set(recorder._objects), queued(registry)) == ({stays.uid}, 0.0)


@pytest.mark.parametrize("refusal", [FULL, errors.ServerError(500)])
@pytest.mark.parametrize("count", [7, 100])
async def test_what_was_never_tried_waits_for_the_failures_of_others_a_second_each(
    refusal: errors.KubeError, count: int
) -> None:
    """After the first that is sound the others follow at once. A hundred that are refused held twenty up for hours."""
    sink = Sink()
    sink.refuses = lambda body: refusal if body["regarding"]["name"].startswith("x") else None
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        for number in range(count):
            recorder.emit(Reference.of(PODS, f"x{number}", "a", f"x{number}"), "Warning", "R", "note", "A")
        for pod in pods(20):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(count)
    assert len(sink.created) == 20


async def test_where_several_namespaces_fail_each_is_asked_as_seldom_as_one_alone() -> None:
    """Long after the process has begun: what failed just now is not forgotten for what fails elsewhere."""
    sink = Sink()
    sink.refuses = lambda _: errors.ServerError(500)
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        await asyncio.sleep(1000)
        for several in zip(*(pods(200, namespace) for namespace in "abcde"), strict=True):
            for pod in several:
                recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(60)
        assert 5 * 60 < len(sink.sent_at) < 5 * 100
        sink.refuses = lambda _: None
        await asyncio.sleep(60)
    assert (len(sink.created), queued(registry)) == (1000, 0.0)


async def test_what_waits_about_many_that_are_gone_is_not_tried_all_at_once() -> None:
    """Each has one attempt, and none is tried where nothing is tried."""
    sink = forbids()
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for pod in pods(1000):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(1)
        for pod in pods(1000):
            recorder.gone(pod.uid)
        await asyncio.sleep(3600)
    assert max(Counter(int(at / 10) for at in sink.sent_at).values()) <= 10 + 6
    assert dropped(registry, "failed") == len(sink.sent_at) - 6


async def test_what_is_said_of_an_object_after_it_is_gone_is_its_end() -> None:
    """The answer to a deletion may come after the watch has told of it. Such were kept for ever where events are forbidden."""
    sink = forbids()
    recorder, registry = recorder_of(sink)
    async with background(recorder.run()):
        for pod in pods(20):
            recorder.gone(pod.uid)
            recorder.emit(pod, "Normal", "R", "deleted", "A")
        assert len(recorder._left) == 20
        await asyncio.sleep(100)
    assert (recorder._objects, recorder._left, queued(registry)) == ({}, {}, 0.0)
    assert len(sink.sent_at) == 20


async def test_a_server_that_asks_to_be_left_alone_is_by_what_was_never_tried_too() -> None:
    """Also where something that was sent before that is written meanwhile."""
    sink = Sink(latency_s=0.5)
    sink.refusals = [errors.Throttled(429, retry_after=60.0)]
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        for pod in pods(3):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(1)
        for pod in pods(30)[3:]:
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(59)
        assert len(sink.sent_at) == 3
        await asyncio.sleep(30)
    assert len(sink.created) == 30


async def test_newer_words_wait_as_long_as_those_that_are_forbidden() -> None:
    """What has failed before and has other words by now is no new one."""
    sink = Sink(latency_s=1.0)
    sink.refuses = lambda _: FULL
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        for number in range(400):
            recorder.emit(POD, "Warning", "R", f"{number}", "A", topic="t")
            await asyncio.sleep(0.75)
    assert len(sink.sent_at) <= 8
