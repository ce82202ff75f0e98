"""The cluster as the admission rules see it: live nodes, queues, namespaces and DeviceClasses, projected."""

from collections.abc import Awaitable, Callable
from functools import partial

from core.admission.request import ClusterView
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from core.objects import DeviceClass, Node, kinds
from core.settings import Settings
from kube import metrics
from kube.class_grace import ClassGrace
from kube.informer import informer_of
from kube.reflector import ListWatch
from kube.turns import Turns


class LiveViews:
    """Follows nodes, queues, namespaces and, with the feature on, DeviceClasses. A part that is not listed completely is None.

    The CRD of queues may be missing; that counts as no queues. An API server without DeviceClasses says nothing about them.
    `groups_served` says whether there are PodGroups of Kubernetes itself; of those no more is looked at.
    """

    def __init__(
        self,
        client: ListWatch,
        settings: Settings,
        *,
        groups_served: Callable[[], bool | None] = lambda: None,
        informer_metrics: metrics.Metrics = metrics.DEFAULT,
    ) -> None:
        self._groups_served = groups_served
        self._inventory = Inventory.of(settings)
        self._device_classes = DeviceClasses()
        self._classes_served = False
        follow = partial(informer_of, client, turns=Turns(), metrics=informer_metrics)
        self._nodes = follow(kinds.NODE)
        self._queues = follow(kinds.QUEUE)
        self._namespaces = follow(kinds.NAMESPACE)
        self._classes = follow(kinds.DEVICE_CLASS, on_found=self._on_classes_found)
        self._with_classes = settings.features.dra
        self._nodes.subscribe(self._on_node)
        self._classes.subscribe(self._on_class)
        self._class_grace = ClassGrace(self._device_classes, self._device_classes.release)
        self._classes.subscribe(self._class_grace.class_changed)

    @property
    def runnables(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """What has to run, each until cancelled, for the view to stay current."""
        classes = [self._classes.run, self._class_grace.run] if self._with_classes else []
        return (self._nodes.run, self._queues.run, self._namespaces.run, *classes)

    async def wait_listed(self) -> None:
        """Returns when all parts were listed completely once."""
        await self._nodes.wait_synced()
        await self._queues.wait_synced()
        await self._namespaces.wait_synced()
        if self._with_classes:
            await self._classes.wait_synced()

    def sees_nodes(self) -> bool:
        """Whether all nodes were listed."""
        return self._nodes.synced

    def current(self) -> ClusterView:
        """The view as of now; its parts are live and not to be kept across an await."""
        return ClusterView(
            inventory=self._inventory if self._nodes.synced else None,
            queues=self._queues.views if self._queues.synced else None,
            namespaces=self._namespaces.views if self._namespaces.synced else None,
            device_classes=self._device_classes if self._classes.synced and self._classes_served else None,
            serving=self._device_classes if self._classes.synced else None,
            kubernetes_groups_served=self._groups_served(),
        )

    def _on_classes_found(self, served: bool) -> None:
        self._classes_served = served

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        """Node by node, so that a heartbeat of one of thousands costs next to nothing."""
        if old is not None and (new is None or new.name != old.name):
            self._inventory.drop(old.name)
        if new is not None:
            self._inventory.put(new)

    def _on_class(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is not None:
            self._device_classes.put(new)
        elif old is not None:
            self._device_classes.drop(old.name)
