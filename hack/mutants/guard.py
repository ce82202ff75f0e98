"""What keeps quota from being exceeded, and how it is taken out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """`old` stands once in `file`; with `new` in its place the guard is gone, and one of `tests` has to fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
