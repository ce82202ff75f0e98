"""Settings as tests read them: what is wrong with a document, and the value at a path."""

from collections.abc import Mapping
from typing import Any

import pytest

from core.settings import Settings, SettingsError, parse


def problems(document: object, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        parse(document, environment)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def value_at(settings: Settings, path: str) -> Any:
    value: Any = settings
    for part in path.split("."):
        value = getattr(value, part)
    return value
