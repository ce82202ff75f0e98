"""JSON of many megabytes, read and written in steps.

orjson needs about 8 ms for a megabyte, in one piece and with the interpreter locked, so that a thread would not help. Here
a document is cut into pieces of at most `PIECE` bytes, between the members of its containers and within its texts, and
orjson reads each of them. What was read member by member is written and let go in the same way, for it is as large then.
"""

import re
from collections.abc import Container, Generator
from typing import Any, Final

import orjson

from core.steps import Steps

Body = bytes | bytearray
Large = set[int]
"""The containers that were read member by member, by their identity: of use for as long as the document is held."""

WHOLE: Final = 256 * 1024
"""Documents up to this size are read in one go: about two milliseconds."""
PIECE: Final = 64 * 1024
"""A container that is longer is read member by member, a text in parts of that length; so many characters are written at once."""
LONGEST_TEXT: Final = 4 * 1024 * 1024
"""Longer texts cannot come from an object that an API server takes in, which is 3 MiB at most."""
DEEPEST: Final = 16
"""How deep containers of more than `PIECE` bytes may be nested: each level costs another look at that many bytes."""
MOST_MEMBERS: Final = 200_000
"""How many members of such containers there may be; each costs some microseconds, however small it is."""

_LEVELS_WRITTEN: Final = 3
"""How deep the containers are that an answer adds to what it sends back: `{"Nodes": {"items": [...]}}`."""
_BRACKETS_PER_STEP: Final = 1024

_SPACE: Final = re.compile(rb"[ \t\n\r]*+")
_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_HEX: Final = rb"[0-9A-Fa-f]"
_RUN: Final = rb'[^"\\]*+(?:\\[^u][^"\\]*+)*+'
_RUNS: Final = _RUN + rb"(?:\\u(?![Dd][89ABab])" + 4 * _HEX + _RUN + rb")*+"
_PART: Final = re.compile(_RUNS + rb"(?:\\u[Dd][89ABab]" + 2 * _HEX + rb"\\u" + 4 * _HEX + _RUNS + rb")*+")
"""What a text may begin with: whole escapes only, and pairs of surrogates. No part may be cut within one of them."""
_BARE: Final = re.compile(rb"[-+.0-9A-Za-z]++")
_MARK: Final = re.compile(rb"[ \t\n\r]*+([\[\]{},:])[ \t\n\r]*+")
_BRACKET: Final = re.compile(
    rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL
)
"""Up to and including the next bracket that is not part of a text."""
_OPENING: Final = frozenset(b"[{")


class JsonError(ValueError):
    """The bytes are no JSON; `str()` says why, and where."""


def loads(body: Body, *, most_members: int = MOST_MEMBERS, large: Large | None = None) -> Steps[Any]:
    """The value of a document, as orjson reads it; `large` is told which containers are. Raises JsonError."""
    if len(body) <= WHOLE:
        return _parsed(body, 0, len(body))
    return (yield from _Reader(body, most_members, set() if large is None else large).document())


def dumps(value: Any, large: Container[int] = ()) -> Steps[list[bytes]]:
    """A document as orjson writes it, in parts of moderate size. The keys of objects are texts."""
    parts, part = [], bytearray()
    for written in _written(value, _LEVELS_WRITTEN, large):
        part += written
        if len(part) >= WHOLE:
            parts.append(bytes(part))
            part.clear()
        yield
    return [*parts, bytes(part)]


def let_go(value: Any, large: Container[int]) -> Steps[None]:
    """Empties a value that nobody needs any more: to free the objects of 16 MB at once takes 30 ms, or 100 if they are small."""
    while isinstance(value, dict | list) and value and id(value) in large:
        child = value.popitem()[1] if isinstance(value, dict) else value.pop()
        if id(child) in large:
            yield from let_go(child, large)
        del child
        yield


def _written(value: Any, levels: int, large: Container[int]) -> Generator[bytes, None, None]:
    if isinstance(value, str) and len(value) > PIECE:
        yield from _long_text_written(value)
    elif not isinstance(value, dict | list) or (levels <= 0 and id(value) not in large):
        yield orjson.dumps(value)
    elif isinstance(value, dict):
        before = b"{"
        for key, member in value.items():
            if len(key) > PIECE:
                yield before
                yield from _long_text_written(key)
                yield b":"
            else:
                yield before + orjson.dumps(key) + b":"
            yield from _written(member, levels - 1, large)
            before = b","
        yield b"}" if value else b"{}"
    else:
        before = b"["
        for member in value:
            yield before
            yield from _written(member, levels - 1, large)
            before = b","
        yield b"]" if value else b"[]"


