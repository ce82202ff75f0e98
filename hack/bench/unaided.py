"""The same pods on the same control plane without us: kube-scheduler holds them by the cards of a node for each queue.

What that takes is what API server, scheduler and simulated kubelets need for such pods at least on this machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hack.bench.arrivals import RESOURCE, Arrivals, Json, pod, recorded
from hack.bench.clock import machine_cpu_s
from hack.bench.shape import QUOTA, Birth
from hack.controlplane import ControlPlane
from hack.controlplane.nodes import node

_LABEL: Final = "hack.cardquota.io/queue"


@dataclass(frozen=True, slots=True)
class Unaided:
    """How long it took, and the processor time of the whole machine meanwhile."""

    wall_s: float
    cpu_s: float


def run(born: list[Birth], limit_s: float, progress: Callable[[str], None]) -> Unaided:
    """Creates the pods when they are due and waits for the last. A pod that does not fit is passed over, as this scheduler does."""
    queues = sorted({birth.queue for birth in born})
    with ControlPlane(progress=progress, audit_rules=recorded()) as plane:
        plane.add_nodes(
            *(
                node(f"n{queue}", labels={_LABEL: str(queue)}, allocatable={RESOURCE: QUOTA})
                for queue in queues
            )
        )
        arrivals = Arrivals(plane, on_its_node)
        arrivals.prepare()
        before_s = machine_cpu_s()
        wall_s, _ = arrivals.play(born, limit_s, progress)
        return Unaided(wall_s, machine_cpu_s() - before_s)


def on_its_node(birth: Birth) -> Json:
    """The pod as only the node of its queue takes it, which has as many cards as the queue has quota."""
    bound_to = pod(birth)
    bound_to["spec"]["nodeSelector"] = {_LABEL: str(birth.queue)}
    return bound_to
