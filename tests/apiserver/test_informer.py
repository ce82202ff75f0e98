"""The informer through what a real API server does to its watchers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hack.controlplane import ControlPlane
from kube import errors
from kube.client import Client
from kube.informer import Informer
from kube.listing import Watching
from kube.metrics import Metrics
from kube.reflector import Timing
from kube.resources import LEASES, Resource, Scope
from tests.fakes.apiserver import background

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    name: str
    uid: str
    holder: str


def project(raw: Json) -> View:
    head = raw["metadata"]
    return View(head["name"], head["uid"], raw["spec"].get("holderIdentity", ""))


def informer_of(client: Client, namespace: str, metrics: Metrics, **options: Any) -> Informer[View]:
    return Informer(
        client,
        LEASES,
        project,
        scope=Scope(namespace),
        rng=Random(1),
        metrics=metrics,
        **options,
    )


def lease(name: str, holder: str = "x") -> Json:
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name},
        "spec": {"holderIdentity": holder},
    }


async def until(holds: Callable[[], bool], timeout_s: float = 60.0) -> None:
    for _ in range(round(timeout_s / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it did not happen")


async def test_changes_arrive_and_an_ended_watch_is_taken_up_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Over many short watches nothing is lost, nothing is said twice, and nothing is listed again."""
    metrics = Metrics(CollectorRegistry())
    heard: list[tuple[str | None, str | None]] = []
    async with await Client.connect(control_plane.admin_kubeconfig) as client:
        timing = Timing(watch_min_s=1.0, watch_max_s=1.4)
        informer = informer_of(client, namespace, metrics, timing=timing)
        informer.subscribe(
            lambda old, new: heard.append((old.holder if old else None, new.holder if new else None))
        )
        await client.create(LEASES, lease("l", "0"), namespace)
        async with background(informer.run()):
            await informer.wait_synced()
            for number in range(1, 15):
                stored = await client.get(LEASES, "l", namespace)
                stored["spec"]["holderIdentity"] = str(number)
                await client.replace(LEASES, stored, namespace)
                await asyncio.sleep(0.3)
            await client.delete(LEASES, "l", namespace)
            await until(lambda: len(informer) == 0)
    steps: list[str | None] = [None, *(str(number) for number in range(15)), None]
    assert heard == list(pairwise(steps))
    value = metrics.registry.get_sample_value
    labels = {"resource": str(LEASES)}
    assert value("cardquota_informer_lists_total", labels) == 1.0
    assert (value("cardquota_informer_watches_total", labels) or 0) >= 3.0


async def test_a_restarted_api_server_costs_no_event(control_plane: ControlPlane, namespace: str) -> None:
    """What happened while it was away or starting is there afterwards, missed deletes and re-creations as well."""
    metrics = Metrics(CollectorRegistry())
    async with await Client.connect(control_plane.admin_kubeconfig) as client:
        informer = informer_of(client, namespace, metrics)
        for name in ("stays", "goes", "changes", "again"):
            await client.create(LEASES, lease(name), namespace)
        async with background(informer.run()):
            await informer.wait_synced()
            assert len(informer) == 4
            first = informer.get(f"{namespace}/again")
            await asyncio.to_thread(control_plane.stop_process, "kube-apiserver")
            await until(lambda: _failures(metrics) >= 1)
            assert informer.synced
            assert len(informer) == 4
            await asyncio.to_thread(control_plane.start_process, "kube-apiserver")
            control_plane.api.close()  # its kept connections ended with the old process
            async with await Client.connect(control_plane.admin_kubeconfig) as other:
                await other.delete(LEASES, "goes", namespace)
                await other.delete(LEASES, "again", namespace)
                await other.create(LEASES, lease("again"), namespace)
                await other.create(LEASES, lease("new", "y"), namespace)
            await until(lambda: informer.get(f"{namespace}/new") is not None)
            await until(
                lambda: (
                    informer.get(f"{namespace}/goes") is None and informer.get(f"{namespace}/again") != first
                )
            )
            assert {view.name for view in informer.values()} == {"stays", "changes", "again", "new"}
            assert [view.name for view in informer.values() if view.holder == "y"] == ["new"]


async def test_catching_up_takes_one_version_and_one_short_watch(
    control_plane: ControlPlane, namespace: str
) -> None:
    """While nothing changes, and right after changes of which the watch in use never hears; nothing is listed again."""
    metrics = Metrics(CollectorRegistry())
    async with (
        await Client.connect(control_plane.admin_kubeconfig) as client,
        await Client.connect(control_plane.admin_kubeconfig) as other,
    ):
        deaf = _Deaf(client)
        informer = informer_of(deaf, namespace, metrics, timing=Timing(page_size=2))  # type: ignore[arg-type]  # the two calls it makes
        for name in ("a", "b", "c", "goes"):
            await other.create(LEASES, lease(name), namespace)
        async with background(informer.run()):
            await informer.wait_synced()
            async with asyncio.timeout(14):
                await informer.catch_up()
            await deaf.hears.wait()
            deaf.hears.clear()
            await other.delete(LEASES, "goes", namespace)
            await other.create(LEASES, lease("d"), namespace)
            known = {view.name for view in informer.values()}
            deaf.hears.set()
            async with asyncio.timeout(14):
                await informer.catch_up()
            assert {view.name for view in informer.values()} == {"a", "b", "c", "d"}
    assert known == {"a", "b", "c", "goes"}
    labels = {"resource": str(LEASES)}
    assert metrics.registry.get_sample_value("cardquota_informer_lists_total", labels) == 1.0


async def test_a_missed_delete_is_found_by_the_next_list(control_plane: ControlPlane, namespace: str) -> None:
    """An informer kept from watching while its version is forgotten: the restart empties the server's history."""
    metrics = Metrics(CollectorRegistry())
    async with await Client.connect(control_plane.admin_kubeconfig) as client:
        blocked = _Gate(client)
        informer = informer_of(blocked, namespace, metrics)  # type: ignore[arg-type]  # the two calls it makes
        for name in ("stays", "goes"):
            await client.create(LEASES, lease(name), namespace)
        async with background(informer.run()):
            await informer.wait_synced()
            await client.delete(LEASES, "goes", namespace)
            for number in range(3):
                await client.create(LEASES, lease(f"later-{number}"), namespace)
            await asyncio.to_thread(control_plane.restart, "kube-apiserver")
            blocked.opened.set()
            await until(lambda: len(informer) == 4)
            assert informer.get(f"{namespace}/goes") is None
        stream = client.watch(LEASES, Watching("1", timeout_s=5, inactivity_s=5))
        assert (await anext(stream)).type == "BOOKMARK"
        with pytest.raises(errors.Gone):
            await anext(stream)
    labels = {"resource": str(LEASES)}
    assert metrics.registry.get_sample_value("cardquota_informer_lists_total", labels) == 2.0


class _Gate:
    """A client whose watches wait at a gate."""

    def __init__(self, client: Client) -> None:
        self.list = client.list
        self._client = client
        self.opened = asyncio.Event()

    async def watch(self, resource: Resource, asked: Watching) -> Any:
        await self.opened.wait()
        async for event in self._client.watch(resource, asked):
            yield event


class _Deaf(_Gate):
    """A client whose watches pass nothing on for a while."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.opened.set()
        self.hears = asyncio.Event()
        self.hears.set()

    async def watch(self, resource: Resource, asked: Watching) -> Any:
        async for event in super().watch(resource, asked):
            await self.hears.wait()
            yield event


def _failures(metrics: Metrics) -> float:
    samples = [sample for family in metrics.watch_failures.collect() for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name.endswith("_total"))
