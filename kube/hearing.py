"""Who is heard next, where more is sent than there is time for.

Every port of a process shares its event loop, and each request costs it a part of a millisecond before anybody has looked at it.
Whoever is let in on hundreds of connections and asks on all of them at once would have each turn of the loop last for as long as
all of that takes. So in one turn a few connections are heard, those of each address in its turn; when nobody else sends
anything, that is as good as at once. API servers and replicas that have proven who they are do not wait for it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

AT_ONCE: Final = 10
"""Connections that are heard in one turn of the event loop: some 10 ms of work at most, bodies of usual size included."""

Hear = Callable[[], None]


class Hearing:
    """Calls those who `ask` to be heard: at once, as long as this turn of the loop has room, else in one of the next turns."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._left = at_once
        self._waiting: OrderedDict[str, dict[Hear, None]] = OrderedDict()
        """By address; the address whose turn it is stands first."""
        self._next: asyncio.Handle | None = None

    def ask(self, address: str, hear: Hear) -> None:
        """Has `hear` called once, maybe before this returns."""
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._go_on)
        if self._left and not self._waiting:
            self._left -= 1
            hear()
        else:
            self._waiting.setdefault(address, {})[hear] = None

    def take_back(self, address: str, hear: Hear) -> None:
        """The wish is gone, if it was not fulfilled yet."""
        theirs = self._waiting.get(address, {})
        theirs.pop(hear, None)
        if not theirs:
            self._waiting.pop(address, None)

    def _go_on(self) -> None:
        self._left = self._at_once
        self._next = asyncio.get_running_loop().call_soon(self._go_on) if self._waiting else None
        while self._waiting and self._left:
            self._left -= 1
            self._first()()

    def _first(self) -> Hear:
        address, theirs = next(iter(self._waiting.items()))
        hear = next(iter(theirs))
        del theirs[hear]
        if theirs:
            self._waiting.move_to_end(address)
        else:
            del self._waiting[address]
        return hear


def shared() -> Hearing:
    """The one of all ports in the running event loop."""
    return _OF_LOOPS.setdefault(asyncio.get_running_loop(), Hearing())


_OF_LOOPS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Hearing]] = WeakKeyDictionary()
