"""Who decides first about a node: a bind that was begun again and again, because others kept changing what it goes by."""

import asyncio
from dataclasses import dataclass, field

from core.mgpu.pieces import Pieces


@dataclass(slots=True)
class _First:
    pieces: Pieces
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Precedence:
    """At most one bind goes first on a node, and none of those that look at the same cards is decided before it is.

    One search takes tens of milliseconds at most, so the others wait no longer than that; were it to wait for them, it would
    be for as long as they come.
    """

    def __init__(self) -> None:
        self._first: dict[str, _First] = {}

    def claim(self, node: str, pieces: Pieces) -> None:
        """This one goes first there until it is ended, unless somebody does already."""
        if node not in self._first:
            self._first[node] = _First(pieces)

    def end(self, node: str, pieces: Pieces) -> None:
        """It has been decided. Nothing happens where it did not go first."""
        first = self._first.get(node)
        if first is not None and first.pieces is pieces:
            del self._first[node]
            first.over.set()

    def waits(self, node: str, pieces: Pieces) -> bool:
        """Whether another one goes first there."""
        first = self._first.get(node)
        return first is not None and first.pieces is not pieces

    async def over(self, node: str) -> None:
        """Returns when whoever goes first there now has been decided."""
        first = self._first.get(node)
        if first is not None:
            await first.over.wait()
