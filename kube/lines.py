"""Lines out of a chunked stream, however the chunks fall and however long a line is."""

from collections.abc import Iterator


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
