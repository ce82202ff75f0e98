"""The room of nodes that is booked for pods on their way there."""

from core.mgpu.ask import MgpuAsk
from core.mgpu.destination import gives_way, task_of
from core.objects import Pod
from core.queues.ledger import Ledger


def promised_on(ledger: Ledger, node: str, but: Pod) -> list[MgpuAsk]:
    """What the pods ask for whom room is booked on a node and who have none yet, save this one and those that give way to it."""
    task = task_of(but)
    return [ask for other, ask in _booked(ledger, node, but) if not gives_way(other, task)]


def shared_on(ledger: Ledger, node: str, pod: Pod) -> list[MgpuAsk]:
    """What those ask that give way to it: members of its task for whom room is booked there as well."""
    task = task_of(pod)
    return [ask for other, ask in _booked(ledger, node, pod) if gives_way(other, task)]


def _booked(ledger: Ledger, node: str, but: Pod) -> list[tuple[Pod, MgpuAsk]]:
    led = ledger.led_to(node).items()
    return [
        (entry.pod, ask) for uid, entry in led if uid != but.uid and (ask := entry.demand.mgpu) is not None
    ]
