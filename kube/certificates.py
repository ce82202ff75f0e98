"""Self-made certificates in a cluster: kept in a Secret, handed to the TLS server, and told to the API server.

All replicas run this; whoever comes first writes the Secret, and resourceVersion makes the others take what the
first one wrote.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from core import names
from kube import errors, pki
from kube.backoff import Backoff
from kube.client import Client, Json, JsonPatch, PatchType
from kube.metrics import DEFAULT, Metrics
from kube.pki import Bundle, Pair
from kube.resources import SECRETS, Resource
from kube.tls import ServingCertificate

_LOG = logging.getLogger(__name__)

CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""The keys of the Secret, as kubernetes.io/tls and cert-manager call them."""

LOCAL_NAMES = ("localhost", "127.0.0.1")

_RACES = 5

Configuration = tuple[Resource, str]
"""A webhook configuration: which of the two resources, and its name."""


def is_own_webhook(entry: Mapping[str, Any]) -> bool:
    """Whether a webhook entry is one of ours by its name, `<something>.cardquota.io`."""
    return str(entry.get("name", "")).endswith("." + names.OWN_PREFIX.rstrip("/"))


class SelfSigned:
    """Keeps one Secret with an authority and a serving pair, and `caBundle` of the webhooks in step with it.

    With `serving`, each pass hands over the pair; with `verify_clients` as well, the authority is what clients'
    certificates are verified against. The Secret may exist empty, or not at all where creating it is allowed.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        secret: str,
        dns_names: Sequence[str],
        *,
        configurations: Sequence[Configuration] = (),
        serving: ServingCertificate | None = None,
        verify_clients: bool = False,
        owns: Callable[[Mapping[str, Any]], bool] = is_own_webhook,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: Random | None = None,
        metrics: Metrics = DEFAULT,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._secret = secret
        self._names = tuple(dict.fromkeys((*dns_names, *LOCAL_NAMES)))
        self._configurations = tuple(configurations)
        self._serving = serving
        self._verify_clients = verify_clients
        self._owns = owns
        self._now = now
        self._rng = rng or Random()  # noqa: S311 - spreads attempts, protects nothing
        self._metrics = metrics

    async def run(self, interval_s: float = 3600.0) -> None:
        """Makes a pass at once and then each `interval_s`, until cancelled; sooner again after a failed one."""
        backoff = Backoff(self._rng)
        while True:
            try:
                await self.reconcile()
            except errors.KubeError as error:
                self._metrics.certificate_failures.inc()
                delay_s = min(interval_s, backoff.next_delay())
                extra = {"error": str(error), "retry_s": round(delay_s, 1)}
                _LOG.warning("certificates could not be reconciled", extra=extra)
            else:
                backoff.reset()
                delay_s = interval_s
            await asyncio.sleep(delay_s)

    async def reconcile(self) -> Bundle:
        """One pass: the Secret, then the server's pair, then the webhook configurations. Raises KubeError."""
        bundle = await self.ensure()
        if self._serving is not None:
            client_ca = bundle.ca_certificates if self._verify_clients else None
            self._serving.load(bundle.leaf.certificate, bundle.leaf.key, client_ca)
        await self.inject(self._configurations, bundle.ca_certificates)
        return bundle

    async def ensure(self) -> Bundle:
        """What the Secret holds, after whatever was missing, invalid or about to expire was issued and stored.

        Where another replica was quicker, what that one stored is returned. Raises KubeError.
        """
        conflict: errors.Conflict | None = None
        for _ in range(_RACES):
            secret = await self._read()
            stored = _decode(secret)
            bundle = pki.renewed(stored, self._names, self._now())
            if bundle is stored:
                return bundle
            try:
                await self._write(secret, bundle)
            except errors.Conflict as error:
                conflict = error
                continue
            _LOG.info("certificates issued", extra={"namespace": self._namespace, "name_": self._secret})
            return bundle
        raise conflict or AssertionError("at least one try")

    async def inject(self, configurations: Iterable[Configuration], ca_certificates: bytes) -> int:
        """Makes `ca_certificates` the caBundle of each of our webhooks in these configurations; how many changed.

        Entries of others and a caBundle that is right already are left alone, and a configuration that does not exist
        is passed over. Raises KubeError.
        """
        changed = 0
        for resource, name in configurations:
            changed += await self._inject(resource, name, base64.b64encode(ca_certificates).decode())
        return changed

    async def _inject(self, resource: Resource, name: str, ca_bundle: str) -> int:
        lost: errors.ApiError | None = None
        for _ in range(_RACES):
            try:
                raw = await self._client.get(resource, name)
            except errors.NotFound:
                _LOG.info(
                    "webhook configuration does not exist",
                    extra={"resource": str(resource), "configuration": name},
                )
                return 0
            patch = self._bundle_patch(raw, ca_bundle)
            if not patch:
                return 0
            try:
                await self._client.patch(resource, name, patch, patch_type=PatchType.JSON)
            except (errors.Invalid, errors.Conflict) as error:
                lost = error  # entries moved meanwhile: a failed `test` is answered as Invalid
                continue
            return len(patch) // 2
        raise lost or AssertionError("at least one try")

    def _bundle_patch(self, raw: Json, ca_bundle: str) -> JsonPatch:
        """Two operations for each entry of ours: that it still stands there, and its new bundle."""
        patch: JsonPatch = []
        for index, entry in enumerate(raw.get("webhooks") or []):
            client_config = entry.get("clientConfig") or {}
            if self._owns(entry) and client_config.get("caBundle") != ca_bundle:
                path = f"/webhooks/{index}"
                patch.append({"op": "test", "path": f"{path}/name", "value": entry["name"]})
                patch.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": ca_bundle})
        return patch

    async def _read(self) -> Json | None:
        try:
            return await self._client.get(SECRETS, self._secret, self._namespace)
        except errors.NotFound:
            return None

    async def _write(self, secret: Json | None, bundle: Bundle) -> None:
        """Stores the bundle into the Secret as it was read; raises Conflict when it has changed since."""
        content = {
            CA_CERTIFICATE: bundle.ca_certificates,
            CA_KEY: bundle.ca_key,
            CERTIFICATE: bundle.leaf.certificate,
            KEY: bundle.leaf.key,
        }
        data = {key: base64.b64encode(value).decode() for key, value in content.items()}
        if secret is None:
            metadata = {"name": self._secret, "namespace": self._namespace}
            body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
            await self._client.create(SECRETS, body, self._namespace)
        else:
            body = secret | {"data": (secret.get("data") or {}) | data}
            await self._client.replace(SECRETS, body, self._namespace)


def _decode(secret: Json | None) -> Bundle | None:
    """The bundle in a Secret; None when a part is missing, empty or not base64."""
    data = (secret or {}).get("data") or {}
    try:
        values = {
            key: base64.b64decode(data.get(key, ""), validate=True)
            for key in (CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY)
        }
    except (binascii.Error, TypeError):
        return None
    if not all(values.values()):
        return None
    return Bundle(values[CA_CERTIFICATE], values[CA_KEY], Pair(values[CERTIFICATE], values[KEY]))
