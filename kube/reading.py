"""Lines of JSON as an API server sends them, read so that nothing else on the event loop waits long for it.

A pod may be a megabyte and a half, most of it terms of its affinity, and a page of a list has as many as were asked for.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from core.steps import Steps
from kube import bigjson
from kube.turns import Turns

PAGE_BYTES: Final = 1024 * 1024
"""A page of so much is read in one go, in about eight milliseconds; in steps it would take eight times as long."""


class Reader:
    """Reads documents of moderate size at once, others in slices; for one event loop."""

    def __init__(self, turns: Turns | None = None) -> None:
        self._turns = turns or Turns()

    async def value(self, body: bytes, whole: int = bigjson.WHOLE) -> Any:
        """The value of a document; up to `whole` bytes are read at once. Raises JsonError."""
        if len(body) <= whole:
            return _at_once(body)
        return await self._turns.finish(_in_steps(body))


def page_limit(limit: int, size: int, most: int) -> int:
    """How many objects to ask for after a page of so many that had this size, so that the next one is read at once."""
    return max(1, min(most, limit * PAGE_BYTES // max(1, size)))


def _at_once(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bigjson.JsonError(str(error)) from None


def _in_steps(body: bytes) -> Steps[Any]:
    try:
        return (yield from bigjson.loads(body, most_members=len(body)))
    except bigjson.JsonError:
        # The API server takes in objects that are nested more deeply than that; who is no JSON in one go either says so.
        return _at_once(body)


class LineSplitter:
    """Collects chunks and gives out the complete lines, without their line ends; empty lines are left out.

    Work is linear in the bytes fed: an object of many megabytes arrives in many chunks, and each is looked at once.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes. Exhaust it before the next call."""
        head, *tail = chunk.split(b"\n")
        self._parts.append(head)
        for following in tail:
            line = b"".join(self._parts)
            self._parts = [following]
            if line:
                yield line

    @property
    def rest(self) -> bytes:
        """What came after the last line end."""
        return b"".join(self._parts)
