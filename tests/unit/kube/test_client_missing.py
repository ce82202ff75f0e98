"""A list that is answered with 404: believed only where discovery does not know the resource either."""

from typing import Any

import pytest

from kube import errors
from kube.client import Client
from kube.resources import PODGROUPS, PODS, Resource
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.faults import answer_status

GONE = answer_status(404, "NotFound", "the server could not find the requested resource")


async def listed(client: Client, resource: Resource = PODGROUPS) -> None:
    async for _ in client.list(resource):
        pass


def discovery(*names: str) -> dict[str, Any]:
    return {"kind": "APIResourceList", "resources": [{"name": name} for name in names]}


async def test_what_discovery_does_not_know_is_not_there() -> None:
    async with FakeApiServer() as server, server.client() as client:
        server.fail("list", GONE, times=2)
        with pytest.raises(errors.NotFound):
            await listed(client)
        server.objects[PODGROUPS.discovery_path] = discovery("queues", "podgroups/status")
        with pytest.raises(errors.NotFound):
            await listed(client)


@pytest.mark.parametrize("resource", [PODGROUPS, PODS], ids=str)
async def test_what_it_knows_is_there_and_is_asked_for_again(resource: Resource) -> None:
    """Else one wrong answer, as of a proxy that starts up, would take all groups off the books."""
    async with FakeApiServer() as server, server.client() as client:
        server.objects[resource.discovery_path] = discovery(resource.plural)
        server.fail("list", GONE)
        with pytest.raises(errors.ServerError, match=f"{resource} is served"):
            await listed(client, resource)
        await listed(client, resource)


async def test_where_nobody_can_tell_the_question_is_open() -> None:
    async with FakeApiServer() as server, server.client() as client:
        server.fail("list", GONE)
        server.fail("get", answer_status(500, "InternalError", "x"), times=10)
        with pytest.raises(errors.ServerError):
            await listed(client)


async def test_without_the_right_to_discover_the_answer_counts() -> None:
    async with FakeApiServer() as server, server.client() as client:
        server.fail("list", GONE)
        server.fail("get", answer_status(403, "Forbidden", "no"))
        with pytest.raises(errors.NotFound):
            await listed(client)


@pytest.mark.parametrize("found", [{}, {"resources": None}, {"resources": [None, 3, {"name": 1}]}])
async def test_a_discovery_that_says_nothing_knows_nothing(found: dict[str, Any]) -> None:
    async with FakeApiServer() as server, server.client() as client:
        server.objects[PODGROUPS.discovery_path] = found
        server.fail("list", GONE)
        with pytest.raises(errors.NotFound):
            await listed(client)
