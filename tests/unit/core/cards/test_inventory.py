"""The inventory follows the nodes one by one and says of which cards a change moved the resource."""

from core.cards.discovery import CardStock
from core.cards.inventory import Inventory
from tests.builders import a_node

GPU = "nvidia.com/gpu"


def test_a_node_brings_and_takes_its_cards() -> None:
    inventory = Inventory({})
    assert inventory.put(a_node("n1").card("A", 4).view()) == {"A"}
    assert inventory.put(a_node("n2").card("A", 2).mig("1g", 1).view()) == frozenset()
    assert inventory.totals() == {"A": 6000, "A/mig-1g-mixed": 1000}
    assert inventory.nodes_with("A") == ("n1", "n2")
    assert inventory.on_node("n1") == {"A": CardStock(GPU, 4000)}
    assert inventory.drop("n1") == frozenset()
    assert inventory.totals() == {"A": 2000, "A/mig-1g-mixed": 1000}
    assert inventory.nodes_with("A") == ("n2",)
    assert inventory.on_node("n1") == {}


def test_the_last_node_of_a_card_takes_the_mapping_with_it() -> None:
    inventory = Inventory({})
    inventory.put(a_node("n").card("A", 1).view())
    assert inventory.resource_of("A") == GPU
    inventory.drop("n")
    assert (inventory.resources_of("A"), inventory.resource_of("A")) == (frozenset(), None)
    assert (inventory.cards(), inventory.totals(), inventory.nodes_with("A")) == ((), {}, ())


def test_only_cards_that_are_another_resource_now_are_reported() -> None:
    """A node that comes, grows or goes moves no card; a share's resource follows from its name and never moves."""
    inventory = Inventory({})
    node = a_node("n").card("A", 4).mig("1g", 1)
    assert inventory.put(node.view()) == {"A"}
    assert inventory.put(node.cordoned().label("x", "y").view()) == frozenset()
    assert inventory.put(node.allocatable(GPU, 3).view()) == frozenset()
    assert inventory.put(node.product("B").view()) == {"A", "B"}
    assert inventory.put(a_node("m").card("B", 1, prefix="v.com/z").view()) == {"B"}
    assert inventory.drop("unknown") == frozenset()
    assert inventory.drop("m") == {"B"}
    assert inventory.drop("n") == {"B"}


def test_shares_are_known_without_any_node() -> None:
    inventory = Inventory({})
    assert inventory.resources_of("A/mps-80g*1/8") == {"nvidia.com/gpu.shared"}
    assert inventory.resource_of("A/mig-1g.5gb-mixed") == "nvidia.com/mig-1g.5gb"


def test_an_override_names_cards_that_no_node_shows_and_wins_over_nodes() -> None:
    inventory = Inventory({"A": "x.com/a"})
    assert inventory.resources_of("A") == {"x.com/a"}
    assert inventory.cards() == ("A",)
    inventory.put(a_node("n").card("A", 4).allocatable("x.com/a", 2).view())
    assert inventory.resources_of("A") == {"x.com/a"}
    assert inventory.totals() == {"A": 2000}


def test_nodes_that_disagree_are_a_conflict_and_the_smallest_name_is_canonical() -> None:
    inventory = Inventory({})
    inventory.put(a_node("n1").card("A", 1, prefix="v.com/z").view())
    inventory.put(a_node("n2").card("A", 1, prefix="v.com/b").view())
    assert inventory.resources_of("A") == {"v.com/b", "v.com/z"}
    assert inventory.resource_of("A") == "v.com/b"
    assert inventory.conflicts == {"A": {"v.com/b", "v.com/z"}}
    inventory.drop("n2")
    assert inventory.resource_of("A") == "v.com/z"
    assert inventory.conflicts == {}


def test_the_cards_of_a_resource_are_found() -> None:
    inventory = Inventory({"C": GPU})
    inventory.put(a_node("n1").card("B", 1).view())
    inventory.put(a_node("n2").card("A", 1).mig("1g", 2).view())
    assert inventory.cards_of(GPU) == ("A", "B", "C")
    assert inventory.cards_of("nvidia.com/mig-1g") == ("A/mig-1g-mixed",)
    assert inventory.cards_of("cpu") == ()


def test_remarks_about_a_node_are_kept_with_it() -> None:
    inventory = Inventory({})
    inventory.put(a_node("n").product("A").view())
    (note,) = inventory.notes("n")
    assert "A has a label, but no resource in status.allocatable" in note
    assert [alarm.message for alarm in inventory.alarms("n")] == [note]
    inventory.drop("n")
    assert (inventory.notes("n"), inventory.alarms("n")) == ((), ())
