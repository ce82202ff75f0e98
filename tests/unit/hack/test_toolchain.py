"""Binaries are built once per set of pinned versions, with signs of life, and found where they already are."""

import io
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from hack.toolchain import BINARIES, OTHERS, Reporter, Store, ToolchainError, catalogue, golang
from hack.toolchain import __main__ as toolchain
from hack.toolchain.catalogue import Platform
from hack.toolchain.progress import duration
from tests.unit.hack.conftest import FakeGo, executable

LINUX = Platform("linux", "amd64")
ROOT = Path(__file__).resolve().parents[3]


def silent() -> Reporter:
    return Reporter(lambda _: None)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A copy of the pinned modules that a test may change."""
    return Path(shutil.copytree(catalogue.TOOLS, tmp_path / "tools"))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("kubernetes/go.mod", "k8s.io/kubernetes v1.", "k8s.io/kubernetes v2."),
        ("helm/go.mod", "helm.sh/helm/v3 v3.", "helm.sh/helm/v3 v4."),
        ("etcd/go.sum", "h1:", "h2:"),
    ],
)
def test_the_cache_key_changes_with_every_pin(tools: Path, file: str, old: str, new: str) -> None:
    before = catalogue.cache_key(LINUX, tools)
    assert before == catalogue.cache_key(LINUX, tools)
    text = (tools / file).read_text()
    assert old in text
    (tools / file).write_text(text.replace(old, new))
    assert catalogue.cache_key(LINUX, tools) != before


def test_a_program_of_others_has_a_folder_that_no_part_of_the_control_plane_moves(tools: Path) -> None:
    """Nor does it move theirs: to build those anew takes minutes."""

    def keys() -> tuple[str, str]:
        return catalogue.cache_key(LINUX, tools), catalogue.cache_key(LINUX, tools, items=[*OTHERS.values()])

    ours, others = keys()
    go_mod = tools / "cert-manager" / "go.mod"
    go_mod.write_text(go_mod.read_text().replace("cert-manager v1.", "cert-manager v2."))
    assert keys()[0] == ours
    moved = keys()[1]
    assert moved != others
    go_sum = tools / "etcd" / "go.sum"
    go_sum.write_text(go_sum.read_text() + "more\n")
    assert keys()[0] != ours
    assert keys()[1] == moved


def test_a_program_of_others_is_built_into_its_own_folder(fake_go: FakeGo) -> None:
    store = Store(fake_go.environ)
    found = store.ensure(["etcd", "cert-manager"], silent())
    assert found["etcd"].parent == store.folder
    assert found["cert-manager"].parent.parent == store.folder.parent
    assert found["cert-manager"].parent != store.folder
    assert store.find("cert-manager") == found["cert-manager"]


@pytest.mark.parametrize(("broken", "status"), [("cert-manager", 0), ("etcd", 1)])
def test_without_a_program_of_others_the_rest_is_there_all_the_same(
    broken: str,
    status: int,
    fake_go: FakeGo,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only the tests that need it are skipped, and one line says why."""
    for name, value in {**fake_go.environ, "BROKEN": broken}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("hack.toolchain.prometheus.fetch", lambda _say: True)
    assert toolchain.main([]) == status
    said = "".join(capsys.readouterr())
    assert ("cert-manager: not to be had, tests that need it are skipped" in said) == (status == 0)
    assert "undefined: x" in said


def test_where_no_module_can_be_had_it_is_said(tmp_path: Path, fake_go: FakeGo) -> None:
    go = tmp_path / "path" / "go"
    go.write_text('#!/bin/sh\nif [ "$1" = env ]; then echo "$VERSION"; exit 0; fi\nexit 1\n')
    with pytest.raises(ToolchainError, match="the module of cert-manager cannot be found"):
        Store(fake_go.environ).source_of("cert-manager", silent())


