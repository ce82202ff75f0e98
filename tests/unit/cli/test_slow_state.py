"""A large file in YAML takes its time, and the reader is told before it does."""

from pathlib import Path

import pytest

from cli import state
from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import BARE

OBJECT = "apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n---\n"


@pytest.mark.parametrize(("size", "told"), [(100, False), (10_000, True)])
def test_the_reader_of_much_yaml_is_told_what_is_faster(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, told: bool
) -> None:
    monkeypatch.setattr(state, "_SLOW", 5_000)
    path = tmp_path / "state.yaml"
    path.write_text(OBJECT + "# " + "x" * size + "\n")
    outcome = run("queues", "--state", path)
    assert outcome.status == 0
    assert (f"reading {path}: 0 MB of YAML; `cardquota dump` writes JSON" in outcome.err) is told


def test_much_json_is_read_without_a_word(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_SLOW", 10)
    path = tmp_path / "state.json"
    path.write_text(BARE)
    assert run("queues", "--state", path).err == ""
