"""docs/security.md names the tests that prove what it says: each of them exists, and what it shows to apply is sound."""

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)*)`", PAGE)))


def defined(file: Path) -> set[str]:
    """The tests of a file, as pytest names them; a class by itself too."""
    found: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(f"::{name}")
            case ast.ClassDef(name=name, body=body):
                inner = [
                    each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
                found |= {f"::{name}", *(f"::{name}::{each}" for each in inner)}
            case _:
                pass
    return found


@pytest.mark.parametrize(("file", "test"), NAMED, ids="".join)
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    assert (ROOT / file).is_file()
    assert not test or test in defined(ROOT / file)


@pytest.mark.parametrize(("section", "most"), [("What protects", 30), ("The network", 9)])
def test_every_line_of_what_protects_names_one(section: str, most: int) -> None:
    table = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith(("| to ", "| anything"))]
    assert len(rows) > most
    assert [row for row in rows if "`tests/" not in row] == []


def test_every_attack_that_is_tried_is_on_the_page() -> None:
    """By its own name, or by that of its file: a protection that is tested and not told is one that nobody relies on."""
    told = {file + test for file, test in NAMED}
    tried = [
        (path.relative_to(ROOT).as_posix(), test)
        for path in sorted((ROOT / "tests" / "adversary").glob("test_*.py"))
        for test in sorted(defined(path))
        if test.startswith("::test_")
    ]
    assert len(tried) > 50
    assert [file + test for file, test in tried if not {file, file + test} & told] == []


def test_every_exception_names_the_test_that_shows_it_and_none_is_left_out() -> None:
    table = PAGE.partition("## Exceptions by design")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    file = "tests/adversary/test_exceptions.py"
    named = [f"::{test}" for row in rows for test in re.findall(rf"`{file}::(\w+)` \|$", row)]
    assert len(named) == len(rows)
    assert sorted(named) == sorted(test for test in defined(ROOT / file) if test.startswith("::test_"))


def test_what_it_shows_to_apply_is_yaml() -> None:
    shown = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(shown) == 2
    for text in shown:
        assert all(isinstance(document, dict) for document in yaml.safe_load_all(text))


def test_the_page_is_found_from_the_readme_and_from_where_to_report() -> None:
    for page in ("README.md", "SECURITY.md", "docs/how-it-works.md"):
        text = (ROOT / page).read_text("utf-8")
        assert "security.md" in text, page
    assert "SECURITY.md" in (ROOT / "README.md").read_text("utf-8")
