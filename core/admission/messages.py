"""The words that reach a user: refusals, and warnings on one line each.

Objects come here before the API server has validated them, so a name or a key may be of any length and hold any
character. A warning with a line break is dropped by clients altogether, and tables of events show the first line
only: so nothing from the object can break a line, and the first line names the object and the first thing wrong.
"""

from dataclasses import replace
from typing import Final, TypeVar

from core import reasons, violations
from core.admission.request import AdmissionRequest, Denial
from core.violations import Findings, Hint, Violation

WARNING_MAX: Final = 256
"""Longest warning, in characters; the API server cuts longer ones where it likes."""
WARNINGS_MAX: Final = 16
ADVISED_MAX: Final = 8
"""So many of them come with advice, which may cost milliseconds each."""
_NAME_MAX: Final = 320
_PATH_MAX: Final = 512
_DETAIL_MAX: Final = 1024
_LINE_MAX: Final = 2048

_GUARDED: Final = frozenset({reasons.RECORD_PROTECTED, reasons.NODE_NAME_PRESET})
"""What the rules of more than one feature refuse."""
_FORBIDDEN: Final = _GUARDED | {reasons.GATE_PROTECTED, reasons.FIELD_FIXED, reasons.QUEUE_NOT_ALLOWED}

_Found = TypeVar("_Found", Violation, Hint)


def denial(request: AdmissionRequest, findings: Findings) -> Denial | None:
    """The refusal for what was found; None when no rule is broken.

    403 Forbidden for what only the controller, or only another namespace, may do, 400 BadRequest for an object that breaks a rule. Not 422
    Invalid: kubectl replaces the start of that text, which names the file, with words of its own.
    """
    if not findings.violations:
        return None
    broken = tuple(
        replace(
            violation,
            path=one_line(violation.path, _PATH_MAX),
            detail=one_line(violation.detail, _DETAIL_MAX),
        )
        for violation in findings.violations
    )
    # Shown values can still hold what is not printable, but no line end any more.
    lines = [one_line(line, _LINE_MAX) for line in violations.message(broken).split("\n")]
    text = f"{one_line(request.display, _NAME_MAX)} is refused: " + "\n".join(lines)
    if any(violation.code in _FORBIDDEN for violation in broken):
        return Denial(403, "Forbidden", text, broken)
    return Denial(400, "BadRequest", text, broken)


def once(findings: Findings) -> Findings:
    """The findings without repetitions: features overlap in some rules, and each says it in words of its own.

    Of the fields that several features guard the first violation counts, elsewhere the same detail is a repetition.
    """
    return Findings(_once(findings.violations), _once(findings.hints))


def _once(found: list[_Found]) -> list[_Found]:
    merged: dict[tuple[str, ...], _Found] = {}
    for finding in found:
        detail = "" if finding.code in _GUARDED else finding.detail
        merged.setdefault((finding.code, finding.path, detail), finding)
    return list(merged.values())


def warnings(findings: Findings) -> tuple[str, ...]:
    """The hints as admission warnings: each said once, on one line, the first sixteen of them."""
    lines: dict[str, None] = {}
    for hint in findings.hints:
        text = str(hint) if len(lines) < ADVISED_MAX else hint.brief
        lines[one_line(text, WARNING_MAX)] = None
        if len(lines) == WARNINGS_MAX:
            break
    return tuple(lines)


def one_line(text: str, limit: int) -> str:
    """The text with whatever is not printable escaped as Python does it, cut to `limit` characters."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 3] + "..."
