"""The whole process against a fake API server: certificates, both ports, readiness, a clean end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from core import names
from hack.controlplane.ports import free_ports
from kube import pki
from kube.certificates import LOCAL_NAMES, encoded, of_bundle
from kube.pki import Bundle
from kube.process import ProcessOptions
from kube.resources import KUBERNETES_PODGROUPS, MUTATING_WEBHOOKS, NODES, SECRETS, VALIDATING_WEBHOOKS
from kube.tls import client_context
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.faults import answer_status
from tests.unit.core.admission.samples import H200, a_node, a_pod
from tests.unit.webhook.reviews import a_review, body

ROOT = Path(__file__).parents[3]
NAMESPACE, SECRET, SERVICE = "cq", "certs", "cardquota-webhook.cq.svc"
START = """
import sys
from pathlib import Path
from core.settings import Settings
from kube.process import ProcessOptions
from webhook.process import run
kubeconfig, port, metrics_port, settings = sys.argv[1:]
sys.exit(run(Settings.model_validate_json(settings), ProcessOptions(
    namespace="cq", cert_secret="certs", service="cardquota-webhook.cq.svc", port=int(port),
    metrics_port=int(metrics_port), bind_address="127.0.0.1", kubeconfig=Path(kubeconfig), drain_s=0.2)))
"""
TIMEOUT = aiohttp.ClientTimeout(total=5)


def a_filled_secret(bundle: Bundle) -> dict[str, Any]:
    """What the leader has stored."""
    data = of_bundle(bundle)
    del data["ca.key"]
    return {"metadata": {"name": SECRET, "namespace": NAMESPACE}, "data": encoded(data)}


class Process:
    """The process under test and its ports."""

    def __init__(self, child: asyncio.subprocess.Process, port: int, metrics_port: int) -> None:
        self.child = child
        self.port = port
        self.base = f"http://127.0.0.1:{metrics_port}"

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            try:
                async with session.get(self.base + path) as response:
                    return response.status, await response.text()
            except aiohttp.ClientConnectorError:
                return 0, "not listening"

    async def until(self, status: int, words: str = "") -> str:
        """Waits for an answer of /readyz."""
        text = ""
        async with asyncio.timeout(20):
            while True:
                code, text = await self.get("/readyz")
                if code == status and words in text:
                    return text
                if self.child.returncode is not None:
                    pytest.fail(f"the process ended: {(await self.child.communicate())[1].decode()}")
                await asyncio.sleep(0.05)

    async def end(self) -> tuple[int, list[dict[str, Any]]]:
        """Sends SIGTERM; the exit status and the log."""
        self.child.send_signal(signal.SIGTERM)
        _, errors = await asyncio.wait_for(self.child.communicate(), 20)
        assert self.child.returncode is not None
        return self.child.returncode, [orjson.loads(line) for line in errors.splitlines()]


@asynccontextmanager
async def running(server_url: str, folder: Path, **settings: Any) -> AsyncIterator[Process]:
    kubeconfig = folder / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": server_url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {}}]
    config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}
    kubeconfig.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    port, metrics_port = free_ports(2)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        START,
        str(kubeconfig),
        str(port),
        str(metrics_port),
        orjson.dumps(settings).decode(),
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Process(child, port, metrics_port)
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()


async def ask(port: int, ca: bytes, review: dict[str, Any]) -> dict[str, Any]:
    connector = aiohttp.TCPConnector(ssl=client_context(ca))
    url = f"https://localhost:{port}/validate/pods"
    async with (
        aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as session,
        session.post(url, data=body(review), headers={"Content-Type": "application/json"}) as response,
    ):
        assert response.status == 200
        answer: dict[str, Any] = orjson.loads(await response.read())
        return answer


async def test_it_serves_once_it_has_a_certificate_and_ends_cleanly(tmp_path: Path) -> None:
    """It makes none and writes nothing: both are the leader's."""
    bundle = pki.renewed(None, [SERVICE, *LOCAL_NAMES], datetime.now(UTC))
    async with FakeApiServer() as server:
        server.put(NODES, a_node())
        server.put(SECRETS, {"metadata": {"name": SECRET, "namespace": NAMESPACE}})
        async with running(server.url, tmp_path) as process:
            assert "[-]certificate" in await process.until(503)
            server.put(SECRETS, a_filled_secret(bundle))
            await process.until(200)
            await server.wait_for(lambda: server.watching == 5)
            denied = a_review(a_pod({names.CARD_NAME_ANNOTATION: H200}))
            answer = await ask(process.port, bundle.ca_certificates, denied)
            assert answer["response"]["allowed"] is False
            metrics = (await process.get("/metrics"))[1]
            assert 'cardquota_admission_requests_total{code="CardResourceMissing"' in metrics
            assert (await process.get("/healthz"))[0] == 200
            status, log = await process.end()
        asked = [
            request for request in server.requests if request.path != KUBERNETES_PODGROUPS.discovery_path
        ]
        assert len(asked) < len(server.requests), "whether PodGroups of Kubernetes are served is asked"
        assert {request.verb for request in asked} == {"list", "watch"}
        assert status == 0
        complaints = [line for line in log if line["level"] in ("error", "warning")]
        # A machine with other work on it may keep the process waiting.
        assert [line for line in complaints if line["logger"] != "kube.stalls"] == []
        assert {line.get("server") for line in log if line["message"] == "stopped"} == {
            "admission",
            "metrics",
        }


async def test_where_cards_without_a_name_are_denied_it_is_not_ready_before_it_has_seen_the_nodes(
    tmp_path: Path,
) -> None:
    """It would take no resource for a card, and let everything through."""
    refusal, seen = answer_status(403, "Forbidden", "no right to list"), asyncio.Event()

    async def refused_once_seen(request: web.Request) -> web.StreamResponse:
        await seen.wait()
        return await refusal(request)

    async with FakeApiServer() as server:
        server.put(SECRETS, a_filled_secret(pki.renewed(None, [SERVICE, *LOCAL_NAMES], datetime.now(UTC))))
        server.fail("list", refusal, path="/nodes")
        server.fail("list", refused_once_seen, path="/nodes")
        async with running(server.url, tmp_path, cards={"podsWithoutCardName": "deny"}) as process:
            assert "[-]nodes" in await process.until(503, "[+]certificate ok")
            seen.set()
            await process.until(200)
            await process.end()


async def test_it_says_why_it_cannot_start(tmp_path: Path) -> None:
    async with running("http://127.0.0.1:1", tmp_path) as process, asyncio.timeout(20):
        (tmp_path / "kubeconfig").write_text("{not a kubeconfig")
        _, errors = await process.child.communicate()
    assert process.child.returncode == 1
    assert orjson.loads(errors.splitlines()[-1])["message"] == "cannot start"


OPTIONS = ProcessOptions(namespace="n", cert_secret="s", service="a.svc")


def test_options_know_which_configuration_is_which() -> None:
    options = ProcessOptions(
        namespace="n",
        cert_secret="s",
        service="a.svc",
        dns_names=("b.svc", "a.svc"),
        webhook_configurations=("x-mutating", "x-validating"),
    )
    assert options.configurations == (
        (MUTATING_WEBHOOKS, "x-mutating"),
        (VALIDATING_WEBHOOKS, "x-validating"),
    )
    assert options.certificate_names == ("a.svc", "b.svc")
    nameless = replace(options, webhook_configurations=("x",))
    with pytest.raises(ValueError, match="must end in"):
        _ = nameless.configurations
