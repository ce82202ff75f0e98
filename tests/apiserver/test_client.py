"""The client and what is built on it, against a real API server: its validation, its conflicts, its wire forms."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hack.controlplane import ControlPlane
from kube import errors, pki
from kube.authority import Authority, Places
from kube.certificates import content
from kube.client import Client, PatchType
from kube.election import Elector
from kube.events import EventRecorder, Past, Reference
from kube.lease import Durations, Term
from kube.listing import Watching
from kube.metrics import Metrics
from kube.resources import EVENTS, LEASES, MUTATING_WEBHOOKS, NODES, SECRETS, Resource, Scope
from kube.segments import held_in
from tests.fakes.apiserver import background

Json = dict[str, Any]

QUICK = Durations(lease_s=6.0, renew_deadline_s=4.5, retry_s=0.5)
"""Shorter than usual, and still longer than a busy machine keeps a process waiting."""


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with await Client.connect(control_plane.admin_kubeconfig) as connected:
        yield connected


def lease(name: str, **metadata: Any) -> Json:
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, **metadata},
        "spec": {"holderIdentity": "x"},
    }


async def test_conflicts_are_told_apart(client: Client, namespace: str) -> None:
    """Stale version, foreign uid, name taken, failed test, nothing there: each by its own type."""
    stored = await client.create(LEASES, lease("l"), namespace)
    changed = await client.replace(LEASES, stored | {"spec": {"holderIdentity": "y"}}, namespace)
    with pytest.raises(errors.Conflict) as stale:
        await client.replace(LEASES, stored, namespace)
    assert not isinstance(stale.value, errors.AlreadyExists)
    with pytest.raises(errors.AlreadyExists):
        await client.create(LEASES, lease("l"), namespace)
    with pytest.raises(errors.Conflict):
        await client.delete(LEASES, "l", namespace, uid="another")
    test = [{"op": "test", "path": "/metadata/uid", "value": "another"}]
    with pytest.raises(errors.Invalid):
        await client.patch(LEASES, "l", test, namespace, patch_type=PatchType.JSON)
    old = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]
    with pytest.raises(errors.Conflict):
        await client.patch(LEASES, "l", old, namespace, patch_type=PatchType.JSON)
    await client.delete(LEASES, "l", namespace, uid=changed["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        await client.get(LEASES, "l", namespace)


async def test_a_dry_run_stores_nothing(client: Client, namespace: str) -> None:
    """Validated and answered, and not there."""
    made = await client.create(LEASES, lease("dry"), namespace, dry_run=True)
    assert made["metadata"]["name"] == "dry"
    with pytest.raises(errors.NotFound):
        await client.get(LEASES, "dry", namespace)


async def test_field_managers_are_who_they_say(client: Client, namespace: str) -> None:
    """Apply owns what it sets and needs `force` for another's field; a merge patch names its manager as well."""
    body = lease("owned", labels={"a": "1"})
    await client.patch(LEASES, "owned", body, namespace, patch_type=PatchType.APPLY, field_manager="first")
    body["metadata"]["labels"]["a"] = "2"
    with pytest.raises(errors.Conflict):
        await client.patch(
            LEASES, "owned", body, namespace, patch_type=PatchType.APPLY, field_manager="second"
        )
    stored = await client.patch(
        LEASES, "owned", body, namespace, patch_type=PatchType.APPLY, field_manager="second", force=True
    )
    assert stored["metadata"]["labels"] == {"a": "2"}
    merged = await client.patch(
        LEASES, "owned", {"metadata": {"labels": {"b": "3"}}}, namespace, patch_type=PatchType.MERGE
    )
    managers = {entry["manager"] for entry in merged["metadata"]["managedFields"]}
    assert managers == {"first", "second", "cardquota"}


async def test_a_list_in_pages_is_complete_and_of_one_state(client: Client, namespace: str) -> None:
    """Names come once each, and every page names the same version."""
    async with asyncio.TaskGroup() as group:
        for number in range(25):
            group.create_task(client.create(LEASES, lease(f"l{number:02}"), namespace))
    pages = [page async for page in client.list(LEASES, Scope(namespace), limit=10)]
    assert [len(page.items) for page in pages] == [10, 10, 5]
    assert [raw["metadata"]["name"] for page in pages for raw in page.items] == [
        f"l{number:02}" for number in range(25)
    ]
    assert len({page.resource_version for page in pages}) == 1


