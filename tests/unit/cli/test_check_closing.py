"""The last line of `cardquota check`: what was looked at, what was not, whatever else is said."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import BARE


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n"])
@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_that_nothing_was_judged_is_said(run: Run, text: str, form: str) -> None:
    """`helm template ... | cardquota check -` where helm has printed nothing."""
    outcome = run("check", "-", "-o", form, stdin=text)
    assert (outcome.status, outcome.err.count("\n")) == (0, 1)
    assert outcome.err.startswith("judged: 0;")
    assert (outcome.out == "") is (form != "json")


def test_kinds_that_nobody_judges_are_named(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text(BARE)
    other = "apiVersion: v1\nkind: %s\nmetadata: {name: x}\n---\n"
    text = other % "Service" + other % "ConfigMap" + other % "Service"
    outcome = run("check", "-", "--state", state, stdin=text)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == "judged: 0; of other kinds, skipped: 1 ConfigMap, 2 Service\n"
