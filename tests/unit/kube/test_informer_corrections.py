"""What was taken in by a read is there until the watch says more of it, or has come past the read without it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kube.informer import Informer
from kube.reflector import Timing
from kube.resources import NODES
from tests.fakes.apiserver import background
from tests.fakes.livesource import LiveSource

pytestmark = pytest.mark.looptime

QUICK = Timing(page_size=2, backoff_base_s=0.01, backoff_cap_s=0.1)
Heard = list[tuple[str | None, str | None]]


def store(source: LiveSource, *names: str, uid: str = "") -> None:
    for name in names:
        source.put(NODES, {"metadata": {"name": name, "uid": uid or name}})


async def version(source: LiveSource, name: str) -> str:
    return str((await source.get(NODES, name))["metadata"]["resourceVersion"])


@asynccontextmanager
async def following(source: LiveSource) -> AsyncIterator[Informer[str]]:
    """An informer that has listed all that there is; it calls each object by its UID."""
    informer: Informer[str] = Informer(source, NODES, lambda raw: str(raw["metadata"]["uid"]), timing=QUICK)
    async with background(informer.run()):
        await informer.wait_synced()
        await asyncio.sleep(1)
        yield informer


async def test_one_that_no_list_shows_is_gone_after_the_next_and_handlers_hear_of_it() -> None:
    async with following(LiveSource()) as informer:
        heard: Heard = []
        informer.subscribe(lambda old, new: heard.append((old, new)))
        informer.correct("x", "read")
        await informer.refresh()
        assert informer.get("x") is None
        assert heard == [(None, "read"), ("read", None)]


async def test_one_that_came_and_went_while_the_watch_was_away_is_gone_after_the_list() -> None:
    source = LiveSource()
    store(source, "a", "b")
    async with following(source) as informer:
        source.cut_off()
        store(source, "x")
        informer.correct("x", "x", await version(source, "x"))
        source.remove(NODES, "x")
        await informer.refresh()
        assert sorted(informer.views) == ["a", "b"]


async def test_one_that_went_before_the_read_was_taken_in_is_gone_once_the_watch_is_past_it() -> None:
    """The watch has shown both its coming and its going while the answer was on its way, and lists nothing anew."""
    source = LiveSource()
    store(source, "a", "b", "c")
    async with following(source) as informer:
        store(source, "x")
        read = await version(source, "x")
        source.remove(NODES, "x")
        await asyncio.sleep(1)
        informer.correct("x", "x", read)
        await informer.catch_up()
        assert (sorted(informer.views), source.lists) == (["a", "b", "c"], 1)


async def test_without_any_change_it_is_gone_with_the_next_bookmark() -> None:
    source = LiveSource()
    async with following(source) as informer:
        store(source, "x")
        read = await version(source, "x")
        source.remove(NODES, "x")
        await asyncio.sleep(1)
        informer.correct("x", "x", read)
        await asyncio.sleep(600)
        assert (informer.get("x"), source.lists) == (None, 1)


async def test_one_that_the_watch_shows_in_the_end_stays() -> None:
    source = LiveSource()
    store(source, "a", "b")
    async with following(source) as informer:
        source.behind = True
        store(source, "x")
        informer.correct("x", "x", await version(source, "x"))
        await asyncio.sleep(30)
        assert informer.get("x") == "x", "the watch has not come so far"
        source.behind = False
        await informer.catch_up()
        await informer.refresh()
        assert sorted(informer.views) == ["a", "b", "x"]


@pytest.mark.parametrize("versioned", [True, False])
async def test_one_that_was_made_after_a_list_began_is_not_dropped_with_it(versioned: bool) -> None:
    source = LiveSource()
    informer: Informer[str] = Informer(source, NODES, lambda raw: str(raw["metadata"]["uid"]), timing=QUICK)
    store(source, "a", "b")

    def correct(old: str | None, new: str | None) -> None:
        """Called in the middle of the first list, which has been made up by then."""
        if (old, new) == (None, "a"):
            source.behind = True
            store(source, "x")
            informer.correct("x", "x", "13" if versioned else "")

    informer.subscribe(correct)
    async with background(informer.run()):
        await informer.wait_synced()
        await asyncio.sleep(1)
        assert await version(source, "x") == "13"
        assert sorted(informer.views) == ["a", "b", "x"]
        source.behind = False
        await asyncio.sleep(600)
        source.remove(NODES, "x")
        await asyncio.sleep(600)
        assert sorted(informer.views) == ["a", "b"]


async def test_one_that_is_made_again_under_its_name_is_shown_as_the_new_one() -> None:
    source = LiveSource()
    store(source, "a", "b")
    async with following(source) as informer:
        source.cut_off()
        store(source, "x", uid="one")
        informer.correct("x", "one", await version(source, "x"))
        source.remove(NODES, "x")
        store(source, "x", uid="two")
        await informer.refresh()
        assert informer.get("x") == "two"
        await asyncio.sleep(600)
        assert informer.get("x") == "two"


async def test_one_that_the_watch_shows_already_is_left_to_it() -> None:
    source = LiveSource()
    store(source, "a", "b")
    async with following(source) as informer:
        informer.correct("a", "read", "1")
        await asyncio.sleep(600)
        assert informer.get("a") == "read"
        source.remove(NODES, "a")
        await asyncio.sleep(600)
        assert informer.get("a") is None


async def test_one_that_was_read_to_be_gone_comes_back_only_where_it_exists() -> None:
    source = LiveSource()
    store(source, "a", "b")
    async with following(source) as informer:
        informer.correct("x", "read", "1000")
        informer.correct("x", None)
        heard: Heard = []
        informer.subscribe(lambda old, new: heard.append((old, new)))
        heard.clear()
        source.cut_off()
        source.remove(NODES, "a")
        informer.correct("a", None)
        await informer.refresh()
        assert heard == [("a", None)]
        assert sorted(informer.views) == ["b"]
