"""What is said of the cluster in memory: no watch passes over anything."""

import asyncio

import pytest

from kube.listing import Watching
from kube.resources import NODES
from tests.builders import a_node
from tests.fakes.livesource import BOOKMARK_S, LiveSource

pytestmark = pytest.mark.looptime


async def test_what_is_stored_while_an_event_is_taken_in_is_shown_before_a_bookmark_says_so() -> None:
    """A watch ends soon, so a bookmark is due; somebody stores another node while the first one is being taken in."""
    source, lasts_s, shown = LiveSource(), 10.0, list[str]()

    async def follow() -> None:
        async for event in source.watch(NODES, Watching("10", timeout_s=lasts_s, inactivity_s=lasts_s)):
            if event.type == "BOOKMARK":
                shown.append(f"up to {event.object['metadata']['resourceVersion']}")
                continue
            shown.append(event.object["metadata"]["name"])
            if shown[-1] == "first":
                source.put(NODES, a_node("second").build())

    following = asyncio.create_task(follow())
    await asyncio.sleep(lasts_s - BOOKMARK_S)
    source.put(NODES, a_node("first").build())
    await following
    assert shown == ["up to 10", "first", "second", "up to 12"]
