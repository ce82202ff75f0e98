"""The leader's pass over certificates: what it stores and tells, and in which order."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from prometheus_client import CollectorRegistry

from kube import errors, pki
from kube.authority import OVERLAP_S, SETTLE_S, Authority, Places
from kube.certificates import content, encoded, of_bundle
from kube.client import Client
from kube.metrics import Metrics
from kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from kube.segments import held_in
from tests.fakes import apiserver
from tests.fakes.apiserver import FakeApiServer, background

Json = dict[str, Any]

START = datetime(2030, 1, 1, tzinfo=UTC)
PODS, HOOK, FOREIGN = "pods.cardquota.io", "hook.cardquota.io", "other.example.org"
PLAIN = "/hook"
PLACES = Places(
    namespace="n",
    secret="own",
    shared="shared",
    names=("controller.svc",),
    shared_names=("webhook.svc",),
    configurations=((MUTATING_WEBHOOKS, "m"), (VALIDATING_WEBHOOKS, "v"), (VALIDATING_WEBHOOKS, "none")),
    hook=HOOK,
    plain=PLAIN,
)


class World:
    """A fake API server, an authority, and two clocks that the test moves."""

    def __init__(self, server: FakeApiServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.now = START
        self.seconds = 1000.0
        self.former = False
        self.metrics = Metrics(CollectorRegistry())
        self.authority = self.another()

    def another(self) -> Authority:
        """That of another replica."""
        return Authority(
            self.client,
            PLACES,
            self._former,
            now=lambda: self.now,
            clock=lambda: self.seconds,
            metrics=self.metrics,
        )

    async def _former(self) -> bool:
        return self.former

    async def passes(self, after_s: float = 0.0) -> None:
        self.seconds += after_s
        await self.authority.reconcile()

    def secret(self, name: str = "own") -> Any:
        return content(self.server.objects.get(SECRETS.path("n", name)))

    def segment(self) -> str:
        found = held_in(self.secret())
        assert found is not None
        return found.current

    def entries(self, kind: Any = MUTATING_WEBHOOKS, name: str = "m") -> dict[str, Json]:
        raw = self.server.objects[kind.path(None, name)]
        return {entry["name"]: entry["clientConfig"] for entry in raw["webhooks"]}

    def told(self) -> bytes:
        """Whom the API server trusts by all of our entries."""
        bundles = {client["caBundle"] for name, client in self.entries().items() if name != FOREIGN}
        bundles |= {client["caBundle"] for client in self.entries(VALIDATING_WEBHOOKS, "v").values()}
        (bundle,) = bundles
        return base64.b64decode(bundle)

    def path(self) -> str:
        return str(self.entries()[HOOK]["service"].get("path"))

    def count(self) -> int:
        return len(x509.load_pem_x509_certificates(self.secret().authorities))


def configure(server: FakeApiServer, path: str | None = None) -> None:
    """Both configurations as the chart has them."""

    def entry(name: str, path: str | None = "/x", **more: str) -> Json:
        service = {"name": "s", "namespace": "n"} | ({"path": path} if path else {})
        return {"name": name, "clientConfig": {"service": service, **more}}

    mine = [entry(PODS), entry(FOREIGN, caBundle="Zm9yZWlnbg=="), entry(HOOK, path)]
    server.put(MUTATING_WEBHOOKS, {"metadata": {"name": "m"}, "webhooks": mine})
    server.put(VALIDATING_WEBHOOKS, {"metadata": {"name": "v"}, "webhooks": [entry(PODS)]})


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with FakeApiServer() as server, server.client() as client:
        configure(server)
        for name in ("own", "shared"):
            server.put(SECRETS, {"metadata": {"name": name, "namespace": "n"}, "type": "Opaque"})
        yield World(server, client)


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
    world.server.fail("patch", apiserver.answer_status(403, "Forbidden"), path="validating")
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


@pytest.mark.parametrize(
    ("left", "another"),
    [(b"", True), (b"lost", True), (pki.issue_ca(START).key, True), (pki.issue_ca(START).key, False)],
)
async def test_a_new_authority_is_told_before_anything_of_it_is_served_and_the_old_one_goes_last(
    world: World, left: bytes, another: bool
) -> None:
    """Whether its key is gone, damaged or another one's, and whether or not the leader knew the old one."""
    await world.passes()
    before, shared = world.secret(), world.secret("shared")
    await world.passes(SETTLE_S)
    data = world.server.objects[SECRETS.path("n", "own")]["data"]
    data["ca.key"] = base64.b64encode(left).decode()
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
    world.server.fail("update", apiserver.answer_status(409, "Conflict"), times=99)
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


async def test_a_failed_pass_is_counted_and_tried_again_soon(world: World) -> None:
    """Not an hour later, and without ending the process."""
    world.server.fail("get", apiserver.answer_status(403, "Forbidden"))
    async with background(world.authority.run()):
        await world.server.wait_for(lambda: world.secret().bundle is not None)
    assert world.metrics.registry.get_sample_value("cardquota_certificate_failures_total") == 1.0


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


async def test_what_we_want_otherwise_is_told_in_the_middle_of_a_quarrel(world: World) -> None:
    await world.passes()
    for _ in range(6):
        configure(world.server)
        await world.passes()
    assert "caBundle" not in world.entries()[HOOK]
    own = dict(world.secret().data) | {"ca.key": pki.issue_ca(START).key}
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
