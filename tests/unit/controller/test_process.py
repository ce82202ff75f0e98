"""The decision process as it is put together: what its parts find out reaches its probes."""

import asyncio

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from controller import leading, process
from controller.caches import Caches
from controller.options import Options
from core.settings import Settings
from hack.controlplane.ports import free_ports
from kube.client import Client
from kube.resources import LEASES
from tests.fakes.apiserver import FakeApiServer, background


async def test_a_leader_whose_refresh_never_ends_gives_the_lease_up_and_fails_liveness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(_caches: Caches) -> None:
        await asyncio.Event().wait()

    async def connect(_kubeconfig: object) -> Client:
        return server.client()

    monkeypatch.setattr(Caches, "catch_up", never)
    monkeypatch.setattr(Caches, "refreshing", lambda _caches: ["pods"])
    monkeypatch.setattr(leading, "QUIET_S", 0.01)
    monkeypatch.setattr(leading, "_REFRESH_S", 0.2)
    monkeypatch.setattr(process, "REGISTRY", CollectorRegistry())
    monkeypatch.setattr(Client, "connect", connect)
    (port,), stop = free_ports(1), asyncio.Event()
    options = Options(
        namespace="quota",
        cert_secret="pair",
        service="cardquota-controller.quota.svc",
        identity="a",
        bind_address="127.0.0.1",
        port=0,
        metrics_port=port,
        drain_s=0.0,
    )
    async with FakeApiServer() as server:
        lease = LEASES.path("quota", options.lease)
        server.put(
            LEASES,
            {
                "metadata": {"namespace": "quota", "name": options.lease},
                "spec": {"holderIdentity": "", "leaseTransitions": 3},
            },
        )
        async with (
            background(process._serve(Settings(), options, stop)),
            aiohttp.ClientSession() as session,
            asyncio.timeout(10),
        ):
            said = ""
            while "refresh" not in said:
                await asyncio.sleep(0.05)
                try:
                    async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                        said = await answer.text() if answer.status == 503 else ""
                except aiohttp.ClientConnectorError:
                    continue
            assert "leadership was given up: pods cannot be listed" in said
            await server.wait_for(lambda: server.objects[lease]["spec"]["holderIdentity"] == "")
