"""What the judge is told beside the log, and what it answers."""

from dataclasses import dataclass
from typing import Final

GATE: Final = "cardquota.io/quota"
ASSIGNED: Final = "cardquota.io/assigned"
CHARGED: Final = "cardquota.io/queue"
GANG: Final = "cardquota.io/gang"
RECORDS: Final = frozenset(
    f"cardquota.io/{name}"
    for name in ("queue", "assigned", "gang", "gang-of", "claims", "node", "nominated-node", "lifted")
)
INDEX_PREFIX: Final = "vke.volcengine.com/gpu-index-"
INDEX_OF: Final = f"{INDEX_PREFIX}container-"
ASSUMED: Final = "vke.volcengine.com/assumed"

CARD_NAME: Final = "volcano.sh/card.name"
CARD_QUOTA: Final = "volcano.sh/card.quota"
DEVICE_QUOTA: Final = "volcano.sh/dra.quota"
CLAIMS: Final = "cardquota.io/claims"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
PRODUCT: Final = "nvidia.com/gpu.product"
GPU: Final = "nvidia.com/gpu"
CORE: Final = "vke.volcengine.com/mgpu-core"
MEMORY: Final = "vke.volcengine.com/mgpu-memory"
MGPU_NODE: Final = "vke.node.gpu.schedule"
CORE_OF_A_CARD: Final = 100
CONTAINERS_OF_A_CARD: Final = 16


def is_record(key: str) -> bool:
    """Whether nobody but the controller may write this annotation of a pod."""
    return key in RECORDS or key.startswith(INDEX_PREFIX) or key == ASSUMED


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A time, in seconds since the epoch, in which somebody disturbed the processes.

    `blind` where writes may have been stored that the log does not have, because the API server or its store was hit.
    """

    began: float
    ended: float
    kind: str = ""
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms a log is judged."""

    controller: str = "system:serviceaccount:cardquota-system:cardquota-controller"
    lease: str = "cardquota"
    default_queue: str = "default"
    known_after_s: float = 3.0
    """After so many seconds a leader that nobody disturbs knows of a quota that was cut."""
    takes_over_s: float = 12.0
    """So long after its first write of the Lease nothing of the leader before is stored any more, and it has seen all of it."""
    prompt_s: float = 5.0
    """Within so many seconds a leader repairs or tells, and Queue status is true."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: when, of what, and the numbers of the entries (lines of the log, from 1) that prove it."""

    rule: str
    at: float
    about: str
    text: str
    entries: tuple[int, ...]

    def __str__(self) -> str:
        return f"[{self.rule}] {self.about}: {self.text} (at {self.at:.3f}, entries {list(self.entries)})"
