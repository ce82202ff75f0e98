"""Bytes that once broke a target, by target; one file each, named by its content."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "cases"


def kept(target: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each."""
    for file in sorted((_FOLDER / target).glob("*")):
        yield file.name, file.read_bytes()


def file_of(target: str, data: bytes) -> Path:
    """Where such bytes are kept."""
    return _FOLDER / target / hashlib.sha256(data).hexdigest()[:12]
