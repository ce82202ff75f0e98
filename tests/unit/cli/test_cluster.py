"""Commands over a live cluster: what they list, and what they say when they cannot.

A command runs an event loop of its own, so it gets a thread of its own beside the server's loop.
"""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.objects import kinds
from kube import resources
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.faults import answer_status
from tests.unit.cli.conftest import Run

UNINSTALLED = (
    "warning: the settings of this cluster are not there: nothing is installed; "
    "defaults are used, --config FILE names others\n"
)


def kubeconfig(folder: Path, url: str, namespace: str = "") -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return path


def pod(name: str) -> dict[str, Any]:
    annotations = {"volcano.sh/card.name": "NVIDIA-H200", "scheduling.volcano.sh/queue-name": "team"}
    return {
        "metadata": {"name": name, "namespace": "ml", "annotations": annotations},
        "spec": {
            "schedulingGates": [{"name": "cardquota.io/quota"}],
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
    }


async def test_without_state_the_cluster_is_listed(run: Run, tmp_path: Path) -> None:
    """In pages, with items that do not repeat their kind, as a real API server sends them."""
    async with FakeApiServer() as server:
        quota = {"volcano.sh/card.quota": '{"NVIDIA-H200": 9}'}
        server.put(resources.QUEUES, {"metadata": {"name": "team", "annotations": quota}})
        server.put(
            resources.NODES,
            {
                "metadata": {
                    "name": "n1",
                    "labels": {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"},
                },
                "status": {"allocatable": {"nvidia.com/gpu": "8"}},
            },
        )
        for number in range(501):
            server.put(resources.PODS, pod(f"p{number}"))
        config = kubeconfig(tmp_path, server.url)
        outcome = await asyncio.to_thread(run, "queues", "--kubeconfig", config, "-o", "json")
    assert (outcome.status, outcome.err) == (0, UNINSTALLED)
    team = json.loads(outcome.out)["team"]
    assert (team["quota"], team["waiting"]) == ({"NVIDIA-H200": "9"}, {"NVIDIA-H200": "501"})


async def test_kinds_that_the_cluster_does_not_know_are_empty(run: Run, tmp_path: Path) -> None:
    async with FakeApiServer() as server:
        for resource in (
            resources.QUEUES,
            resources.PODGROUPS,
            resources.VOLCANO_JOBS,
            resources.DEVICE_CLASSES,
        ):
            server.fail("list", answer_status(404, "NotFound"), path=resource.path())
        outcome = await asyncio.to_thread(run, "queues", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert (outcome.status, outcome.err) == (0, UNINSTALLED)
    assert len(outcome.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("served", "decision", "reason"), [(False, "lift", ""), (True, "hold", "ClaimNotFound")]
)
async def test_nobody_waits_for_a_claim_where_there_are_none_as_a_kind(
    run: Run, tmp_path: Path, served: bool, decision: str, reason: str
) -> None:
    """As in the controller; a claim of a kind that is served is missing."""
    claim = {"name": "dev", "resourceClaimName": "gone"}
    waiting = {"schedulingGates": [{"name": "cardquota.io/quota"}], "resourceClaims": [claim]}
    async with FakeApiServer() as server:
        server.put(resources.PODS, {"metadata": {"name": "p", "namespace": "ml"}, "spec": waiting})
        for version in () if served else kinds.CLAIM.versions:
            path = replace(resources.RESOURCE_CLAIMS, version=version).path()
            server.fail("list", answer_status(404, "NotFound"), path=path)
        config = kubeconfig(tmp_path, server.url)
        outcome = await asyncio.to_thread(run, "plan", "--kubeconfig", config, "-o", "json")
    found = json.loads(outcome.out)["pods"]["ml/p"]
    assert (found["decision"], found["reason"]) == (decision, reason)


async def test_what_the_cluster_refuses_is_the_error(run: Run, tmp_path: Path) -> None:
    async with FakeApiServer() as server:
        server.fail("list", answer_status(403, "Forbidden", "nodes is forbidden"))
        outcome = await asyncio.to_thread(run, "cards", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert (outcome.status, outcome.out) == (1, "")
    first, remedy = outcome.err.splitlines()
    assert first == "error: 403 Forbidden nodes is forbidden"
    assert remedy.startswith("try: have somebody with these rights write `cardquota dump -o FILE`")


@pytest.mark.parametrize(
    "command", [["queues"], ["cards"], ["explain", "p"], ["place", "p"], ["can-run", "-"]]
)
async def test_without_a_kubeconfig_the_error_says_so(run: Run, command: list[str], tmp_path: Path) -> None:
    """And no library says anything before it."""
    outcome = await asyncio.to_thread(run, *command, "--kubeconfig", tmp_path / "none")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("error: no kubeconfig at ")


@pytest.mark.parametrize("command", ["queues", "cards"])
async def test_without_a_cluster_the_error_says_so(run: Run, command: str, tmp_path: Path) -> None:
    outcome = await asyncio.to_thread(run, command, "--kubeconfig", tmp_path / "none")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("error: no kubeconfig at ")
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    outcome = await asyncio.to_thread(run, command, "--kubeconfig", config)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("error: ")
    outcome = await asyncio.to_thread(run, command, "--kubeconfig", config, "--context", "nope")
    assert outcome.status == 1
    assert "nope" in outcome.err


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["explain", "p"], "there is no Pod theirs/p; there is one in namespace ml"),
        (["explain", "p", "-n", "other"], "there is no Pod other/p; there is one in namespace ml"),
        (["explain", "deployment/p"], "there is no pod of Deployment theirs/p"),
        (["place", "p"], "there is no pod theirs/p"),
    ],
)
async def test_what_names_no_namespace_is_in_that_of_the_kubeconfig(
    run: Run, tmp_path: Path, command: list[str], told: str
) -> None:
    """As for kubectl."""
    async with FakeApiServer() as server:
        server.put(resources.PODS, pod("p"))
        config = kubeconfig(tmp_path, server.url, namespace="theirs")
        outcome = await asyncio.to_thread(run, *command, "--kubeconfig", config)
    assert outcome.status != 0
    assert told in outcome.err


@pytest.mark.parametrize("command", [["can-run"], ["advise", "team", "--fits"]])
async def test_manifests_that_name_no_namespace_are_for_that_of_the_kubeconfig(
    run: Run, tmp_path: Path, command: list[str]
) -> None:
    manifest = tmp_path / "pod.yaml"
    new = {"apiVersion": "v1", "kind": "Pod", **pod("new")}
    del new["metadata"]["namespace"], new["spec"]["schedulingGates"]
    manifest.write_text(yaml.safe_dump(new))
    async with FakeApiServer() as server:
        server.put(resources.QUEUES, {"metadata": {"name": "team"}})
        config = kubeconfig(tmp_path, server.url, namespace="theirs")
        outcome = await asyncio.to_thread(run, *command, manifest, "--kubeconfig", config)
    assert "theirs/new" in outcome.out
