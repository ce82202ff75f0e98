"""The leader writes down what was used over time: by one writer, at a pace, and never over what it does not know."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.caches import Caches
from controller.metrics import Metrics
from controller.usage_following import UsageFollower
from controller.usage_keeping import UsageKeeper
from core.names import MGPU_CORE
from core.objects import Pod
from core.objects.device_class import DeviceClass
from core.queues.ledger import Ledger
from core.usage.checkpoint import Checkpoint, Listed, Scribe, decode
from core.usage.sums import Series, What
from kube import errors
from kube.client import Json
from kube.informer import Informer
from kube.lease import Term
from kube.resources import Resource
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.unit.controller.cluster import caches, show

pytestmark = pytest.mark.looptime

BEGAN = 1_767_225_600
"""2026-01-01, when pods of the builders are created."""


class Place:
    """One ConfigMap, as an API server keeps it."""

    def __init__(self) -> None:
        self.stored: Json | None = {
            "metadata": {"name": "cardquota-usage", "namespace": "ns", "resourceVersion": "1"}
        }
        self.fails: errors.KubeError | None = None
        self.loses_answers = False
        self.writes: list[float] = []

    async def get(
        self, _: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        if self.fails is not None:
            raise self.fails
        if self.stored is None:
            raise errors.NotFound(404, "NotFound", f"{name} in {namespace}", None, timeout_s)
        return self.stored

    async def replace(
        self, _: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        if self.fails is not None:
            raise self.fails
        if self.stored is None:
            raise errors.NotFound(404, "NotFound", str(namespace))
        version = self.stored["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != version:
            raise errors.Conflict(409, "Conflict", "changed", None, timeout_s)
        self.put(body)
        self.writes.append(asyncio.get_running_loop().time())
        if self.loses_answers:
            raise errors.ConnectionFailed("no answer")
        assert self.stored is not None
        return self.stored

    def put(self, body: Json) -> None:
        """What anybody may do to it; its labels are not ours to change."""
        assert self.stored is not None
        version = str(int(self.stored["metadata"]["resourceVersion"]) + 1)
        self.stored = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}

    def checkpoint(self) -> Checkpoint:
        assert self.stored is not None
        found = decode(self.stored["data"], self.stored["binaryData"])
        assert found is not None
        return found


class Replica:
    """A process whose clock is that of the loop; `shows` puts a pod into its watch."""

    def __init__(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        self.caches: Caches = caches([a_node("n").card("A", 8).view()])
        self.caches.ledger.put_queue(a_queue("q").cards({"A": 8}).view())
        self.metrics = Metrics(CollectorRegistry())
        self.follower = UsageFollower(self.caches, lambda: int((BEGAN + clock()) * 1_000_000))
        self.keeper = UsageKeeper(place, self.caches, self.follower, self.metrics, "ns")
        self.registry, self.leading = CollectorRegistry(), True
        self.registry.register(self.keeper.counters(lambda: self.leading))
        self.heard_s = 0.0
        monkeypatch.setattr(Informer, "staleness_s", lambda _: self.heard_s)

    def shows(self, pod: Any) -> None:
        view: Pod = pod.view()
        show(self.caches.pods, view.key, view)

    @asynccontextmanager
    async def led(self, valid: bool = True) -> AsyncIterator[None]:
        self.follower.courses.settled = True
        self.follower.settled.set()
        loop = asyncio.get_running_loop()
        term = Term(1, loop.time, loop.time() + 1e9 if valid else -1.0)
        running = asyncio.create_task(self.keeper.run(term))
        try:
            yield
        finally:
            running.cancel()
            await asyncio.wait([running])

    def counter(self) -> float:
        lines = generate_latest(self.registry).decode().splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("cardquota_card_seconds_total{")
        )


def clock() -> float:
    return asyncio.get_running_loop().time()


def bound(at: int) -> Any:
    """Two cards since then."""
    when = f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z"
    pod = (
        a_pod("p")
        .gpu(2)
        .card("A")
        .charged("q")
        .assigned({"A": 2})
        .bound_to("n")
        .created("2026-01-01T00:00:00Z")
    )
    return pod.condition("PodScheduled", "True", when)


def used(place: Place) -> int:
    return sum(amounts[What.USED] for amounts in place.checkpoint().sums.total.values()) // 1000


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
