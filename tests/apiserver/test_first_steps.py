"""The first section of docs/quickstart.md, command by command: image, push, chart, its test, and the command on the PATH.

There is no container engine and no registry: `docker` is one that writes down what it is told. All else is run as it stands there,
but for the namespace, which tests have one each of.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from hack.controlplane import ControlPlane, wait_for
from hack.install import NAMESPACE
from hack.installation.hook_jobs import HookJobs
from hack.installation.release import Release
from tests.apiserver.cluster import Cluster, unique

ROOT: Final = Path(__file__).parents[2]
PIPX: Final = "pipx==1.8.0"
_PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
_SECTION: Final = _PAGE.partition("\n## 1. ")[2].partition("\n## ")[0]
_BLOCKS: Final = re.findall(r"^```sh\n(.*?)^```$", _SECTION, re.MULTILINE | re.DOTALL)
COMMANDS: Final = [
    line.split("  #")[0].strip() for block in _BLOCKS for line in re.sub(r"\\\n\s*", "", block).splitlines()
]
_TIMEOUT_S: Final = 300.0
_NOT_COPIED: Final = (
    ".git",
    ".venv",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)


def beginning(words: str) -> str:
    """The one command of the section that begins so."""
    (found,) = [command for command in COMMANDS if command.startswith(words)]
    return found


def run(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """All that it prints; AssertionError where it fails."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    folder.joinpath(name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    folder.joinpath(name).chmod(0o755)


def test_these_are_all_the_commands_of_the_section() -> None:
    assert [command.split()[:2] for command in COMMANDS] == [
        ["make", "image"],
        ["docker", "push"],
        ["helm", "install"],
        ["helm", "test"],
        ["pipx", "install"],
        ["cardquota", "--version"],
    ]


def test_what_is_built_is_what_is_pushed_and_what_the_chart_runs(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program(tmp_path / "bin", "docker", f'echo "$*" >> {told}')
    # Nothing is to be installed into the environment of whoever runs the tests.
    make = f"make --old-file=.venv/.ready BIN={Path(sys.executable).parent} image"
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    run(beginning("make image").replace("make image", make), ROOT, path)
    run(beginning("docker push"), ROOT, path)
    *_, build, push = told.read_text("utf-8").splitlines()
    (image,) = re.findall(r"--tag (\S+)", build)
    assert (build.split()[0], push) == ("build", f"push {image}")
    chart = beginning("helm install")
    assert image == ":".join(re.findall(r"--set image\.(?:repository|tag)=(\S+)", chart))


@pytest.fixture
def release(control_plane: ControlPlane) -> Iterator[Release]:
    with Release(control_plane, unique("release")) as made:
        yield made


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str) -> Iterator[Cluster]:
    """Without the installation that other tests share: there may be one only."""
    made = Cluster(control_plane, namespace)
    yield made
    made.close()


def test_the_chart_is_installed_and_its_test_finds_nothing_wrong(
    control_plane: ControlPlane, cluster: Cluster, release: Release
) -> None:
    """Its replicas are to have nodes first, as helm would wait for with `--wait`."""
    cluster.add_card()
    helm, kubeconfig = control_plane.binary("helm"), control_plane.admin_kubeconfig
    environment = {"PATH": f"{helm.parent}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}
    with HookJobs(control_plane, release.namespace) as jobs:
        # Definitions that other tests have left are taken over.
        install = beginning("helm install").replace(NAMESPACE, release.namespace) + " --take-ownership"
        assert "STATUS: deployed" in run(install, ROOT, environment)
        deployment = release.deployment("webhook")
        assert deployment is not None
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.example/cardquota:0.1.0"
        for component in ("controller", "webhook"):
            release.start(component)
        release.wait_in_force()
        path = f"/apis/apps/v1/namespaces/{release.namespace}/deployments"

        def available() -> bool:
            found = control_plane.api.get(path).expect()["items"]
            return all(each["status"].get("availableReplicas") == each["spec"]["replicas"] for each in found)

        wait_for("the Deployments are available", available)
        said = run(beginning("helm test").replace(NAMESPACE, release.namespace), ROOT, environment)
        assert re.search(r"Phase: +Succeeded", said), (said, jobs.logs)


@pytest.mark.parametrize("command", [beginning("pipx install"), "pip install ."])
def test_the_command_is_installed_and_says_its_version(tmp_path: Path, command: str) -> None:
    """The alternative stands in the comment."""
    assert command in _SECTION
    tree, tools = tmp_path / "tree", tmp_path / "tools"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    venv.create(tools, with_pip=True)
    environment = {
        "PATH": f"{tmp_path / 'home'}:{tools / 'bin'}:/usr/bin:/bin",
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "home"),
        "PYTHONPATH": "",
    }
    if command.startswith("pipx"):
        run(f"pip install --quiet --disable-pip-version-check {PIPX}", tmp_path, environment)
    run(command, tree, environment)
    version = run(beginning("cardquota --version"), tmp_path, environment)
    assert re.fullmatch(r"cardquota \d+\.\d+\.\d+\n", version)
    assert "card" in run("kubectl-cardquota --help", tmp_path, environment)
