"""Settings and values that the pages show are taken as they stand."""

from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings, parse
from core.settings.aliases import target
from hack.installation import rendering
from tests.builders.documents import is_object, shown

OF_OTHERS = ("configurations", "metadata")
"""What begins so is Volcano's, or a part of a node."""
SECTIONS = {field.alias for field in Settings.model_fields.values()}
DOCUMENTS = [
    (where, found) for where, found in shown() if not is_object(found) and next(iter(found)) not in OF_OTHERS
]


def is_settings(document: dict[str, Any]) -> bool:
    """Whether all of it is settings, keys of Volcano's plugins included; else it is values of the chart."""
    return all(key in SECTIONS or target(key) for key in document)


@pytest.mark.parametrize(("where", "document"), DOCUMENTS, ids=[where for where, _ in DOCUMENTS])
def test_what_the_pages_show_is_taken(helm: Path, where: str, document: dict[str, Any]) -> None:
    if is_settings(document):
        assert parse(document)[1] == [], where
    if not any(target(key) for key in document):
        assert rendering.render(helm, document, "cardquota-system"), where


def test_both_kinds_are_looked_at() -> None:
    assert {is_settings(document) for _, document in DOCUMENTS} == {True, False}
