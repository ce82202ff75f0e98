"""A live cluster for commands, and what somebody may not see of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

from kube import resources
from kube.resources import Resource
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.faults import answer_status
from tests.unit.cli.conftest import Outcome, Run
from tests.unit.cli.test_cluster import kubeconfig, pod

FORBIDDEN = answer_status(403, "Forbidden", "is forbidden")
NAMESPACED = (
    resources.PODGROUPS,
    resources.VOLCANO_JOBS,
    resources.PODS,
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_CLAIM_TEMPLATES,
)
NODE: dict[str, Any] = {
    "metadata": {
        "name": "n",
        "labels": {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"},
    },
    "status": {"allocatable": {"nvidia.com/gpu": "8"}},
}


def config_map(namespace: str, settings: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "cardquota"}
    return {
        "metadata": {"name": "cardquota", "namespace": namespace, "labels": labels},
        "data": {"cardquota.yaml": settings},
    }


def lease(**spec: object) -> dict[str, Any]:
    return {"metadata": {"name": "cardquota", "namespace": "cardquota-system"}, "spec": spec}


def queueless() -> dict[str, Any]:
    """A pod that names no queue, so that the settings say which one is its."""
    raw = pod("p")
    del raw["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"]
    return raw


async def ask(run: Run, server: FakeApiServer, folder: Path, command: str, *more: object) -> Outcome:
    config = kubeconfig(folder, server.url)
    return await asyncio.to_thread(run, command, "--kubeconfig", config, "-o", "json", *more)


def queue_of(outcome: Outcome) -> str:
    return str(json.loads(outcome.out)["pods"]["ml/p"]["queue"])


def forbid_everywhere(server: FakeApiServer, *kinds: Resource) -> None:
    """Lists over all namespaces are refused, as to somebody with a role in one namespace."""
    for resource in kinds:
        server.fail("list", FORBIDDEN, path=resource.path(), times=1)
