"""Whatever is fed to a command: an error with its place, what to do about it, an exit status, and never a traceback.

`run` calls the program's own `main`, so anything that it did not foresee ends the test with that very exception.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.main import parser
from tests.unit.cli.conftest import Outcome, Run

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def yaml_of(raw: Any) -> bytes:
    return json.dumps(raw).encode()


def changed(*path: str, value: Any) -> bytes:
    """The pod with something else at a place."""
    raw: dict[str, Any] = json.loads(json.dumps(POD))
    target = raw
    for key in path[:-1]:
        target = target.setdefault(key, {})
    target[path[-1]] = value
    return yaml_of(raw)


TEXTS: dict[str, bytes] = {
    "a tab": b"a:\n\t- b\n",
    "an open bracket": b"kind: [Pod\n",
    "an open brace": b"{",
    "an open quote": b'kind: "Pod\n',
    "a lone colon": b"kind: Pod: x\n",
    "an unknown anchor": b"kind: *pod\n",
    "a key twice": b"kind: Pod\nkind: Pod\n",
    "a NUL": b"kind: \x00\n",
    "no UTF-8": b"kind: \xff\xfe\n",
    "UTF-16 cut short": "kind: Pod".encode("utf-16")[:-1],
    "a control character": b"kind: \x07\n",
    "a directive": b"%YAML 9.9\n--- {}\n",
    "a tag": b"kind: !!int pod\n",
    "a foreign tag": b"kind: !ruby/object:X {}\n",
    "JSON cut short": b'{"kind": "Pod", "metadata": {"name": ',
    "two values": b"{} {}",
    "too deep": b"[" * 5000 + b"]" * 5000,
    "a laughing file": b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 10)) for n in range(7)),
    "a number": b"42\n",
    "a text": b"pod\n",
    "a list of texts": b"- pod\n- queue\n",
    "a list of numbers": b"[1, 2]",
    "no kind": b"apiVersion: v1\nmetadata: {name: p}\n",
    "no apiVersion": b"kind: Pod\nmetadata: {name: p}\n",
    "items that are text": b"apiVersion: v1\nkind: List\nitems: pods\n",
    "an item that is text": b"apiVersion: v1\nkind: List\nitems: [pod]\n",
    "an item that is nothing": b"apiVersion: v1\nkind: PodList\nitems: [null]\n",
    "an item without a name": b"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n",
    "a kind that is a list": changed("kind", value=["Pod"]),
    "a kind that is a number": changed("kind", value=3),
    "an apiVersion that is a map": changed("apiVersion", value={}),
    "metadata that is text": changed("metadata", value="p"),
    "metadata that is a list": changed("metadata", value=[{"name": "p"}]),
    "a spec that is text": changed("spec", value="x"),
    "a status that is a list": changed("status", value=[]),
    "a name that is a number": changed("metadata", "name", value=7),
    "a name that is empty": changed("metadata", "name", value=""),
    "a namespace that is a list": changed("metadata", "namespace", value=["ml"]),
    "a uid that is a number": changed("metadata", "uid", value=1),
    "a time that is a number": changed("metadata", "creationTimestamp", value=1),
}
"""What is no stream of Kubernetes objects."""

TABLES = ("plan", "queues", "cards", "cross", "gpus", "report", "verify")
SERVERS = ("serve", "page")
"""What goes on for ever with a state that it can read."""
WITH_A_STATE = (
    *((command,) for command in (*TABLES, "review", *SERVERS)),
    *((command, "x") for command in ("explain", "place", "advise")),
    *((command, "-") for command in ("check", "can-run")),
)
"""Commands that read a state, with what they are asked about."""


def complains(outcome: Outcome, *, where: str) -> None:
    """One error with its place on standard error, and nothing that looks like a result."""
    assert outcome.status in {1, 2}
    assert (outcome.out, "Traceback" in outcome.err) == ("", False)
    first = outcome.err.splitlines()[0]
    assert first.startswith("error: ")
    assert where in first
    assert len(first) < 2000
    # The last line says what to do about it.
    assert re.match(r"(try: \S|See '.*--help'\.$)", outcome.err.splitlines()[-1])


@pytest.mark.parametrize("arguments", WITH_A_STATE)
@pytest.mark.parametrize("name", TEXTS)
def test_a_state_that_is_none(run: Run, tmp_path: Path, arguments: tuple[str, ...], name: str) -> None:
    path = tmp_path / "state"
    path.write_bytes(TEXTS[name])
    outcome = run(*arguments, "--state", path, stdin=yaml_of(POD))
    complains(outcome, where=str(path))
    assert outcome.status == 2


NOTHING: dict[str, bytes] = {
    "no byte": b"",
    "blanks": b" \n\n",
    "a comment": b"# nothing\n",
    "empty documents": b"---\n---\n",
    "null": b"null",
    "a byte order mark": b"\xef\xbb\xbf",
    "an empty list": b'{"apiVersion": "v1", "kind": "List", "items": []}',
    "a list without items": b"apiVersion: v1\nkind: PodList\nitems:\n",
    "lists in a list": b'{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": []}]}',
    "another kind": b"apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
}
"""What holds nothing that is read."""


@pytest.mark.parametrize("arguments", WITH_A_STATE)
@pytest.mark.parametrize("name", NOTHING)
def test_a_state_without_objects(run: Run, tmp_path: Path, arguments: tuple[str, ...], name: str) -> None:
    path = tmp_path / "state"
    path.write_bytes(NOTHING[name])
    outcome = run(*arguments, "--state", path, stdin=yaml_of(POD))
    complains(outcome, where=f"{path}: there is no object in it")
    assert outcome.status == 2


@pytest.mark.parametrize("name", TEXTS)
def test_a_manifest_that_is_none_is_a_finding_with_its_line(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / "manifest.yaml"
    path.write_bytes(TEXTS[name])
    outcome = run("check", path)
    assert "Traceback" not in outcome.err
    if outcome.status == 0:
        # The API server fills in or refuses some of it; to the rules it means nothing.
        assert outcome.out == ""
    else:
        assert outcome.status == 1
        assert re.match(rf"{re.escape(str(path))}:\d+: error \w+ ", outcome.out)
        assert " -- " in outcome.out


SETTINGS: dict[str, bytes] = {
    "an unknown section": b"queues: {}",
    "an unknown key": b"queue: {defalt: x}",
    "a section that is text": b"queue: common",
    "a section that is a list": b"cards: [a]",
    "a word": b"mgpu: {policy: pack}",
    "a number out of range": b"mgpu: {weightOfCore: 101}",
    "a number as text": b"mgpu: {weightOfCore: '20'}",
    "a boolean as text": b"features: {cards: 'true'}",
    "a duration without unit": b"reservation: {warnAfter: 600}",
    "a duration in words": b"reservation: {warnAfter: soon}",
    "no duration": b"quota: {maxFreeGrace: 0s}",
    "a size": b"extender: {maxBodyBytes: 12}",
    "a resource": b"cards: {resources: {H200: gpu}}",
    "a name with blanks": b"gates: {waitForUs: [' x']}",
    "no scheduler": b"schedulerNames: []",
    "a certificate": b"webhook: {clientCA: x}",
    "two contradictions": b"queue: {default: A}\nmgpu: {policy: x}",
    "a list": b"- a",
    "two documents": b"{}\n---\nqueue: {default: x}",
    "a key twice": b"queue: {default: a, default: b}",
    "no YAML": b"queue: [",
}


WITH_SETTINGS = tuple(arguments for arguments in WITH_A_STATE if arguments != ("report",))
"""Usage over time is what was written down, whatever the settings are now."""


@pytest.mark.parametrize("arguments", [*WITH_SETTINGS, ("webhook",), ("controller",)])
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_cannot_be_used(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    settings, state = tmp_path / "cardquota.yaml", tmp_path / "state.json"
    settings.write_bytes(SETTINGS[name])
    state.write_bytes(yaml_of(POD))
    more = ["--state", state] if arguments in WITH_A_STATE else []
    complains(run(*arguments, "--config", settings, *more, stdin=yaml_of(POD)), where=str(settings))


REVIEWS: dict[str, Any] = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "no review": b"{}",
    "another version": {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"},
    "no request": {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
    "a request that is text": {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": "x",
    },
    "no uid": {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}},
}


@pytest.mark.parametrize("name", REVIEWS)
def test_a_review_that_is_none(run: Run, name: str) -> None:
    content = REVIEWS[name]
    complains(run("review", stdin=content if isinstance(content, bytes) else yaml_of(content)), where="")


COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "no command": ((), "COMMAND"),
    "an unknown command": (("plam",), "did you mean 'plan'?"),
    "an unknown flag": (("plan", "--stat", "x"), "--stat"),
    "a format": (("plan", "-o", "xml"), "'xml'"),
    "a file that is not there": (("plan", "--state", "/nowhere/x"), "/nowhere/x"),
    "a folder": (("plan", "--state", "/"), "/"),
    "settings that are not there": (("plan", "--state", "-", "--config", "/nowhere/c"), "/nowhere/c"),
    "manifests that are not there": (("check", "/nowhere/m"), "/nowhere/m"),
    "a kubeconfig that is not there": (("queues", "--kubeconfig", "/nowhere/k"), "/nowhere/k"),
    "no pod": (("place",), "POD"),
    "a pod that is not there": (("place", "ml/none", "--state", "-"), "ml/none"),
    "a shell": (("completion", "tcsh"), "'tcsh'"),
    "an interval": (("gpus", "--watch", "-1"), "--watch"),
    "a queue that is not there": (("queues", "--queue", "none", "--state", "-"), "none"),
    "a queue to advise": (("advise", "none", "--state", "-"), "none"),
    "a selector": (("plan", "-l", "a in (", "--state", "-"), "'a in ('"),
    "a number of rows": (("plan", "--limit", "0", "--state", "-"), "--limit"),
    "a kind to explain": (("explain", "a/b/c/d", "--state", "-"), "a/b/c/d"),
    "something to explain": (("explain", "none", "--state", "-"), "none"),
    "a file to watch": (("gpus", "--watch", "--state", "-"), "--watch"),
    "a port": (("serve", "--port", "http"), "http"),
    "a second shell": (("completion", "bash", "zsh"), "zsh"),
    "no shell": (("completion",), "SHELL"),
    "a format of the version": (("version", "-o", "xml"), "'xml'"),
    "a port of the webhook": (("webhook", "--port", "http"), "http"),
    "a port of the controller": (("controller", "--port", "http"), "http"),
    "a place for the dump": (("dump", "-o"), "-o"),
    "a file of a dump": (("dump", "--state", "x"), "--state"),
    "a time for the report": (("report", "--since", "soon"), "--since"),
    "rows of the report": (("report", "--by", "node"), "'node'"),
    "a Prometheus": (("report", "--prometheus", "ftp://x"), "ftp://x"),
    "a rate": (("ungate-all", "--rate", "0"), "--rate"),
    "manifests to run that are not there": (("can-run", "/nowhere/m", "--state", "-"), "/nowhere/m"),
    "no manifest to run": (("can-run",), "FILE"),
    "a format to verify": (("verify", "-o", "wide"), "'wide'"),
    "a state to verify": (("verify", "--state", "/nowhere/s"), "/nowhere/s"),
    "a selector of nodes": (("cards", "-l", "=x", "--state", "-"), "'=x'"),
    "a kind that is none": (("explain", "boat/a/b", "--state", "-"), "boat"),
    "a manifest that advice is for": (("advise", "x", "--fits", "/nowhere/m", "--state", "-"), "/nowhere/m"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_line_that_is_none(run: Run, name: str) -> None:
    arguments, told = COMMANDS[name]
    complains(run(*arguments, stdin=yaml_of(POD)), where=told)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("arguments", [("can-run",), ("advise", "x", "--fits")])
def test_a_manifest_to_be_run_that_is_none(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    """What is wrong is told with its place; some of it the API server fills in or refuses, and to the rules it means nothing."""
    path, state = tmp_path / "manifest", tmp_path / "state.json"
    path.write_bytes(TEXTS[name])
    state.write_bytes(yaml_of(POD))
    outcome = run(*arguments, path, "--state", state)
    assert outcome.status in {0, 1, 2, 3}
    assert "Traceback" not in outcome.err
    if outcome.status in {1, 2}:
        assert str(path) in outcome.err + outcome.out


LIVE = (
    *((command,) for command in (*TABLES, "dump", "ungate-all", "page")),
    *((command, "x") for command in ("explain", "place", "advise")),
    ("can-run", "-"),
)
"""Commands that ask a cluster."""


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        *((("dump",), name) for name in TEXTS),
        *((arguments, name) for arguments in LIVE for name in ("a tab", "no UTF-8", "a number", "no kind")),
    ],
)
def test_a_kubeconfig_that_is_none(run: Run, tmp_path: Path, arguments: tuple[str, ...], name: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(TEXTS[name])
    outcome = run(*arguments, "--kubeconfig", path, stdin=yaml_of(POD))
    complains(outcome, where=str(path))
    assert outcome.status == 1


def test_every_command_is_fed_with_something_malformed() -> None:
    """A new command has to be added to one of the tables."""
    (commands,) = (set(action.choices) for action in parser()._actions if isinstance(action.choices, dict))
    lines = (arguments for arguments, _ in COMMANDS.values() if arguments)
    fed = {arguments[0] for arguments in (*WITH_A_STATE, *LIVE, *lines)}
    assert fed >= commands
    for command in commands:
        times = sum(
            count * (command in {arguments[0] for arguments in table})
            for table, count in (
                (WITH_A_STATE, len(TEXTS)),
                ((("dump",),), len(TEXTS)),
                (LIVE, 4),
                (WITH_SETTINGS, len(SETTINGS)),
            )
        )
        few = {"completion", "version", "webhook", "controller", "ungate-all"}
        assert times >= 20 or command in few, command
