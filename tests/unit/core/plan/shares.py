"""mGPU pods that each ask for a part of one card, and the node `m1` with two cards to share."""

from core import names
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder

NODE = a_node("m1").mgpu(2, memory=16384)


def share(name: str, core: int = 60, *, second: int = 0) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=2048).gated().created(f"2024-01-01T00:00:{second:02}Z")


def of_containers(name: str, count: int) -> PodBuilder:
    """One that asks for so many small shares. Its containers have its name: no other one asks for the same."""
    containers = [
        {
            "name": f"{name}-{number}",
            "resources": {"limits": {names.MGPU_CORE: "1", names.MGPU_MEMORY: f"{256 + number % 50}"}},
        }
        for number in range(count)
    ]
    return a_pod(name).gated().put("spec", "containers", value=containers)


def books(*nodes: NodeBuilder) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("default").view())
    for node in nodes:
        ledger.put_node(node.view())
    return ledger


def run(ledger: Ledger, planner: Planner, *pods: PodBuilder) -> dict[str, bool]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return {decision.pod.name: isinstance(decision, Lift) for decision in planner.decide("default")}


def bound(name: str, card: int, core: int = 60, *, node: str = "m1") -> PodBuilder:
    pod = a_pod(name).mgpu(core=core, memory=2048).bound_to(node)
    return pod.annotation("vke.volcengine.com/gpu-index-container-main", str(card))
