"""The leader writes down what was used over time: by one writer, at a pace, and never over what it does not know."""

import asyncio

import pytest

from core.cards.expression import expression_errors
from core.names import MGPU_CORE
from core.objects.device_class import DeviceClass
from core.queues.ledger import Ledger
from core.usage.checkpoint import Listed, Scribe
from core.usage.sums import Series, What
from core.usage.tally import SERIES_MOST
from tests.builders import a_pod
from tests.builders.claims import a_claim
from tests.unit.controller.cluster import caches
from tests.unit.controller.usage_place import BEGAN, Place, Replica, bound, used

pytestmark = pytest.mark.looptime


async def test_it_is_written_soon_after_a_change_and_once_a_minute_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place()
    replica = Replica(place, monkeypatch)
    async with replica.led():
        await asyncio.sleep(5)
        replica.shows(bound(3))
        await asyncio.sleep(300)
        assert place.writes[:2] == [0, 10]
        assert [
            round(later - earlier) for earlier, later in zip(place.writes[1:], place.writes[2:], strict=False)
        ] == [60] * 4
        assert used(place) == 2 * (place.checkpoint().through - BEGAN - 3)
        assert replica.counter() == 2 * (305 - 3)
    assert place.stored is not None
    assert replica.follower.courses.tally is None


async def test_an_answer_that_was_lost_is_found_and_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    replica = Replica(place, monkeypatch)
    async with replica.led():
        replica.shows(bound(3))
        place.loses_answers = True
        await asyncio.sleep(100)
        place.loses_answers = False
        await asyncio.sleep(100)
        assert len(place.writes) > 2
        assert used(place) == 2 * (place.checkpoint().through - BEGAN - 3)
        assert replica.counter() == 2 * (200 - 3)


