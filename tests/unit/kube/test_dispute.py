"""Somebody who changes what the leader keeps, again and again: he is not fought at his pace, and delays nothing else."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kube import pki
from kube.authority import Authority
from kube.certificates import encoded
from kube.resources import SECRETS
from tests.fakes.apiserver import background
from tests.unit.kube.authority_world import HOOK, PLACES, READ, START, World, a_world, configure


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as made:
        yield made


async def test_what_is_undone_is_restored_at_once_but_not_at_any_pace(world: World) -> None:
    await world.passes()
    world.authority = Authority(world.client, PLACES, world._former, now=lambda: world.now)
    async with background(world.authority.run()):
        await world.server.wait_for(lambda: len(world.server.seen("get")) >= 8)
        configure(world.server)
        world.authority.changed.set()
        await world.server.wait_for(lambda: "caBundle" in world.entries()[HOOK])
        patches = len(world.server.seen("patch"))
        for _ in range(10):
            configure(world.server)
            world.authority.changed.set()
            await asyncio.sleep(0.05)
        assert len(world.server.seen("patch")) <= patches + 4
        await world.server.wait_for(lambda: "caBundle" in world.entries()[HOOK], 10.0)


async def looked_again(world: World) -> None:
    """Returns when something was read after this."""
    before = len(world.server.seen("get"))
    world.authority.changed.set()
    await world.server.wait_for(lambda: len(world.server.seen("get")) > before)


async def test_a_quarrel_over_a_configuration_delays_nothing_else(world: World) -> None:
    """Somebody took our trust out of it four times in two minutes: a Secret that was lost then stayed empty as long again."""
    await world.passes()
    async with background(world.authority.run()):
        configure(world.server)
        world.authority.changed.set()
        await world.server.wait_for(lambda: "caBundle" in world.entries()[HOOK])
        configure(world.server)
        world.server.put(SECRETS, {"metadata": {"name": "own", "namespace": "n"}, "type": "Opaque"})
        world.authority.changed.set()
        await world.server.wait_for(lambda: world.secret().bundle is not None)
        for _ in range(5):
            await looked_again(world)
        assert "caBundle" not in world.entries()[HOOK], "it is not put right at his pace"
        world.seconds += 2
        world.authority.changed.set()
        await world.server.wait_for(lambda: "caBundle" in world.entries()[HOOK])


@pytest.mark.parametrize("last_read", [*READ, None])
async def test_what_was_left_alone_is_put_right_though_its_rest_ends_in_the_middle_of_a_pass(
    world: World, last_read: str | None
) -> None:
    """A pass found it too early, and when it had ended nothing was left to wait for: it stayed wrong for an hour."""
    await world.passes()
    configure(world.server)
    await world.passes()
    configure(world.server)
    if last_read is not None:
        world.takes(2.0, last_read)
    begun, rested_s = world.seconds, 0.0
    while "caBundle" not in world.entries()[HOOK]:
        rested_s = world.seconds - begun
        await world.passes_and_waits()
    # It takes until its rest and the slow pass have ended.
    assert 1.0 <= rested_s <= 4.1


async def test_what_we_want_otherwise_is_told_in_the_middle_of_a_quarrel(world: World) -> None:
    await world.passes()
    for _ in range(6):
        configure(world.server)
        await world.passes()
    assert "caBundle" not in world.entries()[HOOK]
    other = pki.issue_ca(START)
    own = dict(world.secret().data) | {"ca.crt": other.certificate, "ca.key": other.key}
    world.server.objects[SECRETS.path("n", "own")]["data"] = encoded(own)
    await world.passes()
    assert world.told() == world.secret().authorities
    assert world.count() == 2


async def test_who_leaves_a_configuration_alone_is_corrected_at_once_again(world: World) -> None:
    await world.passes()
    for _ in range(6):
        configure(world.server)
        await world.passes()
    assert "caBundle" not in world.entries()[HOOK]
    await world.passes(after_s=61)
    assert "caBundle" in world.entries()[HOOK]
    configure(world.server)
    await world.passes(after_s=61)
    assert "caBundle" in world.entries()[HOOK]
