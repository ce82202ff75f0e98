"""Decisions taken from bytes: the same bytes always decide the same, and none left over decides for the first."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_BYTE = 256


class Choices:
    """Reads decisions from the front; where the bytes end, everything is 0."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        """A number from 0 up to `limit`, itself excluded."""
        size = 1 if limit <= _BYTE else 2
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "big") % limit

    def of(self, options: Sequence[T]) -> T:
        """One of these."""
        return options[self.below(len(options))]

    def some(self, longest: int = 255) -> bytes:
        """A run of bytes as they stand."""
        length = self.below(longest + 1)
        taken = self._data[self._at : self._at + length]
        self._at += length
        return taken

    def rest(self) -> bytes:
        """All that is left."""
        taken = self._data[self._at :]
        self._at = len(self._data)
        return taken

    @property
    def left(self) -> bool:
        """Whether there is anything left to decide by."""
        return self._at < len(self._data)