async def test_what_a_former_leader_wrote_late_is_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had seen a pod that nobody here has; all that was seen here since is counted on top of it, once."""
    place = Place()
    replica = Replica(place, monkeypatch)
    async with replica.led():
        replica.shows(bound(3))
        await asyncio.sleep(15)
        found = place.checkpoint()
        tally, (using,) = found.tally(), found.using
        tally.sums.add(Series("q", "A", "gone", "online"), What.USED, 1000, BEGAN, BEGAN + 500)
        late = Scribe().write(tally, Listed(b"", using, b"", partial=False))
        assert place.stored is not None
        place.put({**place.stored, "data": late.data, "binaryData": late.binary})
        await asyncio.sleep(100)
    assert used(place) == 2 * (place.checkpoint().through - BEGAN - 3) + 500
    assert place.checkpoint().began == BEGAN


@pytest.mark.parametrize(
    ("valid", "heard_s"), [(False, 0.0), (True, 300.0)], ids=["led no more", "heard nothing"]
)
async def test_nothing_is_written_by_who_does_not_lead_or_has_heard_nothing(
    monkeypatch: pytest.MonkeyPatch, valid: bool, heard_s: float
) -> None:
    place = Place()
    replica = Replica(place, monkeypatch)
    replica.heard_s = heard_s
    async with replica.led(valid):
        replica.shows(bound(3))
        await asyncio.sleep(200)
    assert place.writes == []


async def test_without_a_place_it_is_kept_in_memory_and_written_once_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place()
    empty, place.stored = place.stored, None
    replica = Replica(place, monkeypatch)
    async with replica.led():
        replica.shows(bound(3))
        await asyncio.sleep(200)
        assert replica.counter() == 2 * (200 - 3)
        place.stored = empty
        await asyncio.sleep(60)
        assert used(place) == 2 * (place.checkpoint().through - BEGAN - 3)
        place.stored = None
        await asyncio.sleep(100)
        place.stored = empty
        await asyncio.sleep(100)
        assert used(place) == 2 * (place.checkpoint().through - BEGAN - 3)


@pytest.mark.parametrize("data", [{"usage.json": '{"version": 9}'}, {"usage.json": "{"}])
async def test_what_a_later_version_wrote_is_left_alone_and_what_is_damaged_is_not(
    monkeypatch: pytest.MonkeyPatch, data: dict[str, str]
) -> None:
    place = Place()
    assert place.stored is not None
    place.put({**place.stored, "data": data})
    replica = Replica(place, monkeypatch)
    async with replica.led():
        replica.shows(bound(3))
        await asyncio.sleep(100)
        assert replica.counter() == 2 * (100 - 3)
    assert bool(place.writes) == ("version" not in data["usage.json"])


@pytest.mark.parametrize("first_s", [0, 365 * 86_400], ids=["later on", "from the first"])
async def test_a_clock_that_was_ahead_is_told_of_and_the_sums_come_right(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, first_s: int
) -> None:
    """But for what was counted in the future only: that is counted anew."""
    place = Place()
    replicas = [Replica(place, monkeypatch) for _ in range(3)]
    for replica in replicas:
        replica.shows(bound(3))
    for replica, ahead_s in zip(replicas, (first_s, 365 * 86_400, 0), strict=True):
        assert "a clock that was ahead" not in caplog.text
        replica.ahead_s = ahead_s
        async with replica.led():
            await asyncio.sleep(100)
    assert "a clock that was ahead" in caplog.text
    found = place.checkpoint()
    assert 200 < found.through - BEGAN <= 300
    assert used(place) == 2 * (found.through - BEGAN - (200 if first_s else 3))


def test_the_books_tell_of_each_pod_that_comes_changes_or_goes() -> None:
    """As they book it, also without a word of its own."""
    ledger, told = Ledger(caches().ledger.settings), list[str]()
    ledger.follow(told.append)
    pod = a_pod("p").uid("u").gpu(1).card("A").in_queue("q").gated()
    ledger.put_pod(pod.view())
    ledger.put_pod(pod.view())
    assert told == ["u"]
    ledger.drop_pod("u")
    assert told == ["u", "u"]


def test_the_books_tell_of_pods_whose_claims_have_changed() -> None:
    """That come after them, as they may, and of a class that serves a resource from now on."""
    ledger, told = Ledger(caches().ledger.settings), list[str]()
    ledger.put_pod(a_pod("p").uid("u").claim("dev", name="c").in_queue("q").gated().view())
    ledger.put_pod(a_pod("b").uid("bare").gpu(1).in_queue("q").gated().view())
    ledger.follow(told.append)
    claim = a_claim("c").exactly("r", "gpu", count=2).view()
    ledger.devices.put_claim(claim)
    ledger.devices.put_claim(claim)
    assert told == ["u"]
    ledger.devices.drop_claim(claim.key)
    assert told == ["u", "u"]
    ledger.put_class(DeviceClass("gpu", extended="nvidia.com/gpu"))
    assert {*told[2:]} == {"bare"}


async def test_shares_and_devices_are_counted_also_of_pods_that_had_ended_when_they_were_first_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replica = Replica(Place(), monkeypatch)
    replica.caches.ledger.devices.put_claim(a_claim("c").exactly("r", "gpu", count=2).view())
    async with replica.led():
        await asyncio.sleep(60)
        for pod in (
            a_pod("share").uid("s").mgpu(core=40, memory=1_000),
            a_pod("device").uid("d").claim("dev", name="c"),
        ):
            ended = pod.charged("q").bound_to("n").phase("Succeeded").created("2026-01-01T00:00:01Z")
            ended = ended.condition("PodScheduled", "True", "2026-01-01T00:00:03Z")
            replica.shows(ended.condition("Ready", "False", "2026-01-01T00:00:13Z"))
        await asyncio.sleep(60)
        tally = replica.follower.courses.tally
        assert tally is not None
        found = {(series.card, series.queue): amounts for series, amounts in tally.sums.total.items()}
        assert found == {
            (MGPU_CORE, "q"): [400 * 10, 400 * 2, 0],
            ("deviceclass/gpu", "q"): [2000 * 10, 2000 * 2, 0],
        }


async def test_pods_that_wait_with_the_longest_names_keep_nobody_from_being_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place()
    replica = Replica(place, monkeypatch)
    async with replica.led():
        await asyncio.sleep(100)
        for number in range(SERIES_MOST):
            card = f"A|{number:05}/" + "c" * 240
            assert not expression_errors(card)
            waits = a_pod(f"p{number}").uid(f"u{number}").card(card).gpu(1)
            replica.shows(waits.in_queue(f"{number:05}" + "q" * 240).gated())
        written = len(place.writes)
        assert written
        await asyncio.sleep(600)
        assert len(place.writes) > written
