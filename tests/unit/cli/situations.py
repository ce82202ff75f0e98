"""Clusters in which somebody asks why a pod does not start, and whether the books are right."""

import json
from typing import Any, Final

from core import names
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import NodeBuilder
from tests.builders.pods import PodBuilder

H200: Final = "NVIDIA-H200"
A100: Final = "NVIDIA-A100"
READ_AT: Final = "2024-01-01T03:00:00Z"


def a_state(*objects: Any) -> str:
    """A dump of these."""
    items = [one if isinstance(one, dict) else one.build() for one in objects]
    metadata = {"annotations": {names.READ_AT_ANNOTATION: READ_AT}}
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items})


def a_node_of(card: str, name: str, count: int = 8) -> NodeBuilder:
    return a_node(name).card(card, count)


def running(
    name: str, count: int, *, card: str = H200, queue: str = "research", node: str = "n1"
) -> PodBuilder:
    pod = a_pod(name).gpu(count).card(card).in_queue(queue)
    return pod.charged(queue).assigned({card: count}).bound_to(node)


def waiting(name: str, count: int = 1, *, cards: str = H200, queue: str = "research") -> PodBuilder:
    return a_pod(name).gpu(count).card(cards).in_queue(queue).gated().created("2024-01-01T01:00:00Z")


def ended(number: int, *, queue: str = "research") -> dict[str, Any]:
    """Each half an hour after the one before."""
    at = f"2024-01-01T{number // 2:02}:{number % 2 * 30:02}:00Z"
    pod = running(f"done-{number}", 1, queue=queue).phase("Succeeded").build()
    pod["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"finishedAt": at}}}]
    return pod


FOR_QUOTA: Final = (
    a_node_of(H200, "n1"),
    a_queue("research").cards({H200: 4}),
    running("train-1", 3),
    running("train-2", 1),
    waiting("train-3", 2).created("2024-01-01T00:30:00Z"),
    waiting("p"),
    *(ended(number) for number in range(6)),
)
BY_STOCK: Final = (
    a_node_of(H200, "n1"),
    a_node_of(A100, "n2", 4).cordoned(),
    a_queue("research").cards({H200: 16, A100: 8}),
    a_queue("serving").cards({H200: 8}),
    running("web", 6, queue="serving"),
    waiting("p", 4, cards=f"{H200}|{A100}"),
)
GANG: Final = (
    a_node_of(H200, "n1"),
    a_queue("research").cards({H200: 8}),
    a_group("g").in_queue("research").min_member(3),
    waiting("p", 2).in_group("g"),
    waiting("p2", 2).in_group("g"),
)
CHOICE: Final = (
    a_node_of(H200, "n1"),
    a_node_of(A100, "n2"),
    a_queue("research").cards({H200: 2, A100: 4}),
    running("train-1", 2),
    running("train-2", 3, card=A100, node="n2"),
    waiting("p", 2, cards=f"{H200}|{A100}"),
)
NO_CARD_NAME: Final = (
    a_node_of(H200, "n1"),
    a_queue("research").cards({H200: 2}),
    a_pod("p").gpu(1).in_queue("research").annotation("volcano.sh/card-name", "nvidia-h200"),
)
MISSPELT: Final = (
    a_node_of(H200, "n1"),
    a_queue("research").cards({H200: 2}),
    waiting("p", cards="nvidia-h200"),
)


def unscheduled() -> dict[str, Any]:
    pod = a_pod("p").gpu(1).card(H200).in_queue("research").charged("research").assigned({H200: 1}).build()
    why = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available."
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why,
        "lastTransitionTime": "2024-01-01T02:00:00Z",
    }
    pod["status"] = {"phase": "Pending", "conditions": [condition]}
    return pod


UNSCHEDULED: Final = (a_node_of(H200, "n1"), a_queue("research").cards({H200: 2}), unscheduled())
SHARES: Final = (
    a_node("m1").mgpu(2, memory=8000),
    a_node("m2").mgpu(1, memory=4000),
    a_queue("research").shares(core=300, memory=20000),
    a_pod("s1").mgpu(core=60, memory=4000).in_queue("research").charged("research").bound_to("m1"),
    a_pod("s2").mgpu(core=80, memory=4000).in_queue("research").charged("research").bound_to("m1"),
    a_pod("p").mgpu(core=50, memory=6000).in_queue("research").gated().created("2024-01-01T01:00:00Z"),
)
CLAIMS: Final = (
    a_node_of(H200, "n1"),
    a_queue("research").devices({"capability": {"gpu.example.com": {"count": 2}}}),
    a_template("two").exactly("r", "gpu.example.com", count=2),
    a_claim("c").exactly("r", "gpu.example.com"),
    a_pod("train").claim("dev", name="c").in_queue("research").charged("research").bound_to("n1"),
    a_pod("p").claim("dev", template="two").in_queue("research").gated().created("2024-01-01T01:00:00Z"),
)
TREE: Final = (
    a_node_of(H200, "n1"),
    a_queue("research").cards({H200: 4}).child_of("all"),
    a_queue("serving").cards({H200: 4}).child_of("all"),
    a_queue("all").cards({H200: 5}).child_of("root"),
    running("web", 4, queue="serving"),
    running("train", 1),
    waiting("p", 2),
)
NEVER: Final = (
    a_node_of(H200, "n1"),
    a_queue("research").cards({H200: 8}),
    waiting("p", 12),
)
PASSED_OVER: Final = (
    a_node("n1").product(H200, count=8),
    a_queue("research").cards({H200: 8}),
    waiting("p", 2),
)
