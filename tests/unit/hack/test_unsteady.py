"""Which failed tests get a second try in continuous integration."""

import json
from pathlib import Path

import pytest

from hack.unsteady import MOST, failed_tests, why_not

WAITING = [f"tests/apiserver/test_a.py::test_{number}[b c]" for number in range(MOST + 1)]


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        ([], "no test is on record"),
        (WAITING[:1], ""),
        (["tests/adversary/test_a.py::test_b"], ""),
        (WAITING[:MOST], ""),
        (WAITING, f"{MOST + 1} tests failed"),
        (
            [WAITING[0], "tests/unit/core/test_a.py::test_b"],
            "tests/unit/core/test_a.py::test_b waits for no other",
        ),
    ],
)
def test_few_tests_that_wait_for_other_processes_get_one(failed: list[str], reason: str) -> None:
    said = why_not(failed)
    assert said.startswith(reason) if reason else said == ""


def test_those_that_failed_are_read_from_the_record_of_the_last_run(tmp_path: Path) -> None:
    record = tmp_path / "lastfailed"
    assert failed_tests(record) == []
    record.write_text(json.dumps({"b": True, "a": True}))
    assert failed_tests(record) == ["a", "b"]
