"""Whose TLS handshake is next: each costs a millisecond or so, and whoever begins enough of them would have the whole process.

So strangers get a limited number of them a second, each address in its turn. Addresses that have asked what is served here, as
API servers have, get more, and do not wait for strangers.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

STRANGERS_PER_S: Final = 100.0
"""Handshakes that strangers get, all together."""
KNOWN_PER_S: Final = 250.0
"""Those that known addresses get: an API server under load opens some hundred connections, and closes those that it has too many of."""
AT_ONCE: Final = 10
"""Of each kind in one turn of the event loop, so that a burst of them keeps nothing else waiting for longer than some 10 ms."""
KNOWN_MOST: Final = 64
"""Addresses that are remembered, the one that was heard of the longest ago goes first: there are some API servers."""


class Turns:
    """Calls those who `wait`, as fast as it may; at first, and after a pause, a second's worth, some in each turn of the loop."""

    def __init__(self, *, strangers_per_s: float = STRANGERS_PER_S, known_per_s: float = KNOWN_PER_S) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._strangers, self._others = _Lane(strangers_per_s), _Lane(known_per_s)

    def know(self, address: str) -> None:
        """Somebody there has asked what is served here; those from there who wait are no strangers any more."""
        if address not in self._known:
            for begin in self._strangers.leave(address):
                self._others.wait(address, begin)
        self._known[address] = None
        self._known.move_to_end(address)
        if len(self._known) > KNOWN_MOST:
            self._known.popitem(last=False)

    def wait(self, address: str, begin: Callable[[], None]) -> Callable[[], None]:
        """Has `begin` called when it is the turn of the address, maybe before it returns. Returns what takes the wish back."""
        lane = self._others if address in self._known else self._strangers
        lane.wait(address, begin)
        return lambda: self._drop(address, begin)

    def _drop(self, address: str, begin: Callable[[], None]) -> None:
        self._strangers.drop(address, begin)
        self._others.drop(address, begin)


class _Lane:
    """Turns at a limited pace; of the addresses that wait each has one after the other."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._left = per_s
        self._at: float | None = None
        self._waiting: OrderedDict[str, dict[Callable[[], None], None]] = OrderedDict()
        """By address; the address whose turn it is stands first."""
        self._timer: asyncio.Handle | None = None

    def wait(self, address: str, begin: Callable[[], None]) -> None:
        self._waiting.setdefault(address, {})[begin] = None
        if self._timer is None:
            self._go_on()

    def leave(self, address: str) -> list[Callable[[], None]]:
        """All of an address who waited here, and do not any more."""
        return list(self._waiting.pop(address, ()))

    def drop(self, address: str, begin: Callable[[], None]) -> None:
        theirs = self._waiting.get(address, {})
        theirs.pop(begin, None)
        if not theirs:
            self._waiting.pop(address, None)

    def _go_on(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._at is not None:
            self._left = min(self._per_s, self._left + (now - self._at) * self._per_s)
        self._at = now
        begun = 0
        while self._waiting and self._left >= 1 and begun < AT_ONCE:
            self._left -= 1
            begun += 1
            self._next()()
        if begun:
            # Whoever comes in this turn of the loop, as those do who are accepted together, is for the next one.
            self._timer = loop.call_soon(self._go_on)
        elif self._waiting:
            self._timer = loop.call_later((1 - self._left) / self._per_s, self._go_on)

    def _next(self) -> Callable[[], None]:
        address, theirs = next(iter(self._waiting.items()))
        begin = next(iter(theirs))
        del theirs[begin]
        if theirs:
            self._waiting.move_to_end(address)
        else:
            del self._waiting[address]
        return begin
