"""The look at the rights of a test run: what it takes in, when it judges, and that its failure is seen."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from hack.install import Installation
from tests.rights import HERE, Right, Usage
from tests.rights_of_the_run import RightsOfTheRun

ROOT = Path(__file__).parents[3]
OURS: Final = "cardquota-system-2"
READ, PATCH = (Right("controller", verb, "pods") for verb in ("list", "patch"))
LEASE = Right("controller", "get", "leases.coordination.k8s.io", HERE, "cardquota")


def role(kind: str, name: str, *rules: dict[str, list[str]]) -> list[dict[str, Any]]:
    metadata = {"name": name} if kind == "ClusterRole" else {"name": name, "namespace": OURS}
    bound = {
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "controller"}, {"kind": "Group", "name": "readers"}],
    }
    return [{"kind": kind, "metadata": metadata, "rules": [*rules]}, bound]


OBJECTS = [
    *role("ClusterRole", "pods", {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]}),
    *role(
        "Role",
        "lease",
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get"],
            "resourceNames": ["cardquota"],
        },
    ),
]


def request(verb: str, resource: str, namespace: str, name: str = "", **other: Any) -> str:
    reference = {
        "resource": resource,
        "namespace": namespace,
        "name": name,
        "apiGroup": other.get("group", ""),
    }
    event = {
        "verb": verb,
        "user": {"username": f"system:serviceaccount:{other.get('of', OURS)}:controller"},
        "userAgent": other.get("agent", "cardquota/1"),
        "objectRef": reference,
        "annotations": {"authorization.k8s.io/decision": other.get("decision", "allow")},
    }
    return json.dumps(event) + "\n"


def usage(tmp_path: Path, *requests: str) -> Usage:
    log = tmp_path / "audit.log"
    log.write_text(request("patch", "pods", "before-it-began") + "".join(requests))
    began = len(request("patch", "pods", "before-it-began"))
    ended = SimpleNamespace(namespace=OURS, objects=OBJECTS, audit_log=log, audited_from=began)
    return Usage.of(cast("Installation", ended))


def test_what_is_used_of_what_is_granted(tmp_path: Path) -> None:
    lease = request("get", "leases", OURS, "cardquota", group="coordination.k8s.io")
    found = usage(tmp_path, request("list", "pods", ""), lease)
    assert found == Usage({READ, PATCH, LEASE}, {READ, LEASE}, set())
    assert found.unused == {PATCH}


@pytest.mark.parametrize(
    ("asked", "beyond"),
    [
        (request("get", "secrets", "x", decision="forbid"), Right("controller", "get", "secrets", "x")),
        (request("get", "pods", "x", "p"), Right("controller", "get", "pods", "x", "p")),
        (
            request("get", "leases", OURS, "another", group="coordination.k8s.io"),
            Right("controller", "get", "leases.coordination.k8s.io", HERE, "another"),
        ),
        (
            request("get", "leases", "default", "cardquota", group="coordination.k8s.io"),
            Right("controller", "get", "leases.coordination.k8s.io", "default", "cardquota"),
        ),
    ],
    ids=["no right", "another verb", "another name", "another namespace"],
)
def test_what_is_asked_for_without_a_right(tmp_path: Path, asked: str, beyond: Right) -> None:
    found = usage(tmp_path, asked)
    assert (found.beyond, found.used) == ({beyond}, set())


def test_what_is_granted_and_forbidden_while_roles_come_or_go_says_nothing(tmp_path: Path) -> None:
    found = usage(tmp_path, request("list", "pods", "", decision="forbid"))
    assert (found.beyond, found.used) == (set(), set())


def test_nobody_elses_requests_count(tmp_path: Path) -> None:
    found = usage(
        tmp_path,
        request("patch", "pods", "x", agent="kubectl/1.36", decision="forbid"),
        request("patch", "pods", "x", of="cardquota-system"),
    )
    assert (found.used, found.beyond) == (set(), set())


def test_it_is_the_same_after_the_way_from_process_to_process(tmp_path: Path) -> None:
    found = usage(tmp_path, request("list", "pods", ""), request("get", "secrets", "x"))
    assert Usage.unpacked(json.loads(json.dumps(found.packed()))) == found


# A test tells what its installation would have, in as many processes as there are.
_CONFTEST = """
import pytest
from tests import rights_of_the_run
from tests.rights import Right, Usage