def test_the_cache_key_changes_with_platform_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [catalogue.cache_key(LINUX), catalogue.cache_key(Platform("linux", "arm64"))]
    monkeypatch.setattr(catalogue, "FLAGS", ("-race",))
    keys.append(catalogue.cache_key(LINUX))
    assert len(set(keys)) == 3


@pytest.mark.parametrize("family", sorted(catalogue.MODULES))
def test_every_family_pins_its_version_and_its_tools(family: str) -> None:
    assert catalogue.version(family).startswith("v")
    go_mod = (catalogue.TOOLS / family / "go.mod").read_text()
    for item in [*BINARIES.values(), *OTHERS.values()]:
        assert item.family != family or item.package in go_mod
    assert (catalogue.TOOLS / family / "go.sum").exists()


def test_a_family_without_its_module_is_refused(tools: Path) -> None:
    (tools / "kwok" / "go.mod").write_text("module m\n")
    with pytest.raises(ToolchainError, match="does not require"):
        catalogue.version("kwok", tools)


def test_kubernetes_is_stamped_with_its_version() -> None:
    flags = catalogue.ldflags("kubernetes")
    version = catalogue.version("kubernetes")
    assert f"version.gitVersion={version}" in flags
    assert f"version.gitMinor={version.split('.')[1]} " in flags
    assert f"chartutil.k8sVersionMinor={version.split('.')[1]}" in catalogue.ldflags("helm")
    assert catalogue.ldflags("etcd") == "-s -w"


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ToolchainError, match=r"'kubelet'; known: .*kubectl"):
        Store({}).find("kubelet")


def test_kubebuilder_assets_win_per_binary(tmp_path: Path) -> None:
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    store = Store(environ)
    mine = executable(tmp_path / "assets" / "etcd")
    (tmp_path / "assets" / "kubectl").write_text("not executable")
    for name in ("etcd", "kubectl"):
        executable(store.folder / name)
    assert store.find("etcd") == mine
    assert store.find("kubectl") == store.folder / "kubectl"
    assert store.find("helm") is None


