"""A standby asks the leader over mutual TLS, and says "try again" where it cannot."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from controller.answering import LEADER_PATH as ANSWERS_PATH
from controller.app import add_leader_routes
from controller.forwarding import ADDRESS_ANNOTATION, LEADER_PATH, LeaderLink
from core import reasons
from core.admission.request import Decision
from kube.admission.metrics import ReviewMetrics
from kube.admission.wire import encode_request
from kube.pki import Bundle, renewed
from kube.serving import Server, application
from kube.tls import ServingCertificate, client_context
from tests.unit.controller.test_binding import World, binding, code, records, share

NAME = "cardquota-controller.test.svc"


def a_bundle() -> Bundle:
    return renewed(None, [NAME, "127.0.0.1"], datetime.now(UTC))


@dataclass
class Election:
    """What the standby knows of the Lease."""

    holder: tuple[str, Mapping[str, str]] | None
    identity: str = field(default="standby")


@asynccontextmanager
async def leader(world: World, bundle: Bundle, peers: set[object] | None = None) -> AsyncIterator[str]:
    """A leader's port; its address. `peers` gets the other ends of its connections."""
    certificate = ServingCertificate()
    certificate.load(bundle.leaf.certificate, bundle.leaf.key, bundle.ca_certificates)
    app = application()
    authorities = bundle.ca_certificates
    add_leader_routes(app, world.hook, ReviewMetrics(CollectorRegistry()), lambda: authorities)

    async def note(request: web.Request, _: web.StreamResponse) -> None:
        if peers is not None and request.transport is not None:
            peers.add(request.transport.get_extra_info("peername"))

    app.on_response_prepare.append(note)
    server = Server(app, "127.0.0.1", 0, certificate.context)
    await server.start()
    try:
        yield f"https://127.0.0.1:{server.port}"
    finally:
        await server.stop()


def link(address: str, bundle: Bundle | None) -> LeaderLink:
    return LeaderLink(
        Election(("leader", {ADDRESS_ANNOTATION: address})), lambda: bundle, NAME, timeout_s=3.0
    )


async def asked(standby: LeaderLink) -> Decision:
    async with standby:
        return await standby.ask(binding("a"))


async def test_the_leaders_answer_comes_back_as_it_was_given() -> None:
    bundle, world, beside = a_bundle(), World(share("a"), share("b"), share("c")), World(share("a"))
    async with leader(world, bundle) as address, link(address, bundle) as standby:
        assert await standby.ask(binding("a", annotations={"x/y~z": "kept"})) == await beside.bind(
            "a", annotations={"x/y~z": "kept"}
        )
        assert records(await standby.ask(binding("b", dry_run=True))) == records(
            await standby.ask(binding("b"))
        )
        refused = await standby.ask(binding("c"))
        own = await world.bind("c")
    assert refused.denial is not None
    assert own.denial is not None
    assert (refused.denial.message, code(refused)) == (own.denial.message, code(own))


async def test_a_standby_hook_answers_with_the_leaders_cards() -> None:
    bundle, world = a_bundle(), World(share("a"))
    async with leader(world, bundle) as address, link(address, bundle) as to_leader:
        standby = World(share("a"))
        standby.hook.stop()
        standby.hook._ask_leader = to_leader.ask
        assert records(await standby.bind("a"))
    assert len(world.caches.ledger.pods_on("m1")) == 1
    assert standby.caches.ledger.pods_on("m1") == []


@pytest.mark.parametrize("path", [LEADER_PATH, ANSWERS_PATH])
async def test_whoever_cannot_show_the_shared_certificate_is_turned_away(path: str) -> None:
    bundle, world, stranger = a_bundle(), World(share("a")), a_bundle()
    async with leader(world, bundle) as address:
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                address + path,
                data=encode_request(binding("a")),
                headers={"Content-Type": "application/json"},
                ssl=client_context(bundle.ca_certificates),
            ) as response,
        ):
            assert response.status == 403
        assert code(await asked(link(address, stranger))) == reasons.NO_LEADER
    assert world.caches.ledger.pods_on("m1") == []


@pytest.mark.parametrize(
    "holder",
    [
        None,
        ("standby", {ADDRESS_ANNOTATION: "https://127.0.0.1:1"}),
        ("leader", {}),
        ("leader", {ADDRESS_ANNOTATION: "https://127.0.0.1:1"}),
        ("leader", {ADDRESS_ANNOTATION: "nonsense"}),
    ],
)
async def test_without_a_leader_to_ask_the_scheduler_is_told_to_try_again(
    holder: tuple[str, Mapping[str, str]] | None,
) -> None:
    decision = await asked(LeaderLink(Election(holder), a_bundle, NAME, timeout_s=3.0))
    assert code(decision) == reasons.NO_LEADER
    assert decision.denial is not None
    assert "try again" in decision.denial.message


async def test_before_there_is_a_certificate_nobody_is_asked() -> None:
    assert code(await asked(link("https://127.0.0.1:1", None))) == reasons.NO_LEADER


async def test_a_leader_that_has_just_lost_its_lease_does_not_ask_further() -> None:
    bundle, world = a_bundle(), World(share("a"))
    world.hook.stop()

    async def loop(_: object) -> Decision:
        raise AssertionError("asked again")

    world.hook._ask_leader = loop
    async with leader(world, bundle) as address:
        assert code(await asked(link(address, bundle))) == reasons.NO_LEADER


async def test_the_connection_to_the_leader_is_kept_and_made_anew_where_it_was_lost() -> None:
    """A handshake for each bind would cost the leader more than the bind."""
    bundle, world, peers = a_bundle(), World(share("a")), set[object]()
    async with link("https://127.0.0.1:1", bundle) as standby:
        for _ in range(2):
            async with leader(world, bundle, peers) as address:
                standby._elector = Election(("leader", {ADDRESS_ANNOTATION: address}))
                for _ in range(5):
                    assert (await standby.ask(binding("a"))).allowed
    assert len(peers) == 2