async def test_a_watch_ends_when_asked_to(client: Client) -> None:
    """After its timeout, in order, and not as a failure."""
    pages = [page async for page in client.list(NODES)]
    stream = client.watch(NODES, Watching(pages[0].resource_version, timeout_s=1, inactivity_s=10))
    async with asyncio.timeout(5):
        _ = [event async for event in stream]


async def test_a_resource_that_is_not_installed_is_not_found(client: Client) -> None:
    """What an optional informer takes for an empty collection."""
    with pytest.raises(errors.NotFound):
        await anext(client.list(Resource("nothing.example.org", "v1", "things", True, "Thing")))


async def test_rbac_refusals_are_forbidden(tenant: Any, namespace: str) -> None:
    """Reads included: no refusal becomes an empty result."""
    async with await Client.connect(tenant) as client:
        with pytest.raises(errors.Forbidden, match="secrets"):
            await client.get(SECRETS, "x", "kube-system")
        with pytest.raises(errors.Forbidden):
            await anext(client.list(NODES))


async def test_events_are_accepted_and_counted_up(client: Client, namespace: str) -> None:
    """The server's own validation of events.k8s.io/v1, for a pod, for a node, for a long note and for a series.

    Another process finds all of them by the name of the reporter, and nothing else.
    """
    metrics = Metrics(CollectorRegistry())
    controller = f"cardquota.io/{namespace}"
    recorder = EventRecorder(client, controller, "host-1", metrics=metrics, repeat_s=0.0)
    pod = Reference("v1", "Pod", "p" * 250, namespace, "uid-1")
    node = Reference("v1", "Node", f"node-of-{namespace}")

    def written(operation: str) -> float | None:
        return metrics.registry.get_sample_value("cardquota_events_written_total", {"operation": operation})

    async with background(recorder.run()):
        recorder.emit(pod, "Warning", "TestReason", "ä" * 2000, "Test")
        recorder.emit(node, "Normal", "TestReason", "note", "Test")
        await _until(lambda: written("create") == 2.0)
        recorder.emit(pod, "Warning", "TestReason", "ä" * 2000, "Test")
        await _until(lambda: written("series") == 1.0)
    past = list[Past]()
    await EventRecorder(client, controller, "host-2", metrics=metrics).recall(past.append)
    assert {(each.regarding, each.words.reason, each.count) for each in past} == {
        (pod, "TestReason", 2),
        (node, "TestReason", 1),
    }
    assert all(abs(datetime.now(UTC) - each.at).total_seconds() < 60 for each in past)
    pages = [page async for page in client.list(EVENTS, Scope(namespace))]
    (event,) = [raw for page in pages for raw in page.items if raw["reason"] == "TestReason"]
    assert event["series"]["count"] == 2
    async for page in client.list(EVENTS, Scope("default")):
        for raw in page.items:
            if raw["regarding"].get("name") == node.name:
                await client.delete(EVENTS, raw["metadata"]["name"], "default")


async def test_two_candidates_take_turns(client: Client, namespace: str) -> None:
    """One leads, the other sees it and follows at once when the first stops."""
    leading: dict[str, Term] = {}

    def work(name: str) -> Any:
        async def lead(term: Term) -> None:
            leading[name] = term
            try:
                await asyncio.Event().wait()
            finally:
                del leading[name]

        return lead

    def candidate(name: str) -> Elector:
        where = {"cardquota.io/address": f"host-{name}:9443"}
        return Elector(client, namespace, "test", name, annotations=where, durations=QUICK)

    first, second = candidate("a"), candidate("b")
    async with background(second.run(work("b"))):
        await _until(lambda: "b" in leading)
        async with background(first.run(work("a"))):
            await _until(lambda: first.holder is not None)
            assert first.holder == ("b", {"cardquota.io/address": "host-b:9443"})
            await asyncio.sleep(QUICK.lease_s + 1)
            assert set(leading) == {"b"}
        assert leading["b"].valid()
    stored = await client.get(LEASES, "test", namespace)
    assert stored["spec"]["holderIdentity"] == ""
    assert "annotations" not in stored["metadata"]


