"""What admission may know of a cluster, from a state."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.state import State
    from core.admission import ClusterView
    from core.settings import Settings


def of(state: "State", settings: "Settings") -> "ClusterView":
    """The view of a state: everything in it is listed completely."""
    from core.admission import ClusterView
    from core.cards.inventory import Inventory
    from core.dra.extended import DeviceClasses

    inventory = Inventory.of(settings)
    for node in state.nodes:
        inventory.put(node)
    classes = DeviceClasses()
    for device_class in state.device_classes:
        classes.put(device_class)
    return ClusterView(
        inventory=inventory,
        queues={queue.name: queue for queue in state.queues},
        namespaces={namespace.name: namespace for namespace in state.namespaces},
        device_classes=classes,
        serving=classes,
        kubernetes_groups_served=state.kubernetes_groups_served,
    )


def offline(state: "State | None", settings: "Settings") -> "ClusterView":
    """The view of a state; without one nothing is known, and the rules that would need it are left out.

    No DeviceClass is thought of then: a pod with extended resources is what it says.
    """
    from core.admission import ClusterView
    from core.dra.extended import DeviceClasses

    return ClusterView(serving=DeviceClasses()) if state is None else of(state, settings)
