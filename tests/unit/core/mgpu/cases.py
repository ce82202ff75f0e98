"""Short ways to write asks, nodes and states in the tests."""

from core.mgpu.ask import FIXED_SHARE, NATIVE_BURST_SHARE, MgpuAsk, Part
from core.mgpu.node import Card, NodeModel, NodeState

Wish = tuple[int, int, int | None]
"""Cards, core per card, memory per card; None = whole cards."""


def an_ask(*wishes: Wish, multi: bool = True, policy: str = NATIVE_BURST_SHARE) -> MgpuAsk:
    """Containers c0, c1, ... with these wishes."""
    parts = (Part(f"c{number}", *wish) for number, wish in enumerate(wishes))
    return MgpuAsk(tuple(parts), multi, policy)


def a_normal_ask(*wishes: Wish, policy: str = FIXED_SHARE) -> MgpuAsk:
    """The same without card counts."""
    return an_ask(*wishes, multi=False, policy=policy)


def a_model(
    cards: int, memory: int = 10_000, *, policy: str = NATIVE_BURST_SHARE, kind: str = "mgpu"
) -> NodeModel:
    return NodeModel(kind=kind, policy=policy, cards=cards, memory=memory)


def a_state(*cards: tuple[int, int] | tuple[int, int, int]) -> NodeState:
    """What is free on each card: core, memory, and the number of containers where it is not the likely one."""
    return NodeState(
        tuple(Card(*card) if len(card) == 3 else Card(*card, int(card[0] < 100)) for card in cards)
    )
