"""Certificates in Secrets: how they are kept there, and how a process serves what is in one.

The leader alone fills the Secrets, see kube.authority. Every process follows the one that it may read and hands its pair to
its TLS servers, so that a new pair is served everywhere within moments.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube import pki
from kube.client import Json
from kube.informer import Informer
from kube.metrics import DEFAULT, Metrics
from kube.pki import Bundle, Pair
from kube.reflector import ListWatch
from kube.resources import SECRETS, Scope
from kube.tls import ServingCertificate

_LOG = logging.getLogger(__name__)

CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""The keys of a Secret, as kubernetes.io/tls and cert-manager call them."""

LOCAL_NAMES = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Content:
    """What a Secret holds under the keys that can be read: those that are neither empty nor garbage."""

    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def leaf(self) -> Pair | None:
        """The serving pair, if it is complete."""
        if CERTIFICATE not in self.data or KEY not in self.data:
            return None
        return Pair(self.data[CERTIFICATE], self.data[KEY])

    @property
    def authorities(self) -> bytes:
        """The certificates of the authorities, empty where there are none."""
        return self.data.get(CA_CERTIFICATE, b"")

    @property
    def bundle(self) -> Bundle | None:
        """Authority and pair, if nothing is missing."""
        leaf = self.leaf
        if leaf is None or not self.authorities or CA_KEY not in self.data:
            return None
        return Bundle(self.authorities, self.data[CA_KEY], leaf)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a process shows, and whom it believes."""

    ca_certificates: bytes
    leaf: Pair


def content(raw: Json | None) -> Content:
    """What can be read of a Secret; nothing of one that does not exist."""
    found: dict[str, bytes] = {}
    for key, text in ((raw or {}).get("data") or {}).items():
        try:
            value = base64.b64decode(text or "", validate=True)
        except (binascii.Error, TypeError, ValueError):
            continue
        if value:
            found[key] = value
    return Content(found)


def of_bundle(bundle: Bundle) -> dict[str, bytes]:
    """What a Secret holds of a bundle."""
    return {
        CA_CERTIFICATE: bundle.ca_certificates,
        CA_KEY: bundle.ca_key,
        CERTIFICATE: bundle.leaf.certificate,
        KEY: bundle.leaf.key,
    }


def encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    """The data as the API server takes it."""
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


def follow_secret(
    client: ListWatch, namespace: str, name: str, metrics: Metrics = DEFAULT
) -> Informer[Content]:
    """An informer of one Secret by its name, with no right to any other."""
    return Informer(
        client,
        SECRETS,
        lambda raw: content(raw) if raw["metadata"]["name"] == name else None,
        scope=Scope.named(name, namespace),
        metrics=metrics,
    )


class FollowedPair:
    """Serves the pair in a Secret from the moment it is stored there.

    A Secret that is emptied, deleted or damaged, or whose pair comes of no authority in its `ca.crt`, changes nothing: what was
    served last goes on. While there is nothing in it yet, the pair of `shared` is served, a Secret of the first release, in
    which all processes had one pair and its authority.
    """

    def __init__(
        self,
        secret: Informer[Content],
        serving: Sequence[ServingCertificate],
        *,
        shared: Informer[Content] | None = None,
        verify_clients: bool = False,
    ) -> None:
        """With `verify_clients` the first of `serving` verifies the certificates of clients that show one."""
        self._secret = secret
        self._shared = shared
        self._serving = tuple(serving)
        self._verify_clients = verify_clients
        self.credentials: Credentials | None = None
        for informer in self._informers:
            informer.subscribe(self._on_change)

    @property
    def _informers(self) -> tuple[Informer[Content], ...]:
        return (self._secret,) if self._shared is None else (self._secret, self._shared)

    async def run(self) -> None:
        """Follows the Secrets until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers:
                tasks.create_task(informer.run(), name=f"follow {informer.resource}")
            for informer in self._informers:
                await informer.wait_synced()
            # A Secret that does not exist has told nobody so.
            self._on_change(None, None)

    def _on_change(self, _old: Content | None, _new: Content | None) -> None:
        name, found = self._first()
        if found is None or found == self.credentials:
            return
        leaf = found.leaf
        if not pki.trusted(leaf.certificate, found.ca_certificates):
            text = "the pair in the Secret is not issued by an authority of its ca.crt, the one before stays"
            _LOG.error(text, extra={"secret": name})
            return
        for place, serving in enumerate(self._serving):
            client_ca = found.ca_certificates if self._verify_clients and place == 0 else None
            if not serving.load(leaf.certificate, leaf.key, client_ca):
                return
        self.credentials = found

    def _first(self) -> tuple[str, Credentials | None]:
        """What is to be served, and the name of the Secret that holds it."""
        name, held = _only(self._secret)
        if held is None and self._secret.synced and self._shared is not None:
            name, shared = _only(self._shared)
            held = shared if shared is not None and shared.bundle is not None else None
        return name, None if held is None or held.leaf is None else Credentials(held.authorities, held.leaf)


def _only(informer: Informer[Content]) -> tuple[str, Content | None]:
    """The one Secret that is followed: its name, and its content if there is a pair with its authority in it."""
    for name, held in informer.views.items():
        return name, held if held.leaf is not None and held.authorities else None
    return "", None
