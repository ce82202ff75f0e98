"""How every group of settings is read."""

from typing import Final

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

SECTION: Final = ConfigDict(
    frozen=True,
    extra="forbid",
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
)
"""Frozen, by the names that people write; an unknown key is an error."""
