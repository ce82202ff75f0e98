"""Certificates on a real API server: whatever is renewed, lost or undone, no handshake fails that should not."""

import hashlib
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection

import pytest

from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from kube import pki
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, pod
from tests.apiserver.trusting import (
    AUTHORITY,
    CERTIFICATES,
    Asking,
    Kept,
    failed,
    line,
    served,
    webhook_url,
)

_RENEWAL_S = 120.0


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """Binds and pods fail where a handshake does."""
    values = {"controller": {"bindingHook": {"failurePolicy": "Fail"}}}
    with Installation(control_plane, controller=2, values=values) as installed:
        yield installed


@pytest.fixture
def kept(control_plane: ControlPlane, installation: Installation) -> Kept:
    return Kept(control_plane, installation)


@pytest.fixture
def asking(cluster: Cluster) -> Asking:
    return Asking.answered(cluster)


def lines(kept: Kept, installation: Installation) -> list[HTTPSConnection]:
    """A way to each process that the API server, or another replica, calls."""
    return [line(url) for url in (*map(installation.controller_url, range(2)), webhook_url(kept))]


def all_serve_others(kept: Kept, installation: Installation, before: list[str]) -> bool:
    now = [served(each) for each in lines(kept, installation)]
    return all(new != old for new, old in zip(now, before, strict=True))


def test_pairs_are_renewed_while_binds_go_on(installation: Installation, kept: Kept, asking: Asking) -> None:
    """Both are about to end; every replica goes over to the new ones, and the path changes as well."""
    ca = pki.Pair(kept.data(AUTHORITY)["ca.crt"], kept.data(AUTHORITY)["ca.key"])
    old = datetime.now(UTC) - timedelta(days=300)
    before, path = [served(each) for each in lines(kept, installation)], kept.hook_path()
    with asking.going_on():
        for secret, hosts in ((AUTHORITY, "cardquota-controller"), (CERTIFICATES, "cardquota-webhook")):
            due = pki.issue_leaf(
                ca,
                [f"{hosts}.{installation.namespace}.svc", "localhost", "127.0.0.1"],
                old,
                clients=secret == AUTHORITY,
            )
            kept.write(secret, {"tls.crt": due.certificate, "tls.key": due.key})
        wait_for("all serve new pairs", lambda: all_serve_others(kept, installation, before), _RENEWAL_S)
        wait_for(
            "the pairs are good for a year",
            lambda: (
                not any(
                    pki.needs_renewal(kept.data(secret)["tls.crt"], datetime.now(UTC))
                    for secret in (AUTHORITY, CERTIFICATES)
                )
            ),
            _RENEWAL_S,
        )
        wait_for("the API server asks at a new path", lambda: kept.hook_path() != path, _RENEWAL_S)
        count = asking.binds
        wait_for("some more binds", lambda: asking.binds > count + 20)
    assert asking.failures == []
    assert asking.creations > 50
    held = kept.data(AUTHORITY)
    assert kept.hook_path() == f"/mutate/bindings/{held['hook.segment'].decode()}"
    assert path.endswith(held["hook.former"].decode())


def test_a_new_authority_is_trusted_before_anybody_shows_its_certificate(
    installation: Installation, kept: Kept, asking: Asking
) -> None:
    """Stored by somebody before the old one. What that has issued is served until the API server trusts the new one."""
    before = [served(each) for each in lines(kept, installation)]
    former = kept.data(AUTHORITY)["ca.crt"]
    with asking.going_on():
        new = pki.issue_ca(datetime.now(UTC))
        kept.write(AUTHORITY, {"ca.crt": new.certificate + former, "ca.key": new.key})
        wait_for(
            "both are trusted",
            lambda: all(former in bundle and bundle != former for bundle in kept.trusted()),
            _RENEWAL_S,
        )
        told = time.monotonic()
        now = [served(each) for each in lines(kept, installation)]
        assert now == before, "the new one is served before it can be trusted"
        wait_for("all serve new pairs", lambda: all_serve_others(kept, installation, before), _RENEWAL_S)
        assert time.monotonic() - told > 5.0
        count = asking.binds
        wait_for("some more binds", lambda: asking.binds > count + 20)
    (bundle,) = kept.trusted()
    assert pki.issued(kept.data(CERTIFICATES)["tls.crt"], bundle.removesuffix(former))
    assert asking.failures == []


