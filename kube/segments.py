"""The last part of a path that nobody can guess: how it is made, kept in a Secret, and compared."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from kube.certificates import Content

CURRENT, FORMER = "hook.segment", "hook.former"
"""The keys of the Secret."""

_BYTES: Final = 32
LENGTH: Final = 64
"""Characters of a segment: 32 random bytes in hexadecimal. In a path an API server takes small letters, digits, `-` and `.`."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The segment that is to be used, and the one before, as long as somebody may not have heard of the new one."""

    current: str = field(repr=False)
    former: str = field(default="", repr=False)

    @classmethod
    def new(cls, former: str = "") -> Self:
        """A segment from the system's source of secrets."""
        return cls(secrets.token_hex(_BYTES), former)

    def holds(self, segment: str) -> bool:
        """Whether it is one of them; how long that takes tells nothing about how near it is."""
        given = segment.encode()
        of_current = hmac.compare_digest(given, self.current.encode())
        of_former = hmac.compare_digest(given, self.former.encode())
        return of_current or (of_former and bool(self.former))


def held_in(content: Content) -> Segments | None:
    """The segments in a Secret; None where there is none that could be used."""
    current, former = _text(content.data, CURRENT), _text(content.data, FORMER)
    return Segments(current, former) if current else None


def as_data(segments: Segments) -> dict[str, bytes]:
    """What a Secret holds of them; an empty value stands for none."""
    return {CURRENT: segments.current.encode(), FORMER: segments.former.encode()}


def _text(data: Mapping[str, bytes], key: str) -> str:
    value = data.get(key, b"")
    return value.decode("ascii") if len(value) == LENGTH and value.isascii() else ""
