"""A refresh lists everything anew and returns only when the new list has been taken in."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from kube.informer import Informer
from kube.listing import Page, WatchEvent, Watching
from kube.resources import ALL, NODES, Resource, Scope


class Source:
    """Lists what `objects` holds at that moment; its watches stay silent."""

    def __init__(self) -> None:
        self.objects: list[str] = ["a"]
        self.lists = 0

    async def list(self, resource: Resource, scope: Scope = ALL, **_: Any) -> AsyncGenerator[Page]:
        self.lists += 1
        await asyncio.sleep(0)
        assert scope == ALL
        yield Page([{"metadata": {"name": name, "uid": name}} for name in self.objects], str(self.lists))

    async def watch(self, resource: Resource, _: Watching) -> AsyncGenerator[WatchEvent]:
        await asyncio.Event().wait()
        assert resource is NODES
        yield WatchEvent("BOOKMARK", {})


async def test_what_was_written_before_a_refresh_is_there_after_it() -> None:
    source = Source()
    informer: Informer[str] = Informer(source, NODES, lambda raw: str(raw["metadata"]["name"]))
    running = asyncio.create_task(informer.run())
    await informer.wait_synced()
    source.objects = ["b", "c"]
    await asyncio.wait_for(informer.refresh(), 5)
    assert (sorted(informer.values()), source.lists) == (["b", "c"], 2)
    await asyncio.wait_for(asyncio.gather(informer.refresh(), informer.refresh()), 5)
    assert sorted(informer.values()) == ["b", "c"]
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled(), "cancelling the informer itself still ends it"


async def test_a_refresh_before_the_first_list_waits_for_that_one() -> None:
    source = Source()
    informer: Informer[str] = Informer(source, NODES, lambda raw: str(raw["metadata"]["name"]))
    refreshed = asyncio.create_task(informer.refresh())
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        running = asyncio.create_task(informer.run())
        await refreshed
    assert list(informer.values()) == ["a"]
    running.cancel()
    await asyncio.wait({running})


async def test_a_refresh_that_was_given_up_shows_until_its_list_has_come() -> None:
    """Whoever did not wait any longer can still be told what was missing, and when it is not any more."""
    source = Source()
    informer: Informer[str] = Informer(source, NODES, lambda raw: str(raw["metadata"]["name"]))
    pending = [informer.refreshing]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(informer.refresh(), 0.01)
    pending.append(informer.refreshing)
    running = asyncio.create_task(informer.run())
    await asyncio.wait_for(informer.wait_synced(), 5)
    pending.append(informer.refreshing)
    assert pending == [False, True, False]
    running.cancel()
    await asyncio.wait({running})