def _long_text_written(text: str) -> Generator[bytes, None, None]:
    yield b'"'
    for start in range(0, len(text), PIECE):
        yield orjson.dumps(text[start : start + PIECE])[1:-1]
    yield b'"'


def _parsed(body: Body, start: int, end: int) -> Any:
    return _loaded(memoryview(body)[start:end], start)


def _loaded(piece: bytes | memoryview, place: int) -> Any:
    try:
        return orjson.loads(piece)
    except orjson.JSONDecodeError as error:
        raise JsonError(f"{error.msg} at byte {place + error.pos}") from None


class _Reader:
    """Reads one document. What is read at a place comes with the place behind it."""

    def __init__(self, body: Body, most_members: int, large: Large) -> None:
        self._body = body
        self._most_members = most_members
        self._members = 0
        self._large = large
        self._begun: list[dict[str, Any] | list[Any]] = []
        """The large containers that are being read, each within the one before it."""

    def document(self) -> Steps[Any]:
        """The value of the whole document."""
        try:
            value, at = yield from self._value(self._behind_space(0))
            self._begun.append(value)
            end = self._behind_space(at)
            if end != len(self._body):
                raise _unexpected(end)
        except JsonError:
            # What was read until then goes with the frames of the error, at once.
            for value in self._begun:
                yield from let_go(value, self._large)
            raise
        return value

    def _value(self, at: int) -> Steps[tuple[Any, int]]:
        self._members += 1
        if self._members > self._most_members:
            raise JsonError(f"too many values at byte {at}")
        first = self._body[at : at + 1]
        if first not in (b"{", b"["):
            found = _TEXT.match(self._body, at, at + PIECE) or _BARE.match(self._body, at, at + PIECE)
            if found is None:
                return (yield from self._long_text(at))
            return _parsed(self._body, at, found.end()), found.end()
        end = yield from self._end(at)
        if end is not None:
            return _parsed(self._body, at, end), end
        if len(self._begun) == DEEPEST:
            raise JsonError(f"large values are nested too deeply at byte {at}")
        return (yield from (self._object if first == b"{" else self._array)(at))

    def _long_text(self, at: int) -> Steps[tuple[str, int]]:
        """A text that does not end within a piece. Its parts are texts themselves, so that orjson judges every byte of it."""
        if self._body[at : at + 1] != b'"':
            raise _unexpected(at)
        parts, end = list[str](), at + 1
        while self._body[end : end + 1] != b'"':
            start, end = end, self._cut(end, min(end + PIECE - 2, at + LONGEST_TEXT - 1))
            if start == end:
                raise _unexpected(start)
            parts.append(_loaded(b'"' + self._body[start:end] + b'"', start - 1))
            yield
        return "".join(parts), end + 1

    def _cut(self, start: int, most: int) -> int:
        """Where a part of a text may end; where it starts when nothing of a text can be there."""
        found = _PART.match(self._body, start, most)
        end = start if found is None else found.end()
        # Back to the first byte of a character, with three behind it at most; were there more, orjson would say so.
        while max(start, most - 3) < end and b"\x80" <= self._body[end : end + 1] < b"\xc0":
            end -= 1
        return end

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
        self._begin(members)
        mark, at = self._mark(at, b"{")
        while mark != b"}":
            found = _TEXT.match(self._body, at, at + PIECE)
            if found is None:
                name, at = yield from self._long_text(at)
            else:
                name, at = _parsed(self._body, at, found.end()), found.end()
                yield
            _, at = self._mark(at, b":")
            value, at = yield from self._value(at)
            if name in members:  # The last one counts, and the others may be large.
                yield from let_go(members[name], self._large)
            members[name] = value
            mark, at = self._mark(at, b",}")
            yield
        self._begun.pop()
        return members, at

    def _array(self, at: int) -> Steps[tuple[list[Any], int]]:
        members: list[Any] = []
        self._begin(members)
        mark, at = self._mark(at, b"[")
        while mark != b"]":
            value, at = yield from self._value(at)
            members.append(value)
            mark, at = self._mark(at, b",]")
            yield
        self._begun.pop()
        return members, at

    def _begin(self, members: dict[str, Any] | list[Any]) -> None:
        self._begun.append(members)
        self._large.add(id(members))

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
