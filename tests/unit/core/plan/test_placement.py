"""What a card requires of its node follows the nodes, one change at a time."""

from hypothesis import given
from hypothesis import strategies as st

from core.affinity import Expression
from core.plan.placement import CardPlacement
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder
from tests.unit.core.plan.stepping import stepped

PRODUCT = Expression("nvidia.com/gpu.product", "In", ("A",))
SHARE = "A/mps-80g*1/8"


def books(*nodes: NodeBuilder) -> Ledger:
    ledger = Ledger(Settings())
    for node in nodes:
        ledger.put_node(node.view())
    return ledger


def shared(name: str, *, memory: int = 81920) -> NodeBuilder:
    return a_node(name).product("A", memory=memory, count=1).mps(8, replicas=8)


def test_a_change_costs_the_node_that_changed() -> None:
    ledger = books(*(a_node(f"n{number}").card("A", 8) for number in range(250)), a_node("cpu"))
    placement, pauses = CardPlacement(ledger), []
    found = stepped(placement.find("A"), lambda: pauses.append(placement.read))
    assert found.implied == (PRODUCT,)
    assert placement.read == 250
    assert len(pauses) == 2, "a hundred nodes in a step"
    assert placement.requirement("A") is found
    assert placement.read == 250
    ledger.put_pod(a_pod("p").gpu(1).card("A").bound_to("n7").view())
    ledger.put_node(a_node("n8").card("A", 7).view())
    assert placement.requirement("A") is found
    assert placement.read == 252


def test_what_the_nodes_tell_is_followed_until_none_is_left() -> None:
    ledger = books(shared("n1"))
    placement = CardPlacement(ledger)
    memory = "nvidia.com/gpu.memory"
    assert [each.values for each in placement.requirement(SHARE).implied] == [("A",), ("8",), ("81920",)]
    ledger.put_node(shared("n2", memory=81919).view())
    assert Expression(memory, "In", ("81919", "81920")) in placement.requirement(SHARE).implied
    ledger.drop_node("n1")
    assert Expression(memory, "In", ("81919",)) in placement.requirement(SHARE).implied
    ledger.put_node(a_node("n2").view())
    assert placement.requirement(SHARE).alternatives == ()


@st.composite
def a_card_node(draw: st.DrawFn) -> NodeBuilder:
    name, prefix = draw(st.sampled_from("xyz")), draw(st.sampled_from(["nvidia.com/gpu", "example.com/gpu"]))
    memory = draw(st.sampled_from([81920, 81919, 40960]))
    node = a_node(name).card(draw(st.sampled_from("AB")), 1, memory=memory, prefix=prefix)
    return draw(
        st.sampled_from([node, node.label("other.product", "A"), shared(name, memory=memory), a_node(name)])
    )


@given(st.lists(st.one_of(a_card_node(), st.sampled_from("xyz")), max_size=12))
def test_what_is_kept_is_what_is_found_anew(changes: list[NodeBuilder | str]) -> None:
    ledger = books()
    placement = CardPlacement(ledger)
    for change in changes:
        if isinstance(change, str):
            ledger.drop_node(change)
        else:
            ledger.put_node(change.view())
        for card in ("A", "B", SHARE):
            assert placement.requirement(card) == finish(CardPlacement(ledger).find(card))
