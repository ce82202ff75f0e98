"""What is said by sums alone holds."""

from dataclasses import replace

from hypothesis import given

from core.mgpu.ask import MgpuAsk
from core.mgpu.node import NodeModel, NodeState, idle_state
from core.mgpu.totals import excess, free, idle
from tests.property.test_mgpu_properties import CAPS, a_case, every_way


@given(a_case(parts_max=5), CAPS)
def test_who_asks_together_for_more_than_there_is_has_no_room(
    case: tuple[MgpuAsk, NodeModel, NodeState], cap: int
) -> None:
    """By brute force: nor have the containers up to the one that is told."""
    ask, model, state = case
    over = excess(ask.parts, free(state.cards, cap), model, cap)
    if over is not None:
        head = replace(ask, parts=ask.parts[: over.position + 1])
        assert every_way(head, model, state, cap) == []
        assert any(asked > there for asked, there in zip(over.asked, over.there, strict=True))
    if excess(ask.parts, idle(model, cap), model, cap) is not None:
        assert every_way(ask, model, idle_state(model), cap) == []
