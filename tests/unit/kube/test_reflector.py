"""What a reflector says of lists and watches: nothing is missed and nobody kept waiting, whatever is answered."""

import asyncio
import logging
from collections import Counter
from contextlib import aclosing

import pytest
from prometheus_client import CollectorRegistry

from kube import changes, errors, reflector
from kube.errors import ConnectionFailed, Forbidden, Gone, NotFound, ServerError
from kube.metrics import Metrics
from kube.reflector import Reflector
from kube.resources import PODS
from kube.turns import Turns
from tests.fakes.listwatch import ScriptedSource, added, bookmark, deleted, modified, raw
from tests.unit.kube.reflecting import GONE, play, words

pytestmark = pytest.mark.looptime


async def test_a_list_is_followed_by_the_changes_after_it() -> None:
    """Every object, the end of the list, then each change; bookmarks only move the version."""
    source = ScriptedSource(
        lists=[[raw("p", 1), raw("q", 2)]],
        watches=[[added("r", 11), modified("p", 12), deleted("q", 13), bookmark(20)], []],
    )
    said = await play(source)
    assert said == ["+a/p@1", "+a/q@2", "Listed", "+a/r@11", "+a/p@12", "-a/q", "Bookmark"]
    assert source.order == ["list", "watch@10", "watch@20", "watch@20"]


async def test_a_lost_connection_goes_on_where_it_was() -> None:
    """Nothing is listed again; the version is that of the last event or bookmark."""
    lost = ConnectionFailed("cut")
    source = ScriptedSource(watches=[[added("p", 11), lost], [bookmark(30), lost], [lost]])
    assert await play(source) == ["Listed", "+a/p@11", "Bookmark"]
    assert source.order == ["list", "watch@10", "watch@11", "watch@30", "watch@30"]


async def test_a_list_after_a_gap_finds_missed_deletes() -> None:
    """What the new list does not hold is removed, at its end and never before."""
    source = ScriptedSource(lists=[[raw("p", 1), raw("q", 2), raw("r", 3)], [raw("q", 2)]], watches=[[GONE]])
    said = await play(source)
    assert said == ["+a/p@1", "+a/q@2", "+a/r@3", "Listed", "+a/q@2", "-a/p", "-a/r", "Listed"]


@pytest.mark.parametrize("seen_by", ["list", "watch"])
async def test_another_object_under_the_same_name_replaces_the_first(seen_by: str) -> None:
    """Deleted and made again while nobody looked: removal, then addition, told apart by the uid."""
    second = added("p", 15, uid="other")
    if seen_by == "list":
        source = ScriptedSource(lists=[[raw("p", 1)], [second.object]], watches=[[GONE]])
        assert await play(source) == ["+a/p@1", "Listed", "-a/p", "+a/p@15", "Listed"]
    else:
        source = ScriptedSource(lists=[[raw("p", 1)]], watches=[[second]])
        assert await play(source) == ["+a/p@1", "Listed", "-a/p", "+a/p@15"]


async def test_an_expired_list_starts_from_scratch() -> None:
    """A 410 between two pages: nothing is concluded from the half list, and the next one is complete."""
    source = ScriptedSource(
        lists=[[raw("p", 1), raw("q", 2)], [raw("p", 3), GONE], [raw("q", 2)]], watches=[[GONE]]
    )
    said = await play(source)
    assert said == ["+a/p@1", "+a/q@2", "Listed", "+a/p@3", "+a/q@2", "-a/p", "Listed"]
    assert source.order == ["list", "watch@10", "list", "list", "watch@30"]


@pytest.mark.parametrize("failure", [GONE, errors.ApiError(400, "BadRequest"), Forbidden(403)])
async def test_a_refused_version_is_listed_anew(failure: errors.ApiError) -> None:
    """A version that the server does not take is of no further use."""
    source = ScriptedSource(watches=[[failure]])
    await play(source)
    assert source.order == ["list", "watch@10", "list", "watch@20"]


async def test_a_server_that_keeps_failing_is_listed_anew() -> None:
    """Two failures may be a restart, the third may be the version: a restored database answers 504 to it."""
    failing = [[ServerError(504)]] * 3
    source = ScriptedSource(watches=failing)
    await play(source)
    assert source.order == ["list", "watch@10", "watch@10", "watch@10", "list", "watch@20"]


async def test_a_watch_that_is_opened_only_to_fail_is_no_recovery(caplog: pytest.LogCaptureFixture) -> None:
    """The server answers, and then says by an event that it cannot: the version is as little worth, and one line is enough."""
    source = ScriptedSource(watches=[[bookmark(10), ServerError(504)]] * 3)
    with caplog.at_level("INFO"):
        await play(source)
    assert source.order[:6] == ["list", "watch@10", "watch@10", "watch@10", "list", "watch@20"]
    assert [record.message for record in caplog.records] == ["list or watch failed"]


