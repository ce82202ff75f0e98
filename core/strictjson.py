"""JSON that people write into annotations, read strictly.

Python's parser lets duplicate keys, NaN and lone surrogates through; each of them would silently mean something
else than what the writer intended, so they are refused here.
"""

import json
from typing import Any, Final

MAX_LENGTH: Final = 262_144
"""The API server's limit for all annotations of an object together, in bytes."""


class StrictJsonError(ValueError):
    """The text is not one JSON value by the strict rules; `str()` says why."""


def loads(text: str, repeated: list[str] | None = None) -> Any:
    """The one JSON value in `text`. Raises StrictJsonError.

    Numbers with a fraction or exponent come as float, all others as int, so `type(value) is int` tells them apart. With
    `repeated`, duplicate keys are added to that list, so that the rest can be judged as well; their first values count.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result and repeated is None:
                raise StrictJsonError(duplicate(key))
            if key in result and repeated is not None:
                repeated.append(key)
            result.setdefault(key, value)
        return result

    if len(text) > MAX_LENGTH:
        raise StrictJsonError(f"is longer than {MAX_LENGTH} characters")
    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=_constant, parse_int=_integer)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise StrictJsonError("has a text with half a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"is not valid JSON: {_fault(text, error)}") from None
    except RecursionError:
        raise StrictJsonError("is not valid JSON: nested too deeply") from None
    return value


def _fault(text: str, error: json.JSONDecodeError) -> str:
    """What the parser stumbled over; a value that is cut off is by far the most frequent mistake."""
    if not text.strip():
        return "the text is blank"
    if error.pos >= len(text.rstrip()):
        return "the text ends too early (a closing bracket or quote is missing)"
    return f"{error.msg} at character {error.pos + 1}"


def duplicate(key: str) -> str:
    """What is said of a key that stands twice in an object."""
    return f"has the duplicate key {json.dumps(key)}"


def _constant(name: str) -> Any:
    raise StrictJsonError(f"is not valid JSON: {name} is no JSON number")


def _integer(digits: str) -> int:
    if len(digits) > 400:
        raise StrictJsonError(f"has a number of {len(digits)} digits")
    return int(digits)
