"""The room of nodes that is booked for pods on their way there."""

from core.mgpu.ask import MgpuAsk
from core.queues.ledger import Ledger


def promised_on(ledger: Ledger, node: str, but: str = "") -> list[MgpuAsk]:
    """What the pods ask that were led to a node and have none yet, save the one of this UID."""
    led = ledger.led_to(node).items()
    return [ask for uid, entry in led if uid != but and (ask := entry.demand.mgpu) is not None]
