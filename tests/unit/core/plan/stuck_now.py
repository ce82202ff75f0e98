"""The questions of `core.plan.stuck`, answered at once."""

from core.objects import Pod
from core.plan import stuck
from core.plan.admitted import AdmittedNodes
from core.queues.ledger import Ledger
from core.steps import finish


def room_gone(ledger: Ledger, pod: Pod) -> str:
    return finish(stuck.room_gone(ledger, pod, AdmittedNodes(ledger)))


def place_gone(ledger: Ledger, pod: Pod) -> bool:
    return finish(stuck.place_gone(ledger, pod, AdmittedNodes(ledger)))


def takes_now(ledger: Ledger, pod: Pod, node: str) -> bool:
    return finish(stuck.takes_now(ledger, pod, node, AdmittedNodes(ledger)))
