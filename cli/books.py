"""The ledger over a state: who uses what, before anything is decided."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.state import State
    from core.crossquota.book import GuestBook
    from core.queues.ledger import Ledger
    from core.settings import Settings


def of(state: "State", settings: "Settings") -> "Ledger":
    """A ledger that has taken in every object of the state."""
    from core.queues.ledger import Ledger

    ledger = Ledger(settings)
    for node in state.nodes:
        ledger.put_node(node)
    for namespace in state.namespaces:
        ledger.put_namespace(namespace)
    for queue in state.queues:
        ledger.put_queue(queue)
    for group in state.groups:
        ledger.put_group(group)
    for job in state.jobs:
        ledger.put_job(job)
    ledger.devices.serve(state.claims_served)
    for device_class in state.device_classes:
        ledger.put_class(device_class)
    for claim in state.claims:
        ledger.devices.put_claim(claim)
    for template in state.templates:
        ledger.devices.put_template(template)
    for pod in state.pods:
        ledger.put_pod(pod)
    return ledger


def guests(state: "State", settings: "Settings") -> "GuestBook":
    """What pods without GPU use on the nodes with GPUs of the state."""
    from core.crossquota.book import guest_book

    return guest_book(state.nodes, state.pods, settings)
