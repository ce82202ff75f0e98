"""Requests and lists of the client: what reaches the API server, what comes of refusals, silence and bad answers."""

import asyncio
import logging
from contextlib import aclosing

import pytest
from prometheus_client import CollectorRegistry

from kube import connection, errors, transport
from kube.client import Client, PatchType
from kube.metrics import Metrics
from kube.resources import NODES, PODS, SECRETS
from tests.fakes import faults
from tests.fakes.apiserver import FakeApiServer
from tests.unit.kube.raw_pods import pod


async def test_every_verb_reaches_its_object(server: FakeApiServer, client: Client) -> None:
    """Create, read, replace, patch and delete, with field manager and dry run in the query."""
    await client.create(PODS, pod("p"), "a", dry_run=True)
    stored = await client.get(PODS, "p", "a")
    stored["spec"] = {"nodeName": "n"}
    await client.replace(PODS, stored, "a")
    merged = await client.patch(
        PODS, "p", {"metadata": {"labels": {"x": "1"}}}, "a", patch_type=PatchType.MERGE
    )
    assert merged["metadata"]["labels"] == {"x": "1"}
    json_patch = [{"op": "remove", "path": "/metadata/labels/x"}]
    patched = await client.patch(PODS, "p", json_patch, "a", patch_type=PatchType.JSON, field_manager="me")
    assert patched["metadata"]["labels"] == {}
    await client.delete(PODS, "p", "a", uid=patched["metadata"]["uid"])
    assert server.objects == {}
    create, patch = server.seen("create")[0], server.seen("patch")[1]
    assert create.query == {"timeout": "10000ms", "fieldManager": "cardquota", "dryRun": "All"}
    assert patch.query == {"timeout": "10000ms", "fieldManager": "me"}
    assert patch.headers["content-type"] == "application/json-patch+json"
    assert patch.headers["user-agent"].startswith("cardquota/")


async def test_an_object_of_some_megabytes_is_sent_whole(server: FakeApiServer, client: Client) -> None:
    """As large definitions of custom resources are, with its length announced."""
    stored = await client.create(PODS, pod("p", padding="x" * 3_000_000), "a")
    assert len(stored["padding"]) == 3_000_000
    assert int(server.requests[0].headers["content-length"]) > 3_000_000


async def test_preconditions_protect_another_object(server: FakeApiServer, client: Client) -> None:
    """A stale version or a foreign uid is a Conflict, a second create AlreadyExists, a failed test Invalid."""
    first = server.put(PODS, pod("p"))
    server.put(PODS, pod("p", spec={}))
    with pytest.raises(errors.Conflict):
        await client.replace(PODS, first, "a")
    with pytest.raises(errors.Conflict):
        await client.delete(PODS, "p", "a", uid="another")
    with pytest.raises(errors.AlreadyExists):
        await client.create(PODS, pod("p"), "a")
    test = [{"op": "test", "path": "/metadata/uid", "value": "another"}]
    with pytest.raises(errors.Invalid):
        await client.patch(PODS, "p", test, "a", patch_type=PatchType.JSON)


async def test_apply_says_whether_it_forces(server: FakeApiServer, client: Client) -> None:
    """The API server parses `true`, and an apply without `force` must not take over fields."""
    server.put(NODES, {"metadata": {"name": "n"}})
    for force in (False, True):
        await client.patch(NODES, "n", {"metadata": {}}, patch_type=PatchType.APPLY, force=force)
    assert [request.query["force"] for request in server.seen("patch")] == ["false", "true"]


async def test_a_refusal_is_an_error_and_never_a_result(server: FakeApiServer, client: Client) -> None:
    """The status is checked on every call, reads included."""
    server.fail("get", faults.answer_status(403, "Forbidden", "no"))
    with pytest.raises(errors.Forbidden, match="no"):
        await client.get(PODS, "p", "a")
    server.fail("list", faults.answer(503, b"no backend"))
    with pytest.raises(errors.ServerError, match="no backend"):
        _ = [page async for page in client.list(PODS)]


@pytest.mark.parametrize("fault", [faults.no_answer(), faults.silence()])
async def test_a_silent_server_costs_the_timeout_and_no_more(
    server: FakeApiServer, client: Client, fault: faults.Fault
) -> None:
    """Both before the headers and in the middle of the body."""
    server.fail("get", fault)
    with pytest.raises(errors.ConnectionFailed, match="get pods"):
        await client.get(PODS, "p", "a", timeout_s=0.2)


async def test_a_server_that_is_away_is_a_connection_failure() -> None:
    """Refused connections have the same type as timeouts."""
    async with FakeApiServer() as gone:
        url = gone.url
    async with Client(connection.plain(url)) as client:
        with pytest.raises(errors.ConnectionFailed):
            await client.get(PODS, "p", "a")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"kind":', b""])
async def test_an_answer_that_is_not_the_apis_is_a_connection_failure(
    server: FakeApiServer, client: Client, body: bytes
) -> None:
    """A proxy's page with status 200 must not become an object."""
    server.fail("get", faults.answer(200, body))
    with pytest.raises(errors.ConnectionFailed, match="JSON"):
        await client.get(PODS, "p", "a")


