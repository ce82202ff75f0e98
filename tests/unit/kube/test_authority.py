"""The leader's pass over certificates: what it stores and tells, and in which order."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web
from cryptography import x509

from kube import errors, pki
from kube.authority import OVERLAP_S, SETTLE_S
from kube.certificates import content, encoded, of_bundle
from kube.resources import MUTATING_WEBHOOKS, SECRETS
from kube.segments import held_in
from tests.fakes import faults
from tests.fakes.apiserver import background
from tests.unit.kube.authority_world import (
    FOREIGN,
    HOOK,
    PLAIN,
    PODS,
    READ,
    START,
    World,
    a_world,
    configure,
)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as made:
        yield made


def common_names(pem: bytes) -> set[str]:
    found = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    return {str(name.value) for name in found.value}


async def test_empty_secrets_are_filled_told_and_then_left_alone(world: World) -> None:
    """Each kind of process gets a pair for its own names; foreign entries, types and keys stay."""
    world.server.objects[SECRETS.path("n", "shared")]["data"] = {"note": "a2VwdA=="}
    await world.passes()
    own, shared = world.secret(), world.secret("shared")
    assert own.data.keys() == {"ca.crt", "ca.key", "tls.crt", "tls.key", "hook.segment"}
    assert shared.data.keys() == {"ca.crt", "tls.crt", "tls.key", "note"}, "not the authority's key"
    assert common_names(own.leaf.certificate) == {"controller.svc"}
    assert common_names(shared.leaf.certificate) == {"webhook.svc"}
    assert (pki.serves_clients(own.leaf), pki.serves_clients(shared.leaf)) == (True, False)
    assert own.authorities == shared.authorities == world.told()
    assert world.entries()[FOREIGN] == {
        "service": {"name": "s", "namespace": "n", "path": "/x"},
        "caBundle": "Zm9yZWlnbg==",
    }
    assert world.path() == f"{PLAIN}/{world.segment()}"
    assert world.entries()[PODS]["service"]["path"] == "/x"
    await world.passes(SETTLE_S)
    await world.passes(OVERLAP_S)
    assert len(world.server.seen("update")) == 2
    assert len(world.server.seen("patch")) == 2


async def test_missing_secrets_are_created(world: World) -> None:
    """Outside a chart nobody has made them; where that is not granted it is a failure like any other."""
    for name in ("own", "shared"):
        world.server.remove(SECRETS, name, "n")
    await world.passes()
    assert world.secret().bundle is not None
    assert world.secret("shared").leaf is not None


async def test_the_webhooks_pair_is_stored_only_after_its_authority_was_told(world: World) -> None:
    world.server.fail("patch", faults.answer_status(403, "Forbidden"), path="validating")
    with pytest.raises(errors.Forbidden):
        await world.passes()
    assert world.secret("shared").leaf is None
    await world.passes()
    assert world.secret("shared").leaf is not None


async def test_a_leaf_that_is_due_goes_when_the_trust_in_its_authority_has_settled(world: World) -> None:
    """The path changes with it: stored first, called when every replica had the time to hear of it, then the old one goes."""
    await world.passes()
    before, shared, segment = world.secret().leaf, world.secret("shared").leaf, world.segment()
    world.now += timedelta(days=300)
    world.authority = world.another()
    await world.passes()
    assert (world.secret().leaf, world.secret("shared").leaf) == (before, shared)
    await world.passes(SETTLE_S)
    assert world.secret().leaf != before
    assert world.secret("shared").leaf != shared
    found = held_in(world.secret())
    assert found is not None
    assert found.former == segment != found.current
    assert world.path() == f"{PLAIN}/{segment}"
    await world.passes(SETTLE_S)
    assert world.path() == f"{PLAIN}/{found.current}"
    await world.passes(OVERLAP_S)
    after = held_in(world.secret())
    assert after is not None
    assert (after.current, after.former) == (found.current, "")
    assert world.path() == f"{PLAIN}/{found.current}"


OTHER = pki.issue_ca(START)


@pytest.mark.parametrize(
    ("left", "another"),
    [
        ({"ca_key": b""}, True),
        ({"ca_key": b"lost"}, True),
        ({"ca_key": OTHER.key}, True),
        ({"ca_key": OTHER.key, "ca_crt": OTHER.certificate}, False),
    ],
)
async def test_a_new_authority_is_told_before_anything_of_it_is_served_and_the_old_one_goes_last(
    world: World, left: dict[str, bytes], another: bool
) -> None:
    """Whether the old one's key is gone, damaged or another one's, or somebody stores an authority of his."""
    await world.passes()
    before, shared = world.secret(), world.secret("shared")
    await world.passes(SETTLE_S)
    world.damage(**left)
    if another:
        world.authority = world.another()
    await world.passes()
    assert world.secret().leaf == before.leaf
    assert world.secret("shared").leaf == shared.leaf
    assert world.secret().authorities.endswith(before.authorities)
    assert world.count() == 2
    assert world.told() == world.secret().authorities == world.secret("shared").authorities
    await world.passes(SETTLE_S)
    new = pki.issuing_only(world.secret().bundle).ca_certificates
    for name in ("own", "shared"):
        assert pki.issued(world.secret(name).leaf.certificate, new)
    assert world.count() == 2, "replicas may still serve what the old one has issued"
    await world.passes(OVERLAP_S)
    await world.passes()
    assert world.secret().authorities == world.told() == new


async def test_a_leaf_that_nobody_could_accept_any_more_is_replaced_at_once(world: World) -> None:
    await world.passes()
    world.now += timedelta(days=400)
    world.authority = world.another()
    await world.passes()
    for name in ("own", "shared"):
        assert not pki.needs_renewal(world.secret(name).leaf.certificate, world.now)


@pytest.mark.parametrize("how", ["emptied", "deleted and made anew", "damaged"])
async def test_a_secret_that_is_lost_is_filled_again_with_what_is_being_served(
    world: World, how: str
) -> None:
    await world.passes()
    before = world.secret().data
    path = SECRETS.path("n", "own")
    if how == "damaged":
        world.server.objects[path]["data"] = dict.fromkeys(world.server.objects[path]["data"], "!")
    else:
        world.server.put(SECRETS, {"metadata": {"name": "own", "namespace": "n"}})
    await world.passes()
    assert world.secret().data == before
    assert len(world.server.seen("patch")) == 2, "nothing had to be told"


async def test_what_the_first_release_left_is_gone_on_with(world: World) -> None:
    """Its authority is known to schedulers; its key leaves the Secret that the webhook reads, and its pair is exchanged.

    As long as a replica of it runs, that replica finds everything as it left it.
    """
    left = pki.renewed(None, ("controller.svc", "webhook.svc"), START)
    world.server.objects[SECRETS.path("n", "shared")]["data"] = encoded(of_bundle(left))
    configure(world.server, PLAIN)
    world.former = True
    await world.passes()
    await world.passes(SETTLE_S)
    assert world.secret("shared").data == of_bundle(left)
    assert world.path() == PLAIN
    assert world.told() == world.secret().authorities == left.ca_certificates
    configure(world.server, None)
    await world.passes()
    assert world.path() == PLAIN, "an upgrade took it away, and nobody serves the root"
    world.former = False
    await world.passes(SETTLE_S)
    assert world.path().startswith(PLAIN + "/")
    shared = world.secret("shared")
    assert "ca.key" not in shared.data
    assert shared.authorities == left.ca_certificates
    assert not pki.serves_clients(shared.leaf)
    assert common_names(shared.leaf.certificate) == {"webhook.svc"}


async def test_who_goes_back_to_the_first_release_finds_its_path_as_its_chart_has_put_it(
    world: World,
) -> None:
    """A leader of this release still leads then, and no replica of the first one runs yet: after it nobody tells another path."""
    await world.passes()
    configure(world.server, PLAIN, marked=False)
    await world.passes()
    assert world.path() == PLAIN
    assert world.told() == world.secret().authorities, "whom to trust is said all the same"
    await world.passes(SETTLE_S)
    assert world.path() == PLAIN
    configure(world.server, PLAIN)
    await world.passes()
    assert world.path() == f"{PLAIN}/{world.segment()}", "upgraded again"


@pytest.mark.parametrize("path", [None, "/x"], ids=["none", "another"])
async def test_a_configuration_without_the_mark_gets_the_path_unless_it_names_that_of_the_first_release(
    world: World, path: str | None
) -> None:
    """It is of a chart between the two, whose controllers serve the path in the Secret."""
    configure(world.server, path, marked=False)
    await world.passes()
    assert world.path() == f"{PLAIN}/{world.segment()}"
    await world.passes(SETTLE_S)
    assert world.path() == f"{PLAIN}/{world.segment()}"


async def test_replicas_that_race_agree(world: World) -> None:
    """There is one leader, but for a moment it may be two."""
    replicas = [world.another() for _ in range(4)]
    await asyncio.gather(*(replica.reconcile() for replica in replicas))
    assert world.told() == world.secret().authorities == world.secret("shared").authorities
    assert pki.issued(world.secret("shared").leaf.certificate, world.told())


async def test_who_has_read_an_empty_secret_does_not_write_over_what_another_has_filled_meanwhile(
    world: World,
) -> None:
    winner, path = world.another(), SECRETS.path("n", "own")

    async def read_and_filled(_request: web.Request) -> web.Response:
        before = dict(world.server.objects[path])
        await winner.reconcile()
        return web.json_response(before)

    world.server.fail("get", read_and_filled, path=path)
    await world.passes()
    stored = [request for request in world.server.seen("update") if request.path == path]
    assert len(stored) == 2, "the winner's, and one that was refused"
    (won, _) = (content(request.body).authorities for request in stored)
    assert world.secret().authorities == won == world.told()


async def test_endless_conflicts_are_an_error(world: World) -> None:
    """Somebody who rewrites the Secret all the time is reported, not fought for ever."""
    world.server.fail("update", faults.answer_status(409, "Conflict"), times=99)
    with pytest.raises(errors.Conflict):
        await world.passes()


async def test_entries_that_move_under_the_patch_are_read_again(world: World) -> None:
    """The patch tests the name at its index, so another entry never gets what is ours."""
    path = MUTATING_WEBHOOKS.path(None, "m")

    async def read_and_move(_request: web.Request) -> web.Response:
        before = dict(world.server.objects[path])
        webhooks = [{"name": FOREIGN, "clientConfig": {"url": "https://other/x"}}, *before["webhooks"][::2]]
        world.server.put(MUTATING_WEBHOOKS, {"metadata": {"name": "m"}, "webhooks": webhooks})
        return web.json_response(before)

    world.server.fail("get", read_and_move, path="mutating")
    await world.passes()
    assert world.entries()[FOREIGN] == {"url": "https://other/x"}
    assert world.path() == f"{PLAIN}/{world.segment()}"


async def test_an_entry_that_names_an_address_keeps_it_but_for_the_path(world: World) -> None:
    webhooks = [{"name": HOOK, "clientConfig": {"url": "https://localhost:9"}}]
    world.server.put(MUTATING_WEBHOOKS, {"metadata": {"name": "m"}, "webhooks": webhooks})
    await world.passes()
    assert world.entries()[HOOK]["url"] == f"https://localhost:9{PLAIN}/{world.segment()}"


async def test_a_failed_pass_is_counted_and_tried_again_soon(world: World) -> None:
    """Not an hour later, and without ending the process."""
    world.server.fail("get", faults.answer_status(403, "Forbidden"))
    async with background(world.authority.run()):
        await world.server.wait_for(lambda: world.secret().bundle is not None)
    assert world.metrics.registry.get_sample_value("cardquota_certificate_failures_total") == 1.0


@pytest.mark.parametrize("last_read", [*READ, None])
async def test_a_path_is_told_when_it_has_settled_though_that_is_in_the_middle_of_a_pass(
    world: World, last_read: str | None
) -> None:
    """A pass found it too early, and when it had ended nothing was left to wait for: it was told an hour later."""
    await world.passes()
    new, former = b"d" * 64, world.segment().encode()
    world.damage(hook_segment=new, hook_former=former)
    await world.passes()
    stored = world.seconds
    world.seconds += SETTLE_S - 0.5
    if last_read is not None:
        world.takes(1.0, last_read)
    await world.passes_and_waits()
    assert world.path() == f"{PLAIN}/{former.decode()}"
    assert world.seconds <= stored + SETTLE_S + 0.5
    await world.passes()
    assert world.path() == f"{PLAIN}/{new.decode()}"
