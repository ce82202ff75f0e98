"""The room of nodes that is booked for pods on their way there."""

from core.mgpu.arrangement import OnTheWay
from core.mgpu.destination import gives_way, task_of
from core.objects import Pod
from core.queues.ledger import Ledger


def on_the_way_to(ledger: Ledger, node: str, pod: Pod) -> OnTheWay:
    """The pods for whom room is booked on a node and who have none yet, as this one finds them; it may be one of them."""
    led, task = ledger.led_to(node), task_of(pod)
    asks = {uid: ask for uid, entry in led.items() if (ask := entry.demand.mgpu) is not None}
    yielding = frozenset(uid for uid in asks if uid != pod.uid and gives_way(led[uid].pod, task))
    return OnTheWay(asks, yielding, ledger.places.get(node, {}))
