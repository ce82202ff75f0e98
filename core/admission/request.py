"""What an admission rule is asked, what it may know of the cluster beside that, and what it answers; as values: no HTTP, no JSON text."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core import jsonpointer, names
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from core.objects import Namespace, Queue
from core.objects import raw as read
from core.settings import Settings
from core.violations import Violation

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"


@dataclass(slots=True)
class AdmissionRequest:
    """One request of an admission review; not frozen, since that would cost as much as its decoding.

    `group`, `resource` and `subresource` say what is written (`apps`, `deployments`, ``), `kind` what to call it.
    `object` is the object to be stored, `old_object` the one that is stored now; raw JSON, never changed, {} when
    the operation has none. `name` is empty while a generated name is not chosen yet. `field_manager` is what the
    client sent in its options: empty for most clients, whatever managedFields will say afterwards.
    """

    uid: str
    group: str
    resource: str
    kind: str
    operation: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    username: str = ""
    field_manager: str = ""
    dry_run: bool = False
    object: Mapping[str, Any] = field(default_factory=dict)
    old_object: Mapping[str, Any] = field(default_factory=dict)

    @property
    def display(self) -> str:
        """`Kind namespace/name`, `Kind name` for cluster-scoped objects; the prefix of a name not generated yet."""
        metadata = read.mapping(self.object, "metadata")
        generated = read.text(metadata, "generateName")
        name = self.name or read.text(metadata, "name") or (f"{generated}*" if generated else "(no name)")
        namespace = self.namespace or read.text(metadata, "namespace")
        return f"{self.kind} {namespace}/{name}" if namespace else f"{self.kind} {name}"


@dataclass(frozen=True, slots=True)
class Add:
    """A JSON patch operation `add`: sets the member at `path`, or appends to the list when it ends in `-`.

    The only operation that admission needs: objects under review only ever gain something. `path` holds the
    unescaped names.
    """

    path: tuple[str, ...]
    value: Any

    @property
    def pointer(self) -> str:
        """The path as an RFC 6901 pointer."""
        return jsonpointer.render(*self.path)

    def as_json(self) -> dict[str, Any]:
        """The operation as RFC 6902 writes it."""
        return {"op": "add", "path": self.pointer, "value": self.value}


Patch = tuple[Add, ...]


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal: HTTP status and Status reason (both, since clients print one or the other), text, and causes."""

    status: int
    reason: str
    message: str
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to one request. A denied request has no patch; warnings may go with either answer."""

    patch: Patch = ()
    warnings: tuple[str, ...] = ()
    denial: Denial | None = None

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored (with the patch applied)."""
        return self.denial is None


ALLOWED: Final = Decision()
"""The answer to nearly every request."""


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
