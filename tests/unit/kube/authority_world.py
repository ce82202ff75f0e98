"""A fake API server with both Secrets and both webhook configurations, and an authority that keeps them."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from cryptography import x509
from prometheus_client import CollectorRegistry

from kube.authority import Authority, Places
from kube.certificates import content, encoded
from kube.client import Client
from kube.metrics import Metrics
from kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from kube.segments import held_in
from tests.fakes.apiserver import FakeApiServer

Json = dict[str, Any]

START = datetime(2030, 1, 1, tzinfo=UTC)
PODS, HOOK, FOREIGN = "pods.cardquota.io", "hook.cardquota.io", "other.example.org"
PLAIN = "/hook"
MARK = "example.org/path"
PLACES = Places(
    namespace="n",
    secret="own",
    shared="shared",
    names=("controller.svc",),
    shared_names=("webhook.svc",),
    configurations=((MUTATING_WEBHOOKS, "m"), (VALIDATING_WEBHOOKS, "v"), (VALIDATING_WEBHOOKS, "none")),
    hook=HOOK,
    plain=PLAIN,
    mark=MARK,
)

READ = (
    SECRETS.path("n", "own"),
    SECRETS.path("n", "shared"),
    MUTATING_WEBHOOKS.path(None, "m"),
    VALIDATING_WEBHOOKS.path(None, "v"),
)
"""What a pass reads, in its order."""


class World:
    """A fake API server, an authority, and two clocks that the test moves."""

    def __init__(self, server: FakeApiServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.now = START
        self.seconds = 1000.0
        self.former = False
        self.metrics = Metrics(CollectorRegistry())
        self.authority = self.another()

    def another(self) -> Authority:
        """That of another replica."""
        return Authority(
            self.client,
            PLACES,
            self._former,
            now=lambda: self.now,
            clock=lambda: self.seconds,
            metrics=self.metrics,
        )

    async def _former(self) -> bool:
        return self.former

    async def passes(self, after_s: float = 0.0) -> None:
        self.seconds += after_s
        await self.authority.reconcile()

    async def passes_and_waits(self) -> None:
        """A pass, and as long as it says that the next one has time."""
        due_s = await self.authority.reconcile()
        assert due_s >= 0
        self.seconds += due_s

    def takes(self, seconds: float, path: str) -> None:
        """The next reading of what is there takes so long."""

        async def late(_request: web.Request) -> web.Response:
            self.seconds += seconds
            return web.json_response(self.server.objects[path])

        self.server.fail("get", late, path=path)

    def secret(self, name: str = "own") -> Any:
        return content(self.server.objects.get(SECRETS.path("n", name)))

    def damage(self, **parts: bytes) -> None:
        """Puts other bytes into the controller's Secret; `ca_crt` stands for `ca.crt`."""
        raw = self.server.objects[SECRETS.path("n", "own")]
        data = encoded({name.replace("_", "."): value for name, value in parts.items()})
        self.server.put(SECRETS, raw | {"data": raw["data"] | data})

    def segment(self) -> str:
        found = held_in(self.secret())
        assert found is not None
        return found.current

    def entries(self, kind: Any = MUTATING_WEBHOOKS, name: str = "m") -> dict[str, Json]:
        raw = self.server.objects[kind.path(None, name)]
        return {entry["name"]: entry["clientConfig"] for entry in raw["webhooks"]}

    def told(self) -> bytes:
        """Whom the API server trusts by all of our entries."""
        bundles = {client["caBundle"] for name, client in self.entries().items() if name != FOREIGN}
        bundles |= {client["caBundle"] for client in self.entries(VALIDATING_WEBHOOKS, "v").values()}
        (bundle,) = bundles
        return base64.b64decode(bundle)

    def path(self) -> str:
        return str(self.entries()[HOOK]["service"].get("path"))

    def count(self) -> int:
        return len(x509.load_pem_x509_certificates(self.secret().authorities))


def configure(server: FakeApiServer, path: str | None = None, *, marked: bool = True) -> None:
    """Both configurations as the chart has them, or without its mark."""

    def entry(name: str, path: str | None = "/x", **more: str) -> Json:
        service = {"name": "s", "namespace": "n"} | ({"path": path} if path else {})
        return {"name": name, "clientConfig": {"service": service, **more}}

    mine = [entry(PODS), entry(FOREIGN, caBundle="Zm9yZWlnbg=="), entry(HOOK, path)]
    labels = {MARK: "secret"} if marked else {}
    server.put(MUTATING_WEBHOOKS, {"metadata": {"name": "m", "labels": labels}, "webhooks": mine})
    server.put(VALIDATING_WEBHOOKS, {"metadata": {"name": "v"}, "webhooks": [entry(PODS)]})


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    """With empty Secrets."""
    async with FakeApiServer() as server, server.client() as client:
        configure(server)
        for name in ("own", "shared"):
            server.put(SECRETS, {"metadata": {"name": name, "namespace": "n"}, "type": "Opaque"})
        yield World(server, client)
