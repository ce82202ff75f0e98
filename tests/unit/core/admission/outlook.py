"""A view of queues and nodes, and the warnings that objects get there."""

from typing import Any

from core import names, reasons
from core.admission.dispatch import judge
from core.admission.request import ClusterView, Context
from core.cards.inventory import Inventory
from core.violations import Hint
from tests.builders import a_node, a_queue
from tests.builders.objects import NodeBuilder, QueueBuilder
from tests.unit.core.admission.samples import TENANT, creation, settings

CARD_PATH = f"metadata.annotations[{names.CARD_NAME_ANNOTATION}]"


QUEUE_PATH = f"metadata.annotations[{names.QUEUE_NAME_ANNOTATION}]"


REQUEST_PATH = f"metadata.annotations[{names.CARD_REQUEST_ANNOTATION}]"


WAITING = {
    reasons.BEYOND_QUOTA,
    reasons.BEYOND_NODES,
    reasons.QUEUE_NOT_FOUND,
    reasons.QUEUE_NAME_UNREAD,
    reasons.CARD_REQUEST_DIFFERS,
}


def cluster(
    *queues: QueueBuilder, namespaces: Any = None, nodes: tuple[NodeBuilder, ...] | None = None
) -> ClusterView:
    """A view of queues and of nodes with the cards A and B; namespaces only where they are given."""
    inventory = Inventory({})
    for node in nodes if nodes is not None else (a_node("n1").card("A", 8), a_node("n2").card("B", 8)):
        inventory.put(node.view())
    return ClusterView(
        inventory=inventory,
        queues={view.name: view for view in (queue.view() for queue in queues)},
        namespaces=None if namespaces is None else {view.name: view for view in namespaces},
    )


TEAM = a_queue("team").cards({"A": 4, "B": 2})


def hints(raw: dict[str, Any], view: ClusterView, username: str = TENANT, **sections: Any) -> list[Hint]:
    """What is said of the creation of an object about its queue; nothing may ever be refused for it."""
    findings = judge(creation(raw, username), Context(view, settings(**sections)))
    assert findings.violations == []
    return [hint for hint in findings.hints if hint.code in WAITING]


def codes(found: list[Hint]) -> list[str]:
    return [hint.code for hint in found]


def cluster_without_queues() -> ClusterView:
    return ClusterView(inventory=cluster().inventory)
