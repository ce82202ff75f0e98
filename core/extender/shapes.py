"""What the shapes of both protocols share."""

from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]
"""A parsed JSON object."""


class ShapeError(ValueError):
    """The body is no request of its protocol; `str()` says what is missing."""


def part(body: object, key: str) -> Raw:
    """The object under `key`. Raises ShapeError."""
    value = body.get(key) if isinstance(body, dict) else None
    if not isinstance(value, dict):
        raise ShapeError(f"{key} must be an object")
    return value
