"""A resource in the best version that is served, through every change of the server."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from kube import errors
from kube.listing import Page, WatchEvent, Watching
from kube.resources import RESOURCE_CLAIMS, Resource
from kube.versions import BestVersion

VERSIONS = ("v1", "v1beta2", "v1beta1")


class Server:
    """Serves these versions; one of them breaks off with NotFound after the first page."""

    def __init__(self, *served: str, breaks: str = "") -> None:
        self.served = set(served)
        self.breaks = breaks
        self.watched: list[str] = []

    async def list(self, resource: Resource, *_: Any, **__: Any) -> AsyncGenerator[Page]:
        if resource.version not in self.served:
            raise errors.NotFound(
                404, "NotFound", "the server could not find the requested resource", None, None
            )
        yield Page([{"version": resource.version}], "1")
        if resource.version == self.breaks:
            raise errors.NotFound(
                404, "NotFound", "the server could not find the requested resource", None, None
            )

    async def watch(self, resource: Resource, _: Watching) -> AsyncGenerator[WatchEvent]:
        self.watched.append(resource.version)
        yield WatchEvent("BOOKMARK", {})


async def listed(best: BestVersion) -> list[Any]:
    return [raw["version"] async for page in best.list(RESOURCE_CLAIMS) for raw in page.items]


async def watch(best: BestVersion) -> None:
    stream = best.watch(RESOURCE_CLAIMS, Watching("1", timeout_s=1, inactivity_s=1))
    assert [event.type async for event in stream] == ["BOOKMARK"]


@pytest.mark.parametrize(
    ("served", "expected"),
    [(VERSIONS, "v1"), (("v1beta1", "v1beta2"), "v1beta2"), (("v1alpha3", "v1beta1"), "v1beta1")],
)
async def test_the_best_version_is_listed_and_watched(served: tuple[str, ...], expected: str) -> None:
    server = Server(*served)
    best = BestVersion(server, VERSIONS)
    assert await listed(best) == [expected]
    await watch(best)
    assert (best.served, server.watched) == (True, [expected])


async def test_another_release_of_the_server_is_followed_at_the_next_list() -> None:
    """A version may go, with an upgrade, and a better one come; none may be left."""
    found: list[bool] = []
    server = Server("v1beta1")
    best = BestVersion(server, VERSIONS, found.append)
    assert await listed(best) == ["v1beta1"]
    server.served = {"v1", "v1beta1"}
    await watch(best)
    assert await listed(best) == ["v1"]
    await watch(best)
    server.served = set()
    with pytest.raises(errors.NotFound):
        await listed(best)
    assert (best.served, found, server.watched) == (False, [True, True, False], ["v1beta1", "v1"])


async def test_a_list_that_has_begun_is_not_mixed_with_another_version() -> None:
    best = BestVersion(Server("v1", "v1beta1", breaks="v1"), VERSIONS)
    with pytest.raises(errors.NotFound):
        await listed(best)