def test_trust_that_somebody_takes_away_is_back_at_once(
    installation: Installation, kept: Kept, asking: Asking
) -> None:
    """Three times: after a start the leader looks at the configurations once or twice by itself.

    Whoever does it again and again is not fought at that pace, so the last one may take longer.
    """
    (trusted,) = kept.trusted()
    for _ in range(3):
        kept.distrust()
        wait_for("all entries trust us again", lambda: kept.trusted() == {trusted}, 60.0)
    wait_for("the webhooks answer", lambda: not failed(asking))


@pytest.mark.parametrize("secret", [AUTHORITY, CERTIFICATES])
def test_a_secret_that_somebody_deletes_costs_nobody_anything(
    cluster: Cluster, installation: Installation, kept: Kept, asking: Asking, secret: str
) -> None:
    """Nobody may create one; an upgrade by helm does. It is filled with what is being served, and nothing changes."""
    told = f"/mutate/bindings/{kept.data(AUTHORITY)['hook.segment'].decode()}"
    wait_for("the API server is told of the path", lambda: kept.hook_path() == told, _RENEWAL_S)
    before, path = kept.data(secret), told
    old = cluster.api.get(kept.path(secret)).expect()
    with asking.going_on():
        cluster.api.delete(kept.path(secret)).expect()
        count = asking.binds
        wait_for("some more binds", lambda: asking.binds > count + 20)
        head = {key: old["metadata"][key] for key in ("name", "namespace", "labels")}
        empty = {"apiVersion": "v1", "kind": "Secret", "metadata": head, "type": "Opaque"}
        cluster.api.create(empty).expect(201)
        wait_for("it is filled again", lambda: kept.data(secret).keys() == before.keys(), 90.0)
        count = asking.binds
        wait_for("some more binds", lambda: asking.binds > count + 20)
    assert asking.failures == []
    assert kept.hook_path() == path
    assert kept.data(secret)["ca.crt"] == before["ca.crt"]
    if secret == AUTHORITY:
        assert kept.data(secret) == before


def test_a_scheduler_is_given_what_the_api_server_trusts(kept: Kept) -> None:
    """The example tells to take `ca.crt` of the webhook's Secret."""
    (trusted,) = kept.trusted()
    assert kept.data(CERTIFICATES)["ca.crt"] == trusted


def test_a_certificate_that_has_expired_while_nobody_led_is_replaced_by_the_next_leader(
    cluster: Cluster, installation: Installation, kept: Kept, asking: Asking
) -> None:
    """Meanwhile pods that ask for cards are refused with the reason, and those that ask for none are not touched by it."""
    for index in range(2):
        installation.kill_controller(index)
    ca = pki.Pair(kept.data(AUTHORITY)["ca.crt"], kept.data(AUTHORITY)["ca.key"])
    host = f"cardquota-webhook.{installation.namespace}.svc"
    names = [host, "localhost", "127.0.0.1"]
    long_ago = datetime.now(UTC) - pki.LEAF_LIFETIME - timedelta(minutes=1)
    expired = pki.issue_leaf(ca, names, long_ago, clients=False)
    kept.write(CERTIFICATES, {"tls.crt": expired.certificate, "tls.key": expired.key})
    to_webhook = line(webhook_url(kept))
    wanted = hashlib.sha256(ssl.PEM_cert_to_DER_cert(expired.certificate.decode())).hexdigest()
    wait_for("it is served", lambda: served(to_webhook) == wanted, _RENEWAL_S)

    def refused() -> str:
        answer = cluster.try_create(card_pod(unique("p"), "NVIDIA-X", "default"), dryRun="All")
        said = str(answer.body.get("message"))
        return said if "x509" in said else ""

    # The API server keeps the connections that it has, as long as they last.
    (webhook,) = installation.webhook_processes
    webhook.kill()
    webhook.launch()
    assert "certificate has expired" in wait_for("it is refused", refused, _RENEWAL_S)
    cluster.create(pod("untouched"))
    installation.start_controller()
    webhook.wait_ready()
    wait_for("the webhooks answer", lambda: not failed(asking), _RENEWAL_S)
    assert served(to_webhook) != wanted
