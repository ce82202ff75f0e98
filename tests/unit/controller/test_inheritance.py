"""Binds that a former leader may have granted: what they may take is nobody else's until it is known what became of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from core import names, reasons
from kube import errors
from kube.lease import Term
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import show
from tests.unit.controller.test_binding import SETTLED_S, World, code, records, share, stored

pytestmark = pytest.mark.looptime

UNDER_WAY = "cardquota.io/binds-under-way"


def after(left: dict[str, str] | None = None) -> Term:
    """A term that follows another one, whose leader has left this on the Lease, or has just vanished."""
    return Term(1, lambda: 0.0, 1.0, left)


@asynccontextmanager
async def led(world: World, term: Term) -> AsyncIterator[None]:
    """The hook of a leader that has taken over a moment ago."""
    world.hook.stop()
    await world.hook.inherit(term, asyncio.get_running_loop().time())
    world.hook.start(term)
    async with background(world.hook.run()):
        yield


async def test_cards_are_granted_to_nobody_else_while_another_bind_may_be_stored() -> None:
    """Of each of the two it is unknown. When the time is over they are read, and then either may have the card."""
    world = World(share("a", 100), share("b", 100))
    async with led(world, after()):
        for name in ("a", "b"):
            assert code(await world.bind(name)) == reasons.NO_LEADER
        await asyncio.sleep(SETTLED_S - 1)
        assert code(await world.bind("b")) == reasons.NO_LEADER
        await asyncio.sleep(2)
        assert (await world.bind("b")).allowed


async def test_a_bind_that_was_stored_unseen_is_found_by_the_read() -> None:
    """The watch is late: what was granted before is not granted again when the time is over."""
    world = World(share("a", 100), share("b", 100))
    granted = await world.bind("a")
    async with led(world, after()):
        world.reader.stored["ml/a"] = stored(share("a", 100), granted).build()
        await asyncio.sleep(SETTLED_S + 1)
        second = await world.bind("b")
    assert (records(granted), records(second)) != (records(second), records(granted))


async def test_what_cannot_be_read_stays_open() -> None:
    world = World(share("a", 100), share("b", 100))
    async with led(world, after()):
        world.reader.fails = errors.ConnectionFailed("away")
        await asyncio.sleep(SETTLED_S + 60)
        world.reader.fails = None
        assert code(await world.bind("b")) == reasons.NO_LEADER
        await asyncio.sleep(10)
        assert (await world.bind("b")).allowed


@pytest.mark.parametrize("ends", ["bound", "ended", "gone", "deleted"])
async def test_as_soon_as_the_watch_shows_what_became_of_a_pod_it_is_in_nobodys_way(ends: str) -> None:
    world = World(share("a", 50), share("b", 50))
    shown = {
        "bound": share("a", 50).bound_to("m1"),
        "ended": share("a", 50).phase("Failed"),
        "deleted": share("a", 50).terminating(),
        "gone": None,
    }[ends]
    async with led(world, after()):
        assert code(await world.bind("b")) == reasons.NO_LEADER
        show(world.caches.pods, "ml/a", None if shown is None else shown.view())
        assert (await world.bind("b")).allowed


@pytest.mark.parametrize(
    "other",
    [
        a_pod("c"),
        a_pod("c")
        .gpu(1)
        .card("A")
        .put("metadata", "annotations", names.ASSIGNED_ANNOTATION, value='{"A":1}'),
        share("c").gated(),
    ],
)
async def test_whose_bind_takes_nothing_new_is_in_nobodys_way(other: PodBuilder) -> None:
    """Whoever asks for nothing of ours, or keeps the card that it was lifted for, or is not lifted."""
    world = World(share("a"), other)
    async with led(world, after()):
        assert (await world.bind("a")).allowed


async def test_a_single_pod_is_granted_its_bind_at_once() -> None:
    """Whichever of its two binds is stored, the other one is refused by the API server."""
    world = World(share("a"))
    async with led(world, after()):
        assert (await world.bind("a")).allowed


async def test_a_leader_that_gives_the_lease_back_says_what_is_under_way() -> None:
    """Then nobody waits for anything else. What it has itself inherited is passed on."""
    world = World(share("a", 20), share("b", 20), share("c", 20))
    first = after({UNDER_WAY: ""})
    async with led(world, first):
        assert (await world.bind("a")).allowed
        assert first.leaving == {}, "it leads"
    world.hook.stop()
    assert first.leaving == {UNDER_WAY: "uid-ml-a"}
    second = after(dict(first.leaving))
    async with led(world, second):
        assert code(await world.bind("b")) == reasons.NO_LEADER
        assert (await world.bind("a")).allowed
    world.hook.stop()
    assert second.leaving == {UNDER_WAY: "uid-ml-a"}


async def test_a_leader_that_has_granted_nothing_yet_does_not_say_that_nothing_is_under_way() -> None:
    """It has led before, and stops while it is taking over from somebody else."""
    world = World(share("a", 20))
    async with led(world, after({UNDER_WAY: ""})):
        pass
    third = after({UNDER_WAY: "uid-ml-a"})
    world.hook.stop()
    await world.hook.inherit(third, asyncio.get_running_loop().time())
    world.hook.stop()
    assert third.leaving == {}


async def test_a_lease_that_does_not_say_so_is_no_proof() -> None:
    world = World(share("a", 20), share("b", 20))
    async with led(world, after({})):
        assert code(await world.bind("b")) == reasons.NO_LEADER


async def test_a_card_that_the_bind_of_a_lifted_pod_may_take_is_given_to_nobody() -> None:
    """It was lifted for one of two cards. A former leader may have let it go to a node that carries the other one."""
    pod = a_pod("a").gpu(1).card("A|B").in_queue("q")
    lifted = pod.put("metadata", "annotations", names.ASSIGNED_ANNOTATION, value='{"A":1}')
    world = World(lifted)
    show(world.caches.nodes, "n", a_node("n").card("B", 8).view())
    show(world.caches.queues, "q", a_queue("q").cards({"A": 1, "B": 1}).view())
    ledger = world.caches.ledger
    assert (ledger.used("q", "A"), ledger.used("q", "B")) == (1000, 0)
    async with led(world, after()):
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (1000, 1000)
        await asyncio.sleep(SETTLED_S + 1)
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (1000, 0)


async def test_while_pods_are_taken_over_others_have_their_turn() -> None:
    """Ten thousand of them take a second: the lease would be lost."""
    world, turns = World(*(share(f"p{number}", 1) for number in range(500))), 0
    world.hook.stop()

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with background(count()):
        await world.hook.inherit(after(), asyncio.get_running_loop().time())
    assert turns >= 500 / 50
    world.hook.stop()
