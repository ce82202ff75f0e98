"""Short ways to write asks, nodes and states in the tests."""

import random
from collections.abc import Iterator

from core.mgpu.ask import FIXED_SHARE, NATIVE_BURST_SHARE, MgpuAsk, Part
from core.mgpu.node import Card, NodeModel, NodeState
from tests.builders.objects import PodBuilder, a_pod

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


def filling(cards: int, memory: int = 16_384) -> MgpuAsk:
    """Four containers for each idle card, no two alike, that leave nothing free: to find out how takes more than any budget."""
    sizes = random.Random(3)
    wishes = [
        (1, core, part)
        for _ in range(cards)
        for core, part in zip(_pieces(sizes, 100, 1), _pieces(sizes, memory, 256), strict=True)
    ]
    return an_ask(*wishes)


def a_filling_pod(name: str, cards: int) -> PodBuilder:
    """A pod that asks for this, see `filling`."""
    pod, ask = a_pod(name).mgpu_policy(NATIVE_BURST_SHARE), filling(cards)
    for part in ask.parts:
        pod = pod.mgpu(part.container, core=part.core, memory=part.memory)
    return pod.only(*(part.container for part in ask.parts))


def _pieces(sizes: random.Random, total: int, least: int) -> Iterator[int]:
    """Four numbers that add up to the total."""
    spare = total - 4 * least
    cuts = sorted(sizes.sample(range(spare), 3))
    return (least + high - low for low, high in zip((0, *cuts), (*cuts, spare), strict=True))
