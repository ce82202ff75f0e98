"""Settings as people write them, and guests made of amounts."""

from typing import Any

from core.crossquota.guest import Guest, Strategy
from core.crossquota.quota import Quota, node_quota
from core.settings import Settings, parse
from tests.builders.objects import GPU, NodeBuilder, a_node

GI = 2**30 * 1000


def ruled(**section: Any) -> Settings:
    """Settings with a CrossQuota section; nodes with nvidia.com/gpu have GPUs unless it says otherwise."""
    return parse({"crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"], **section}})[0]


def gpu_node(name: str = "gpu", *, cpu: str = "64", memory: str = "128Gi") -> NodeBuilder:
    """A node with eight GPUs."""
    return a_node(name).allocatable("cpu", cpu).allocatable("memory", memory).allocatable(GPU, 8)


def quota_of(node: NodeBuilder, settings: Settings) -> Quota:
    """The limits of a node that has some."""
    quota = node_quota(node.view(), settings)
    assert quota is not None
    return quota


def a_guest(*, cpu: int = 0, memory: int = 0, strategy: Strategy = "most-allocated") -> Guest:
    """A guest that asks for thousandths of a core and for GiB."""
    amounts = {"cpu": cpu, "memory": memory * GI}
    return Guest({key: milli for key, milli in amounts.items() if milli}, strategy)


def using(*, cpu: int = 0, memory: int = 0) -> dict[str, int]:
    """What is used, in thousandths of a core and in GiB."""
    return {"cpu": cpu, "memory": memory * GI}
