"""A watch of the client: what it delivers, how it fails, and whose connection it has."""

import asyncio
from contextlib import aclosing, suppress

import orjson
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from kube import errors
from kube.client import Client
from kube.listing import WatchEvent, Watching
from kube.metrics import Metrics
from kube.resources import PODS
from tests.fakes import faults
from tests.fakes.apiserver import FakeApiServer
from tests.unit.kube.raw_pods import pod


async def watch(
    client: Client, version: str = "0", inactivity_s: float = 5.0, answer_s: float = 5.0
) -> list[WatchEvent]:
    """What a watch says after its opening."""
    asked = Watching(version, timeout_s=5.0, inactivity_s=inactivity_s, answer_s=answer_s)
    stream = client.watch(PODS, asked)
    opening, *events = [event async for event in stream]
    assert opening == WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": version}})
    return events


async def test_a_watch_delivers_changes_and_bookmarks(server: FakeApiServer, client: Client) -> None:
    """From the version asked for, in order, until the server ends it."""
    first = server.put(PODS, pod("p"))
    server.put(PODS, pod("p", spec={}))
    server.remove(PODS, "p", "a")
    watching = asyncio.create_task(watch(client, first["metadata"]["resourceVersion"]))
    await server.wait_for(lambda: server.watching == 1)
    server.bookmark()
    server.end_watches()
    assert [event.type for event in await watching] == ["MODIFIED", "DELETED", "BOOKMARK"]
    query = server.seen("watch")[0].query
    assert query["allowWatchBookmarks"] == "true"
    assert query["timeoutSeconds"] == "5"


async def test_an_event_of_many_megabytes_arrives(server: FakeApiServer, client: Client) -> None:
    """The line limit of the libraries below does not apply."""
    server.put(PODS, pod("p", spec={"padding": "x" * 6_000_000}))
    watching = asyncio.create_task(watch(client))
    await server.wait_for(lambda: server.watching == 1)
    server.end_watches()
    (event,) = await watching
    assert len(event.object["spec"]["padding"]) == 6_000_000


async def test_events_split_anywhere_are_put_together(server: FakeApiServer, client: Client) -> None:
    """Chunk borders say nothing about lines, not even inside a character."""
    line = orjson.dumps({"type": "ADDED", "object": pod("p", note="größe")}) + b"\n"
    data = line * 3
    cut = data.index(b"\xc3") + 1
    server.fail("watch", faults.stream(data[:7], data[7:cut], data[cut:]))
    assert [event.object["note"] for event in await watch(client)] == ["größe"] * 3


async def test_an_old_version_is_gone_by_event_and_by_status(server: FakeApiServer, client: Client) -> None:
    """Both ways in which API servers say it."""
    server.put(PODS, pod("p"))
    server.compact()
    with pytest.raises(errors.Gone):
        await watch(client, "1")
    server.fail("watch", faults.answer_status(410, "Gone"))
    with pytest.raises(errors.Gone):
        await watch(client, "1")


@pytest.mark.parametrize(
    "fault",
    [
        faults.stream(b'{"type":"ADDED","object":{}}\n{"type":"AD', cut=True),
        faults.stream(b'{"type":"ADDED","object":{}}\n{"type":"AD'),
        faults.stream(b'{"type":"ADDED"}\n'),
        faults.stream(b"[]\n"),
        faults.stream(b"<html>\n"),
    ],
)
async def test_a_damaged_stream_is_a_connection_failure(
    server: FakeApiServer, client: Client, fault: faults.Fault
) -> None:
    """Cut in the middle of a chunk, ended in the middle of a line, or no events at all."""
    server.fail("watch", fault)
    with pytest.raises(errors.ConnectionFailed):
        await watch(client)


@pytest.mark.parametrize("fault", [faults.silence(), faults.silence(b'{"type":"AD')])
async def test_a_silent_watch_ends_after_the_inactivity_limit(
    server: FakeApiServer, client: Client, fault: faults.Fault
) -> None:
    """As if the server had ended it: a quiet cluster is no failure, and a half-open connection looks like one."""
    server.fail("watch", fault)
    async with asyncio.timeout(10.0):
        assert await watch(client, inactivity_s=0.2) == []


async def test_a_watch_that_is_not_answered_is_a_failure_long_before_its_silence_is(
    server: FakeApiServer,
) -> None:
    """Where nobody answers there is nobody; it counts like any request that failed."""
    metrics = Metrics(CollectorRegistry())
    server.fail("watch", faults.no_answer())
    async with server.client(metrics) as client, asyncio.timeout(10.0):
        with pytest.raises(errors.ConnectionFailed):
            await watch(client, inactivity_s=60.0, answer_s=0.2)
    labels = {"verb": "watch", "resource": "pods", "code": "error"}
    assert metrics.registry.get_sample_value("cardquota_api_requests_total", labels) == 1.0


async def test_each_watch_has_a_new_connection_whatever_lies_in_the_pool(
    server: FakeApiServer, client: Client
) -> None:
    """A kept connection may be dead without anybody knowing; the kernel looks after the new one."""
    peers: list[str | None] = []

    async def note(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(str(request.transport.get_extra_info("peername")))
        return web.StreamResponse()

    server.put(PODS, pod("p"))
    for verb in ("get", "watch", "watch", "get"):
        server.fail(verb, note)
        with suppress(errors.ConnectionFailed):  # no JSON
            await (client.get(PODS, "p", "a") if verb == "get" else watch(client))
    assert peers[0] == peers[3]
    assert len(set(peers)) == 3


async def test_a_watch_ended_early_gives_its_connection_back(server: FakeApiServer, client: Client) -> None:
    """Closing the iterator closes the connection, so the server sees the watch end."""
    server.put(PODS, pod("p"))
    stream = client.watch(PODS, Watching("0", timeout_s=60.0, inactivity_s=60.0))
    async with aclosing(stream):
        async for _ in stream:
            break
    server.put(PODS, pod("q"))
    server.put(PODS, pod("r"))
    await server.wait_for(lambda: server.watching == 0)
