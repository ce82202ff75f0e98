"""The shape of the settings: sections, keys, defaults and the values that each key allows.

Keys are camelCase in a file and snake_case in Python. Numbers and booleans are strict: the text `"20"` is no number
and `true` is no 1, because a value that is nearly right was usually meant for another key.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool, StrictInt, StrictStr

from core.settings.section import SECTION
from core.settings.values import (
    AnyCase,
    Bytes,
    CardName,
    Certificates,
    Equivalents,
    Exact,
    LabelKey,
    LabelValue,
    Names,
    ObjectName,
    Product,
    ResourceName,
    ResourceNames,
    Seconds,
)
from core.settings.workload import WorkloadRows

AtLeastOne = Annotated[StrictInt, Field(ge=1)]


class Section(BaseModel):
    """A frozen group of keys; an unknown key is an error."""

    model_config = SECTION


class FeatureSettings(Section):
    """What is switched on. A feature touches only objects that ask for it."""

    cards: StrictBool = True
    """Card names, card quotas, and what belongs to them."""
    mgpu: StrictBool = True
    """Fractions of cards by cores and memory, with GPU indexes written at the bind."""
    dra: StrictBool = True
    """Quotas for devices that pods claim."""
    cross_quota: StrictBool = True
    """Limits for pods without GPU on GPU nodes."""
    gates: StrictBool = True
    """Holding pods at a scheduling gate until their queue has quota. Without it only binds are judged."""
    extender: StrictBool = True
    """The endpoints that schedulers ask."""


class PoolSettings(Section):
    """Nodes of a card that may not be there yet: an autoscaler makes them when a pod waits for one."""

    labels: Annotated[Mapping[LabelKey, LabelValue], Field(min_length=1)]
    """Labels that nodes of the pool have from their first moment."""
    resource: ResourceName
    """What stands for the card, or one of the two of mGPU shares for a pool that brings those."""


class CardSettings(Section):
    """Whole cards and their shares."""

    unlimited_cpu_memory: StrictBool = False
    """Whether card pods are free of the queue's CPU and memory limits."""
    unset_cpu_memory: Literal["cluster", "zero"] = "cluster"
    """What a queue may use of CPU or memory when its capability does not name it."""
    multi_card_job: Literal["spread", "uniform"] = "spread"
    """Whether the pods of one gang may be served by different cards."""
    multi_card_task: Literal["spread", "single"] = "spread"
    """Whether those pods of a gang that ask for the same may be, where no card serves them all."""
    pods_without_card_name: Literal["ignore", "warn", "deny", "infer"] = "warn"
    """What becomes of a pod that asks for a card's resource without naming the card. `infer` holds it at the gate, for the card
    that its namespace names."""
    hierarchy: StrictBool = False
    """Whether the card quota of a queue, and its limits of mGPU shares, CPU and memory, hold for all queues below it together."""
    resources: Mapping[Product, ResourceName] = {}
    """Product -> resource name: overrides what the nodes show, and names cards that no node shows yet."""
    pools: Mapping[CardName, PoolSettings] = {}
    """Card -> the node pool that brings it, whether or not it has nodes now."""
    equivalents: Equivalents = {}
    """Card -> the DeviceClasses that serve exactly this card: their claims take of the card's quota as well, and pods with the
    card's name of the quota of each class."""


class DiscoveryRow(Section):
    """A vendor whose labels are not in the table: where the name of a card stands, and what stands for whole cards."""

    vendor: Annotated[StrictStr, Field(min_length=1, max_length=63)]
    """What people call it."""
    product: LabelKey
    """The label with the name of the card."""
    resources: ResourceNames
    """What stands for whole cards; the first that a node offers."""


class MgpuSettings(Section):
    """Fractions of cards."""

    policy: Annotated[Literal["binpack", "spread"], AnyCase] = "binpack"
    """Whether cards that are in use already, or those least in use, come first."""
    weight_of_core: Annotated[StrictInt, Field(ge=0, le=100)] = 20
    """Percent by which cores count in the order of cards; memory counts for the rest."""
    schedule_mode: Literal["index", "id"] = "index"
    """Both mean index: nothing offers card ids. `id` is kept for configurations that carry it."""
    max_containers_per_card: AtLeastOne = 16
    """How many containers may share one card."""
    min_normal_memory: AtLeastOne = 256
    """The least memory, in MiB, that a share of one card may ask for."""
    min_multi_memory: AtLeastOne = 256
    """The least memory, in MiB, of each card of a share of several."""
    lead_to: Literal["nodes", "kind"] = "nodes"
    """Whether a lifted pod is narrowed to nodes on which room is booked for it, or only to nodes of its kind."""
    card_quota: StrictBool = False
    """Whether shares count against the quota of their card as well, by hundredths: 100 of `mgpu-core` are one card. Which card
    that is, the product label of the node says; shares on nodes without one count against none."""
    node_agents: Names = ()
    """User names that may write placement records beside the controller."""