@pytest.mark.parametrize("base", ["", "relative/folder"])
def test_the_cache_is_in_the_home_folder_by_default(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store({"XDG_CACHE_HOME": base}).folder.parent == tmp_path / ".cache" / "cardquota" / "bin"


def test_what_is_missing_is_built_and_nothing_else(fake_go: FakeGo) -> None:
    store = Store(fake_go.environ)
    executable(store.folder / "etcd")
    lines: list[str] = []
    found = store.ensure(["etcd", "kwok", "helm"], Reporter(lines.append))
    assert found == {name: store.folder / name for name in ("etcd", "kwok", "helm")}
    assert fake_go.calls() == [BINARIES["kwok"].package, BINARIES["helm"].package]
    assert any(line.startswith("[1/2] kwok: done in ") for line in lines)
    assert lines[-1].startswith("2 built in ")
    assert lines[-1].endswith(str(store.folder))
    lines.clear()
    store.ensure(["etcd", "kwok", "helm"], Reporter(lines.append))
    assert lines == []


def test_the_users_proxy_is_kept_and_the_target_is_this_machine(fake_go: FakeGo) -> None:
    Store({**fake_go.environ, "GOOS": "plan9"}).ensure(["kwok"], silent())
    host = catalogue.host_platform()
    seen = Path(f"{fake_go.calls_file}.env").read_text()
    assert seen == f"0 {host.os} {host.arch} the-users-own\n"


def test_a_failed_build_shows_the_end_of_the_compilers_output(fake_go: FakeGo) -> None:
    store = Store({**fake_go.environ, "BROKEN": "kwok"})
    with pytest.raises(
        ToolchainError, match=r"(?s)sigs.k8s.io/kwok/cmd/kwok failed.*undefined: x"
    ) as failure:
        store.ensure(["kwok"], silent())
    assert "downloading" not in str(failure.value)
    assert store.find("kwok") is None


def test_a_long_build_shows_life(fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that stands still: what is said is the same on every machine."""
    monkeypatch.setattr("hack.toolchain.store.time", SimpleNamespace(monotonic=lambda: 100.0))
    lines: list[str] = []
    environ, reporter = fake_go.until_said("building, ", 3, lines)
    Store(environ).ensure(["kwok"], reporter)
    assert lines.count("[1/1] kwok: building, 0 s") >= 3


def test_parallel_builders_wait_for_each_other(fake_go: FakeGo) -> None:
    lines: list[str] = []
    environ, reporter = fake_go.until_said("another process builds in ", 1, lines)

    def build(_: int) -> Path:
        return Store(environ).ensure(["kwok"], reporter)["kwok"]

    with ThreadPoolExecutor(3) as pool:
        paths = set(pool.map(build, range(3)))
    assert len(paths) == 1
    assert fake_go.calls() == [BINARIES["kwok"].package]
    assert any(line.startswith("another process builds in ") for line in lines)


def test_leftovers_of_a_killed_build_are_removed(fake_go: FakeGo) -> None:
    store = Store(fake_go.environ)
    leftover = executable(store.folder / ".etcd.partial")
    store.ensure(["kwok"], silent())
    assert not leftover.exists()


def test_on_a_terminal_the_running_line_is_rewritten_in_place() -> None:
    terminal = io.StringIO()
    reporter = Reporter(lambda text: print(text, file=terminal), terminal=terminal)
    reporter.alive("building, 1 s")
    reporter.alive("building, 2 s")
    reporter.line("done")
    assert reporter.interval_s == 1
    assert terminal.getvalue().replace("\r\x1b[K", "<") == "<building, 1 s<building, 2 s<done\n"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s")])
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8\n", (1, 26)),
        ("go1.26", (1, 26)),
        ("go1.27rc1", (1, 27)),
        ("devel go1.28-abcdef", (1, 28)),
        ("devel +abcdef", None),
    ],
)
def test_go_versions_are_read(text: str, version: tuple[int, int] | None) -> None:
    assert golang.parse_version(text) == version


@pytest.mark.parametrize(("version", "taken"), [("go1.25.9", False), ("go1.26.0", True), ("go1.30.1", True)])
def test_go_on_path_is_taken_when_it_is_new_enough(
    version: str, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = executable(tmp_path / "path" / "go", f"#!/bin/sh\necho {version}\n")
    wheel = tmp_path / "go" / golang.WHEEL.replace("==", "-") / "go" / "bin" / "go"
    executable(wheel, "#!/bin/sh\necho go1.26.6\n")
    said: list[str] = []
    assert golang.find(tmp_path, str(on_path.parent), said.append) == (on_path if taken else wheel)
    assert bool(said) is not taken


def test_without_go_and_pip_the_error_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "executable", str(executable(tmp_path / "python", "#!/bin/sh\necho no pip >&2\nexit 1\n"))
    )
    with pytest.raises(ToolchainError, match=r"(?s)Go >= 1.26 is not on PATH and pip cannot install.*no pip"):
        golang.find(tmp_path / "cache", str(tmp_path), lambda _: None)


def test_the_toolchain_needs_the_standard_library_only() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import hack.toolchain.__main__ as m; print(m.__name__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "hack.toolchain.__main__\n"


def test_the_command_builds_and_prints_the_folder(fake_go: FakeGo) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hack.toolchain", "--only", "kwok", "helm"],
        capture_output=True, text=True, check=True, timeout=60, cwd=ROOT, env={**os.environ, **fake_go.environ},
    )  # fmt: skip
    folder = Path(done.stdout.splitlines()[-1])
    assert sorted(file.name for file in folder.iterdir()) == [".lock", "helm", "kwok"]


def test_the_command_fails_with_the_reason(fake_go: FakeGo) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hack.toolchain", "--only", "kwok"],
        capture_output=True, text=True, check=False, timeout=60, cwd=ROOT,
        env={**os.environ, **fake_go.environ, "BROKEN": "kwok"},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: go build of sigs.k8s.io/kwok/cmd/kwok failed")
