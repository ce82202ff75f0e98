"""The JSON of `card.quota` and `card.request`: card name -> whole number of cards.

Admission refuses everything whose meaning is doubtful. A doubtful value that was stored nevertheless (written while
the webhook was away) is no quota at all: the queue has no cards until somebody corrects it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from core import reasons, strictjson
from core.cards import expression
from core.violations import Findings, Hint, Violation, child, show

MAX_ENTRIES: Final = 5000
"""Entries that are judged when they are written; there are never more than a few dozen cards."""
MAX_CARDS: Final = 1_000_000_000
"""Largest count of one card: in thousandths it is still far from the end of 64 bits."""

_SHOWN: Final = 3
_SHORT: Final = 4096
"""Longest quota that is remembered once it was read, so that odd annotations cannot fill the memory."""
_PLAIN_LENGTH: Final = 120
_EXAMPLE: Final = '{"NVIDIA-H200": 8}'


class CardJsonError(ValueError):
    """The text is no object of card counts; `str()` says why."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why the text (key None) or one of its entries is refused."""

    detail: str
    key: str | None = None
    value: object = None

    def __str__(self) -> str:
        return self.detail if self.key is None else f"{show(self.key)} {self.detail}"


def parse_quota(text: str) -> Mapping[str, int]:
    """Card -> whole cards, at least 0. Empty text is no cards. Raises CardJsonError.

    An entry whose key can never be the name of a card (empty, or with `|`) is left out: it says nothing about others.
    """
    return _remembered(text) if len(text) <= _SHORT else _quota(text)


def _quota(text: str) -> Mapping[str, int]:
    return {key: count for key, count in _parse(text).items() if key and expression.BAR not in key}


_remembered = lru_cache(maxsize=4096)(_quota)
"""Admission reads the quota of the queue with every pod that is created, and of all queues with `cards.hierarchy` when one is written."""


def parse_request(text: str) -> Mapping[str, int]:
    """Card expression -> whole cards, at least 0. Empty text is no cards. Raises CardJsonError."""
    return {key: count for key, count in _parse(text).items() if key}


def quota_findings(text: object, path: str) -> Findings:
    """What admission says about a `card.quota`. A key outside the grammar is only hinted at: it may be historic."""
    return _findings(text, path, reasons.CARD_QUOTA_MALFORMED, _quota_key)


def request_findings(text: object, path: str) -> Findings:
    """What admission says about a `card.request`; its keys may be expressions."""
    return _findings(text, path, reasons.CARD_REQUEST_MALFORMED, _request_key)


def _parse(text: str) -> dict[str, int]:
    entries, problems = _read(text)
    if problems:
        shown = [str(problem) for problem in problems[:_SHOWN]]
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise CardJsonError("; ".join(shown + more))
    return entries


def _read(text: str) -> tuple[dict[str, int], list[_Problem]]:
    """The readable entries and all problems of the others."""
    if not text:
        return {}, []
    repeated: list[str] = []
    try:
        value = strictjson.loads(text, repeated)
    except strictjson.StrictJsonError as error:
        return {}, [_Problem(f"{error}; write a JSON object, such as {_EXAMPLE}")]
    if not isinstance(value, dict):
        return {}, [_Problem(f"must be a JSON object, such as {_EXAMPLE}")]
    entries: dict[str, int] = {}
    more = f"; write a JSON object, such as {_EXAMPLE}"
    problems = [_Problem(strictjson.duplicate(key) + more) for key in dict.fromkeys(repeated)]
    for key, count in value.items():
        detail = _count_error(count)
        if detail:
            problems.append(_Problem(detail, key, count))
        else:
            entries[key] = count
    return entries, problems


def _count_error(count: object) -> str:
    if isinstance(count, str):
        return "must be an integer number of cards, written without quotes"
    if isinstance(count, float):
        return "must be an integer number of cards, without fraction or exponent"
    if not isinstance(count, int) or isinstance(count, bool):
        return "must be an integer number of cards"
    if count < 0:
        return "must not be negative"
    return f"must be at most {MAX_CARDS}" if count > MAX_CARDS else ""


_Judge = Callable[[str], tuple[list[str], list[str]]]
"""A key -> errors, hints."""


def _quota_key(key: str) -> tuple[list[str], list[str]]:
    if not key:
        return ["has an empty card name"], []
    if expression.BAR in key:
        return ["must be one card: a key with | is never looked up, limit each card by itself"], []
    return [], expression.name_errors(key) or _unknown_shares(key)


def _request_key(key: str) -> tuple[list[str], list[str]]:
    return expression.expression_errors(key), _unknown_shares(key)


def _unknown_shares(key: str) -> list[str]:
    return [f"{show(name)} is no kind of share that is known" for name in expression.reserved(key)]


def _findings(text: object, path: str, code: str, judge: _Judge) -> Findings:
    if not isinstance(text, str):
        detail = f"must be text: put the JSON in quotes, such as '{_EXAMPLE}'"
        return Findings([Violation(code, path, detail, value=text)])
    entries, problems = _read(text)
    if len(entries) + len(problems) > MAX_ENTRIES:
        detail = f"must name at most {MAX_ENTRIES:,} cards"
        return Findings([Violation(code, path, detail, "Too many", len(entries) + len(problems))])
    violations = [_violation(code, path, problem, text) for problem in problems]
    hints: list[Hint] = []
    keys = [*entries, *(problem.key for problem in problems if problem.key is not None)]
    for key in keys:
        errors, remarks = judge(key)
        violations += [Violation(code, path, error, value=key) for error in errors]
        hints += [Hint(reasons.CARD_NAME_MALFORMED, path, remark) for remark in remarks]
    return Findings(violations, hints)


def _violation(code: str, path: str, problem: _Problem, text: str) -> Violation:
    if problem.key is None:
        return Violation(code, path, problem.detail, value=text)
    plain = problem.key.isprintable() and 0 < len(problem.key) <= _PLAIN_LENGTH
    key = problem.key if plain else show(problem.key)
    return Violation(code, child(path, key), problem.detail, value=problem.value)
