"""The demo's parts without a cluster: what it shows is what was run, and no claim passes unchecked."""

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.main import main as cardquota
from hack.demo import __main__ as demo
from hack.demo import shell as demo_shell
from hack.demo import story
from hack.demo.shell import DemoError, Shell
from hack.demo.terminal import Terminal, wants_colour
from hack.toolchain import Store, ToolchainError
from tests.unit.hack.conftest import executable

REFUSED = ("bad-template.yaml", "mgpu-core-120.yaml", "quota-in-quotes.yaml", "two-resources.yaml")
ADMITTED = ("notebooks.yaml", "queue.yaml", "train.yaml")
DENIAL = 'Error from server (BadRequest): error when creating "f.yaml": admission webhook "w" denied the request: no'


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def shell_with(out: io.StringIO, folder: Path, **scripts: str) -> Shell:
    """A shell whose programs are scripts."""
    programs = {
        name: [str(executable(folder / name, f"#!/bin/sh\n{text}\n"))] for name, text in scripts.items()
    }
    return Shell(Terminal(out, colour=False), folder, programs, {"ANSWER": "42"})


def refusal(out: io.StringIO, folder: Path, apply: str, get: str) -> None:
    """Play a refusal against a kubectl that answers so."""
    (folder / "f.yaml").write_text("kind: Pod\n")
    kubectl = f'case "$1" in apply) {apply};; get) {get};; esac'
    story._refused(
        shell_with(out, folder, kubectl=kubectl), "f.yaml", "pods/notebook", "denied the request: no"
    )


def watched(out: io.StringIO, folder: Path, pods: Iterable[Mapping[str, Any]]) -> None:
    """Judge a history of pods."""
    lines = [json.dumps({"type": "MODIFIED", "object": pod}) for pod in pods]
    (folder / "watch").write_text("\n".join(lines))
    story._never_bound_without_cards(shell_with(out, folder, kubectl="cat watch"), "1")


def pod(name: str, node: str = "", card: str = "") -> dict[str, Any]:
    annotations = {"scheduling.volcano.sh/queue-name": "research"} | ({story._INDEX: card} if card else {})
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"nodeName": node} if node else {},
    }


HISTORY = [pod(name) for name in story._NOTEBOOKS] + [pod(name, "n", "0") for name in story._NOTEBOOKS]


