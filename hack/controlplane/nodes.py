"""Nodes as accelerator device plugins and GPU feature discovery would show them."""

from collections.abc import Mapping
from typing import Any

MGPU_CORE = "vke.volcengine.com/mgpu-core"
MGPU_MEMORY = "vke.volcengine.com/mgpu-memory"
MGPU_POLICY = "vke.volcengine.com/mgpu-compute-policy"
MGPU_SCHEDULE = "vke.node.gpu.schedule"

_CORE_PER_CARD = 100
_BASE = {"cpu": "96", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "250"}


def node(
    name: str, *, labels: Mapping[str, str] | None = None, allocatable: Mapping[str, int | str] | None = None
) -> dict[str, Any]:
    """Return a node of 96 CPUs, 1 Ti of memory and 250 pods; `allocatable` adds to that or overrides it."""
    resources = _BASE | {key: str(value) for key, value in (allocatable or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"allocatable": resources, "capacity": dict(resources)},
    }


def gpu_node(name: str, *, product: str, cards: int, memory_mib: int) -> dict[str, Any]:
    """Return a node of whole NVIDIA cards; `memory_mib` is of one card."""
    return node(
        name,
        labels=_discovery(product, cards, memory_mib),
        allocatable={"nvidia.com/gpu": cards},
    )


def h200_node(name: str, cards: int = 8) -> dict[str, Any]:
    """Return a node of whole `NVIDIA-H200` cards."""
    return gpu_node(name, product="NVIDIA-H200", cards=cards, memory_mib=143771)


def mig_mps_node(name: str) -> dict[str, Any]:
    """Return a node of eight A100: five whole, two shared by MPS in eight parts each, one cut by MIG in three.

    Its cards are `NVIDIA-A100-80GB`, `NVIDIA-A100-80GB/mps-80g*1/8` and `NVIDIA-A100-80GB/mig-1g.10gb-mixed`.
    """
    return node(
        name,
        labels=_discovery("NVIDIA-A100-80GB", 8, 81920)
        | {"nvidia.com/gpu.replicas": "8", "nvidia.com/mig.strategy": "mixed"},
        allocatable={"nvidia.com/gpu": 5, "nvidia.com/gpu.shared": 16, "nvidia.com/mig-1g.10gb": 3},
    )


def mgpu_node(
    name: str, cards: int = 2, memory_mib: int = 81920, policy: str | None = "fixed-share"
) -> dict[str, Any]:
    """Return an mGPU node; `memory_mib` is of one card, `policy` None leaves the policy label out."""
    labels = {MGPU_SCHEDULE: "mgpu"} | ({MGPU_POLICY: policy} if policy is not None else {})
    return node(
        name,
        labels=labels,
        allocatable={MGPU_CORE: _CORE_PER_CARD * cards, MGPU_MEMORY: memory_mib * cards},
    )


def _discovery(product: str, cards: int, memory_mib: int) -> dict[str, str]:
    return {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(cards),
        "nvidia.com/gpu.memory": str(memory_mib),
    }


def made_ready(raw_node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the node with the condition that a kubelet would report."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    return {**raw_node, "status": {**raw_node["status"], "conditions": [ready]}}


def is_ready(raw_node: Mapping[str, Any]) -> bool:
    """Whether a node as the API server shows it is ready and rid of the taints of its start."""
    conditions = raw_node.get("status", {}).get("conditions", [])
    taints = raw_node.get("spec", {}).get("taints", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and not any(
        t["key"].startswith("node.kubernetes.io/") for t in taints
    )
