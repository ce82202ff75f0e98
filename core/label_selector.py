"""Label selectors as text, in the syntax of `kubectl -l`: `env in (dev, test), !legacy, tier != gold`.

Read as the API machinery reads them, down to its corner cases (`a in (,x)` lists the empty value, `a=` compares with it);
what it refuses is refused here. How much of it there may be is limited, since it is compared with every namespace that asks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core.violations import show

MAX_LENGTH: Final = 4096
"""Longest selector, in characters."""
MAX_REQUIREMENTS: Final = 64

_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|\Z)")
_OPERATORS: Final = {
    "in": "In",
    "notin": "NotIn",
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    ">": "Gt",
    "<": "Lt",
}
_SPECIAL: Final = frozenset({"", "=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PREFIX_LENGTH: Final = 253


class SelectorError(ValueError):
    """The text is no selector; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet it; NotIn is met by a label that is not there."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        if value is None or not _INTEGER.fullmatch(value):
            return False
        have, bound = int(value), int(next(iter(self.values)))
        return have > bound if self.operator == "Gt" else have < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that all have to be met; without any everything is selected."""

    requirements: tuple[Requirement, ...]

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.holds(labels) for requirement in self.requirements)


def parse(text: str) -> Selector:
    """The selector that a text is. Raises SelectorError."""
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"has {len(text)} characters, and at most {MAX_LENGTH} are read; shorten it")
    requirements = tuple(_Parser(text).requirements())
    if len(requirements) > MAX_REQUIREMENTS:
        raise SelectorError(f"has {len(requirements)} requirements, and at most {MAX_REQUIREMENTS} are read")
    return Selector(requirements)


def is_key(key: object) -> bool:
    """Whether a label may have this key."""
    if not isinstance(key, str):
        return False
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _PREFIX_LENGTH or not _PREFIX.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


def is_value(value: object) -> bool:
    """Whether a label may have this value."""
    return value == "" or (isinstance(value, str) and _NAME.fullmatch(value) is not None)


class _Parser:
    """Takes the text one token at a time; the end is the token ''."""

    def __init__(self, text: str) -> None:
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._position = 0

    def requirements(self) -> list[Requirement]:
        """All of them, separated by commas."""
        found: list[Requirement] = []
        while self._peek():
            found.append(self._requirement())
            separator = self._take()
            if not separator:
                break
            if separator != ",":
                raise SelectorError(f"{show(separator)} stands where a comma or the end is expected")
            if not self._peek():
                raise SelectorError("ends with a comma")
        return found

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._take()
        key = self._take()
        if not is_key(key):
            raise SelectorError(
                f"{show(key)} is no label key" if key else "ends where a label key is expected"
            )
        if absent or self._peek() in ("", ","):
            return Requirement(key, "DoesNotExist" if absent else "Exists")
        written = self._take()
        operator = _OPERATORS.get(written)
        if operator is None:
            raise SelectorError(
                f"{show(written)} stands after {show(key)}; expected is one of =, ==, !=, in, notin, >, <"
            )
        values = self._values() if written in ("in", "notin") else frozenset({self._value()})
        for value in sorted(values):
            if operator in ("Gt", "Lt") and not _INTEGER.fullmatch(value):
                raise SelectorError(f"{show(value)} is no integer to compare {show(key)} with")
            if not is_value(value):
                raise SelectorError(f"{show(value)} is no label value")
        return Requirement(key, operator, values)

    def _value(self) -> str:
        """What stands behind an operator other than `in`; nothing is the empty value."""
        return "" if self._peek() in ("", ",") else self._word()

    def _values(self) -> frozenset[str]:
        """A list in parentheses; a comma without a neighbour stands beside the empty value."""
        if self._take() != "(":
            raise SelectorError("in and notin need values in parentheses, as in env in (dev, test)")
        if self._peek() == ")":
            raise SelectorError("in and notin need at least one value")
        values: set[str] = set()
        while True:
            values.add("" if self._peek() in (",", ")") else self._word())
            after = self._take()
            if after == ")":
                return frozenset(values)
            if after != ",":
                raise SelectorError(
                    f"{show(after)} stands in a list of values where a comma or ) is expected"
                    if after
                    else "ends within a list of values"
                )

    def _word(self) -> str:
        word = self._take()
        if word in _SPECIAL:
            raise SelectorError(
                f"{show(word)} stands where a value is expected" if word else "ends too early"
            )
        return word

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._tokens[self._position]
        # The end is there for ever.
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token