@pytest.mark.parametrize(
    ("stream", "environ", "colour"),
    [
        (Tty(), {}, True),
        (Tty(), {"NO_COLOR": ""}, True),
        (Tty(), {"NO_COLOR": "1"}, False),
        (Tty(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_are_for_terminals_of_people_who_want_them(
    stream: io.StringIO, environ: dict[str, str], colour: bool
) -> None:
    assert wants_colour(stream, environ) is colour


@pytest.mark.parametrize("colour", [True, False])
def test_the_output_of_programs_is_never_coloured_nor_wrapped(out: io.StringIO, colour: bool) -> None:
    long = "Error from server: " + "word " * 60
    terminal = Terminal(out, colour=colour)
    terminal.command("kubectl apply")
    terminal.output(f"{long}\n  second line\n")
    assert out.getvalue().endswith(f"{long}\n  second line\n")
    assert ("\x1b" in out.getvalue()) is colour


def test_a_command_is_shown_with_both_of_its_streams(out: io.StringIO, tmp_path: Path) -> None:
    shell = shell_with(out, tmp_path, ask='echo "$@: $ANSWER"; echo sure >&2')
    assert shell.run("ask -x 'a b'") == "-x a b: 42\nsure\n"
    assert out.getvalue() == "\n$ ask -x 'a b'\n-x a b: 42\nsure\n"


def test_a_command_that_ends_otherwise_than_told_is_a_failure(out: io.StringIO, tmp_path: Path) -> None:
    shell = shell_with(out, tmp_path, fail="echo why; exit 3")
    assert shell.run("fail", status=3) == "why\n"
    with pytest.raises(DemoError, match="`fail` ended with exit status 3, not 0"):
        shell.run("fail")


def test_the_output_that_is_shown_is_the_one_that_was_waited_for(
    out: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_shell, "_POLL_S", 0.001)
    shell = shell_with(out, tmp_path, count="echo x >> lines; wc -l < lines")
    seen: list[str] = []

    def third(text: str) -> bool:
        seen.append(text.strip())
        return text.strip() == "3"

    assert shell.until("three are there", "count", third).strip() == "3"
    assert seen == ["1", "2", "3"]
    shown = out.getvalue()
    assert "waiting until three are there" in shown
    assert shown.count("$ count") == 1
    assert shown.rstrip().endswith("3")


def test_a_wait_in_vain_says_what_for_and_what_is_there(out: io.StringIO, tmp_path: Path) -> None:
    shell = shell_with(out, tmp_path, show="echo train-1 Pending")
    with pytest.raises(
        DemoError, match=r"not within 0 s: train-1 runs; `show` printed last:\ntrain-1 Pending"
    ):
        shell.until("train-1 runs", "show", lambda text: "Running" in text, timeout_s=0)


def test_a_command_that_fails_is_never_what_was_waited_for(out: io.StringIO, tmp_path: Path) -> None:
    shell = shell_with(out, tmp_path, show="echo fine; exit 1")
    with pytest.raises(DemoError, match="not within 0 s"):
        shell.until("it is fine", "show", lambda text: "fine" in text, timeout_s=0)


def test_a_file_is_shown_by_a_command_that_would_show_the_same(out: io.StringIO, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text("a: 1\nb: 2\n---\na: 3\n")
    shell = shell_with(out, tmp_path, head='exec head "$@"', cat='exec cat "$@"')
    shell.file("two.yaml", only_first=True)
    assert out.getvalue() == "\n$ head -n 2 two.yaml\na: 1\nb: 2\n"
    assert shell.quietly("head -n 2 two.yaml").output == "a: 1\nb: 2\n"
    shell.file("two.yaml")
    assert out.getvalue().endswith(f"\n$ cat two.yaml\n{shell.quietly('cat two.yaml').output}")


def test_a_refused_object_is_refused_with_the_words_told_and_is_not_there(
    out: io.StringIO, tmp_path: Path
) -> None:
    refusal(
        out,
        tmp_path,
        apply=f"echo '{DENIAL}' >&2; exit 1",
        get="echo 'Error from server (NotFound): no' >&2; exit 1",
    )


@pytest.mark.parametrize(
    ("apply", "get", "complaint"),
    [
        ("echo pod/notebook created", "exit 1", "exit status 0, not 1"),
        ("echo 'The connection was refused' >&2; exit 1", "exit 1", "should contain 'admission webhook'"),
        (f"echo '{DENIAL}' >&2; exit 1", "echo notebook", "was refused, yet"),
        (f"echo '{DENIAL}' >&2; exit 1", "echo 'no connection' >&2; exit 1", "cannot be told"),
    ],
    ids=["accepted", "refused by something else", "stored all the same", "nobody knows"],
)
def test_an_object_that_is_not_refused_as_told_makes_the_demo_fail(
    out: io.StringIO, tmp_path: Path, apply: str, get: str, complaint: str
) -> None:
    with pytest.raises(DemoError, match=complaint):
        refusal(out, tmp_path, apply, get)


def test_a_history_in_which_every_bound_pod_has_its_card_is_as_told(out: io.StringIO, tmp_path: Path) -> None:
    watched(out, tmp_path, HISTORY)
    assert "of the 6 states of these pods that a watcher saw, 3 have a node" in out.getvalue()


@pytest.mark.parametrize(
    ("history", "complaint"),
    [
        ([*HISTORY, pod("notebook-b", "n")], "without their card: notebook-b"),
        ([], "saw"),
        (HISTORY[3:], "without a node and then with one"),
        (HISTORY[:5], "without a node and then with one"),
    ],
    ids=["bound without card", "nothing seen", "only the end seen", "one never bound"],
)
def test_a_history_with_a_bare_pod_or_a_gap_makes_the_demo_fail(
    out: io.StringIO, tmp_path: Path, history: list[dict[str, Any]], complaint: str
) -> None:
    with pytest.raises(DemoError, match=complaint):
        watched(out, tmp_path, history)


def test_the_manifests_are_those_of_the_story() -> None:
    assert sorted(file.name for file in demo.MANIFESTS.iterdir()) == sorted([*REFUSED, *ADMITTED])


@pytest.mark.parametrize("name", REFUSED)
def test_manifests_that_are_refused_are_wrong_by_the_rules(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cardquota(["check", str(demo.MANIFESTS / name)]) == 1
    assert ": error " in capsys.readouterr().out


@pytest.mark.parametrize("name", ADMITTED)
def test_manifests_that_are_admitted_are_right_by_the_rules(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cardquota(["check", str(demo.MANIFESTS / name)]) == 0
    assert ": error " not in capsys.readouterr().out


def test_what_keeps_the_demo_from_starting_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ToolchainError("Go >= 1.26 is not on PATH")

    monkeypatch.setattr(Store, "ensure", fail)
    assert demo.main([]) == 1
    assert capsys.readouterr().out == "\nerror: Go >= 1.26 is not on PATH\n"
