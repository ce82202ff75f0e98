"""What a process serves follows the Secret, and outlives it."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kube import pki
from kube.certificates import Content, FollowedPair, content, encoded, follow_secret, of_bundle
from kube.client import Client
from kube.informer import Informer
from kube.metrics import Metrics
from kube.pki import Bundle
from kube.resources import SECRETS
from kube.tls import ServingCertificate
from tests.fakes.apiserver import FakeApiServer, background
from tests.unit.kube.damaged import without_line

NOW = datetime.now(UTC)


def a_bundle() -> Bundle:
    return pki.renewed(None, ["a.svc"], NOW)


def put(server: FakeApiServer, name: str, data: dict[str, bytes] | None) -> None:
    raw: dict[str, Any] = {"metadata": {"name": name, "namespace": "n"}}
    server.put(SECRETS, raw if data is None else raw | {"data": encoded(data)})


def following(client: Client, name: str) -> Informer[Content]:
    return follow_secret(client, "n", name, Metrics(CollectorRegistry()))


def a_server() -> ServingCertificate:
    return ServingCertificate(Metrics(CollectorRegistry()))


async def test_a_pair_is_served_from_the_moment_it_is_stored_and_as_long_as_no_other_is(
    server: FakeApiServer, client: Client
) -> None:
    first, second, serving = a_bundle(), a_bundle(), a_server()
    put(server, "s", None)
    pair = FollowedPair(following(client, "s"), [serving])
    async with background(pair.run()):
        await server.wait_for(lambda: server.watching == 1)
        assert not serving.loaded
        put(server, "s", of_bundle(first))
        await server.wait_for(lambda: serving.certificate == first.leaf.certificate)
        put(server, "s", of_bundle(first) | {"tls.key": second.leaf.key})
        put(server, "s", {})
        server.remove(SECRETS, "s", "n")
        put(server, "s", of_bundle(second))
        await server.wait_for(lambda: serving.certificate == second.leaf.certificate)
        assert pair.credentials is not None
        assert pair.credentials.ca_certificates == second.ca_certificates


async def test_a_pair_that_nobody_could_trust_by_its_secret_is_not_served(
    server: FakeApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """The API server is told to trust `ca.crt`. Whoever begins with such a pair is not ready; whoever has a good one keeps it."""
    good, other, serving = a_bundle(), a_bundle(), a_server()
    put(server, "s", of_bundle(other) | {"ca.crt": good.ca_certificates})
    pair = FollowedPair(following(client, "s"), [serving])
    async with background(pair.run()):
        await server.wait_for(lambda: "is not issued by" in caplog.text)
        assert not serving.loaded
        put(server, "s", of_bundle(good))
        await server.wait_for(lambda: serving.certificate == good.leaf.certificate)
        caplog.clear()
        put(server, "s", of_bundle(good) | {"tls.crt": other.leaf.certificate, "tls.key": other.leaf.key})
        await server.wait_for(lambda: "is not issued by" in caplog.text)
        assert serving.certificate == good.leaf.certificate


async def test_an_authority_that_cannot_be_read_does_not_keep_the_pair_of_another_from_being_served(
    server: FakeApiServer, client: Client
) -> None:
    """By a server that verifies clients either, which is told whom to believe."""
    good, serving = a_bundle(), a_server()
    damaged = without_line(a_bundle().ca_certificates)
    put(server, "s", of_bundle(good) | {"ca.crt": damaged + good.ca_certificates + damaged})
    pair = FollowedPair(following(client, "s"), [serving], verify_clients=True)
    async with background(pair.run()):
        await server.wait_for(lambda: serving.loaded)
    assert len(serving.context.get_ca_certs()) == 1


async def test_a_secret_of_the_first_release_serves_until_the_own_one_is_filled(
    server: FakeApiServer, client: Client
) -> None:
    """A controller that is upgraded finds its own Secret empty as long as one of before leads."""
    shared, own, serving = a_bundle(), a_bundle(), a_server()
    put(server, "shared", of_bundle(shared))
    pair = FollowedPair(following(client, "own"), [serving], shared=following(client, "shared"))
    async with background(pair.run()):
        await server.wait_for(lambda: serving.certificate == shared.leaf.certificate)
        put(server, "own", of_bundle(own))
        await server.wait_for(lambda: serving.certificate == own.leaf.certificate)
        put(server, "shared", of_bundle(a_bundle()))
        put(server, "own", {})
        await server.wait_for(lambda: server.watching == 2)
    assert serving.certificate == own.leaf.certificate


async def test_the_webhooks_pair_is_none_of_a_controllers(server: FakeApiServer, client: Client) -> None:
    """It is without the authority's key then, and no client's."""
    serving = a_server()
    put(server, "shared", {k: v for k, v in of_bundle(a_bundle()).items() if k != "ca.key"})
    pair = FollowedPair(following(client, "own"), [serving], shared=following(client, "shared"))
    async with background(pair.run()):
        await server.wait_for(lambda: server.watching == 2)
    assert not serving.loaded


async def test_one_secret_alone_is_asked_for(server: FakeApiServer, client: Client) -> None:
    """A right to a named object covers a list only when that names it too."""
    async with background(FollowedPair(following(client, "s"), [a_server()]).run()):
        await server.wait_for(lambda: server.watching == 1)
    asked = [*server.seen("list"), *server.seen("watch")]
    assert {request.query["fieldSelector"] for request in asked} == {"metadata.name=s"}
    assert {request.path for request in asked} == {SECRETS.path("n")}


@pytest.mark.parametrize("value", ["", "!!!", "é", None, 3])
def test_what_cannot_be_read_is_not_there(value: Any) -> None:
    text = base64.b64encode(b"x").decode()
    found = content({"data": {"tls.crt": text, "tls.key": value}})
    assert found.data == {"tls.crt": b"x"}
    assert (found.leaf, found.bundle) == (None, None)


def test_keys_are_not_shown() -> None:
    assert "PRIVATE" not in repr(Content(of_bundle(a_bundle())))
