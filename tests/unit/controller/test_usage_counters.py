"""Card-seconds as a scraper reads them: never back, never stuck, and anew only where the sums have begun anew."""

import asyncio

import pytest

from core.usage.sums import What
from kube import errors
from tests.unit.controller.usage_place import BEGAN, Place, Replica, bound

pytestmark = pytest.mark.looptime


async def test_while_it_cannot_be_read_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that began anew would say that all was used at once, later."""
    place = Place()
    place.fails = errors.Forbidden(403, "Forbidden", "no")
    replica = Replica(place, monkeypatch)
    async with replica.led():
        replica.shows(bound(3))
        await asyncio.sleep(100)
        assert replica.counter() == 0
        place.fails = None
        await asyncio.sleep(100)
        assert replica.counter() > 0


async def test_a_counter_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An end that is told late makes it stand still."""
    replica = Replica(Place(), monkeypatch)
    async with replica.led():
        replica.shows(bound(3))
        await asyncio.sleep(100)
        assert replica.counter() == 2 * (100 - 3)
        ended = bound(3).phase("Succeeded").condition("Ready", "False", "2026-01-01T00:00:13Z")
        replica.shows(ended)
        assert replica.counter() == 2 * (100 - 3)
        tally = replica.follower.courses.tally
        assert tally is not None
        assert sum(tally.now(s, What.USED, BEGAN + 100) for s in tally.series()) == 2000 * 10
        replica.leading = False
        assert replica.counter() == 0


async def test_sums_that_begin_anew_are_seen_to_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ConfigMap was emptied while nobody led, between two scrapes of a process that leads again."""
    place = Place()
    replica = Replica(place, monkeypatch)
    replica.shows(bound(0))
    async with replica.led():
        await asyncio.sleep(86_400)
        assert replica.counter() == 2 * 86_400
    assert place.stored is not None
    place.put({**place.stored, "data": {}, "binaryData": {}})
    async with replica.led():
        await asyncio.sleep(60)
        assert replica.counter() == 2 * 60
        await asyncio.sleep(7_200)
        assert replica.counter() == 2 * 7_260


async def test_who_leads_again_goes_on_from_what_it_has_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another one has seen meanwhile that a pod had ended before: else Prometheus would count all of it once more."""
    place = Place()
    replica, other = Replica(place, monkeypatch), Replica(place, monkeypatch)
    for one in (replica, other):
        one.shows(bound(3))
    async with replica.led():
        await asyncio.sleep(100)
        shown = replica.counter()
    replica.leading = False
    assert replica.counter() == 0
    ended = bound(3).phase("Succeeded").condition("Ready", "False", "2026-01-01T00:00:53Z")
    for one in (replica, other):
        one.shows(ended)
    async with other.led():
        await asyncio.sleep(100)
    replica.leading = True
    async with replica.led():
        await asyncio.sleep(100)
        assert replica.counter() == shown


async def test_a_clock_that_was_ahead_for_one_scrape_does_not_stop_the_counters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They go on from where they are: back they must not go."""
    replica = Replica(Place(), monkeypatch)
    replica.shows(bound(0))
    async with replica.led():
        await asyncio.sleep(3_600)
        replica.ahead_s = 86_400
        shown = replica.counter()
        assert shown == 2 * (3_600 + 86_400)
        replica.ahead_s = 0
        await asyncio.sleep(60)
        assert replica.counter() == shown
        await asyncio.sleep(7_200)
        assert replica.counter() == shown + 2 * 7_200
