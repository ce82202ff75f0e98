"""How much is measured: the sizes that the targets name, and smaller ones for a quick look."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Sizes and bounds of a run. A target is judged only where the size that it names is reached.

    `requests` is per round and server, `changes` the watch events after a start. After `limit_s` seconds a
    measurement begins no further round.
    """

    rounds: int = 7
    limit_s: float = 60.0
    requests: int = 3000
    connections: int = 50
    waiting: int = 10_000
    queues: int = 100
    nodes: int = 1000
    share_nodes: int = 5000
    pods: int = 100_000
    pod_nodes: int = 5000
    changes: int = 20_000
    share: float = 1.0
    """The part of what happens to a controller in `stalls`, and of the pods of `cohort`."""


FULL = Effort()
QUICK = Effort(rounds=3, limit_s=15.0, requests=1000, pods=20_000, pod_nodes=1000, changes=4000, share=0.1)
