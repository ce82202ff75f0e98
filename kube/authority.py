"""The leader's keeping of certificates: one authority, a pair for each kind of process, and what the API server is told.

The order is what keeps every handshake whole: an authority is stored, then told to the API server in all webhook
configurations, and only when that has had time to reach every API server is a pair of that authority served anywhere. A
path that nobody can guess changes in the same way: stored, served by every replica, then told.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Final

from kube import certificates, errors, pem, pki, segments, webhook_entries
from kube.backoff import Backoff, Dispute
from kube.certificates import CA_KEY, Content, content, of_bundle
from kube.client import Client, Json
from kube.lease import Clock
from kube.metrics import DEFAULT, Metrics
from kube.pki import Bundle, Pair
from kube.resources import SECRETS
from kube.segments import Segments
from kube.webhook_entries import Configuration

_LOG = logging.getLogger(__name__)

SETTLE_S: Final = 10.0
"""How long every API server may take to go by a configuration that was written, and every replica by a Secret."""
OVERLAP_S: Final = 3600.0
"""How long a former authority is still trusted, and a former path served, after all go by the new one."""
INTERVAL_S: Final = 3600.0
"""How often is looked at what nobody has changed: certificates come of age."""
FORMER_S: Final = 5.0
"""How often is looked whether replicas of the first release still run."""

_PACE_S = 1.0
_LATER_S = 0.1
"""So much after the time has come it is looked at again: sums of seconds are not exact."""
_RACES = 5


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything is kept and told.

    `secret` is the controller's own, `shared` that of the webhook, both in `namespace`. The entry `hook` gets the path
    `plain`/<segment>, `plain` alone as long as a replica of the first release runs or, without the label `mark` on the
    configuration, its chart has put it there: who goes back to that release finds nobody at another path. With `given` others
    fill both Secrets, each with a pair and whom it makes trusted: nothing is issued then, and of `secret` only the path is ours.
    """

    namespace: str
    secret: str
    shared: str
    names: Sequence[str]
    shared_names: Sequence[str]
    configurations: Sequence[Configuration]
    hook: str
    plain: str
    mark: str
    given: bool = False


@dataclass(frozen=True, slots=True)
class Holding:
    """What the controller's Secret holds."""

    bundle: Bundle
    segments: Segments


