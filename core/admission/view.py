"""What admission may know of the cluster beyond the object under review."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from core import names
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from core.objects import Namespace, Queue
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The nodes' cards, queues and namespaces by name, the names of the DeviceClasses, and what these serve.

    None means not listed completely yet (or not served at all): every rule that needs it is left out then. No
    verdict depends on usage, so a view that lags behind can at worst make a hint too many or too few.
    """

    inventory: Inventory | None = None
    queues: Mapping[str, Queue] | None = None
    namespaces: Mapping[str, Namespace] | None = None
    device_classes: Container[str] | None = None
    serving: DeviceClasses | None = None
    """Not None either where the API server knows no DeviceClasses: then none serves anything."""
    kubernetes_groups_served: bool | None = None
    """Whether there are PodGroups of Kubernetes itself to be read; None while nobody knows."""


NOTHING_LISTED: Final = ClusterView()
"""The view of a process that has listed nothing."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every rule gets beside the request: the view, the settings, and the accounts of the controller."""

    view: ClusterView
    settings: Settings
    controllers: frozenset[str] = frozenset()

    @property
    def inventory(self) -> Inventory:
        """The cards of the nodes; without the view of them, what the settings and the names of shares tell."""
        known = self.view.inventory
        return Inventory.of(self.settings) if known is None else known

    def is_device(self, resource: str) -> bool:
        """Whether an extended resource is, or may be, one that a DeviceClass serves: while they are not known, any may be."""
        if not self.settings.features.dra:
            return False
        classes = self.view.serving
        named = resource.startswith(names.DEVICE_CLASS_RESOURCE_PREFIX)
        return named or classes is None or classes.serving(resource) is not None