LEADER = f"""
import asyncio, sys
from pathlib import Path
from kube.client import Client
from kube.election import Elector
from kube.lease import Durations

async def lead(term):
    print("leading", flush=True)
    await asyncio.Event().wait()

async def main(kubeconfig, namespace):
    async with await Client.connect(Path(kubeconfig)) as client:
        await Elector(client, namespace, "test", "victim", durations={QUICK}).run(lead)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_killed_leader_is_followed(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    """By SIGKILL, so that it gives nothing back: the successor leads after the lease's length, with a new epoch."""
    victim = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        LEADER,
        str(control_plane.admin_kubeconfig),
        namespace,
        stdout=asyncio.subprocess.PIPE,
    )
    terms: list[Term] = []

    async def lead(term: Term) -> None:
        terms.append(term)
        await asyncio.Event().wait()

    heir = Elector(client, namespace, "test", "heir", durations=QUICK)
    try:
        assert victim.stdout is not None
        async with asyncio.timeout(20):
            assert await victim.stdout.readline() == b"leading\n"
        async with background(heir.run(lead)):
            await asyncio.sleep(QUICK.lease_s + 1)
            assert not terms
            victim.kill()
            await victim.wait()
            stored = await client.get(LEASES, "test", namespace)
            renewed = datetime.fromisoformat(stored["spec"]["renewTime"])
            await _until(lambda: bool(terms))
            passed_s = (datetime.now(UTC) - renewed).total_seconds()
            assert QUICK.lease_s <= passed_s <= QUICK.lease_s + 3.0
            assert terms[0].epoch == 1
    finally:
        if victim.returncode is None and not terms:
            victim.kill()
        await victim.communicate()


async def test_leaders_that_race_for_empty_secrets_agree(client: Client, namespace: str) -> None:
    """The chart's empty Secrets, three at once, as when two take themselves for the leader; all that is told is served."""
    for secret in ("own", "shared"):
        await client.create(SECRETS, {"metadata": {"name": secret}, "type": "Opaque"}, namespace)
    name = f"test-{namespace}"
    places = Places(
        namespace=namespace,
        secret="own",
        shared="shared",
        names=("controller.svc",),
        shared_names=("webhook.svc",),
        configurations=[(MUTATING_WEBHOOKS, name)],
        hook="things.cardquota.io",
        plain="/hook",
        mark="example.org/path",
    )
    await client.create(MUTATING_WEBHOOKS, _configuration(name, namespace))
    try:
        leaders = [Authority(client, places, _nobody) for _ in range(3)]
        await asyncio.gather(*(leader.reconcile() for leader in leaders))
        own, shared = [content(await client.get(SECRETS, item, namespace)) for item in ("own", "shared")]
        ours, foreign = (await client.get(MUTATING_WEBHOOKS, name))["webhooks"]
        told = base64.b64decode(ours["clientConfig"]["caBundle"])
        assert told == own.authorities == shared.authorities
        assert shared.leaf is not None
        assert pki.issued(shared.leaf.certificate, told)
        segments = held_in(own)
        assert segments is not None
        assert ours["clientConfig"]["service"]["path"] == f"/hook/{segments.current}"
        assert foreign["clientConfig"] == {"service": {"name": "none", "namespace": namespace, "port": 443}}
        before = (await client.get(SECRETS, "own", namespace))["metadata"]["resourceVersion"]
        await Authority(client, places, _nobody).reconcile()
        assert (await client.get(SECRETS, "own", namespace))["metadata"]["resourceVersion"] == before
    finally:
        await client.delete(MUTATING_WEBHOOKS, name)


async def _nobody() -> bool:
    return False


def _configuration(name: str, namespace: str) -> Json:
    """Two webhooks, ours and another's, for a resource that nobody uses."""

    def webhook(full_name: str) -> Json:
        return {
            "name": full_name,
            "clientConfig": {"service": {"name": "none", "namespace": namespace}},
            "rules": [
                {
                    "apiGroups": ["nothing.example.org"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["things"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore",
        }

    return {
        "apiVersion": MUTATING_WEBHOOKS.api_version,
        "kind": MUTATING_WEBHOOKS.kind,
        "metadata": {"name": name},
        "webhooks": [webhook("things.cardquota.io"), webhook("things.example.org")],
    }


async def _until(holds: Any, timeout_s: float = 20.0) -> None:
    for _ in range(round(timeout_s / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it did not happen")
