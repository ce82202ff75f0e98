"""What may be released, and that the same tree gives the same files."""

import hashlib
from pathlib import Path

import pytest

from hack.release import __main__ as release
from hack.release.versions import problems, project_version


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that may be released."""
    (tmp_path / "charts" / "cardquota").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "charts" / "cardquota" / "Chart.yaml").write_text("version: 1.2.0\nappVersion: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2026-01-01)\n\n## 1.1.0\n")
    return tmp_path


def test_one_version_everywhere_may_be_released(tree: Path) -> None:
    assert problems(tree) == []


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "charts/cardquota/Chart.yaml",
            "version: 1.2.0\nappVersion: 1.1.0\n",
            "appVersion is 1.1.0, pyproject.toml says 1.2.0",
        ),
        (
            "charts/cardquota/Chart.yaml",
            "version: 1.1.0\nappVersion: 1.2.0\n",
            "version is 1.1.0, pyproject.toml says 1.2.0",
        ),
        (
            "CHANGELOG.md",
            "# Changelog\n\n## Unreleased\n",
            "its first heading is 'Unreleased': head what changed with `## 1.2.0`",
        ),
        ("CHANGELOG.md", "# Changelog\n", "it has no heading"),
    ],
)
def test_what_disagrees_is_named_with_its_place(tree: Path, file: str, text: str, said: str) -> None:
    (tree / file).write_text(text)
    (found,) = problems(tree)
    assert found.startswith(file)
    assert said in found


@pytest.mark.chart
def test_the_same_commit_gives_the_same_wheel_and_the_sums_are_those_of_the_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    files = release.build(first)
    release.build(second)
    version = project_version()
    names = {file.name for file in files}
    assert {f"cardquota-{version}.tgz", f"cardquota-{version}-py3-none-any.whl", release.SUMS} < names
    for line in (first / release.SUMS).read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((first / name).read_bytes()).hexdigest() == digest
    wheel = f"cardquota-{version}-py3-none-any.whl"
    assert (first / wheel).read_bytes() == (second / wheel).read_bytes()
