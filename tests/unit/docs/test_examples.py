"""examples/ has a folder for each task of docs/tasks.md, or says that there is nothing to apply, and each says what is in it."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.apiserver.following import commands

ROOT: Final = Path(__file__).parents[3]
EXAMPLES: Final = ROOT / "examples"
INDEX: Final = (EXAMPLES / "README.md").read_text("utf-8")
FOLDERS: Final = sorted(folder.name for folder in EXAMPLES.iterdir() if folder.is_dir())
_ROW = re.compile(r"^\| \[(.+?)\]\((\S+?)\) \| (.*) \|$", re.MULTILINE)


def test_every_task_has_its_row_in_the_order_of_the_page() -> None:
    page = (ROOT / "docs" / "tasks.md").read_text("utf-8")
    rows = [title for title, target, _ in _ROW.findall(INDEX) if "tasks.md" in target]
    assert rows == re.findall(r"^## (.*)$", page, re.MULTILINE)


def test_every_folder_is_in_the_table() -> None:
    named = [
        folder for _, _, cell in _ROW.findall(INDEX) for folder in re.findall(r"\((\S+)/README.md\)", cell)
    ]
    assert sorted(named) == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_says_what_its_manifests_are_for_and_what_is_seen(folder: str) -> None:
    text = (EXAMPLES / folder / "README.md").read_text("utf-8")
    manifests = sorted(path.name for path in (EXAMPLES / folder).glob("*.yaml"))
    assert manifests
    assert [name for name in manifests if f"[`{name}`]({name})" not in text] == []
    assert any(command.expected for command in commands(text))
