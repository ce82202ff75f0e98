"""Catching up: nothing is missing afterwards that was stored before, and what is large is not listed for it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kube import errors
from kube.informer import Informer
from kube.listing import Page, WatchEvent, Watching
from kube.reflector import Reflector, Timing
from kube.resources import ALL, NODES, Resource, Scope
from tests.fakes.apiserver import background
from tests.fakes.livesource import LiveSource

pytestmark = pytest.mark.looptime

PAGE = 3
QUICK = Timing(page_size=PAGE, backoff_base_s=0.01, backoff_cap_s=0.1)


def store(source: LiveSource, *names: str) -> None:
    for name in names:
        source.put(NODES, {"metadata": {"name": name, "uid": name}})


class Refusing(LiveSource):
    """The next so many lists fail, and the next so many watches."""

    def __init__(self) -> None:
        super().__init__()
        self.lists_refused = self.watches_refused = 0

    async def list(self, resource: Resource, scope: Scope = ALL, **more: Any) -> AsyncGenerator[Page]:
        if self.lists_refused:
            self.lists_refused -= 1
            raise errors.ServerError(500)
        async for page in super().list(resource, scope, **more):
            yield page

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        if self.watches_refused:
            self.watches_refused -= 1
            raise errors.ConnectionFailed("cut")
        async for event in super().watch(resource, asked):
            yield event


@asynccontextmanager
async def following(source: LiveSource, timing: Timing = QUICK) -> AsyncIterator[Informer[str]]:
    """An informer that has listed all that there is."""
    informer: Informer[str] = Informer(source, NODES, lambda raw: str(raw["metadata"]["name"]), timing=timing)
    async with background(informer.run()):
        await informer.wait_synced()
        await asyncio.sleep(1)
        yield informer


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_of_many_objects_only_the_version_is_asked_for() -> None:
    """Within the seconds after which a watch says how far it is, also where nothing has changed at all."""
    source = LiveSource()
    store(source, *"abcd")
    async with following(source) as informer:
        for _ in range(2):
            begun = now()
            await informer.catch_up()
            assert now() - begun < 5
        assert (source.lists, sorted(informer.values())) == (1, [*"abcd"])


async def test_what_was_stored_before_is_there_afterwards() -> None:
    """Also where the watch that was open has died without a word."""
    source = LiveSource()
    store(source, *"abcd")
    async with following(source) as informer:
        source.cut_off()
        store(source, "e")
        source.remove(NODES, "a")
        await informer.catch_up()
        assert (source.lists, sorted(informer.values())) == (1, [*"bcde"])


@pytest.mark.parametrize("count", [0, 1, PAGE])
async def test_what_one_page_holds_is_listed_anew(count: int) -> None:
    source = LiveSource()
    store(source, *"abc"[:count])
    async with following(source) as informer:
        source.cut_off()
        store(source, "z")
        begun = now()
        await informer.catch_up()
        assert (source.lists, sorted(informer.values()), now() - begun < 1) == (
            2,
            [*"abc"[:count], "z"],
            True,
        )


async def test_a_watch_that_does_not_come_so_far_is_not_waited_for() -> None:
    """After fifteen seconds everything is listed anew, and that has it all."""
    source = LiveSource()
    store(source, *"abcd")
    async with following(source) as informer:
        source.behind = True
        store(source, "e")
        begun = now()
        await informer.catch_up()
        assert (source.lists, sorted(informer.values())) == (2, [*"abcde"])
        assert 14 < now() - begun < 17


async def test_a_database_that_was_restored_is_not_taken_for_the_one_before() -> None:
    """Its version is lower than what is known, and still nothing of what is not there any more is left."""
    source = LiveSource()
    store(source, *"abcdefgh")
    async with following(source) as informer:
        source.restore(14)
        await informer.catch_up()
        assert (source.lists, sorted(informer.values())) == (2, [*"abcd"])


async def test_who_asks_later_waits_for_what_was_stored_later() -> None:
    source = LiveSource()
    store(source, *"abcd")
    async with following(source) as informer:
        source.behind = True
        first = asyncio.create_task(informer.catch_up())
        await asyncio.sleep(1)
        store(source, "e")
        second = asyncio.create_task(informer.catch_up())
        await asyncio.sleep(1)
        assert (first.done(), second.done()) == (False, False)
        source.behind = False
        await second
        assert sorted(informer.values()) == [*"abcde"]
        await first
        assert source.lists == 1


async def test_an_earlier_version_that_is_answered_later_lets_nobody_go_too_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asked for the later one waits for what was stored by then."""
    source, newest, asked = LiveSource(), Reflector.newest, 0
    store(source, *"abcd")

    async def late_the_first_time(reflector: Reflector) -> int | None:
        nonlocal asked
        asked += 1
        first, version = asked == 1, await newest(reflector)
        await asyncio.sleep(2 if first else 0)
        return version

    monkeypatch.setattr(Reflector, "newest", late_the_first_time)
    async with following(source) as informer:
        source.behind = True
        first = asyncio.create_task(informer.catch_up())
        await asyncio.sleep(1)
        store(source, "e")
        second = asyncio.create_task(informer.catch_up())
        await asyncio.sleep(8)
        assert (first.done(), second.done()) == (False, False)
        source.behind = False
        await asyncio.gather(first, second)
        assert (source.lists, sorted(informer.values())) == (1, [*"abcde"])


async def test_before_the_first_list_that_one_is_waited_for() -> None:
    source = LiveSource()
    store(source, *"abcd")
    informer: Informer[str] = Informer(source, NODES, lambda raw: str(raw["metadata"]["name"]), timing=QUICK)
    caught_up = asyncio.create_task(informer.catch_up())
    await asyncio.sleep(1)
    async with background(informer.run()):
        await caught_up
        assert (source.lists, sorted(informer.values())) == (1, [*"abcd"])


async def test_an_api_server_that_says_nothing_is_still_asked_when_nobody_waits_any_more() -> None:
    source = LiveSource()
    store(source, *"abcd")
    async with following(source) as informer:
        source.silent = True
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(informer.catch_up(), 1)
        pending = [informer.refreshing]
        store(source, "e")
        source.silent = False
        await asyncio.sleep(200)
        pending.append(informer.refreshing)
        assert pending == [True, False]
        assert sorted(informer.values()) == [*"abcde"]


async def test_a_watch_is_not_believed_before_the_server_has_said_anything_in_it() -> None:
    """That it was opened at a version does not show that the server knows that version."""
    source = LiveSource()
    store(source, *"abcd")
    async with following(source) as informer:
        source.mute = True
        await informer.catch_up()
        assert source.lists == 2


async def test_whoever_has_everything_listed_does_not_pay_for_earlier_failures() -> None:
    """A standby that has failed for minutes asks each half minute; as the new leader it is not given up for two more."""
    source = Refusing()
    store(source, *"abc")
    async with following(source, Timing(page_size=PAGE)) as informer:
        source.lists_refused = source.watches_refused = 1000
        source.cut_off()
        await asyncio.sleep(300)
        source.lists_refused, source.watches_refused = 2, 0
        begun = now()
        await informer.refresh()
        assert (source.lists_refused, now() - begun < 6) == (0, True)


async def test_nor_does_who_has_the_watch_come_so_far() -> None:
    source = Refusing()
    store(source, *"abcd")
    async with following(source, Timing(page_size=PAGE)) as informer:
        source.watches_refused = 1000
        source.cut_off()
        await asyncio.sleep(300)
        source.watches_refused = 2
        begun = now()
        await informer.catch_up()
        assert (source.watches_refused, source.lists, now() - begun < 9) == (0, 1, True)
