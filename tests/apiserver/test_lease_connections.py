"""A Lease through a network that forgets connections: the real API server behind a proxy that lets them die without a word."""

import asyncio
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane
from kube.client import Client
from kube.election import Elector
from kube.lease import Durations, Term
from kube.resources import LEASES
from tests.apiserver.proxy import Proxy
from tests.apiserver.test_silent_watch import through
from tests.fakes.apiserver import background

QUICK = Durations(lease_s=8.0, renew_deadline_s=5.0, retry_s=1.0)
"""As the default, in less of the time."""
IDLE = 6
"""Connections that are kept after a burst of requests: more than a term has time to find dead one after the other."""


async def burst(client: Client) -> None:
    """Many requests at once, whose connections are kept for a while."""
    assert all(await asyncio.gather(*(client.serves(LEASES) for _ in range(IDLE))))


async def test_a_leader_whose_kept_connections_all_die_keeps_its_lease(
    control_plane: ControlPlane, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """A load balancer that was exchanged knows of no connection, and the API server can be reached all the same."""
    leading, lost = asyncio.Event(), asyncio.Event()

    async def lead(_: Term) -> None:
        leading.set()
        try:
            await asyncio.Event().wait()
        finally:
            lost.set()

    async with through(control_plane, proxy, tmp_path) as client, client.apart() as apart:
        elector = Elector(apart, namespace, "test", "holder", durations=QUICK)
        async with background(elector.run(lead)):
            async with asyncio.timeout(10):
                await leading.wait()
            await burst(client)
            proxy.blackhole()
            before = (await _lease(control_plane, namespace))["spec"]["renewTime"]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2 * QUICK.renew_deadline_s):
                    await lost.wait()
            assert (await _lease(control_plane, namespace))["spec"]["renewTime"] > before


async def test_one_that_is_apart_uses_no_connection_of_others_and_keeps_its_own(
    control_plane: ControlPlane, proxy: Proxy, tmp_path: Path
) -> None:
    async with through(control_plane, proxy, tmp_path) as client, client.apart() as apart:
        await burst(client)
        before = proxy.accepted
        for _ in range(3):
            assert await apart.serves(LEASES)
        assert proxy.accepted == before + 1


async def _lease(plane: ControlPlane, namespace: str) -> dict[str, dict[str, str]]:
    async with await Client.connect(plane.admin_kubeconfig) as near:
        return await near.get(LEASES, "test", namespace)
