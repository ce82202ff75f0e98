"""Cards and containers as the search sees them, and as the numbers that it computes with."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

UNLIMITED: Final = -1
"""Seats of a card that no number of containers at hand can use up."""


class Slot(NamedTuple):
    """A class of cards: free core, free memory, and how many more containers it takes."""

    core: int
    memory: int
    seats: int


class Load(NamedTuple):
    """A container: what it takes on each of `cards` different cards."""

    cards: int
    core: int
    memory: int

    def fits(self, slot: Slot) -> bool:
        """Whether such a card can take the container's share."""
        return slot.core >= self.core and slot.memory >= self.memory and slot.seats != 0

    def left(self, slot: Slot) -> Slot:
        """What such a card has left when it has taken the share."""
        seats = slot.seats if slot.seats < 0 else slot.seats - 1
        return Slot(slot.core - self.core, slot.memory - self.memory, seats)


class Packing:
    """Slots as numbers: core, memory and seats side by side, so that the numbers are in the order of their slots.

    Above each of the three is a bit that is zero: `guard` has all of them. What a share leaves of a slot is a difference, and it
    fits where that borrows none of these bits. Seats are limited on all cards or on none; then they have no part in it.
    """

    __slots__ = ("_core", "_memory", "_memory_mask", "_seats_mask", "guard", "limited")

    def __init__(self, slots: Collection[Slot], loads: Collection[Load]) -> None:
        """For these, and for all that shares leave of them."""
        core = max(*(slot.core for slot in slots), *(load.core for load in loads), 0)
        memory = max(*(slot.memory for slot in slots), *(load.memory for load in loads), 0)
        seats = max((slot.seats for slot in slots), default=UNLIMITED)
        self.limited = seats >= 0
        self._memory = max(seats, 1).bit_length() + 1 if self.limited else 0
        self._core = self._memory + memory.bit_length() + 1
        self._seats_mask = (1 << self._memory) - 1
        self._memory_mask = (1 << self._core - self._memory) - 1
        top = self._core + core.bit_length()
        self.guard = 1 << top | 1 << self._core - 1 | (1 << self._memory - 1 if self.limited else 0)

    def slot(self, slot: Slot) -> int:
        """A slot as a number."""
        seats = slot.seats if self.limited else 0
        return slot.core << self._core | slot.memory << self._memory | seats

    def share(self, core: int, memory: int) -> int:
        """What a container takes on a card, as a number: a seat as well."""
        return core << self._core | memory << self._memory | int(self.limited)

    def unpacked(self, slot: int) -> Slot:
        """The slot of a number."""
        return Slot(self.core(slot), self.memory(slot), self.seats((slot,))[0])

    def core(self, slot: int) -> int:
        """The core of a slot."""
        return slot >> self._core

    def memory(self, slot: int) -> int:
        """The memory of a slot."""
        return slot >> self._memory & self._memory_mask

    def cores(self, slots: Iterable[int]) -> list[int]:
        """The core of each of these slots."""
        start = self._core
        return [slot >> start for slot in slots]

    def memories(self, slots: Iterable[int]) -> list[int]:
        """The memory of each of these slots."""
        start, mask = self._memory, self._memory_mask
        return [slot >> start & mask for slot in slots]

    def seats(self, slots: Iterable[int]) -> list[int]:
        """The seats of each of these slots."""
        mask = self._seats_mask
        return [slot & mask if self.limited else UNLIMITED for slot in slots]