class DraSettings(Section):
    """Claims on devices."""

    hierarchy: StrictBool = True
    """Whether the limits of the queues above hold as well, each for all that is below it."""
    unlisted_dimension: Literal["allow", "deny"] = "allow"
    """Whether a dimension that a queue does not list for a class that it lists is free or refused."""
    count_admin_access: StrictBool = False
    """Whether claims with administrative access count."""
    queue_crd: Literal["extend", "leave"] = Field(
        default="extend", validation_alias="queueCRD", serialization_alias="queueCRD"
    )
    """Whether the leader adds the fields of device quotas to Volcano's definition of a Queue."""


class CrossQuotaSettings(Section):
    """Limits for pods without GPU on GPU nodes; off while no pattern names a GPU resource."""

    gpu_resource_names: tuple[str, ...] = ()
    """Regular expressions, searched (not matched) in resource names; every one compiles."""
    quota_resources: tuple[str, ...] = ("cpu",)
    """In the order in which they are checked."""
    quota: Mapping[str, Exact] = {}
    """Resource -> limit per node, exact, in the base unit (cores, bytes, pieces)."""
    quota_percentage: Mapping[str, Exact] = {}
    """Resource -> limit per node in percent of allocatable, above 0 and at most 100."""
    weight: Annotated[StrictInt, Field(ge=0)] = 10
    """Factor of the node score; 0 switches scoring off."""
    weights: Mapping[str, Annotated[StrictInt, Field(ge=0)]] = {"cpu": 10, "memory": 1}
    """Resource -> weight in the score; a resource that is not listed weighs 1."""
    label_selector: Mapping[str, Any] | None = None
    """A valid Kubernetes LabelSelector of the pods that are limited, or none for all pods."""
    guard_bind: StrictBool = False
    """Whether binds that would exceed a limit are refused, whatever scheduler makes them."""


class QueueSettings(Section):
    """Queues."""

    default: ObjectName = "default"
    """The queue of pods that name none."""
    access: Literal["open", "listed"] = "open"
    """Who may use a queue that does not say so itself: every namespace, or none."""


class QuotaSettings(Section):
    """What counts against a queue's quota."""

    max_free_grace_s: Seconds = Field(
        default=300, validation_alias="maxFreeGrace", serialization_alias="maxFreeGrace"
    )
    """A pod that is deleted with this grace period or a shorter one gives its quota back at once; with a longer one when it
    is gone. As long as the grace may a pod run on without quota, so it must not be what its owner likes."""


class GateSettings(Section):
    """Scheduling gates beside ours."""

    wait_for_us: Names = ()
    """Gates that go only after ours; a pod that carries any other one is not lifted. Volcano's own counts for pods of
    Volcano's schedulers alone: nobody else takes it away."""


class VolcanoSettings(Section):
    """Volcano itself."""

    scheduler_names: Names = ("volcano",)
    """Schedulers that are Volcano's."""


class WebhookSettings(Section):
    """How the API server asks."""

    client_ca: Certificates | None = Field(
        default=None, validation_alias="clientCA", serialization_alias="clientCA"
    )
    """Authorities (PEM) one of which has issued the certificate that API servers show to webhooks; whoever shows none is
    turned away. None where API servers show none, which is their default."""

    @property
    def required_ca(self) -> bytes | None:
        """The same as bytes."""
        return None if self.client_ca is None else self.client_ca.encode()


class ReservationSettings(Section):
    """Pods that hold quota without being bound."""

    warn_after_s: Seconds = Field(default=600, validation_alias="warnAfter", serialization_alias="warnAfter")
    """When to warn of a pod that holds quota without being bound."""
    evict_after_s: Seconds | None = Field(
        default=None, validation_alias="evictAfter", serialization_alias="evictAfter"
    )
    """When to delete such a pod, if it has an owner that makes it anew; never where there is no value."""
    unfinished_after_s: Seconds | None = Field(
        default=None, validation_alias="unfinishedAfter", serialization_alias="unfinishedAfter"
    )
    """How long a gang may hold quota for some members without nodes while it lacks others, before these are deleted, under the
    same condition; for ever where there is no value."""


class ExtenderSettings(Section):
    """The scheduler extender endpoints."""

    max_body_bytes: Bytes = 16 * 2**20
    """How long a scheduler's request may be."""


class Settings(Section):
    """All settings. Immutable; `Settings()` holds the defaults."""

    features: FeatureSettings = FeatureSettings()
    cards: CardSettings = CardSettings()
    mgpu: MgpuSettings = MgpuSettings()
    dra: DraSettings = DraSettings()
    cross_quota: CrossQuotaSettings = CrossQuotaSettings()
    queue: QueueSettings = QueueSettings()
    quota: QuotaSettings = QuotaSettings()
    gates: GateSettings = GateSettings()
    volcano: VolcanoSettings = VolcanoSettings()
    webhook: WebhookSettings = WebhookSettings()
    reservation: ReservationSettings = ReservationSettings()
    extender: ExtenderSettings = ExtenderSettings()
    discovery: tuple[DiscoveryRow, ...] = ()
    """Rows that come before those of the table by which cards are found."""
    workloads: WorkloadRows = ()
    """Kinds that make pods from templates, beside those of the table of workloads."""
    scheduler_names: Annotated[Names, Field(min_length=1)] = ("volcano", "default-scheduler")
    """Schedulers whose pods are gated."""