def pytest_configure(config):
    rights_of_the_run.watch(config)

@pytest.fixture
def took(request):
    rights = request.config.pluginmanager.get_plugin("rights of the run").usage
    def take(granted, used, beyond=""):
        made = [{Right("c", verb, "pods") for verb in verbs.split()} for verbs in (granted, used, beyond)]
        rights.add(Usage(*made))
    return take
"""
_ALL_USED = {
    "test_a.py": "def test_a(took): took('get list', 'get')",
    "test_b.py": "def test_b(took): took('list', 'list')",
}
_UNUSED = _ALL_USED | {"test_b.py": "def test_b(took): took('list', '')"}
_BEYOND = _UNUSED | {"test_c.py": "def test_c(took): took('list', '', 'delete')"}


@pytest.mark.parametrize(
    ("files", "options", "failed"),
    [
        (_ALL_USED, ["-n2"], ""),
        (_UNUSED, ["-n2"], "granted and not used by any test:\n  c: list pods"),
        (_UNUSED, ["-n0"], "granted and not used by any test:\n  c: list pods"),
        (_BEYOND, ["-n0", "tests/test_c.py"], "asked for and not granted:\n  c: delete pods"),
    ],
    ids=["all used", "one unused", "one unused, in one process", "one not granted"],
)
def test_a_run_fails_by_it(tmp_path: Path, files: dict[str, str], options: list[str], failed: str) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    for name, text in {**files, "conftest.py": _CONFTEST}.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120.0,
    )
    *_, summary = done.stdout.strip().splitlines()
    assert done.returncode == (1 if failed else 0), done.stdout + done.stderr
    assert failed in done.stdout
    assert ("1 failed" in summary) == bool(failed)
    assert ("granted and not used" in done.stdout) == ("not used" in failed)


class Asked:
    """What pytest was asked to run: everything, unless something is said."""

    def __init__(self, source: str = "TESTPATHS", **options: object) -> None:
        self.args_source = pytest.Config.ArgsSource[source]
        self._options = options

    def getoption(self, name: str, default: object) -> object:
        return self._options.get(name, default)


def looking(asked: Asked) -> RightsOfTheRun:
    """A look that has found a right that nobody used, and one that nobody has."""
    found = RightsOfTheRun(cast("pytest.Config", asked))
    found.usage.add(Usage({READ, PATCH}, {READ}, {LEASE}))
    return found


def report(outcome: str) -> Any:
    return SimpleNamespace(nodeid="test_a", outcome=outcome, failed=outcome == "failed")


@pytest.fixture(autouse=True)
def with_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOLCANO_CRDS", "somewhere")


BEYOND = f"asked for and not granted:\n  {LEASE}"


def test_where_all_was_run_both_are_told() -> None:
    found = looking(Asked())
    for outcome in ("passed", "skipped"):
        found.pytest_runtest_logreport(report(outcome))
    found.pytest_collectreport(report("passed"))
    assert found.problems() == [BEYOND, f"granted and not used by any test:\n  {PATCH}"]


@pytest.mark.parametrize(
    "less",
    [
        lambda: looking(Asked("ARGS")),
        lambda: looking(Asked("INVOCATION_DIR")),
        lambda: looking(Asked(keyword="some")),
        lambda: looking(Asked(markexpr="not apiserver")),
        lambda: looking(Asked(lf=True)),
        lambda: _after(lambda found: found.pytest_deselected()),
        lambda: _after(lambda found: found.pytest_runtest_logreport(report("failed"))),
        lambda: _after(lambda found: found.pytest_collectreport(report("failed"))),
        lambda: _after(lambda found: found.pytest_testnodedown(SimpleNamespace(), "it crashed")),
    ],
)
def test_where_some_were_not_run_nothing_is_called_unused(less: Callable[[], RightsOfTheRun]) -> None:
    assert less().problems() == [BEYOND]


def test_nor_where_definitions_of_volcanos_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOLCANO_CRDS")
    assert looking(Asked()).problems() == [BEYOND]


def _after(happens: Callable[[RightsOfTheRun], None]) -> RightsOfTheRun:
    found = looking(Asked())
    happens(found)
    return found
