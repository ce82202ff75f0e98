"""Situations in which somebody asks whether a manifest would run: what is there, what is applied, and what must come of it.

Each has nodes, cards and queues of its own, so that all of them can be looked at in one cluster at the same time.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hack.controlplane.nodes import gpu_node, mgpu_node, mig_mps_node, node
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.manifests import card_pod, in_group, podgroup, queue, share_pod

MARK: Final = "example.com/situation"
"""The label of a situation's nodes with shares, which its pods select."""


@dataclass(frozen=True)
class Situation:
    """`set_up` makes what is there and returns what is applied; `verdict` is what must come of that."""

    name: str
    verdict: str
    set_up: "Callable[[Scene], list[Object]]"
    volcano: bool = False
    """Whether it takes the definition of Volcano's Job."""


class Table(list[Situation]):
    """Situations, in the order in which they stand in a file."""

    def situation(self, verdict: str, *, volcano: bool = False) -> Callable[["Rule"], "Rule"]:
        """Enters a situation under the name of the function."""

        def enter(rule: "Rule") -> "Rule":
            self.append(Situation(rule.__name__, verdict, rule, volcano))
            return rule

        return enter


@dataclass
class Scene:
    """Where a situation is set up. `running` are the pods that have to run before anybody asks."""

    cluster: Cluster
    prefix: str
    running: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    """The paths of its nodes."""

    def _add(self, made: Object) -> None:
        self.nodes.append(self.cluster.api.path_of(made))
        self.cluster.add_nodes(made)

    def card(self, *nodes_of: int, **spec: Any) -> str:
        """A card that no other situation knows, on nodes with so many each; `spec` is that of the nodes."""
        card = unique("CARD")
        for cards in nodes_of:
            made = gpu_node(unique(self.prefix), product=card, cards=cards, memory_mib=1000)
            self._add({**made, "spec": spec} if spec else made)
        return card

    def cut(self) -> str:
        """A card on a node where some are whole, some shared and some cut."""
        card = unique("CUT")
        made = mig_mps_node(unique(self.prefix))
        made["metadata"]["labels"]["nvidia.com/gpu.product"] = card
        self._add(made)
        return card

    def queue(
        self,
        quota: Mapping[str, int],
        *,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> str:
        """A queue with this card quota."""
        name = unique(self.prefix)
        made = queue(name, json.dumps(quota))
        made["metadata"]["annotations"] |= dict(annotations or {})
        made["spec"] |= spec
        self.cluster.create_queue(made)
        return name

    def close(self, name: str) -> None:
        """Close a queue."""
        path = f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}/status"
        self.cluster.api.patch(path, {"status": {"state": "Closed"}}).expect()

    def pod(self, card: str, in_queue: str, count: int = 1, name: str = "", **spec: Any) -> Object:
        """A pod of the situation."""
        return card_pod(name or unique(self.prefix), card, in_queue, count, **spec)

    def busy(self, card: str, in_queue: str, count: int = 1) -> str:
        """A pod that runs before anybody asks."""
        made = self.pod(card, in_queue, count)
        self.cluster.create(made)
        name: str = made["metadata"]["name"]
        self.running.append(name)
        return name

    def waiting(self, card: str, in_queue: str, count: int) -> None:
        """A pod that waits before anybody asks."""
        self.cluster.create(self.pod(card, in_queue, count))

    def share_node(self, cards: int = 1) -> dict[str, str]:
        """A node of shared cards of 8000 MiB, and the selector that finds it."""
        made = mgpu_node(unique(self.prefix), cards=cards, memory_mib=8000)
        made["metadata"]["labels"][MARK] = self.prefix
        self._add(made)
        return {MARK: self.prefix}

    def share(self, core: int, memory: int | None, **spec: Any) -> Object:
        """A pod with a share of a card."""
        return share_pod(unique(self.prefix), core, memory, **spec)

    def plain_node(self) -> None:
        """A node without cards."""
        self._add(node(unique(self.prefix)))

    def gang(self, card: str, in_queue: str, members: int, minimum: int) -> list[Object]:
        """A PodGroup and its members, each asking for one card."""
        name = unique(self.prefix)
        return [
            podgroup(name, in_queue, minimum),
            *in_group(name, *(self.pod(card, in_queue) for _ in range(members))),
        ]


Rule = Callable[[Scene], list[Object]]
