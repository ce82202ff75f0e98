"""Where the hook is served: what is known is known at once, what is not costs next to nothing."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.hook_paths import HOOK_ENTRY, PLAIN_FOR_S, PLAIN_PATH, HookPaths, former_replicas
from kube import errors
from kube.certificates import Content
from kube.resources import PODS
from kube.segments import CURRENT, FORMER, LENGTH, Segments, as_data, held_in
from kube.webhook_entries import Entries, Entry
from tests.fakes.apiserver import FakeApiServer

OLD, NEW, OTHER = "a" * LENGTH, "b" * LENGTH, "c" * LENGTH


class Secret:
    """What is stored, and how often it was read."""

    def __init__(self, segments: Segments | None = None) -> None:
        self.segments = segments
        self.reads = 0
        self.fails = False

    def content(self) -> Content:
        return Content({} if self.segments is None else as_data(self.segments))

    async def read(self) -> Content:
        self.reads += 1
        await asyncio.sleep(0.05)
        if self.fails:
            raise errors.ConnectionFailed("away")
        return self.content()


def paths(secret: Secret) -> HookPaths:
    found = HookPaths(secret.read)
    found._learn(secret.content())
    return found


@pytest.mark.looptime
async def test_the_current_segment_and_the_one_before_are_served_without_reading() -> None:
    secret = Secret(Segments(NEW, OLD))
    served = paths(secret)
    assert [await served.serves(segment) for segment in (NEW, OLD)] == [True, True]
    assert not await served.serves("x")
    assert not await served.serves("")
    assert secret.reads == 0


@pytest.mark.looptime
async def test_one_that_was_stored_a_moment_ago_is_read() -> None:
    secret = Secret(Segments(OLD))
    served = paths(secret)
    secret.segments = Segments(NEW, OLD)
    assert await served.serves(NEW)
    assert await served.serves(OLD)
    secret.segments = Segments(NEW)
    served._learn(secret.content())
    assert not await served.serves(OLD)


@pytest.mark.looptime
async def test_guessing_costs_one_reading_a_second_and_keeps_nobody_waiting_for_long() -> None:
    """Who asks at a path that was just stored gets in among any number of those who guess."""
    secret, loop = Secret(Segments(OLD)), asyncio.get_running_loop()
    served, started = paths(secret), loop.time()
    guesses = [asyncio.create_task(served.serves(OTHER)) for _ in range(500)]
    await asyncio.sleep(0.01)
    secret.segments = Segments(NEW, OLD)
    assert await served.serves(NEW)
    assert loop.time() - started < 2.2
    assert await asyncio.gather(*guesses) == [False] * 500
    for _ in range(20):
        assert not await served.serves(OTHER)
    assert secret.reads <= 2 + (loop.time() - started)


@pytest.mark.looptime
async def test_while_the_api_server_is_away_what_is_known_goes_on() -> None:
    secret = Secret(Segments(OLD))
    served = paths(secret)
    secret.fails = True
    assert not await served.serves(NEW)
    assert await served.serves(OLD)
    served._learn(None)
    served._learn(Content())
    assert await served.serves(OLD)


def told(path: str) -> Entries:
    return Entries((Entry("pods.cardquota.io", "", "/mutate/pods"), Entry(HOOK_ENTRY, "", path)))


@pytest.mark.looptime
async def test_the_plain_path_is_served_while_the_api_server_is_told_to_call_it_and_a_minute_after() -> None:
    served = paths(Secret(Segments(OLD)))
    assert not served.plain()
    served._told(None, told(f"{PLAIN_PATH}/{OLD}"))
    served._told(None, Entries(()))
    assert not served.plain()
    served._told(told(""), told(PLAIN_PATH))
    assert served.plain()
    served._told(told(PLAIN_PATH), told(f"{PLAIN_PATH}/{OLD}"))
    await asyncio.sleep(PLAIN_FOR_S - 1)
    assert served.plain()
    await asyncio.sleep(2)
    assert not served.plain()


@pytest.mark.parametrize(
    "data", [{}, {CURRENT: b"short"}, {CURRENT: b"\xff" * LENGTH}, {FORMER: b"a" * LENGTH}]
)
def test_a_secret_without_a_usable_segment_has_none(data: dict[str, bytes]) -> None:
    assert held_in(Content(data)) is None


def test_segments_are_random_and_not_shown() -> None:
    made = {Segments.new().current for _ in range(100)}
    assert len(made) == 100
    assert {len(segment) for segment in made} == {LENGTH}
    assert not any(segment in repr(Segments(segment, segment)) for segment in made)
    assert not Segments(OLD).holds("")


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("status", "ends", "runs"),
    [
        ({"phase": "Running"}, None, True),
        ({"phase": "Pending"}, None, True),
        ({}, NOW + timedelta(days=1), True),
        ({}, NOW - timedelta(seconds=30), False),
        ({"phase": "Succeeded"}, None, False),
        ({"phase": "Failed"}, None, False),
    ],
)
async def test_a_replica_of_the_first_release_counts_while_it_may_be_asked(
    status: dict[str, str], ends: datetime | None, runs: bool
) -> None:
    """One that is deleted answers until its grace is over; one on a lost node is not waited for."""
    head: dict[str, Any] = {"name": "p", "namespace": "n"}
    if ends is not None:
        head["deletionTimestamp"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    async with FakeApiServer() as server, server.client() as client:
        server.put(PODS, {"metadata": head, "status": status})
        assert await former_replicas(client, "n")() is runs
        (listed,) = server.seen("list")
        assert listed.query["labelSelector"] == (
            "app.kubernetes.io/name=cardquota,app.kubernetes.io/component=controller,"
            "cardquota.io/hook-path!=secret"
        )
