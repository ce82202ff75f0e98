"""JSON with the line of every value.

PyYAML reads most JSON, but neither an escaped surrogate pair, which most JSON writers use beyond the basic plane,
nor one value after another, which kubectl accepts.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from cli.documents import LEAF, MAX_DEPTH, Document, Duplicate, Marks, Place, join
from cli.errors import InputError

_BLANK = re.compile(r"[ \t\r\n]*")


def read(source: str, text: str) -> Iterator[Document]:
    """Every value of the stream that is not null. Raises InputError."""
    reader = _Reader(source, text)
    at = reader.skip(0)
    while at < len(text):
        line = reader.line(at)
        value, marks, at = reader.value(at, "", 0)
        duplicates = reader.take_duplicates()
        if value is not None:
            yield Document(source, line, value, marks, duplicates)
        at = reader.skip(at)


class _Reader:
    """A recursive descent over objects and arrays; strings, numbers and names are the standard library's work."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._text = text
        self._starts = [match.end() for match in re.finditer(r"\n", text)]
        self._duplicates: list[Duplicate] = []
        self._decoder = json.JSONDecoder(parse_constant=_refuse)

    def line(self, at: int) -> int:
        """The line, counted from 1, of a character."""
        return bisect_right(self._starts, at) + 1

    def skip(self, at: int) -> int:
        """The first position from `at` on that is not white space."""
        blank = _BLANK.match(self._text, at)
        return blank.end() if blank else at

    def take_duplicates(self) -> tuple[Duplicate, ...]:
        """The duplicate keys since the last call."""
        found = tuple(self._duplicates)
        self._duplicates.clear()
        return found

    def value(self, at: int, path: str, depth: int) -> tuple[Any, Marks, int]:
        """The value that starts at `at`, its marks, and where it ends."""
        if depth > MAX_DEPTH:
            raise self._error(at, f"nested more than {MAX_DEPTH} levels deep")
        if self._text.startswith("{", at):
            return self._object(at + 1, path, depth)
        if self._text.startswith("[", at):
            return self._array(at + 1, path, depth)
        try:
            value, end = self._decoder.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            raise self._error(error.pos, f"is not JSON: {error.msg}") from error
        except ValueError as error:
            raise self._error(at, f"is not JSON: {error}") from error
        return value, LEAF, end

    def _object(self, at: int, path: str, depth: int) -> tuple[dict[str, Any], Marks, int]:
        value: dict[str, Any] = {}
        children: dict[str | int, Place] = {}
        at = self.skip(at)
        while not self._text.startswith("}", at):
            if value:
                at = self._expect(",", at)
            key, line = None, self.line(at)
            if self._text.startswith('"', at):
                key, _, at = self.value(at, path, depth)
            if not isinstance(key, str):
                raise self._error(at, "is not JSON: a key in double quotes is missing")
            if key in value:
                self._duplicates.append(Duplicate(line, join(path, key)))
            at = self._expect(":", self.skip(at))
            value[key], marks, at = self.value(at, join(path, key), depth + 1)
            children[key] = Place(line, marks)
            at = self.skip(at)
        return value, Marks(children), at + 1

    def _array(self, at: int, path: str, depth: int) -> tuple[list[Any], Marks, int]:
        value: list[Any] = []
        children: dict[str | int, Place] = {}
        at = self.skip(at)
        while not self._text.startswith("]", at):
            if value:
                at = self._expect(",", at)
            line = self.line(at)
            item, marks, at = self.value(at, f"{path}[{len(value)}]", depth + 1)
            children[len(value)] = Place(line, marks)
            value.append(item)
            at = self.skip(at)
        return value, Marks(children), at + 1

    def _expect(self, sign: str, at: int) -> int:
        if not self._text.startswith(sign, at):
            raise self._error(at, f"is not JSON: '{sign}' is missing")
        return self.skip(at + 1)

    def _error(self, at: int, problem: str) -> InputError:
        return InputError(self._source, problem, self.line(min(at, len(self._text))))


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
