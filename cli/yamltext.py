"""YAML with the line of every value, resolved as kubectl does it, and written so that it is read back as it was.

kubectl turns YAML into JSON with a YAML 1.1 parser of its own habits: `yes` and `on` are booleans, a time stays a
text, `1e3` is a number, `1:30` is not. A manifest that is judged with other habits is another manifest. It is read
from the parser's events, not from PyYAML's node tree: the events tell a quoted scalar from a plain one, and deep
nesting cannot overrun the C stack.
"""

import base64
import binascii
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from cli.documents import LEAF, MAX_DEPTH, Document, Duplicate, Marks, Place, join
from cli.errors import InputError

_WORDS: Final[dict[str, bool | None]] = {
    **{form: True for word in ("y", "yes", "true", "on") for form in (word, word.title(), word.upper())},
    **{form: False for word in ("n", "no", "false", "off") for form in (word, word.title(), word.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_INTEGER: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST_NUMBER: Final = 400
_TAG: Final = "tag:yaml.org,2002:"
_TYPED: Final[dict[str, type | tuple[type, ...]]] = {
    "int": int,
    "float": (int, float),
    "bool": bool,
    "null": type(None),
}
_MAX_REPEATED: Final = 1_000_000
"""Values that aliases may repeat: more than a manifest needs, less than a file that blows itself up."""


def read(source: str, text: str) -> Iterator[Document]:
    """Every document of the stream that is not empty. Raises InputError."""
    try:
        yield from _Builder(source, text).documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise InputError(source, f"is not YAML: {problem}", mark.line + 1 if mark else None) from error
    except yaml.reader.ReaderError as error:
        line = text.encode().count(b"\n", 0, error.position) + 1
        raise InputError(source, f"is not YAML: {error.reason}", line) from error


def write(value: object) -> str:
    """One document with a JSON value."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def _is_text(plain: str) -> bool:
    """Whether an unquoted scalar is a text, and neither another value nor an error."""
    if plain in _WORDS:
        return False
    if plain[0] not in "+-.0123456789":
        return True
    digits = plain.replace("_", "")
    return not (_NO_NUMBER.fullmatch(plain) or _INTEGER.fullmatch(digits) or _FLOAT.fullmatch(digits))


class _Dumper(yaml.SafeDumper):
    """Quotes what is no text without quotes: PyYAML by itself takes neither `y` nor `1e3` for anything else."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(f"{_TAG}str", text, style=None if _is_text(text) else "'")


_Dumper.add_representer(str, _quoted)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value, its marks, and how many values it is made of."""

    value: Any
    marks: Marks
    size: int
    plain: bool = False


class _Builder:
    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._anchors: dict[str, _Node] = {}
        self._duplicates: list[Duplicate] = []
        self._repeated = 0

    def documents(self) -> Iterator[Document]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                self._duplicates.clear()
                self._repeated = 0
                first = next(self._events)
                node = self._node(first, "", 0)
                if node.value is not None:
                    yield Document(
                        self._source, _line(first), node.value, node.marks, tuple(self._duplicates)
                    )

    def _node(self, event: yaml.Event, path: str, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(path, depth)
        else:
            node = self._mapping(path, depth)
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent) -> _Node:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            # An anchor is known once its value is complete, so a value cannot contain itself.
            raise self._error(event, f"no value before this place has the anchor &{event.anchor}")
        self._repeated += node.size
        if self._repeated > _MAX_REPEATED:
            raise self._error(event, "aliases repeat too many values")
        return node

    def _sequence(self, path: str, depth: int) -> _Node:
        value: list[Any] = []
        children: dict[str | int, Place] = {}
        size = 1
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            node = self._node(event, f"{path}[{len(value)}]", depth + 1)
            children[len(value)] = Place(_line(event), node.marks)
            value.append(node.value)
            size += node.size
        return _Node(value, Marks(children), size)

    def _mapping(self, path: str, depth: int) -> _Node:
        value: dict[str, Any] = {}
        children: dict[str | int, Place] = {}
        merged: list[tuple[yaml.Event, _Node]] = []
        size = 1
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            name = self._node(event, path, depth + 1)
            merge = name.plain and name.value == "<<"
            key = "<<" if merge else self._key(event, name.value)
            node = self._node(next(self._events), join(path, key), depth + 1)
            size += node.size
            if merge:
                merged.append((event, node))
                continue
            if key in value:
                self._duplicates.append(Duplicate(_line(event), join(path, key)))
            value[key] = node.value
            children[key] = Place(_line(event), node.marks)
        for event, node in merged:
            self._merge(event, node, value, children)
        return _Node(value, Marks(children), size)

    def _merge(
        self, event: yaml.Event, node: _Node, value: dict[str, Any], children: dict[str | int, Place]
    ) -> None:
        """Adds what `<<` names; keys of the mapping itself win, then the mapping named first."""
        if isinstance(node.value, list):
            sources = [(item, node.marks.children[index].marks) for index, item in enumerate(node.value)]
        else:
            sources = [(node.value, node.marks)]
        for source, marks in sources:
            if not isinstance(source, dict):
                raise self._error(event, "<< merges mappings only")
            for key, item in source.items():
                if key not in value:
                    value[key] = item
                    children[key] = Place(_line(event), marks.children[key].marks)

    def _key(self, event: yaml.Event, name: object) -> str:
        """The key as kubectl writes it into JSON, where every key is a text."""
        if isinstance(name, bool):
            return str(name).lower()
        if isinstance(name, str | int | float):
            return str(name)
        raise self._error(event, "a key must be a text")

    def _scalar(self, event: yaml.ScalarEvent) -> _Node:
        tag, plain = event.tag, event.implicit[0]
        if tag is None or tag == "!":
            value = self._plain(event) if plain and tag is None else event.value
            return _Node(value, LEAF, 1, plain)
        name = tag.removeprefix(_TAG)
        if name in {"str", "timestamp"}:
            return _Node(event.value, LEAF, 1)
        if name == "binary":
            return _Node(self._binary(event), LEAF, 1)
        value = self._plain(event)
        if name not in _TYPED or not isinstance(value, _TYPED[name]):
            raise self._error(event, f"the tag {tag} cannot be read here")
        return _Node(value, LEAF, 1)

    def _plain(self, event: yaml.ScalarEvent) -> Any:
        """The value of an unquoted scalar."""
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        if _is_text(text):
            return text
        if _NO_NUMBER.fullmatch(text):
            raise self._error(event, f"{text} is no JSON number")
        digits = text.replace("_", "")
        if len(digits) > _LONGEST_NUMBER:
            raise self._error(event, f"a number of {len(digits)} digits")
        return _integer(digits) if _INTEGER.fullmatch(digits) else self._float(event, digits)

    def _float(self, event: yaml.ScalarEvent, digits: str) -> int | float:
        number = float(digits)
        if not math.isfinite(number):
            raise self._error(event, f"{event.value} is too large for a number")
        # JSON knows no difference between 2.0 and 2, and kubectl writes the shorter form.
        return int(number) if number.is_integer() and abs(number) < 1e21 else number

    def _binary(self, event: yaml.ScalarEvent) -> str:
        try:
            return base64.b64decode(event.value, validate=False).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise self._error(event, f"!!binary cannot be read: {error}") from error

    def _error(self, event: yaml.Event, problem: str) -> InputError:
        return InputError(self._source, problem, _line(event))


def _integer(digits: str) -> int:
    """Decimal, or by its prefix: a leading 0 alone means octal, as in YAML 1.1."""
    sign, magnitude = (-1, digits[1:]) if digits[0] == "-" else (1, digits.removeprefix("+"))
    if magnitude[0] == "0" and len(magnitude) > 1 and magnitude[1].isdigit():
        return sign * int(magnitude, 8)
    return sign * int(magnitude, 0)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
