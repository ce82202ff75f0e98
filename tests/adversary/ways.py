"""Every way in which a pod can come to use a card, and the cluster in which each is tried."""

from dataclasses import dataclass
from typing import Final

from core import names, reasons
from core.settings import Settings
from tests.adversary.apiserver import ADMIN, HOME
from tests.adversary.world import DRIVER, World
from tests.builders import a_namespace, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import PodBuilder, QueueBuilder

DENYING: Final = Settings.model_validate({"cards": {"podsWithoutCardName": "deny"}})
INFERRING: Final = Settings.model_validate({"cards": {"podsWithoutCardName": "infer"}})
LINKED: Final = Settings.model_validate(
    {
        "cards": {
            "podsWithoutCardName": "deny",
            "equivalents": {"A": ["gpu.example.com", "big.example.com"]},
        },
        "mgpu": {"cardQuota": True},
    }
)
"""Where both classes serve nothing but card A, and shares are parts of it."""
MPS: Final = "M/mps-80g*1/8"
MIG: Final = "G/mig-1g.10gb-mixed"
CLASS, SERVED = "gpu.example.com", "big.example.com"
EXTENDED: Final = "example.com/big"
SHARE: Final = 50

OWN, OTHER, CLOSED = "own", "other", "closed"
"""The tenant's queue, with quota for one pod of each way; an open one with quota for many; one that does not admit it."""
MANY: Final = 8


@dataclass(frozen=True)
class Way:
    """A pod, the key under which its queue is charged, how much of that it takes, and what is said where there is none left."""

    pod: PodBuilder
    key: str
    amount: int = 1
    short: str = reasons.INSUFFICIENT_SCALAR_QUOTA
    settings: Settings = DENYING

    def named(self, name: str, queue: str = OWN) -> PodBuilder:
        built = self.pod.put("metadata", "name", value=name)
        return built.in_queue(queue) if queue else built


_DEVICES: Final = reasons.INSUFFICIENT_DEVICE_QUOTA
_GPU: Final = {"nvidia.com/gpu": 1}

WAYS: Final = {
    "card": Way(a_pod().gpu(1).card("A"), "A"),
    "choice": Way(a_pod().gpu(1).card("A|B"), "A"),
    "unnamed": Way(a_pod().gpu(1), "A"),
    "inferred": Way(a_pod().gpu(1), "A", settings=INFERRING),
    "beside": Way(a_pod().gpu(1).limit(names.MPS_RESOURCE, 1).card(MPS), MPS),
    "mps": Way(a_pod().limit(names.MPS_RESOURCE, 1).card(MPS), MPS),
    "mig": Way(a_pod().limit("nvidia.com/mig-1g.10gb", 1).card(MIG), MIG),
    "init": Way(a_pod().init_container("i", limits=_GPU).card("A"), "A"),
    "sidecar": Way(a_pod().init_container("i", limits=_GPU, sidecar=True).card("A"), "A"),
    "share": Way(a_pod().mgpu(core=SHARE, memory=1024), names.MGPU_CORE, SHARE),
    "claim": Way(a_pod(), f"deviceclass/{CLASS}", short=_DEVICES),
    "template": Way(a_pod().claim("dev", template="each"), f"deviceclass/{CLASS}", short=_DEVICES),
    "extended": Way(a_pod().limit(EXTENDED, 1), f"deviceclass/{SERVED}", short=_DEVICES),
    "implicit": Way(
        a_pod().limit(names.DEVICE_CLASS_RESOURCE_PREFIX + SERVED, 1), f"deviceclass/{SERVED}", short=_DEVICES
    ),
}
"""The namespace names the card of what is `inferred`; `beside` asks for a whole card beside the share that it names, `implicit` for the resource that each class has."""

IMPOSSIBLE: Final = ("resize", "ephemeral")
"""Ways that are none, see the table; that the API server refuses them is shown on the real one."""


def world(settings: Settings = DENYING) -> World:
    """Nodes with room for many, and the three queues."""
    made = World(settings)
    shared = a_node("s").mgpu(MANY, memory=16384)
    nodes = (
        a_node("a").card("A", MANY),
        a_node("b").card("B", MANY),
        a_node("m").product("M").mps(MANY, replicas=8),
        a_node("g").product("G").mig("1g.10gb", MANY),
        shared.product("A") if settings.mgpu.card_quota else shared,
        a_node("d").label(DRIVER + CLASS, str(MANY)).label(DRIVER + SERVED, str(MANY)),
    )
    for built in nodes:
        made.create(built.build(), ADMIN)
    served = {SERVED: {"extendedResourceName": EXTENDED}, CLASS: {}}
    for name, spec in served.items():
        made.create({"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}, ADMIN)
    closed = limited(CLOSED, MANY).used_by("theirs")
    for queue in (limited(OWN, 1), limited(OTHER, MANY), closed):
        made.create(queue.build(), ADMIN)
    made.create(a_namespace(HOME).annotation(names.DEFAULT_CARD_ANNOTATION, "A").build(), ADMIN)
    made.create(a_template("each").exactly("r", CLASS).build())
    return made


def limited(name: str, pods: int) -> QueueBuilder:
    """A queue with quota for so many pods of each way; of the choice's second card none."""
    cards = {"A": pods, "B": 0, MPS: pods, MIG: pods}
    devices = {each: {"count": pods} for each in (CLASS, SERVED)}
    return a_queue(name).cards(cards).shares(core=SHARE * pods).devices({"capability": devices})


def make(cluster: World, way: str, name: str, queue: str = OWN) -> PodBuilder:
    """A pod of a way, with a claim of its own where that is what it needs; not created yet."""
    built = WAYS[way].named(name, queue)
    if way == "claim":
        cluster.create(a_claim(f"of-{name}").exactly("r", CLASS).build())
        built = built.claim("dev", name=f"of-{name}")
    return built
