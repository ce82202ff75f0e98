"""`cardquota completion`, and the name under which kubectl finds the program."""

import subprocess
import sys
import tomllib

import pytest

from cli.main import parser
from tests.unit.cli.conftest import ROOT, Run


def completed(script: str, *words: str) -> set[str]:
    """What bash offers for the last of these words."""
    line = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _cardquota; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, timeout=10, check=True
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("cardquota", "pl"), {"plan", "place"}),
        (("cardquota", "plan", "--st"), {"--state"}),
        (("cardquota", "plan", "--state", "x", "-o", ""), {"text", "wide", "json", "yaml", "name"}),
        (("cardquota", "queues", "--output", "w"), {"wide"}),
        (("cardquota", "completion", "z"), {"zsh"}),
        (("cardquota", "plan", "--state", ""), set()),
        (("cardquota", "nothing", "ver"), {"verify", "version"}),
    ],
)
def test_bash_offers_commands_flags_and_values(run: Run, words: tuple[str, ...], offered: set[str]) -> None:
    outcome = run("completion", "bash")
    assert (outcome.status, outcome.err) == (0, "")
    assert completed(outcome.out, *words) == offered


def test_every_command_is_offered_in_every_shell(run: Run) -> None:
    commands = completed(run("completion", "bash").out, "cardquota", "")
    assert {"plan", "queues", "verify", "completion"} <= commands
    fish, zsh = run("completion", "fish").out, run("completion", "zsh").out
    assert zsh.startswith("autoload -U +X bashcompinit && bashcompinit\n")
    for command in commands - {"--help", "--version"}:
        assert f"__fish_seen_subcommand_from {command}'" in fish
        assert f"\n    {command}) " in zsh
    assert "-s o -l output -x -a 'text json'" in fish


def test_another_shell_is_refused(run: Run) -> None:
    outcome = run("completion", "tcsh")
    assert outcome.status == 2
    assert "'tcsh'" in outcome.err


def test_kubectl_finds_the_program_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts["kubectl-cardquota"] == scripts["cardquota"]
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-cardquota"])
    assert parser().prog == "kubectl cardquota"
