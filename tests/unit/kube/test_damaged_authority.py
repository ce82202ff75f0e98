"""The leader's pass over a Secret in which somebody has damaged something: what is served stays trusted, and is written back."""

from collections.abc import AsyncIterator

import pytest

from kube import pki
from kube.authority import OVERLAP_S, SETTLE_S
from tests.fakes.apiserver import background
from tests.unit.kube.authority_world import START, World, a_world
from tests.unit.kube.damaged import without_line

OTHER = pki.issue_ca(START)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as made:
        yield made


@pytest.mark.parametrize(
    ("part", "left"),
    [
        ("ca_crt", b"garbage"),
        ("ca_crt", OTHER.certificate),
        ("ca_key", b"garbage"),
        ("ca_key", OTHER.key),
    ],
)
async def test_of_a_damaged_authority_what_is_served_is_written_back(
    world: World, part: str, left: bytes
) -> None:
    """Every process goes on with the pair that it has until it is given another one; whom it comes from stays trusted."""
    await world.passes()
    before = world.secret()
    await world.passes(SETTLE_S)
    world.damage(**{part: left})
    await world.passes()
    assert world.secret().data["ca.key"] == before.data["ca.key"]
    assert world.secret().leaf == before.leaf
    assert world.told().startswith(before.authorities)
    await world.passes(SETTLE_S)
    await world.passes(OVERLAP_S)
    await world.passes()
    assert world.secret().data == before.data


@pytest.mark.parametrize("left", [b"", b"garbage"])
async def test_a_new_leader_finds_a_lost_authority_in_the_webhooks_secret(world: World, left: bytes) -> None:
    await world.passes()
    before = world.secret().data
    world.damage(ca_crt=left)
    world.authority = world.another()
    await world.passes()
    assert world.secret().data == before
    assert len(world.server.seen("patch")) == 2, "nothing had to be told"


async def test_a_new_leader_whose_authority_is_gone_for_good_has_what_is_served_trusted(world: World) -> None:
    """The webhook's Secret says whom that comes from."""
    await world.passes()
    before = world.secret()
    world.damage(ca_crt=b"garbage", ca_key=b"garbage")
    world.authority = world.another()
    await world.passes()
    assert world.told().endswith(before.authorities)
    assert world.count() == 2
    assert world.secret().leaf == before.leaf


async def test_a_pair_that_is_gone_is_issued_anew_by_the_authority_that_is_there(world: World) -> None:
    await world.passes()
    before = world.secret()
    world.damage(tls_key=b"")
    world.authority = world.another()
    await world.passes()
    assert world.secret().authorities == before.authorities == world.told()
    assert pki.issued(world.secret().leaf.certificate, before.authorities)


async def test_an_authority_that_cannot_be_read_beside_a_good_one_does_no_harm(world: World) -> None:
    """Appended by hand, with a line missing: it goes with those that are former ones."""
    await world.passes()
    before = world.secret().data
    world.damage(ca_crt=before["ca.crt"] + without_line(OTHER.certificate))
    async with background(world.authority.run()):
        await world.server.wait_for(lambda: world.secret("shared").authorities != before["ca.crt"])
    await world.passes(OVERLAP_S)
    await world.passes()
    assert world.secret().data == before
    assert world.told() == before["ca.crt"]


async def test_a_former_authority_that_is_damaged_while_it_is_trusted_stays_trusted(world: World) -> None:
    await world.passes()
    former = world.secret().authorities
    world.damage(ca_crt=OTHER.certificate, ca_key=OTHER.key)
    await world.passes()
    world.damage(ca_crt=OTHER.certificate + without_line(former))
    await world.passes()
    assert world.told() == OTHER.certificate + former
