"""`certs.mode: provided` on a real API server: whoever fills the Secrets is trusted, exchanged and moved on from."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from kube import pki
from kube.certificates import LOCAL_NAMES, encoded
from kube.pki import Pair
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, queue, share_pod
from tests.apiserver.trusting import AUTHORITY, CERTIFICATES, Kept

SERVICES = {CERTIFICATES: "cardquota-webhook", AUTHORITY: "cardquota-controller"}


def pair(issuer: Pair, secret: str, namespace: str, *trusted: Pair) -> dict[str, bytes]:
    """What an administrator puts into a Secret."""
    names = (f"{SERVICES[secret]}.{namespace}.svc", *LOCAL_NAMES)
    leaf = pki.issue_leaf(issuer, names, datetime.now(UTC))
    authorities = b"".join(ca.certificate for ca in (issuer, *trusted))
    return {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authorities}


@pytest.fixture(scope="module")
def authority() -> Pair:
    return pki.issue_ca(datetime.now(UTC), common_name="company")


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, authority: Pair) -> Iterator[Installation]:
    namespace = unique("provided")
    control_plane.create_namespace(namespace)
    for secret in SERVICES:
        data = encoded(pair(authority, secret, namespace))
        head = {"name": secret, "namespace": namespace}
        control_plane.apply({"apiVersion": "v1", "kind": "Secret", "metadata": head, "data": data})
    values = {"certs": {"mode": "provided"}}
    with Installation(control_plane, values=values, namespace=namespace, controller=2) as installed:
        yield installed


@pytest.fixture
def kept(control_plane: ControlPlane, installation: Installation) -> Kept:
    return Kept(control_plane, installation)


def bundles(kept: Kept) -> set[bytes]:
    return {
        base64.b64decode(client["caBundle"])
        for kind in ("mutating", "validating")
        for client in kept.entries(kind).values()
    }


def served(cluster: Cluster, *, card: str, in_queue: str) -> None:
    """A card pod passes webhook and gate, and a share is granted by the hook, whichever replica is asked."""
    card_name, share = unique("card"), unique("share")
    cluster.create(card_pod(card_name, card, in_queue), share_pod(share, 10, 1000))
    wait_for("both run", lambda: {card_name, share} <= cluster.running())
    annotations = cluster.pod(share)["metadata"]["annotations"]
    assert annotations["vke.volcengine.com/gpu-index-container-c"] == "0"


def test_what_is_given_serves_is_exchanged_and_gives_way_to_another_authority(
    cluster: Cluster, installation: Installation, kept: Kept, authority: Pair
) -> None:
    card, name = cluster.add_card(), unique("q")
    cluster.add_nodes(mgpu_node(unique("mgpu"), cards=1))
    cluster.create_queue(queue(name, f'{{"{card}": 8}}'))
    assert bundles(kept) == {authority.certificate}
    served(cluster, card=card, in_queue=name)
    for secret in SERVICES:
        assert "ca.key" not in kept.data(secret)
    path = kept.hook_path()

    kept.write(AUTHORITY, dict(pair(authority, AUTHORITY, installation.namespace)))
    wait_for("the path goes with the pair", lambda: kept.hook_path() != path, 60.0)
    served(cluster, card=card, in_queue=name)

    other = pki.issue_ca(datetime.now(UTC), common_name="other")
    for secret in SERVICES:
        kept.write(secret, {"ca.crt": authority.certificate + other.certificate})
    wait_for("both are trusted", lambda: all(other.certificate in found for found in bundles(kept)))
    for secret in SERVICES:
        kept.write(secret, dict(pair(other, secret, installation.namespace, authority)))
    served(cluster, card=card, in_queue=name)
    for secret in SERVICES:
        kept.write(secret, {"ca.crt": other.certificate})
    wait_for(
        "the former one is trusted no more",
        lambda: not any(authority.certificate in found for found in bundles(kept)),
    )
    served(cluster, card=card, in_queue=name)
