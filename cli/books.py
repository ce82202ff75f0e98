"""What is computed of a state before anything is decided: the ledger of who uses what, and what admission may know."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.state import State
    from core.admission.request import ClusterView
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


def view_of(state: "State", settings: "Settings") -> "ClusterView":
    """The view of a state: everything in it is listed completely, but for the kinds that may not be seen."""
    from core.admission.request import ClusterView
    from core.cards.inventory import Inventory
    from core.dra.extended import DeviceClasses

    inventory = Inventory.of(settings)
    for node in state.nodes:
        inventory.put(node)
    classes = DeviceClasses()
    for device_class in state.device_classes:
        classes.put(device_class)
    known = {kind for kind in ("Node", "Queue", "Namespace", "DeviceClass") if kind not in state.unseen}
    return ClusterView(
        inventory=inventory if "Node" in known else None,
        queues={queue.name: queue for queue in state.queues} if "Queue" in known else None,
        namespaces={one.name: one for one in state.namespaces} if "Namespace" in known else None,
        device_classes=classes if "DeviceClass" in known else None,
        serving=classes if "DeviceClass" in known else None,
        kubernetes_groups_served=state.kubernetes_groups_served,
    )


def offline_view(state: "State | None", settings: "Settings") -> "ClusterView":
    """The view view_of a state; without one nothing is known, and the rules that would need it are left out.

    No DeviceClass is thought view_of then: a pod with extended resources is what it says.
    """
    from core.admission.request import ClusterView
    from core.dra.extended import DeviceClasses

    return ClusterView(serving=DeviceClasses()) if state is None else view_of(state, settings)
