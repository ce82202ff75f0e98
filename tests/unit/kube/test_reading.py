"""What an API server sends is read in slices where it is large, and is the same then."""

import asyncio
from typing import Any

import orjson
import pytest

from kube import reading
from kube.bigjson import DEEPEST, MOST_MEMBERS, PIECE, WHOLE, JsonError
from kube.client import Client
from kube.reading import PAGE_BYTES, Reader, page_limit
from kube.resources import PODS
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.ticking import Ticking

TERM = {"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": ["yes"]} for n in range(41)]}
POD = {"metadata": {"name": "p"}, "spec": {"affinity": {"nodeSelectorTerms": [TERM] * 400}}}
"""About a megabyte."""


async def read(body: bytes, **how: Any) -> tuple[Any, int, int]:
    """The value, in how many steps it was read, and how many of them were between two turns of others."""
    clock = Ticking()
    async with clock.beside():
        found = await Reader(clock.turns).value(body, **how)
    return found, clock.readings, clock.longest


async def test_a_pod_of_a_megabyte_is_read_in_slices() -> None:
    found, steps, longest = await read(orjson.dumps({"type": "ADDED", "object": POD}))
    assert found["object"] == POD
    assert steps > 400
    assert longest <= 7


async def test_what_is_of_moderate_size_is_read_at_once() -> None:
    """A page of ordinary pods as well: it would take eight times as long in steps."""
    small, page = orjson.dumps({"a": "x" * (WHOLE - 10)}), orjson.dumps({"items": [POD["spec"]] * 1})
    assert (await read(small))[1] == 0
    assert len(page) < PAGE_BYTES
    assert (await read(page, whole=PAGE_BYTES))[1] == 0


def nested(levels: int) -> Any:
    value: Any = "x" * 2 * PIECE
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd", [nested(2 * DEEPEST), [""] * (MOST_MEMBERS + 1)], ids=["many levels", "many members"]
)
async def test_what_an_api_server_has_taken_in_is_always_read(odd: Any) -> None:
    """The limits for requests of strangers are none for it: a list that cannot be read would never end."""
    body = orjson.dumps({"odd": odd, "more": "x" * WHOLE})
    assert (await read(body))[0] == orjson.loads(body)


@pytest.mark.parametrize("body", [b"{", b'{"a":' + b'"x",' * WHOLE])
async def test_what_is_no_json_says_so(body: bytes) -> None:
    with pytest.raises(JsonError):
        await read(body)


@pytest.mark.parametrize(
    ("limit", "size", "expected"),
    [
        (125, PAGE_BYTES // 2, 125),
        (125, 2 * PAGE_BYTES, 62),
        (62, PAGE_BYTES, 62),
        (10, PAGE_BYTES // 4, 40),
        (10, 0, 125),
        (1, 3 * PAGE_BYTES, 1),
    ],
)
def test_of_large_objects_fewer_are_asked_for_at_a_time(limit: int, size: int, expected: int) -> None:
    assert page_limit(limit, size, 125) == expected


async def test_a_list_of_large_objects_goes_on_with_smaller_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 500)
    pods = [{"metadata": {"name": f"p{n:02}", "namespace": "a"}, "spec": {"x": "x" * 200}} for n in range(12)]
    async with FakeApiServer() as server, server.client() as client:
        for pod in pods:
            server.put(PODS, pod)
        sizes = await listed(client)
    assert sum(sizes) == len(pods)
    assert sizes[0] == 8
    assert max(sizes[1:]) <= 2


async def listed(client: Client) -> list[int]:
    return [len(page.items) async for page in client.list(PODS, limit=8)]


async def test_two_large_documents_are_read_side_by_side() -> None:
    clock, body = Ticking(), orjson.dumps(POD)
    reader = Reader(clock.turns)
    async with clock.beside():
        found = await asyncio.gather(reader.value(body), reader.value(body))
    assert list(found) == [POD, POD]
    assert clock.longest <= 7
