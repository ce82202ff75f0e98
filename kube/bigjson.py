"""JSON of many megabytes, read and written in steps.

orjson needs about 8 ms for a megabyte, in one piece and with the interpreter locked, so that a thread would not help. Here
a document is cut into pieces of at most `PIECE` bytes wherever its containers allow it, and orjson reads each of them.
"""

import re
from collections.abc import Generator
from typing import Any, Final

import orjson

from core.steps import Steps

Body = bytes | bytearray

WHOLE: Final = 256 * 1024
"""Documents up to this size are read in one go: about two milliseconds."""
PIECE: Final = 64 * 1024
"""A container that is longer is read member by member."""
LONGEST_TEXT: Final = 4 * 1024 * 1024
"""A text is always read whole. Longer ones cannot come from an object that an API server takes in, which is 3 MiB at most."""
DEEPEST: Final = 16
"""How deep containers of more than `PIECE` bytes may be nested: each level costs another look at that many bytes."""
MOST_MEMBERS: Final = 200_000
"""How many members of such containers there may be; each costs some microseconds, however small it is."""

_LEVELS_WRITTEN: Final = 3
_LEVELS_LET_GO: Final = 4
"""A Node in an answer is written as a whole; one in a request is taken apart into its metadata, spec and status."""
_BRACKETS_PER_STEP: Final = 1024

_SPACE: Final = re.compile(rb"[ \t\n\r]*+")
_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BARE: Final = re.compile(rb"[-+.0-9A-Za-z]++")
_MARK: Final = re.compile(rb"[ \t\n\r]*+([\[\]{},:])[ \t\n\r]*+")
_BRACKET: Final = re.compile(
    rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL
)
"""Up to and including the next bracket that is not part of a text."""
_OPENING: Final = frozenset(b"[{")
_OBJECT: Final = ord("{")


class JsonError(ValueError):
    """The bytes are no JSON; `str()` says why, and where."""


def loads(body: Body, *, most_members: int = MOST_MEMBERS) -> Steps[Any]:
    """The value of a document, as orjson reads it. Raises JsonError."""
    if len(body) <= WHOLE:
        return _parsed(body, 0, len(body))
    return (yield from _Reader(body, most_members).document())


def dumps(value: Any) -> Steps[list[bytes]]:
    """A document as orjson writes it, in parts of moderate size. The keys of objects are texts."""
    parts, part = [], bytearray()
    for written in _written(value, _LEVELS_WRITTEN):
        part += written
        if len(part) >= WHOLE:
            parts.append(bytes(part))
            part.clear()
        yield
    return [*parts, bytes(part)]


def let_go(value: Any, levels: int = _LEVELS_LET_GO) -> Steps[None]:
    """Empties a value that nobody needs any more: to free the objects of 16 MB takes 30 ms when it happens at once."""
    while levels and isinstance(value, dict | list) and value:
        child = value.popitem()[1] if isinstance(value, dict) else value.pop()
        if isinstance(child, dict | list):
            yield from let_go(child, levels - 1)
        yield


def _written(value: Any, levels: int) -> Generator[bytes, None, None]:
    if not levels or not isinstance(value, dict | list):
        yield orjson.dumps(value)
    elif isinstance(value, dict):
        before = b"{"
        for key, member in value.items():
            yield before + orjson.dumps(key) + b":"
            yield from _written(member, levels - 1)
            before = b","
        yield b"}" if value else b"{}"
    else:
        before = b"["
        for member in value:
            yield before
            yield from _written(member, levels - 1)
            before = b","
        yield b"]" if value else b"[]"


def _parsed(body: Body, start: int, end: int) -> Any:
    try:
        return orjson.loads(memoryview(body)[start:end])
    except orjson.JSONDecodeError as error:
        raise JsonError(f"{error.msg} at byte {start + error.pos}") from None


class _Reader:
    """Reads one document. What is read at a place comes with the place behind it."""

    def __init__(self, body: Body, most_members: int) -> None:
        self._body = body
        self._most_members = most_members
        self._depth = 0
        self._members = 0

    def document(self) -> Steps[Any]:
        """The value of the whole document."""
        start = self._behind_space(0)
        value, at = yield from self._value(start)
        end = self._behind_space(at)
        if end != len(self._body):
            raise _unexpected(end)
        return value

    def _value(self, at: int) -> Steps[tuple[Any, int]]:
        self._members += 1
        if self._members > self._most_members:
            raise JsonError(f"too many values at byte {at}")
        if self._body[at : at + 1] not in (b"{", b"["):
            found = _TEXT.match(self._body, at, at + LONGEST_TEXT) or _BARE.match(self._body, at, at + PIECE)
            if found is None:
                raise _unexpected(at)
            return _parsed(self._body, at, found.end()), found.end()
        end = yield from self._end(at)
        if end is not None:
            return _parsed(self._body, at, end), end
        if self._depth == DEEPEST:
            raise JsonError(f"large values are nested too deeply at byte {at}")
        self._depth += 1
        read = self._object if self._body[at] == _OBJECT else self._array
        found_here = yield from read(at)
        self._depth -= 1
        return found_here

    def _end(self, at: int) -> Steps[int | None]:
        """The end of the container that begins here; None when it is more than a piece."""
        depth, brackets, most = 0, 0, at + PIECE
        while found := _BRACKET.match(self._body, at, most):
            at = found.end()
            depth += 1 if self._body[at - 1] in _OPENING else -1
            if not depth:
                return at
            brackets += 1
            if brackets % _BRACKETS_PER_STEP == 0:
                yield
        return None

    def _object(self, at: int) -> Steps[tuple[dict[str, Any], int]]:
        members: dict[str, Any] = {}
        mark, at = self._mark(at, b"{")
        while mark != b"}":
            name = _TEXT.match(self._body, at, at + LONGEST_TEXT)
            if name is None:
                raise _unexpected(at)
            _, at = self._mark(name.end(), b":")
            value, at = yield from self._value(at)
            members[_parsed(self._body, name.start(), name.end())] = value
            mark, at = self._mark(at, b",}")
            yield
        return members, at

    def _array(self, at: int) -> Steps[tuple[list[Any], int]]:
        members: list[Any] = []
        mark, at = self._mark(at, b"[")
        while mark != b"]":
            value, at = yield from self._value(at)
            members.append(value)
            mark, at = self._mark(at, b",]")
            yield
        return members, at

    def _mark(self, at: int, wanted: bytes) -> tuple[bytes, int]:
        """The next mark, one of those that are wanted, and the place of whatever comes then."""
        found = _MARK.match(self._body, at, at + PIECE)
        if found is None or found[1] not in wanted:
            raise _unexpected(at)
        return found[1], found.end()

    def _behind_space(self, at: int) -> int:
        found = _SPACE.match(self._body, at, at + PIECE)
        return at if found is None else found.end()


def _unexpected(at: int) -> JsonError:
    return JsonError(f"unexpected character, or the document ends too early, at byte {at}")
