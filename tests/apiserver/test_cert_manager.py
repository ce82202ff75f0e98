"""`certs.mode: certManager` with cert-manager itself: it fills the Secrets, renews them, and no handshake fails by it.

cert-manager is built by `python -m hack.toolchain`; where it cannot be had, these tests are skipped.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.ports import free_ports
from hack.install import Installation
from hack.toolchain import Reporter, Store
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, queue
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

PROGRAM = "cert-manager"
CONTROLLERS = (
    "issuers",
    "certificates-trigger",
    "certificates-key-manager",
    "certificates-request-manager",
    "certificates-issuing",
    "certificates-readiness",
    "certificaterequests-approver",
    "certificaterequests-issuer-ca",
    "certificaterequests-issuer-selfsigned",
)
_RENEWAL_S = 120.0

pytestmark = pytest.mark.timeout(600)


def definitions(store: Store) -> list[dict[str, Any]]:
    """cert-manager's CRDs out of its module, without the labels that its chart would fill in."""
    folder = store.source_of(PROGRAM, Reporter(lambda _: None)) / "deploy/crds"
    found = [yaml.safe_load(file.read_text("utf-8")) for file in sorted(folder.glob("*.yaml"))]
    for definition in found:
        definition["metadata"].pop("labels")
    return found


@pytest.fixture(scope="module")
def cert_manager(control_plane: ControlPlane) -> None:
    """cert-manager, with what of it issues certificates of an authority in the cluster."""
    store = Store()
    program = store.find(PROGRAM)
    if program is None:
        pytest.skip(f"there is no {PROGRAM}; `python -m hack.toolchain` builds it")
    control_plane.apply(definitions(store))
    (port,) = free_ports(1)
    arguments = [
        str(program),
        f"--kubeconfig={control_plane.admin_kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        f"--metrics-listen-address=127.0.0.1:{port}",
        "--leader-elect=false",
    ]
    control_plane.start_program(PROGRAM, arguments, ready=lambda: True)


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, cert_manager: None) -> Iterator[Installation]:
    """Binds and pods fail where a handshake does."""
    values = {
        "certs": {"mode": "certManager"},
        "controller": {"bindingHook": {"failurePolicy": "Fail"}},
    }
    with Installation(control_plane, controller=2, values=values) as installed:
        yield installed


@pytest.fixture
def kept(control_plane: ControlPlane, installation: Installation) -> Kept:
    return Kept(control_plane, installation)


def renew(control_plane: ControlPlane, installation: Installation, name: str) -> None:
    """As `cmctl renew` does."""
    path = control_plane.api.path("cert-manager.io/v1", "Certificate", installation.namespace, name)
    conditions = control_plane.api.get(path).expect()["status"]["conditions"]
    issuing = {
        "type": "Issuing",
        "status": "True",
        "reason": "ManuallyTriggered",
        "message": "renewed by hand",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    kept = [condition for condition in conditions if condition["type"] != "Issuing"]
    control_plane.api.patch(f"{path}/status", {"status": {"conditions": [*kept, issuing]}}).expect()


@pytest.fixture
def asking(cluster: Cluster) -> Asking:
    return Asking.answered(cluster)


def test_what_it_issues_is_trusted_served_and_renewed_without_a_failed_handshake(
    control_plane: ControlPlane, cluster: Cluster, installation: Installation, kept: Kept, asking: Asking
) -> None:
    """One authority for both pairs; a card pod passes webhook, gate and hook before and after each renewal."""
    card, name = cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, f'{{"{card}": 8}}'))
    issued = {secret: kept.data(secret) for secret in (CERTIFICATES, AUTHORITY)}
    (authority,) = {data["ca.crt"] for data in issued.values()}
    assert kept.trusted() == {authority}
    assert not any("ca.key" in data for data in issued.values())
    path = kept.hook_path()
    to_webhook, to_controller = line(webhook_url(kept)), line(installation.controller_url(0))
    before = served(to_webhook), served(to_controller)
    cluster.create(card_pod("first", card, name))
    cluster.wait_running("first")

    with asking.going_on():
        renew(control_plane, installation, CERTIFICATES)
        wait_for("the webhook serves the new pair", lambda: served(to_webhook) != before[0], _RENEWAL_S)
        asked = asking.creations
        wait_for("it is asked with that", lambda: asking.creations > asked + 1)
    assert asking.failures == []

    with asking.going_on():
        renew(control_plane, installation, AUTHORITY)
        wait_for("the controllers serve the new pair", lambda: served(to_controller) != before[1], _RENEWAL_S)
        wait_for("the path of the hook goes with it", lambda: kept.hook_path() != path, _RENEWAL_S)
        wait_for("the webhooks answer", lambda: not failed(Asking(cluster)), _RENEWAL_S)
    assert not [text for _, text in asking.failures if "x509" in text or "tls" in text.lower()]
    assert kept.trusted() == {authority}
    cluster.create(card_pod("second", card, name))
    cluster.wait_running("first", "second")


def test_a_secret_that_somebody_deletes_is_filled_anew_and_served(
    control_plane: ControlPlane, installation: Installation, kept: Kept, asking: Asking
) -> None:
    """The process goes on with the pair that it has until then."""
    to_webhook = line(webhook_url(kept))
    before = served(to_webhook)
    with asking.going_on():
        control_plane.api.delete(kept.path(CERTIFICATES)).expect()
        wait_for("the webhook serves the new pair", lambda: served(to_webhook) != before, _RENEWAL_S)
        asked = asking.creations
        wait_for("it is asked with that", lambda: asking.creations > asked + 1)
    assert asking.failures == []
    assert installation.webhook_processes[0].running


def test_the_objects_of_the_chart_are_what_it_understands(
    control_plane: ControlPlane, installation: Installation
) -> None:
    """Each Issuer and Certificate is ready, and none has a field that the definition lacks."""
    for kind in ("Issuer", "Certificate"):
        rendered = [thing for thing in installation.objects if thing["kind"] == kind]
        assert rendered
        for thing in rendered:
            answer = control_plane.api.patch(
                control_plane.api.path_of(thing),
                thing,
                "apply",
                fieldManager="strict",
                force="true",
                dryRun="All",
                fieldValidation="Strict",
            )
            answer.expect()
            status = control_plane.api.get(control_plane.api.path_of(thing)).expect()["status"]
            assert [c["status"] for c in status["conditions"] if c["type"] == "Ready"] == ["True"]
