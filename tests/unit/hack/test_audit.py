"""`make audit`: what is known, what could not be asked, and that neither is called fine."""

import json
from pathlib import Path

import pytest

from hack.image import audit

FINE = {"name": "attrs", "version": "1", "vulns": []}
BAD = {"name": "yarl", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3", "4"]}]}
UNASKED = {"name": "idna", "skip_reason": "Dependency not found on PyPI and could not be audited: idna (3)"}


def auditor(folder: Path, *dependencies: object) -> str:
    """A program that answers like pip-audit."""
    return program(folder, f"echo '{json.dumps({'dependencies': dependencies, 'fixes': []})}'")


def program(folder: Path, script: str) -> str:
    file = folder / "pip-audit"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(
    ("dependencies", "status", "told"),
    [
        ((FINE,), 0, "1 packages asked about, 0 vulnerabilities known"),
        ((FINE, BAD), 1, "yarl 2: PYSEC-1, mended in 3, 4"),
        ((FINE, UNASKED), 2, "1 could NOT be asked about"),
        ((BAD, UNASKED), 1, "idna (3)"),
    ],
)
def test_only_what_was_asked_about_and_is_clean_is_fine(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    dependencies: tuple[object, ...],
    status: int,
    told: str,
) -> None:
    assert audit.main([auditor(tmp_path, *dependencies)]) == status
    assert told in capsys.readouterr().out


def test_an_auditor_that_fails_is_told_by_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([program(tmp_path, "echo first >&2; echo no way out >&2; exit 1")]) == 2
    assert "requirements.lock: no way out" in capsys.readouterr().err
    assert audit.main([str(tmp_path / "missing")]) == 2
    assert "the audit failed" in capsys.readouterr().err
