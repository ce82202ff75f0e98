import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from prometheus_client import CollectorRegistry

from kube import errors
from kube.certificates import SelfSigned
from kube.client import Client
from kube.metrics import Metrics
from kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from kube.tls import ServingCertificate
from tests.fakes import apiserver
from tests.fakes.apiserver import FakeApiServer, background

Json = dict[str, Any]

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = ("cardquota-webhook.system.svc",)
CONFIGURATIONS = ((MUTATING_WEBHOOKS, "cardquota"), (VALIDATING_WEBHOOKS, "cardquota"))


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    async with server.client() as connected:
        yield connected


def self_signed(client: Client, **options: Any) -> SelfSigned:
    options.setdefault("now", lambda: NOW)
    options.setdefault("metrics", Metrics(CollectorRegistry()))
    return SelfSigned(client, "system", "cardquota-certs", NAMES, **options)


def empty_secret(server: FakeApiServer, data: Json | None = None) -> None:
    head = {"name": "cardquota-certs", "namespace": "system"}
    server.put(SECRETS, {"metadata": head, "data": data, "type": "Opaque"})


def configuration(server: FakeApiServer, name: str, *webhooks: Json) -> None:
    server.put(MUTATING_WEBHOOKS, {"metadata": {"name": name}, "webhooks": list(webhooks)})


def webhook(name: str, ca_bundle: str | None = None) -> Json:
    config: Json = {"service": {"name": "s", "namespace": "n"}}
    return {"name": name, "clientConfig": config | ({"caBundle": ca_bundle} if ca_bundle else {})}


async def test_an_empty_secret_is_filled_and_then_left_alone(server: FakeApiServer, client: Client) -> None:
    """Four keys, foreign ones kept; the second pass writes nothing."""
    empty_secret(server, {"note": "a2VwdA=="})
    keeper = self_signed(client)
    bundle = await keeper.ensure()
    stored = server.objects[SECRETS.path("system", "cardquota-certs")]
    assert set(stored["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key", "note"}
    assert stored["type"] == "Opaque"
    assert base64.b64decode(stored["data"]["tls.crt"]) == bundle.leaf.certificate
    names = (
        x509.load_pem_x509_certificate(bundle.leaf.certificate)
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
    )
    assert [str(name.value) for name in names] == [*NAMES, "localhost", "127.0.0.1"]
    assert await keeper.ensure() == bundle
    assert len(server.seen("update")) == 1


async def test_a_missing_secret_is_created(server: FakeApiServer, client: Client) -> None:
    """Outside a chart nobody has made it."""
    bundle = await self_signed(client).ensure()
    assert await self_signed(client).ensure() == bundle


@pytest.mark.parametrize("exists", [True, False])
async def test_replicas_that_race_agree_on_one_bundle(
    server: FakeApiServer, client: Client, exists: bool
) -> None:
    """The loser of the write takes what the winner stored."""
    if exists:
        empty_secret(server)
    bundles = await asyncio.gather(*(self_signed(client).ensure() for _ in range(5)))
    assert len({bundle.leaf.certificate for bundle in bundles}) == 1
    assert len(server.seen("update") + server.seen("create")) > 1


@pytest.mark.parametrize("value", ["", "!!!", "AAAA", None])
async def test_damaged_content_is_replaced(server: FakeApiServer, client: Client, value: str | None) -> None:
    """Empty, not base64, not PEM, null."""
    await self_signed(client).ensure()
    path = SECRETS.path("system", "cardquota-certs")
    server.objects[path]["data"]["tls.key"] = value
    bundle = await self_signed(client).ensure()
    assert base64.b64decode(server.objects[path]["data"]["tls.key"]) == bundle.leaf.key


async def test_endless_conflicts_are_an_error(server: FakeApiServer, client: Client) -> None:
    """Somebody who rewrites the Secret all the time is reported, not fought for ever."""
    empty_secret(server)
    server.fail("update", apiserver.answer_status(409, "Conflict"), times=99)
    with pytest.raises(errors.Conflict):
        await self_signed(client).ensure()


async def test_our_webhooks_get_the_bundle_and_foreign_ones_keep_theirs(
    server: FakeApiServer, client: Client
) -> None:
    """Only what differs is patched, in one patch; a configuration that does not exist is passed over."""
    mine, foreign = "pods.cardquota.io", "other.example.org"
    configuration(server, "cardquota", webhook(mine), webhook(foreign, "Zm9yZWlnbg=="), webhook("b." + mine))
    keeper = self_signed(client)
    assert await keeper.inject(CONFIGURATIONS, b"bundle") == 2
    stored = server.objects[MUTATING_WEBHOOKS.path(None, "cardquota")]
    bundles = [entry["clientConfig"]["caBundle"] for entry in stored["webhooks"]]
    encoded = base64.b64encode(b"bundle").decode()
    assert bundles == [encoded, "Zm9yZWlnbg==", encoded]
    assert await keeper.inject(CONFIGURATIONS, b"bundle") == 0
    assert len(server.seen("patch")) == 1


async def test_webhooks_that_move_under_the_patch_are_read_again(
    server: FakeApiServer, client: Client
) -> None:
    """The patch tests the name at its index, so another entry never gets our bundle."""
    mine, foreign = webhook("pods.cardquota.io"), webhook("other.example.org")
    configuration(server, "cardquota", mine)

    async def read_and_move(_request: web.Request) -> web.Response:
        before = dict(server.objects[MUTATING_WEBHOOKS.path(None, "cardquota")])
        configuration(server, "cardquota", foreign, mine)
        return web.json_response(before)

    server.fail("get", read_and_move)
    assert await self_signed(client).inject(CONFIGURATIONS, b"bundle") == 1
    first, second = server.objects[MUTATING_WEBHOOKS.path(None, "cardquota")]["webhooks"]
    assert "caBundle" not in first["clientConfig"]
    assert second["clientConfig"]["caBundle"] == base64.b64encode(b"bundle").decode()


async def test_a_pass_hands_over_the_pair_and_injects_its_authority(
    server: FakeApiServer, client: Client
) -> None:
    """What is served and what the API server trusts come from one bundle, before and after a renewal."""
    configuration(server, "cardquota", webhook("pods.cardquota.io"))
    serving = ServingCertificate(Metrics(CollectorRegistry()))
    clock = [datetime.now(UTC)]
    keeper = self_signed(
        client,
        configurations=CONFIGURATIONS,
        serving=serving,
        verify_clients=True,
        now=lambda: clock[0],
    )
    first = await keeper.reconcile()
    assert serving.certificate == first.leaf.certificate
    clock[0] += timedelta(days=300)
    second = await keeper.reconcile()
    assert serving.certificate == second.leaf.certificate != first.leaf.certificate
    stored = server.objects[MUTATING_WEBHOOKS.path(None, "cardquota")]
    injected = base64.b64decode(stored["webhooks"][0]["clientConfig"]["caBundle"])
    assert injected == first.ca_certificates == second.ca_certificates


async def test_a_failed_pass_is_counted_and_tried_again_soon(server: FakeApiServer, client: Client) -> None:
    """Not an hour later, and without ending the process."""
    empty_secret(server)
    server.fail("get", apiserver.answer_status(403, "Forbidden"))
    metrics = Metrics(CollectorRegistry())
    serving = ServingCertificate(metrics)
    keeper = self_signed(client, serving=serving, metrics=metrics)
    async with background(keeper.run()):
        await server.wait_for(lambda: serving.loaded)
    assert metrics.registry.get_sample_value("cardquota_certificate_failures_total") == 1.0
