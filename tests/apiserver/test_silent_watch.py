"""Watches through a network that forgets connections: the real API server behind a proxy that lets them die."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from hack.controlplane import ControlPlane
from kube import errors
from kube.client import Client, PatchType
from kube.informer import Informer
from kube.metrics import Metrics
from kube.reflector import Timing
from kube.resources import LEASES
from tests.apiserver.proxy import Proxy
from tests.apiserver.test_informer import View, informer_of, lease, until
from tests.fakes.apiserver import background

QUICK = Timing(quiet_s=4.0, inactivity_s=4.0, answer_s=2.0)
"""As the default, in less of the time."""


class Followed:
    """An informer through the proxy, and a client beside it."""

    def __init__(self, informer: Informer[View], far: Client, near: Client, metrics: Metrics) -> None:
        self.informer, self.far, self.near = informer, far, near
        self._metrics = metrics

    def count(self, name: str) -> float:
        wanted = f"cardquota_informer_{name}"
        return sum(
            sample.value
            for family in self._metrics.registry.collect()
            for sample in family.samples
            if sample.name == f"{wanted}_total" and sample.labels["resource"] == str(LEASES)
        )

    async def watching(self) -> None:
        """Returns once a watch has been answered."""
        await until(lambda: self.informer._reflector._answered)

    @property
    def version(self) -> int:
        """From where the next watch would go on."""
        return int(self.informer._reflector._resource_version or 0)


@asynccontextmanager
async def through(plane: ControlPlane, proxy: Proxy, folder: Path) -> AsyncIterator[Client]:
    """A client that talks through the proxy; at the end none of its connections is left to the loop."""
    async with await Client.connect(proxy.kubeconfig(plane.admin_kubeconfig, folder / "kubeconfig")) as far:
        yield far
    await until(lambda: proxy.open == 0)


@asynccontextmanager
async def followed(
    plane: ControlPlane, proxy: Proxy, folder: Path, namespace: str, timing: Timing
) -> AsyncIterator[Followed]:
    metrics = Metrics(CollectorRegistry())
    async with (
        through(plane, proxy, folder) as far,
        await Client.connect(plane.admin_kubeconfig) as near,
    ):
        informer = informer_of(far, namespace, metrics, timing=timing)
        await near.create(LEASES, lease("l", "first"), namespace)
        async with background(informer.run()):
            await informer.wait_synced()
            yield Followed(informer, far, near, metrics)


async def change(near: Client, namespace: str, holder: str) -> None:
    stored = await near.get(LEASES, "l", namespace)
    stored["spec"]["holderIdentity"] = holder
    await near.replace(LEASES, stored, namespace)


def shows(following: Followed, holder: str) -> bool:
    return [view.holder for view in following.informer.values()] == [holder]


async def test_what_happens_behind_a_dead_connection_is_seen_soon_and_nothing_has_failed(
    control_plane: ControlPlane, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """By the default times: seconds, not minutes; no list and no failure, and kept connections that died do no harm."""
    async with followed(control_plane, proxy, tmp_path, namespace, Timing()) as following:
        await following.far.get(LEASES, "l", namespace)  # now there is one in the pool
        await following.watching()
        proxy.blackhole()
        await change(following.near, namespace, "second")
        await until(lambda: shows(following, "second"), timeout_s=30)
        assert (following.count("lists"), following.count("failures")) == (1, 0)


async def test_a_server_that_nobody_reaches_any_more_is_a_failure(
    control_plane: ControlPlane, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """Connections are taken and nothing is said; afterwards the watch goes on where it was."""
    async with followed(control_plane, proxy, tmp_path, namespace, QUICK) as following:
        await following.watching()
        proxy.blackhole(new=True)
        await change(following.near, namespace, "second")
        await until(lambda: following.count("failures") >= 2)
        assert (following.informer.staleness_s() or 0) >= QUICK.inactivity_s
        assert not shows(following, "second")
        proxy.heal()
        await until(lambda: shows(following, "second"))
        assert following.count("lists") == 1


async def test_in_a_quiet_namespace_of_a_busy_cluster_the_version_moves_all_the_same(
    control_plane: ControlPlane, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """By the bookmark before the end of each short watch. Else it would be too old some day, and all be listed again."""
    async with followed(control_plane, proxy, tmp_path, namespace, Timing()) as following:
        await following.watching()
        before = following.version
        await following.near.create(LEASES, lease(namespace), "default")
        await until(lambda: following.version > before)
        await following.near.delete(LEASES, namespace, "default")
        # The first watch ends by its silence, the second one is short; a slow machine may not get the lease into that one's bookmark.
        assert following.count("watches") >= 2
        assert (following.count("lists"), following.count("failures")) == (1, 0)


async def test_an_answer_that_is_late_is_an_answer(
    control_plane: ControlPlane, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """A second and a half for each step of it, the handshake too: within the default time."""
    async with followed(control_plane, proxy, tmp_path, namespace, Timing()) as following:
        proxy.delay_s = 1.5
        await until(lambda: following.count("watches") >= 2)
        await change(following.near, namespace, "second")
        await until(lambda: shows(following, "second"))
        assert following.count("failures") == 0


async def test_a_lost_answer_hides_a_write_that_was_stored(
    control_plane: ControlPlane, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """What the proxy is for: the first request is carried out, the next one goes over a new connection."""
    async with through(control_plane, proxy, tmp_path) as client:
        await client.create(LEASES, lease("l", "first"), namespace)
        patch = {"spec": {"holderIdentity": "second"}}
        proxy.drop_answers()
        with pytest.raises(errors.ConnectionFailed):
            await client.patch(LEASES, "l", patch, namespace, patch_type=PatchType.MERGE)
        assert (await client.get(LEASES, "l", namespace))["spec"]["holderIdentity"] == "second"
        assert proxy.accepted == 2
