"""docs/architecture.md shows the house as it stands: every file that it names is there, and no folder of core is left out."""

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "architecture.md").read_text("utf-8")
TOPS: Final = ("core", "kube", "webhook", "controller", "cli")
FOLDERS: Final = sorted(found.parent.name for found in (ROOT / "core").glob("*/__init__.py"))


def section(title: str) -> str:
    """What stands below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def test_every_file_that_it_names_is_there() -> None:
    named = set(re.findall(rf"\b(?:{'|'.join(TOPS)})/[\w/]+(?:\.py)?\b", PAGE))
    assert len(named) > 60
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_each_rule_names_its_files() -> None:
    told = rows("Where each rule is")
    assert told
    for rule, files in told:
        assert re.fullmatch(r"`[\w/]+\.py`(, `[\w/]+\.py`)*", files), rule


def test_every_package_is_in_the_drawing_and_every_folder_of_core_in_its_table() -> None:
    drawing = section("The packages")
    assert [top for top in TOPS if f'    {top}["{top}: ' not in drawing] == []
    assert sorted(folder.strip("`").removeprefix("core/") for folder, _ in rows("Inside core")) == FOLDERS


def test_the_folders_of_core_stand_in_the_order_in_which_they_may_import_each_other() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each["layers"] for each in contracts if each["name"] == "core is in layers")
    order = [re.findall(r"core\.(\w+)", layer) for layer in layers]
    height = {folder: number for number, layer in enumerate(order) for folder in layer}
    assert sorted(FOLDERS) == sorted(folder for folder in height if folder in FOLDERS)
    shown = [folder.strip("`").removeprefix("core/") for folder, _ in rows("Inside core")]
    assert [height[folder] for folder in shown] == sorted(height[folder] for folder in shown)