async def test_an_optional_resource_that_is_missing_counts_as_empty() -> None:
    """Synced without its CRD; its objects come when it is installed and go when it is removed."""
    missing = NotFound(404)
    source = ScriptedSource(
        lists=[[missing], [raw("p", 1)], [missing]], watches=[[added("q", 21), missing], []]
    )
    said = await play(source, optional=True)
    assert said == ["Listed", "+a/p@1", "Listed", "+a/q@21", "-a/p", "-a/q", "Listed", "Listed"]


async def test_a_resource_that_must_exist_is_not_empty_when_missing() -> None:
    """A 404 is then a failure like any other: nothing is removed and nothing is synced."""
    source = ScriptedSource(lists=[[raw("p", 1)], [NotFound(404)], [raw("p", 1)]], watches=[[GONE]])
    assert await play(source) == ["+a/p@1", "Listed", "+a/p@1", "Listed"]


async def test_a_dispensable_resource_that_was_never_read_counts_as_empty_while_it_is_forbidden(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody is kept waiting for it; the log says once what is not allowed, and it is there as soon as it may be read."""
    forbidden = Forbidden(403, "Forbidden", 'cannot list resource "podgroups"')
    source = ScriptedSource(lists=[[forbidden], [forbidden], [raw("p", 1)]], watches=[[]])
    metrics = Metrics(CollectorRegistry())
    said = await play(source, dispensable=True, metrics=metrics)
    assert said == ["Listed", "Listed", "+a/p@1", "Listed"]
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert ['cannot list resource "podgroups"' in record.error for record in warned] == [True]  # type: ignore[attr-defined]
    assert metrics.watch_failures.labels(str(PODS), "Forbidden")._value.get() == 2


async def test_what_was_read_once_is_kept_when_the_right_to_it_is_taken_away() -> None:
    """A 403 while rights are changed, or while a server that starts does not know them yet, empties nothing."""
    forbidden = Forbidden(403)
    source = ScriptedSource(lists=[[raw("p", 1)], [forbidden], [raw("p", 1)]], watches=[[GONE]])
    assert await play(source, dispensable=True) == ["+a/p@1", "Listed", "+a/p@1", "Listed"]


async def test_a_resource_that_decisions_need_is_not_empty_when_it_is_forbidden() -> None:
    """Also where it may be missing: quota is kept by it."""
    source = ScriptedSource(lists=[[Forbidden(403)], [raw("p", 1)]], watches=[[]])
    assert await play(source, optional=True) == ["+a/p@1", "Listed"]


async def test_a_burst_gives_way_to_other_tasks() -> None:
    """However many events are there at once, others run between them."""
    source = ScriptedSource(lists=[[raw(f"p{number}", number) for number in range(1000)]])
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await play(source)
    counting.cancel()
    assert turns >= 15


async def test_one_failure_is_logged_once_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    """An API server away for an hour is one line, its return another."""
    lost = ConnectionFailed("cut")
    source = ScriptedSource(watches=[*[[lost]] * 50, [bookmark(50)]])
    with caplog.at_level("INFO"):
        await play(source)
    assert [record.message for record in caplog.records] == ["list or watch failed", "watching again"]


@pytest.mark.parametrize(("event_s", "together"), [(0.001, 5), (0.006, 1), (0.0, 50)])
async def test_a_burst_gives_way_by_what_its_events_cost(event_s: float, together: int) -> None:
    """Fifty events of a megabyte each are half a second; none of them waits for the network in between."""
    now, turns, said = 0.0, 0, []
    source = ScriptedSource(watches=[[added(f"p{number}", 11 + number) for number in range(200)]])
    following = Reflector(source, PODS, metrics=Metrics(CollectorRegistry()), turns=Turns(0.005, lambda: now))

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    spinning = asyncio.create_task(others())
    async with aclosing(following.run()) as events:
        async for event in events:
            now += event_s
            said.append((words(event), turns))
            if len(said) == 150:
                break
    spinning.cancel()
    await asyncio.wait({spinning})
    in_one_go = Counter(turn for word, turn in said if word.startswith("+"))
    assert max(in_one_go.values()) == together


async def test_objects_that_are_gone_are_looked_for_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred thousand known ones."""
    monkeypatch.setattr(reflector, "_SOUGHT_AT_ONCE", 2)
    names = [f"p{number}" for number in range(6)]
    lists = [[raw(name, 1) for name in names], [raw("p0", 1)]]
    following = Reflector(
        ScriptedSource(lists=lists, watches=[[GONE], [GONE]]), PODS, metrics=Metrics(CollectorRegistry())
    )
    turns = 0
    gone: list[tuple[str, int]] = []

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def listed() -> None:
        async for event in following.attempt():
            if isinstance(event, changes.Removed):
                gone.append((event.key, turns))  # noqa: PERF401 - each at its time

    spinning = asyncio.create_task(others())
    for _ in lists:
        with pytest.raises(Gone):
            await listed()
        following.relist()
    spinning.cancel()
    await asyncio.wait({spinning})
    assert [key for key, _ in gone] == [f"a/{name}" for name in names[1:]]
    assert len({turn for _, turn in gone}) == 3
