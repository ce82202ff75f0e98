"""The command line as a whole: usage, exit statuses, and no traceback for anything a user can do."""

import json
import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from cli import check, main
from tests.unit.cli.conftest import ROOT, Run, spawn

COMMANDS = (
    "check",
    "review",
    "plan",
    "explain",
    "can-run",
    "advise",
    "place",
    "cross",
    "queues",
    "cards",
    "dump",
    "serve",
    "page",
    "webhook",
    "controller",
    "ungate-all",
    "verify",
    "gpus",
    "report",
    "completion",
    "version",
)


def test_help_lists_every_command(run: Run) -> None:
    outcome = run("--help")
    assert outcome.status == 0
    listed = {
        line.split()[0] for line in outcome.out.splitlines() if line.startswith("    ") and line[4] != " "
    }
    assert listed == set(COMMANDS)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "version"])
def test_every_command_explains_itself_with_examples(run: Run, command: str) -> None:
    outcome = run(command, "--help")
    assert outcome.status == 0
    assert f"cardquota {command}" in outcome.out.split("examples:")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("check",),
        ("check", "--nonsense", "f"),
        ("version", "-o", "xml"),
        ("version", "--out", "json"),
    ],
)
def test_wrong_usage_is_one_error_and_status_2(run: Run, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert "--help" in outcome.err


def test_version(run: Run) -> None:
    version = metadata.version("cardquota")
    assert run("version").out == f"Client Version: {version}\n"
    assert json.loads(run("version", "-o", "json").out)["clientVersion"]["version"] == version


def test_python_m_cli_is_the_command() -> None:
    assert spawn("version").out.startswith("Client Version: ")
    outcome = spawn("nonsense")
    assert (outcome.status, outcome.out) == (2, "")


def test_start_imports_neither_servers_nor_clients() -> None:
    """A check in an editor must not pay for what only the processes need."""
    code = "import sys; from cli.main import main; main(['check', sys.argv[1]]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "examples" / "set-a-quota" / "queue.yaml")],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "core.admission" in loaded
    assert not loaded & {
        "aiohttp",
        "kubernetes_asyncio",
        "prometheus_client",
        "cryptography",
        "kube",
    }


def test_output_is_utf_8_whatever_the_locale() -> None:
    manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {volcano.sh/card.name: 'é|'}}\n"
    outcome = spawn("check", "-", stdin=manifest.encode())
    assert outcome.status == 1
    assert '"é|"' in outcome.out


def test_a_reader_that_goes_away_is_no_error() -> None:
    manifest = "---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}, annotations: {{volcano.sh/card.name: 'A|'}}}}\n"
        for n in range(3000)
    )
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(manifest.encode())
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 128 + signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
@pytest.mark.parametrize("arguments", [["version"], ["--version"], ["completion", "bash"]])
def test_a_full_disk_is_told(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cli", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, b"error: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("can-run - --state /dev/null <&-", 2, "error: <stdin>: is closed\n"),
        ("check - <&-", 2, "error: <stdin>: is closed\n"),
        ("version >&-", 0, ""),
        ("version >&- 2>&- <&-", 0, ""),
    ],
)
def test_streams_that_the_shell_has_closed_cost_no_traceback(command: str, status: int, said: str) -> None:
    shell = ["sh", "-c", f'exec "$0" -m cli {command}', sys.executable]
    done = subprocess.run(shell, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(said)
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_quietly(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "run", interrupted)
    outcome = run("check", "f")
    assert (outcome.status, outcome.out, outcome.err) == (130, "", "")


def test_the_installed_command_is_this_one() -> None:
    (script,) = (
        entry for entry in metadata.entry_points(group="console_scripts") if entry.name == "cardquota"
    )
    assert script.load() is main.main
    assert os.environ.get("PATH")


def test_the_version_is_a_flag_as_well(run: Run) -> None:
    flag, command = run("--version"), run("version")
    assert flag.status == command.status == 0
    assert flag.out.removeprefix("cardquota ") == command.out.removeprefix("Client Version: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pln"], "error: unknown command 'pln'; did you mean 'plan'?"),
        (["explode"], "error: unknown command 'explode'"),
        (["plan", "-o", "jsn"], "error: -o/--output: unknown value 'jsn'; did you mean 'json'?"),
        (["queues", "-o", "'x'"], "error: -o/--output: unknown value"),
    ],
)
def test_what_is_not_known_is_answered_with_the_nearest_that_is(
    run: Run, arguments: list[str], said: str
) -> None:
    outcome = run(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(said)
    assert "choose from" not in outcome.err