async def test_a_redirect_is_not_followed(server: FakeApiServer, client: Client) -> None:
    """Credentials stay with the server that they were meant for."""
    server.fail("get", faults.answer(302, headers={"Location": "http://127.0.0.1:1/"}))
    with pytest.raises(errors.ApiError) as caught:
        await client.get(PODS, "p", "a")
    assert caught.value.status == 302


async def test_a_list_comes_in_pages_of_one_state(server: FakeApiServer, client: Client) -> None:
    """Objects made while paging are not in the list, and every page names the same version."""
    for number in range(5):
        server.put(PODS, pod(f"p{number}"))
    names, versions = [], set()
    async for page in client.list(PODS, limit=2):
        names += [raw["metadata"]["name"] for raw in page.items]
        versions.add(page.resource_version)
        server.put(PODS, pod(f"late{len(names)}"))
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    assert len(versions) == 1


async def test_the_next_page_is_on_its_way_while_the_caller_works(
    server: FakeApiServer, client: Client
) -> None:
    """One and no more; of a list that is ended early nothing goes on."""
    for number in range(5):
        server.put(PODS, pod(f"p{number}"))
    async with aclosing(client.list(PODS, limit=1)) as pages:
        await anext(pages)
        await server.wait_for(lambda: len(server.seen("list")) == 2)
        server.fail("list", faults.silence())
        async with asyncio.timeout(5):
            await anext(pages)
            await server.wait_for(lambda: len(server.seen("list")) == 3)
            await pages.aclose()
    assert len(server.seen("list")) == 3
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "list pods"]


async def test_an_expired_continue_token_is_gone(server: FakeApiServer, client: Client) -> None:
    """The caller has to list again from the start."""
    for number in range(3):
        server.put(PODS, pod(f"p{number}"))
    pages = client.list(PODS, limit=1)
    await anext(pages)
    server.compact()
    with pytest.raises(errors.Gone):
        await anext(pages)


async def test_credentials_are_read_again_after_a_401(server: FakeApiServer) -> None:
    """Once, and the request is repeated; a second refusal within seconds is final."""
    link, readings = connection.plain(server.url), []

    async def reload() -> None:
        readings.append(1)
        link.api.configuration.api_key["BearerToken"] = "Bearer new"

    server.put(NODES, {"metadata": {"name": "n"}})
    server.fail("get", faults.answer_status(401, "Unauthorized"))
    async with Client(connection.Connection(link.api, reload)) as client:
        await client.get(NODES, "n")
        assert server.requests[-1].headers["authorization"] == "Bearer new"
        server.fail("get", faults.answer_status(401, "Unauthorized"))
        with pytest.raises(errors.Unauthorized):
            await client.get(NODES, "n")
    assert readings == [1]


async def test_a_write_is_not_sent_again_long_after_it_was_sent_first(server: FakeApiServer) -> None:
    """Its sender has ceased to lead meanwhile, perhaps. The credentials are read for the next one."""
    link, readings = connection.plain(server.url), []

    async def reload() -> None:
        readings.append(1)
        await asyncio.sleep(transport.AGAIN_WITHIN_S + 0.1)

    server.put(PODS, pod("p"))
    server.fail("patch", faults.answer_status(401, "Unauthorized"))
    async with Client(connection.Connection(link.api, reload)) as client:
        change = {"metadata": {"labels": {"x": "1"}}}
        with pytest.raises(errors.Unauthorized):
            await client.patch(PODS, "p", change, "a", patch_type=PatchType.MERGE, timeout_s=4)
        assert (len(server.seen("patch")), readings) == (1, [1])
        await client.patch(PODS, "p", change, "a", patch_type=PatchType.MERGE, timeout_s=4)


async def test_requests_are_counted_by_verb_resource_and_code(server: FakeApiServer) -> None:
    """Refusals by their code, broken connections as `error`."""
    metrics = Metrics(CollectorRegistry())
    server.put(NODES, {"metadata": {"name": "n"}})
    async with server.client(metrics) as client:
        await client.get(NODES, "n")
        with pytest.raises(errors.NotFound):
            await client.get(NODES, "m")
        server.fail("get", faults.no_answer())
        with pytest.raises(errors.ConnectionFailed):
            await client.get(NODES, "n", timeout_s=0.1)
    for code in ("200", "404", "error"):
        labels = {"verb": "get", "resource": "nodes", "code": code}
        assert metrics.registry.get_sample_value("cardquota_api_requests_total", labels) == 1.0


async def test_nothing_secret_is_logged_at_debug(
    server: FakeApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither what was sent nor what was answered, on success and on failure."""
    caplog.set_level(logging.DEBUG)
    secret = {"metadata": {"name": "s", "namespace": "a"}, "data": {"k": "aHVzaA=="}}
    await client.create(SECRETS, secret, "a")
    await client.get(SECRETS, "s", "a")
    with pytest.raises(errors.AlreadyExists) as caught:
        await client.create(SECRETS, secret, "a")
    assert "aHVzaA==" not in caplog.text + str(caught.value) + repr(caught.value)
    assert logging.getLogger("kubernetes_asyncio").level >= logging.INFO
