"""Where a scene plays: what it may do besides telling the store, and what several scenes are made of."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol

from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder, PodBuilder

Json = dict[str, Any]

A, B, C = "NVIDIA-A", "NVIDIA-B", "NVIDIA-C"
PLENTY: Final = 1_000_000
CARDS: Final = 8
"""On each node."""


class Stage(Protocol):
    """What a scene may do besides telling the store."""

    async def calm(self) -> None:
        """Returns when the controller has nothing left to do."""

    async def patches(self, count: int) -> None:
        """Returns when the controller has patched so many pods."""

    async def ask(self, path: str, *, body: Path | None = None, times: int = 1) -> None:
        """Has another process ask the controller: metrics on the one port, a scheduler's questions on the other."""

    def file(self, content: bytes) -> Path:
        """A file with this content."""


Act = Callable[[Stage], Awaitable[None]]


def sized(number: int, scale: float, least: int = 1) -> int:
    """That many at full size."""
    return max(least, round(number * scale))


def card_node(name: str, card: str) -> NodeBuilder:
    """A node with eight of this card."""
    return a_node(name).card(card, CARDS).allocatable("cpu", 128).allocatable("memory", "1Ti")


def card_pod(name: str, queue: str, card: str) -> PodBuilder:
    """A pod that asks for one of these cards."""
    return a_pod(name).gpu(1).card(card).in_queue(queue)
