"""The room of nodes that is booked for pods on their way there."""

from core.mgpu.arrangement import OnTheWay
from core.mgpu.destination import Task, gives_way
from core.queues.ledger import Ledger


def on_the_way_to(ledger: Ledger, node: str, uid: str, task: Task | None) -> OnTheWay:
    """The pods for whom room is booked on a node and who have none yet, as one of this task finds them; it may be one of them."""
    led = ledger.led_to(node)
    asks = {other: ask for other, entry in led.items() if (ask := entry.demand.mgpu) is not None}
    yielding = frozenset(other for other in asks if other != uid and gives_way(led[other].pod, task))
    return OnTheWay(asks, yielding, ledger.places.get(node, {}))
