import asyncio
import ssl
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from prometheus_client import CollectorRegistry

from kube import pki, tls
from kube.metrics import Metrics
from kube.pki import Pair
from kube.serving import Server, application
from kube.tls import ServingCertificate
from tests.unit.kube.damaged import without_line

NOW = datetime.now(UTC)
CA = pki.issue_ca(NOW)


def leaf(*names: str) -> Pair:
    return pki.issue_leaf(CA, names or ("localhost", "127.0.0.1"), NOW)


def serving(pair: Pair | None = None) -> tuple[ServingCertificate, Metrics]:
    metrics = Metrics(CollectorRegistry())
    certificate = ServingCertificate(metrics)
    if pair is not None:
        assert certificate.load(pair.certificate, pair.key)
    return certificate, metrics


def server_of(certificate: ServingCertificate) -> Server:
    async def whoami(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        return web.Response(text="known" if peer else "unknown")

    app = application()
    app.router.add_get("/", whoami)
    return Server(app, "127.0.0.1", 0, certificate.context)


async def serial(port: int, context: ssl.SSLContext) -> int:
    """Serial number of the certificate that a new connection is shown."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(der).serial_number


def serial_of(pair: Pair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate).serial_number


def test_a_client_told_to_trust_nobody_does_not_trust_whom_the_system_trusts() -> None:
    with pytest.raises(ValueError, match="no certificate"):
        tls.client_context(b"garbage")


def test_a_client_passes_over_an_authority_that_cannot_be_read() -> None:
    context = tls.client_context(without_line(CA.certificate) + CA.certificate)
    assert len(context.get_ca_certs()) == 1


async def test_swaps_under_load_cost_no_request() -> None:
    """Clients that connect anew and clients that stay connected, while the pair is swapped again and again."""
    certificate, _ = serving(leaf())
    server = server_of(certificate)
    await server.start()
    context = tls.client_context(CA.certificate)
    url = f"https://127.0.0.1:{server.port}/"
    answered = 0
    done = False

    async def ask(*, keep: bool) -> None:
        nonlocal answered
        connector = aiohttp.TCPConnector(ssl=context, force_close=not keep)
        async with aiohttp.ClientSession(connector=connector) as session:
            while not done:
                async with session.get(url) as response:
                    assert await response.text() == "unknown"
                answered += 1

    async with asyncio.TaskGroup() as group:
        for keep in (True, True, False, False):
            group.create_task(ask(keep=keep))
        for _ in range(15):
            before, pair = answered, leaf()
            assert certificate.load(pair.certificate, pair.key)
            while answered < before + 4:  # noqa: ASYNC110 - counts requests, waits for no event
                await asyncio.sleep(0.001)
            assert await serial(server.port, context) == serial_of(pair)
        done = True
    await server.stop()


@pytest.mark.parametrize("damage", ["mismatch", "garbage", "empty", "no key"])
async def test_a_bad_pair_leaves_the_good_one_in_service(damage: str) -> None:
    """Refused, logged, counted; handshakes go on with the pair before."""
    good, other = leaf(), leaf()
    bad = {
        "mismatch": Pair(other.certificate, good.key),
        "garbage": Pair(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", good.key),
        "empty": Pair(b"", b""),
        "no key": Pair(good.certificate, b""),
    }[damage]
    certificate, metrics = serving(good)
    server = server_of(certificate)
    await server.start()
    assert not certificate.load(bad.certificate, bad.key)
    assert await serial(server.port, tls.client_context(CA.certificate)) == serial_of(good)
    assert certificate.certificate == good.certificate
    count = metrics.registry.get_sample_value(
        "cardquota_serving_certificate_loads_total", {"outcome": "refused"}
    )
    assert count == 1.0
    await server.stop()


async def test_the_same_pair_again_is_no_swap() -> None:
    """Hourly passes do not show in the metric, and the end of validity does."""
    pair = leaf()
    certificate, metrics = serving(pair)
    assert certificate.load(pair.certificate, pair.key)
    value = metrics.registry.get_sample_value
    assert value("cardquota_serving_certificate_loads_total", {"outcome": "loaded"}) == 1.0
    not_after = x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc
    assert value("cardquota_serving_certificate_not_after_timestamp_seconds") == not_after.timestamp()


async def test_clients_with_a_certificate_are_known_and_others_are_served() -> None:
    """One port serves the API server, which shows none, and the other replica, which shows one of ours."""
    pair, stranger_ca = leaf(), pki.issue_ca(NOW)
    certificate = ServingCertificate(Metrics(CollectorRegistry()))
    assert certificate.load(pair.certificate, pair.key, CA.certificate)
    server = server_of(certificate)
    await server.start()
    url = f"https://127.0.0.1:{server.port}/"
    stranger = pki.issue_leaf(stranger_ca, ("localhost",), NOW)
    contexts = {
        "unknown": tls.client_context(CA.certificate),
        "known": tls.client_context(CA.certificate, pair.certificate, pair.key),
    }
    for expected, context in contexts.items():
        async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as response:
            assert await response.text() == expected
    context = tls.client_context(CA.certificate, stranger.certificate, stranger.key)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(url, ssl=context)
    await server.stop()


async def test_a_client_trusts_nobody_else() -> None:
    """Neither another authority nor another name."""
    certificate, _ = serving(leaf("elsewhere.svc"))
    server = server_of(certificate)
    await server.start()
    for context in (tls.client_context(pki.issue_ca(NOW).certificate), tls.client_context(CA.certificate)):
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    await server.stop()
