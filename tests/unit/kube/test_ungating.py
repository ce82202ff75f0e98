"""Ungating against an API server that fails at will."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from core import names
from core.ungating import gated
from kube import errors, ungating
from kube.resources import ADMISSION_POLICY_BINDINGS, LEASES, MUTATING_WEBHOOKS, PODS
from kube.ungating import Limits, UngateError, Ungating
from tests.fakes import faults
from tests.fakes.apiserver import FakeApiServer

QUICK = Limits(per_second=1000, settle_s=0.1, patience_s=1.0, look_again_s=0.02)


def pod(name: str, *gates: str, uid: str = "u") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "uid": uid, "annotations": {"kept": "yes"}},
        "spec": {"schedulingGates": [{"name": gate} for gate in gates]},
    }


async def ungate(server: FakeApiServer, limits: Limits = QUICK) -> tuple[int, list[str]]:
    said: list[str] = []
    async with server.client() as client:
        return await Ungating(client, "cq", said.append, limits).run(), said


def gates_left(server: FakeApiServer) -> list[str]:
    pods = [raw for path, raw in server.objects.items() if "/pods/" in path]
    return [gate["name"] for raw in pods for gate in raw["spec"]["schedulingGates"]]


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (pod("p", names.GATE), "/spec/schedulingGates/0"),
        (pod("p", "example.com/theirs", names.GATE, "z"), "/spec/schedulingGates/1"),
        (pod("p", "example.com/theirs"), None),
        (pod("p"), None),
        ({"metadata": {"name": "p"}, "spec": {"schedulingGates": [None, 5, {"name": 7}]}}, None),
        ({}, None),
    ],
)
def test_only_our_gate_comes_off(raw: dict[str, Any], path: str | None) -> None:
    found = gated(raw)
    assert (found.patch[-1] if found else None) == (path and {"op": "remove", "path": path})
    if found:
        assert {"op": "test", "path": "/metadata/uid", "value": "u"} in found.patch


async def test_the_gates_of_others_stay(server: FakeApiServer) -> None:
    server.put(PODS, pod("p", "example.com/a", names.GATE, "example.com/b"))
    lifted, _ = await ungate(server)
    assert lifted == 1
    assert gates_left(server) == ["example.com/a", "example.com/b"]


async def test_webhooks_go_before_policies_and_policies_before_gates(server: FakeApiServer) -> None:
    server.put(PODS, pod("p", names.GATE))
    for resource, name in (
        (MUTATING_WEBHOOKS, "cardquota-mutating"),
        (ADMISSION_POLICY_BINDINGS, "cardquota-gate"),
    ):
        server.put(resource, {"metadata": {"name": name}})
    server.put(LEASES, {"metadata": {"name": "cardquota", "namespace": "cq"}})
    await ungate(server)
    writes = [r.path for r in server.requests if r.verb in ("delete", "patch")]
    order = [
        next(i for i, path in enumerate(writes) if part in path)
        for part in (
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicybindings",
            "/pods/",
            "/leases/",
        )
    ]
    assert order == sorted(order)
    assert not server.objects.keys() - {PODS.path("a", "p")}


async def test_a_pod_that_comes_with_a_gate_while_webhooks_are_just_gone_is_seen(
    server: FakeApiServer,
) -> None:
    """API servers learn a moment late that there is no webhook any more."""
    late = False

    async def come(_: web.Request) -> web.StreamResponse:
        nonlocal late
        late = True
        server.put(PODS, pod("late", names.GATE))
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    server.fail("list", come)
    lifted, _ = await ungate(server)
    assert (late, lifted, gates_left(server)) == (True, 1, [])


async def test_what_the_api_server_fails_at_is_tried_again(server: FakeApiServer) -> None:
    for number in range(20):
        server.put(PODS, pod(f"p{number}", names.GATE))
    denied = faults.answer_status(403, "Forbidden", "the policy is still there")
    for fault in (
        denied,
        faults.answer_status(503, "ServiceUnavailable", "away"),
        faults.answer(502, b"a proxy"),
    ):
        server.fail("patch", fault, path="/pods/p7")
    server.fail("list", faults.answer_status(500, "InternalError", "etcd"))
    server.fail("delete", faults.answer_status(500, "InternalError", "etcd"), path="cardquota-mutating")
    lifted, said = await ungate(server)
    assert (lifted, gates_left(server)) == (20, [])
    assert any("a/p7 (403 Forbidden the policy is still there)" in line for line in said)


async def test_who_is_refused_for_good_is_named_and_all_others_go(server: FakeApiServer) -> None:
    for name in ("a", "b", "c"):
        server.put(PODS, pod(name, names.GATE))
    refused = faults.answer_status(403, "Forbidden", "somebody's webhook")
    server.fail("patch", refused, path="/pods/b", times=10_000)
    with pytest.raises(
        UngateError, match=r"the gates of 1 pods stay; refused: a/b \(403 Forbidden somebody's"
    ):
        await ungate(server)
    assert gates_left(server) == [names.GATE]


async def test_no_rights_at_all_end_it_before_anything_is_done(server: FakeApiServer) -> None:
    server.put(PODS, pod("p", names.GATE))
    server.fail("delete", faults.answer_status(403, "Forbidden", "no right"), path="cardquota-mutating")
    with pytest.raises(errors.Forbidden):
        await ungate(server)
    assert gates_left(server) == [names.GATE]


async def test_it_tells_how_far_it_is_while_it_goes_on(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ungating, "_TELL_EVERY_S", 0.05)
    for number in range(40):
        server.put(PODS, pod(f"p{number}", names.GATE))
    _, said = await ungate(server, Limits(per_second=50, settle_s=0.0, patience_s=1.0, look_again_s=0.0))
    told = [int(line.split()[0]) for line in said if line.endswith("gates taken off so far")]
    assert len(told) > 3
    assert told == sorted(set(told))


async def test_it_goes_no_faster_than_it_may(server: FakeApiServer) -> None:
    for number in range(20):
        server.put(PODS, pod(f"p{number}", names.GATE))
    clock = asyncio.get_running_loop().time
    began = clock()
    await ungate(server, Limits(per_second=50, settle_s=0.0, patience_s=1.0, look_again_s=0.0))
    assert clock() - began >= 19 / 50
