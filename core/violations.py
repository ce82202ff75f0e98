"""What is wrong with an object, in the words and the form of the API server's own field errors."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Self

Kind = Literal[
    "Invalid value",
    "Required value",
    "Forbidden",
    "Duplicate value",
    "Unsupported value",
    "Too long",
    "Too many",
]

_SHOWN: Final = 120
_LISTED: Final = 20
_ABSENT: Final = object()
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""Control characters and line ends that JSON leaves alone; one of them makes clients drop an admission warning."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: `path: Kind: "value": detail`, with a stable `code` from core.reasons."""

    code: str
    path: str
    detail: str
    kind: Kind = "Invalid value"
    value: object = _ABSENT

    def __str__(self) -> str:
        shown = "" if self.value is _ABSENT else f"{show(self.value)}: "
        return f"{self.path}: {self.kind}: {shown}{self.detail}"


def show(value: object) -> str:
    """A value as JSON on one line, cut to a readable length, safe to print and to encode."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=lambda other: f"<{type(other).__name__}>")
    except (TypeError, ValueError, RecursionError):
        text = f"<{type(value).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = text.translate(_ESCAPED)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def child(path: str, key: str) -> str:
    """The path of a map entry whose key has dots or slashes, as the API server writes it: `path[key]`."""
    return f"{path}[{key}]"


def message(violations: Sequence[Violation]) -> str:
    """All violations in one text, the first one on the first line (tables show only that), the rest below it."""
    lines = [str(violation) for violation in violations[:_LISTED]]
    if len(violations) > _LISTED:
        lines.append(f"and {len(violations) - _LISTED} more")
    return ";\n  ".join(lines)


@dataclass(frozen=True, slots=True)
class Hint:
    """Something to say about an object that is admitted all the same: an admission warning, one line.

    `advice` is found only where the hint is shown, for it may cost more than everything else, and of many hints few are.
    """

    code: str
    path: str
    detail: str
    advice: Callable[[], str] = field(default=str, compare=False)

    @property
    def text(self) -> str:
        """All that it says about what stands at `path`."""
        return self.detail + self.advice()

    @property
    def brief(self) -> str:
        """One line without the advice."""
        return f"{self.path}: {self.detail}"

    def __str__(self) -> str:
        return self.brief + self.advice()


@dataclass(slots=True)
class Findings:
    """All that the rules have to say about one object; each rule adds what it finds."""

    violations: list[Violation] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.violations or self.hints)

    def __iadd__(self, other: "Findings") -> Self:
        self.violations += other.violations
        self.hints += other.hints
        return self
