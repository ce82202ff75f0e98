"""What the leader keeps: the Secrets and the webhook configurations, read and spoilt as an administrator could."""

import base64
import hashlib
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from ssl import CERT_NONE, create_default_context
from typing import Any
from urllib.parse import urlsplit

from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import binding, card_pod, pod

CERTIFICATES, AUTHORITY = "cardquota-certificates", "cardquota-controller"
CONFIGURATIONS = {
    kind: f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/cardquota-{kind}"
    for kind in ("mutating", "validating")
}
HOOK = "bindings.cardquota.io"
NOBODY, UNBOUND = "nobody", "cpu"
"""A scheduler that does not exist, and the pod that it never binds."""

Object = dict[str, Any]


class Kept:
    """The Secrets and configurations of an installation."""

    def __init__(self, plane: ControlPlane, installation: Installation) -> None:
        self._plane = plane
        self._installation = installation

    def path(self, secret: str) -> str:
        """Where a Secret is."""
        return f"/api/v1/namespaces/{self._installation.namespace}/secrets/{secret}"

    def data(self, secret: str) -> dict[str, bytes]:
        """What a Secret holds."""
        found = self._plane.api.get(self.path(secret)).expect().get("data") or {}
        return {key: base64.b64decode(value) for key, value in found.items()}

    def write(self, secret: str, data: dict[str, bytes | None]) -> None:
        """Change some of what a Secret holds."""
        text = {key: value and base64.b64encode(value).decode() for key, value in data.items()}
        self._plane.api.patch(self.path(secret), {"data": text}).expect()

    def entries(self, kind: str = "mutating") -> dict[str, Object]:
        """The `clientConfig` of each entry by its name."""
        stored = self._plane.api.get(CONFIGURATIONS[kind]).expect()
        return {entry["name"]: entry["clientConfig"] for entry in stored["webhooks"]}

    def hook_path(self) -> str:
        """Where the API server asks about binds."""
        return str(urlsplit(self.entries()[HOOK]["url"]).path)

    def call_hook_at(self, path: str) -> None:
        """Have the API server ask about binds at another path of the same replica."""
        place = list(self.entries()).index(HOOK)
        address = urlsplit(self.entries()[HOOK]["url"])._replace(path=path).geturl()
        op = {"op": "replace", "path": f"/webhooks/{place}/clientConfig/url", "value": address}
        self._plane.api.patch(CONFIGURATIONS["mutating"], [op], "json").expect()

    def trusted(self) -> set[bytes]:
        """What the entries of both configurations trust; one element when they are in step."""
        clients = [client for kind in CONFIGURATIONS for client in self.entries(kind).values()]
        return {base64.b64decode(client.get("caBundle", "")) for client in clients}

    def distrust(self) -> None:
        """Take the caBundle out of every entry of both configurations."""
        for kind, path in CONFIGURATIONS.items():
            places = range(len(self.entries(kind)))
            ops = [{"op": "remove", "path": f"/webhooks/{place}/clientConfig/caBundle"} for place in places]
            self._plane.api.patch(path, ops, "json").expect()


def served(line: HTTPSConnection) -> str:
    """The fingerprint of the certificate at the other end of a new connection."""
    line.connect()
    assert isinstance(line.sock, ssl.SSLSocket)
    certificate = line.sock.getpeercert(binary_form=True) or b""
    line.close()
    return hashlib.sha256(certificate).hexdigest()


def line(url: str) -> HTTPSConnection:
    """A way to a process at that address, whatever certificate it shows."""
    tls = create_default_context()
    tls.check_hostname, tls.verify_mode = False, CERT_NONE
    return HTTPSConnection("localhost", urlsplit(url).port, context=tls, timeout=10.0)


def webhook_url(kept: Kept) -> str:
    """Where the API server asks the webhook."""
    return str(next(client["url"] for name, client in kept.entries().items() if name != HOOK))


class Asking:
    """Binds and pods that ask for cards, one after the other, each over the webhooks; what was answered but yes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.binds = 0
        self.creations = 0
        self.failures: list[tuple[float, str]] = []

    @classmethod
    def answered(cls, cluster: Cluster) -> "Asking":
        """With a pod that can be bound, once the webhooks answer."""
        cluster.create(pod(UNBOUND, schedulerName=NOBODY))
        found = cls(cluster)
        wait_for("the webhooks answer", lambda: not failed(found))
        return found

    def once(self) -> None:
        """A dry run of each, of which nothing is stored."""
        bind = self._cluster.bind(binding(UNBOUND, "nowhere"), dryRun="All")
        self.binds += 1
        create = self._cluster.try_create(card_pod(unique("p"), "NVIDIA-X", "default"), dryRun="All")
        self.creations += 1
        for answer in (bind, create):
            if answer.status != 201:
                self.failures.append((time.monotonic(), str(answer.body.get("message", answer.body))))

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """All the time meanwhile."""
        ended = threading.Event()

        def ask() -> None:
            while not ended.is_set():
                self.once()

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def failed(asking: Asking) -> bool:
    """Whether anything but yes is answered now."""
    asking.failures.clear()
    asking.once()
    return bool(asking.failures)
