"""What does not add up about the cards of the nodes: in the log once, and in numbers as long as it is so."""

import pytest
from prometheus_client import CollectorRegistry

from controller.discovery import DiscoveryLog
from core.cards.inventory import Inventory
from tests.builders import a_node
from tests.builders.objects import NodeBuilder


class Cluster:
    """Nodes that come and go, as the informer tells of them."""

    def __init__(self) -> None:
        self.registry, self.inventory = CollectorRegistry(), Inventory({})
        self.log = DiscoveryLog(self.inventory, self.registry)

    def put(self, node: NodeBuilder) -> None:
        self.inventory.put(node.view())
        self.log.on_node(None, node.view())

    def drop(self, node: NodeBuilder) -> None:
        self.inventory.drop(node.view().name)
        self.log.on_node(node.view(), None)

    def numbers(self) -> tuple[float | None, float | None]:
        """(cards in conflict, nodes with remarks)."""
        sample = self.registry.get_sample_value
        return sample("cardquota_card_conflicts"), sample("cardquota_nodes_with_remarks")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """(node, remark) of every line."""
    return [(record.__dict__["node"], record.__dict__["remark"]) for record in caplog.records]


def test_a_fleet_that_is_labelled_alike_is_one_line(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The number says how many nodes it is about, and follows them."""
    nodes = [a_node(f"n{number}").product("A") for number in range(3)]
    for node in nodes:
        cluster.put(node)
        cluster.put(node.label("heartbeat", "1"))
    ((name, remark),) = said(caplog)
    assert name == "n0"
    assert "A has a label, but no resource in status.allocatable" in remark
    assert cluster.numbers() == (0, 3)
    cluster.put(nodes[0].card("A", 8))
    cluster.drop(nodes[1])
    assert cluster.numbers() == (0, 1)


def test_a_card_under_two_resources_is_a_conflict_until_the_nodes_agree(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.put(a_node("n1").card("A", 1, prefix="v.com/x"))
    other = a_node("n2").card("A", 1, prefix="w.com/y")
    cluster.put(other)
    cluster.put(other)
    assert said(caplog) == [("n2", "nodes show the card A under different resources: v.com/x, w.com/y")]
    assert cluster.numbers() == (1, 0)
    cluster.drop(other)
    assert cluster.numbers() == (0, 0)


def test_proper_nodes_are_not_mentioned(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.put(a_node("n1").card("A", 8))
    cluster.put(a_node("n2"))
    cluster.drop(a_node("gone"))
    assert said(caplog) == []
