"""docs/names.md has every name of core/names.py, and none that is not there."""

import re
from pathlib import Path

from core import names

PAGE = (Path(__file__).parents[3] / "docs" / "names.md").read_text("utf-8")
_QUOTED = re.compile(r"`([\w.-]+(?:\.[\w-]+)+/[\w.-]+)`")
"""A key with a domain."""


def known() -> set[str]:
    """The texts of the module's constants that are names: those that have a dot or a dash and stand in no collection."""
    values = {value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)}
    return values - {names.OWN_PREFIX}


def test_every_name_is_there() -> None:
    assert sorted(name for name in known() if name not in PAGE) == []


def test_none_is_made_up() -> None:
    prefixes = tuple(name for name in known() if name.endswith(("/", "-")))
    made_up = {
        name
        for name in _QUOTED.findall(PAGE)
        if name not in known() and not name.startswith(prefixes) and not name.startswith("nvidia.com/mig-")
    }
    assert made_up == set()
