"""Nodes that show the product of a card and do not carry it: why, for whoever waits for that card."""

import pytest

from core.cards.inventory import Inventory
from core.cards.mended import passed_over
from tests.builders import a_node
from tests.builders.objects import NodeBuilder

NO_MEMORY = a_node("n").label("nvidia.com/gpu.product", "H200").allocatable("nvidia.com/gpu", 8)


def why(node: NodeBuilder, *cards: str) -> tuple[str, ...]:
    inventory, view = Inventory({}), node.view()
    inventory.put(view)
    return passed_over(inventory, view, cards)


@pytest.mark.parametrize(
    ("node", "cards", "told"),
    [
        (NO_MEMORY, ("H200",), "label nvidia.com/gpu.memory is missing, H200 is not recognised"),
        (NO_MEMORY, ("A100", "H200"), "label nvidia.com/gpu.memory is missing, H200 is not recognised"),
        (NO_MEMORY, ("H200/mps-80g*1/2",), "label nvidia.com/gpu.memory is missing"),
        (a_node("n").product("H200", count=8), ("H200",), "H200 has a label, but no resource"),
        (a_node("n").card("H200", 8), ("H200/mps-80g*1/2",), ""),
        (a_node("n").card("H200", 8), ("H200",), ""),
        (NO_MEMORY, ("A100",), ""),
        (NO_MEMORY, ("H20",), ""),
        (a_node("n"), ("H200",), ""),
    ],
)
def test_why_a_node_is_passed_over(node: NodeBuilder, cards: tuple[str, ...], told: str) -> None:
    found = why(node, *cards)
    assert bool(found) == bool(told)
    assert told in "; ".join(found)
