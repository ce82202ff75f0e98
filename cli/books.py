"""The ledger over a state: who uses what, before anything is decided."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.state import State
    from core.crossquota.book import GuestBook
    from core.objects.taints import Tolerations
    from core.queues.ledger import Ledger
    from core.settings import Settings


def of(state: "State", settings: "Settings") -> "Ledger":
    """A ledger that has taken in every object of the state."""
    from core import names
    from core.queues.intake import put
    from core.queues.ledger import Ledger

    ledger = Ledger(settings)
    ledger.devices.serve(state.claims_served)
    ledger.serve_groups(state.kubernetes_groups_served, names.KUBERNETES_GROUPS)
    for view in state.views():
        put(ledger, view)
    return ledger


def tolerations(state: "State") -> dict[str, "Tolerations"]:
    """Those of everybody who has no node, by UID: the ledger keeps them of few."""
    from cli.kinds import POD
    from core.objects import raw as read
    from core.objects.taints import tolerations_of

    found = {}
    for raw in state.complete.get(POD, ()):
        spec = read.mapping(raw, "spec")
        if not read.text(spec, "nodeName") and read.sequence(spec, "tolerations"):
            found[read.text(read.mapping(raw, "metadata"), "uid")] = tolerations_of(spec)
    return found


def guests(state: "State", settings: "Settings") -> "GuestBook":
    """What pods without GPU use on the nodes with GPUs of the state."""
    from core.crossquota.book import guest_book

    return guest_book(state.nodes, state.pods, settings)