class Authority:
    """Keeps both Secrets and the webhook configurations. `changed` is to be set whenever one of them has changed.

    `former_replicas` says whether replicas run that know neither the path nor the Secret of their own; until they are gone
    they find all as they left it.
    """

    def __init__(
        self,
        client: Client,
        places: Places,
        former_replicas: Callable[[], Awaitable[bool]],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Clock | None = None,
        rng: Random | None = None,
        metrics: Metrics = DEFAULT,
    ) -> None:
        self._client = client
        self._places = places
        self._former_replicas = former_replicas
        self._now = now
        self._given_clock = clock
        self._rng = rng or Random()  # noqa: S311 - spreads attempts, protects nothing
        self._metrics = metrics
        self.changed = asyncio.Event()
        self._held: Holding | None = None
        self._since: dict[str, tuple[object, float]] = {}
        self._moment = float("-inf")
        """When the present pass began, see `reconcile`."""
        self._disputes = {configuration: Dispute(self._rng) for configuration in places.configurations}

    async def run(self) -> None:
        """Puts everything right at once, whenever something changes, and as time goes by, until cancelled.

        Whoever writes something else into a configuration again and again is not fought at that pace; all else goes on as it
        would without him.
        """
        failures = Backoff(self._rng)
        while True:
            self.changed.clear()
            try:
                due_s = await self.reconcile()
            except (errors.KubeError, pem.UnreadableError) as error:
                self._metrics.certificate_failures.inc()
                delay_s = max(failures.next_delay(), errors.retry_after_s(error))
                extra = {"error": errors.describe(error), "retry_s": round(delay_s, 1)}
                _LOG.warning("certificates could not be reconciled", extra=extra)
                await asyncio.sleep(delay_s)
                continue
            failures.reset()
            due = asyncio.get_running_loop().time() + due_s
            if self._rests_s():
                await asyncio.sleep(_PACE_S)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self.changed.wait()

    async def reconcile(self) -> float:
        """One pass; in how many seconds the next one is due, if nothing changes. Raises KubeError and UnreadableError.

        A pass goes by the moment that it began at, and so does when the next one is due: what it found to be too early is not
        forgotten because the time for it came before the pass had ended.
        """
        conflict: errors.Conflict | None = None
        for _ in range(_RACES):
            self._moment = self._clock()
            try:
                due_s = min([await self._pass(), *self._rests_s()])
            except errors.Conflict as error:
                conflict = error
            else:
                return max(0.0, self._moment + due_s - self._clock())
        raise conflict or AssertionError("at least one try")

    async def _pass(self) -> float:
        """Returns in how many seconds from its moment on the next one is due, but for what is left alone."""
        own, shared = await self._read(self._places.secret), await self._read(self._places.shared)
        former = await self._former_replicas()
        if self._places.given:
            return await self._go_by(own, content(shared), former=former)
        held = self._next(self._holding(content(own), content(shared)))
        wanted = of_bundle(held.bundle) | segments.as_data(held.segments)
        if await self._store(self._places.secret, own, wanted):
            _LOG.info("certificates of the controller stored", extra={"object": self._places.secret})
        self._held = held
        await self._tell(held, former=former)
        await self._share(held, shared, former=former)
        return FORMER_S if former else self._due_s(held)

    async def _go_by(self, own: Json | None, shared: Content, *, former: bool) -> float:
        """Tells what others have put into the Secrets; the path goes with the pair there, as with one of ours."""
        found, before = content(own), self._held
        if found.leaf is None or not found.authorities or not shared.authorities:
            places = f"{self._places.secret}, {self._places.shared}"
            _LOG.warning(
                "certificates are not given yet: tls.crt, tls.key and ca.crt", extra={"objects": places}
            )
            return FORMER_S
        told = _told(found.authorities, shared.authorities)
        kept = segments.held_in(found) or (before.segments if before is not None else Segments.new())
        changed = before is not None and before.bundle.leaf != found.leaf
        held = Holding(Bundle(told, b"", found.leaf), self._path_after(kept, changed=changed))
        if await self._store(self._places.secret, own, segments.as_data(held.segments)):
            _LOG.info("path of the binding hook stored", extra={"object": self._places.secret})
        self._held = held
        await self._tell(held, former=former)
        return FORMER_S if former else self._due_s(held)

    def _path_after(self, kept: Segments, *, changed: bool) -> Segments:
        """The path goes with the certificate, and the former one when all have heard of the new one."""
        if changed:
            return Segments.new(former=kept.current)
        if kept.former and self._for_s("path", kept.current) >= OVERLAP_S:
            return Segments(kept.current)
        return kept

    def _holding(self, own: Content, shared: Content) -> Holding:
        """What there is to go on from: what is stored, with all that was told before, for it is still served somewhere."""
        bundle, known = own.bundle, self._held
        if bundle is None or not pki.can_issue(bundle, self._now()):
            bundle = self._restored(own, shared)
        if known is not None:
            bundle = pki.trusting(bundle, known.bundle.ca_certificates, self._now())
        kept = segments.held_in(own) or (known.segments if known is not None else Segments.new())
        return Holding(bundle, kept)

    def _restored(self, own: Content, shared: Content) -> Bundle:
        """What to go on from where what is stored cannot issue: what this process knows, or what the rest makes whole again.

        The webhook's Secret tells of the same authorities; of the first release it is all there is. Where no authority is left
        that can issue, what can still be served.
        """
        now = self._now()
        known = [] if self._held is None else [self._held.bundle]
        whole = [one for one in (own.bundle, shared.bundle) if one is not None]
        key, leaf = own.data.get(CA_KEY, b""), own.leaf or Pair(b"", b"")
        pieces = [Bundle(secret.authorities, key, leaf) for secret in (own, shared)]
        best = max(known + whole + pieces, key=lambda bundle: pki.can_issue(bundle, now))
        return pki.trusting(best, own.authorities + b"\n" + shared.authorities, now)

    def _next(self, before: Holding) -> Holding:
        """What is to be stored: the same, or with what had to be issued."""
        names, now = self._places.names, self._now()
        bundle = pki.renewed(before.bundle, names, now, keep_leaf=True)
        if self._trusted(bundle, SETTLE_S):
            bundle = pki.renewed(bundle, names, now)
        changed = bool(before.bundle.leaf.certificate) and bundle.leaf is not before.bundle.leaf
        kept = self._path_after(before.segments, changed=changed)
        if self._trusted(bundle, OVERLAP_S) and self._for_s("issuer", _issuer(bundle)) >= OVERLAP_S:
            bundle = pki.issuing_only(bundle)
        return Holding(bundle, kept)

    async def _tell(self, held: Holding, *, former: bool) -> None:
        """Has the API server trust the authorities and call the path."""
        secret = f"{self._places.plain}/{held.segments.current}"
        before = f"{self._places.plain}/{held.segments.former}" if held.segments.former else ""
        stored_s = self._note("segment", held.segments.current)

        def wanted(entry: str, path: str, labels: Mapping[str, str]) -> str:
            if entry != self._places.hook:
                return path
            if former or (path == self._places.plain and self._places.mark not in labels):
                return self._places.plain
            return path if before and path == before and stored_s < SETTLE_S else secret

        said = held.bundle.ca_certificates, secret, former, bool(before) and stored_s < SETTLE_S
        for configuration, dispute in self._disputes.items():
            if dispute.rests(said, self._moment):
                continue
            count = await webhook_entries.put_right(
                self._client, configuration, held.bundle.ca_certificates, wanted
            )
            if count:
                extra = {"configuration": configuration[1], "entries": count}
                _LOG.info("webhook configuration put right", extra=extra)
            dispute.looked(said, self._clock(), corrected=count > 0)
        self._note("trust", held.bundle.ca_certificates)
        if not before or stored_s >= SETTLE_S:
            self._note("path", held.segments.current)

    async def _share(self, held: Holding, raw: Json | None, *, former: bool) -> None:
        """Gives the webhook its pair, once the API server trusts who has issued it."""
        shared = content(raw)
        if former and shared.bundle is not None:
            return
        has, keep = shared.leaf, not self._trusted(held.bundle, SETTLE_S)
        leaf = pki.renewed_leaf(
            held.bundle, has, self._places.shared_names, self._now(), clients=False, keep=keep
        )
        wanted = of_bundle(replace(held.bundle, leaf=leaf))
        del wanted[CA_KEY]
        if await self._store(self._places.shared, raw, wanted, without=(CA_KEY,)):
            _LOG.info("certificates of the webhook stored", extra={"object": self._places.shared})
        issuer = _issuer(held.bundle)
        if all(pki.issued(pair.certificate, issuer) for pair in (leaf, held.bundle.leaf)):
            self._note("issuer", issuer)

    def _trusted(self, bundle: Bundle, seconds: float) -> bool:
        """Whether the API server has been told so long ago to trust these authorities."""
        return self._for_s("trust", bundle.ca_certificates) >= seconds

    def _due_s(self, held: Holding) -> float:
        """Seconds from the moment on until time alone changes something."""
        several = pki.issuing_only(held.bundle) is not held.bundle
        waits = [INTERVAL_S]
        for name, value in (("trust", held.bundle.ca_certificates), ("segment", held.segments.current)):
            waits.append(SETTLE_S - self._for_s(name, value))
        if several or held.segments.former:
            waits += [OVERLAP_S - self._for_s(name, value) for name, (value, _) in self._since.items()]
        return min(wait for wait in waits if wait > 0) + _LATER_S

    def _rests_s(self) -> list[float]:
        """For how long, from the moment on, configurations are left alone that somebody else keeps changing."""
        rests = (dispute.rests_s(self._moment) for dispute in self._disputes.values())
        return [rest_s + _LATER_S for rest_s in rests if rest_s > 0]

    def _note(self, name: str, value: object) -> float:
        """Notes that something has this value now; see `_for_s`."""
        if name not in self._since or self._since[name][0] != value:
            self._since[name] = (value, self._clock())
        return self._for_s(name, value)

    def _for_s(self, name: str, value: object) -> float:
        """For how many seconds it has had this value at the moment, as far as this process has seen; below 0 if only since then."""
        known, since = self._since.get(name, (None, 0.0))
        return self._moment - since if known == value else 0.0

    def _clock(self) -> float:
        return asyncio.get_running_loop().time() if self._given_clock is None else self._given_clock()

    async def _read(self, name: str) -> Json | None:
        try:
            return await self._client.get(SECRETS, name, self._places.namespace)
        except errors.NotFound:
            return None

    async def _store(
        self, name: str, raw: Json | None, wanted: Mapping[str, bytes], *, without: Sequence[str] = ()
    ) -> bool:
        """Stores data into the Secret as it was read, where it differs. Raises Conflict when it has changed since."""
        has = (raw or {}).get("data") or {}
        kept = {key: value for key, value in has.items() if key not in without}
        data = kept | certificates.encoded(wanted)
        if data == has:
            return False
        namespace = self._places.namespace
        if raw is None:
            head = {"name": name, "namespace": namespace}
            body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": head, "data": data}
            await self._client.create(SECRETS, body, namespace)
        else:
            await self._client.replace(SECRETS, raw | {"data": data}, namespace)
        return True


def _told(own: bytes, shared: bytes) -> bytes:
    """Both as they stand: the processes look for what is in their own Secret.

    Raises UnreadableError where one of them names nobody, so that those stay trusted who were told before.
    """
    for authorities in (own, shared):
        pem.first(authorities)
    return own if shared in own else own + b"\n" + shared


def _issuer(bundle: Bundle) -> bytes:
    return pki.issuing_only(bundle).ca_certificates
