"""The image: its steps done without an engine, what goes in, and which builder is asked."""

import json
import re
import shlex
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from hack.image import __main__ as image
from hack.image import sbom
from hack.image.lock import fetch
from hack.release.versions import ROOT, project_version
from tests.unit.hack.containerfile import Stage, build, stages

BUILD, FINAL = stages((ROOT / "Containerfile").read_text("utf-8"))
LOCK = ROOT / "hack" / "image" / "requirements.lock"
_MAKE_IMAGE = re.compile(r"^(?:# )?make image(?= |$)(.*)$", re.MULTILINE)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has in /opt/cardquota."""
    root = tmp_path_factory.mktemp("image")
    build(BUILD, ROOT, root, COMMIT=COMMIT)
    return root / "opt" / "cardquota"


def say(built: Path, *words: str) -> str:
    done = subprocess.run(
        [str(built / "bin" / "cardquota"), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=built,
        env={"PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.stdout


def test_the_steps_make_a_program_that_knows_version_and_commit(built: Path) -> None:
    """From files that are pinned by hash, in an environment that nothing was in."""
    client = json.loads(say(built, "version", "-o", "json"))["clientVersion"]
    assert (client["version"], client["gitCommit"]) == (project_version(), COMMIT)
    assert say(built, "version").splitlines() == [
        f"Client Version: {project_version()}",
        f"Git Commit: {COMMIT}",
    ]
    for process in ("webhook", "controller"):
        assert "--metrics-port" in say(built, process, "--help")


def test_what_is_in_it_is_what_is_locked_and_is_listed_with_licences(built: Path) -> None:
    listed = json.loads((built / "sbom.cdx.json").read_text("utf-8"))
    locked = sbom.pins(LOCK.read_text("utf-8"))
    components = {item["name"]: item for item in listed["components"]}
    assert {name: item["version"] for name, item in components.items()}.items() <= locked.items()
    # tzdata is for systems without time zones.
    assert locked.keys() - components.keys() <= {"tzdata"}
    assert [item["name"] for item in listed["components"] if "licenses" not in item] == []
    assert listed["metadata"]["component"]["version"] == project_version()


def test_no_installer_stays_in_it(built: Path) -> None:
    folders = {path.name.partition("-")[0] for path in built.glob("lib/python3*/site-packages/*.dist-info")}
    assert not folders & {"pip", "setuptools"}
    assert "cardquota" in folders


def test_nothing_is_compiled_in_it(built: Path) -> None:
    """That has the time in it at which its source was unpacked: no two builds would be alike."""
    assert [*built.rglob("*.pyc")] == []


def test_it_runs_as_nobody_and_both_stages_have_one_base() -> None:
    assert FINAL.all("USER") == ["65532:65532"]
    assert FINAL.all("ENTRYPOINT") == ['["cardquota"]']
    assert FINAL.all("COPY") == ["--from=build /opt/cardquota /opt/cardquota"]
    assert {stage.base.split()[0] for stage in (BUILD, FINAL)} == {"${BASE}"}


def test_everything_that_is_copied_exists_and_passes_the_ignore_file() -> None:
    passed = re.findall(r"^!(\S+)$", (ROOT / ".containerignore").read_text("utf-8"), re.MULTILINE)
    for rest in BUILD.all("COPY"):
        for source in rest.split()[:-1]:
            assert (ROOT / source).exists()
            assert source.startswith(tuple(passed))


def test_every_dependency_is_locked_with_hashes_at_a_version_that_is_asked_for() -> None:
    text = LOCK.read_text("utf-8")
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    names = {sbom.canonical(re.split(r"[>=<]", line)[0]) for line in asked}
    pinned = sbom.pins(text)
    assert names <= pinned.keys()
    for entry in re.split(r"\n(?=\S)", text):
        if "==" in entry:
            assert "--hash=sha256:" in entry


@pytest.mark.parametrize(("platform", "machine"), [("linux/amd64", "x86_64"), ("linux/arm64", "aarch64")])
def test_the_lock_has_a_file_for_each_platform_of_the_image(
    platform: str, machine: str, tmp_path: Path
) -> None:
    """Fetched by their hashes, and none of them run: what is compiled is for the platform's machine."""
    assert fetch("hack/image/requirements.lock", platform, tmp_path) == ""
    files = [file.name for file in tmp_path.iterdir()]
    names = {sbom.canonical(name.partition("-")[0]) for name in files}
    assert names == sbom.pins(LOCK.read_text("utf-8")).keys()
    machines = {machine for name in files for machine in ("x86_64", "aarch64") if machine in name}
    assert machines == {machine}


def test_a_platform_that_has_no_file_is_told(tmp_path: Path) -> None:
    lines = LOCK.read_text("utf-8").split("\n")
    only = next(line for line in lines if line.startswith("orjson=="))
    (tmp_path / "one.lock").write_text(f"{only}\n    --hash=sha256:{'0' * 64}\n")
    assert "HASH" in fetch(str(tmp_path / "one.lock"), "linux/arm64", tmp_path).upper()


def test_an_environment_that_is_not_what_is_locked_is_refused() -> None:
    installed = {"orjson": metadata.distribution("orjson"), "cardquota": metadata.distribution("cardquota")}
    with pytest.raises(ValueError, match=r"orjson \S+ is installed, 0.1 is locked"):
        sbom.document(installed, {"orjson": "0.1"})


def test_the_first_builder_that_works_is_taken_and_none_is_told() -> None:
    assert image.builder(ask=lambda command: command[0] != "docker") == "podman"
    assert image.builder("buildah", ask=lambda _: True) == "buildah"
    with pytest.raises(image.NoBuilderError, match="docker, podman, buildah are missing, or has no engine"):
        image.builder(ask=lambda _: False)


@pytest.mark.parametrize(
    ("name", "target"), [("docker", "--tag"), ("podman", "--manifest"), ("buildah", "--manifest")]
)
def test_the_builder_is_given_base_commit_and_platforms(name: str, target: str) -> None:
    line = image.command(
        name, "r/c:1", base="python@sha256:0", platforms="linux/amd64,linux/arm64", commit="c", epoch="7"
    )
    assert line[:2] == [name, "build"]
    assert {
        "--build-arg=BASE=python@sha256:0",
        "--build-arg=COMMIT=c",
        "--build-arg=SOURCE_DATE_EPOCH=7",
    } <= {*line}
    assert line[-3:] == [target, "r/c:1", "."]
    assert "--platform=linux/amd64,linux/arm64" in line
    plain = image.command(name, "c:1", base="", platforms="", commit="", epoch="")
    assert not [word for word in plain if word.startswith(("--build-arg", "--platform"))]


def test_the_ways_to_build_it_that_are_told_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    """`make` passes ARGS on and nothing else: whoever set BASE there would get the tag instead of the digest, without a word."""
    with pytest.raises(SystemExit):
        image.main(["--help"])
    known = capsys.readouterr().out
    pages = ("Containerfile", "CONTRIBUTING.md", "docs/quickstart.md", "docs/zh/quickstart.md")
    told = [line for page in pages for line in _MAKE_IMAGE.findall((ROOT / page).read_text("utf-8"))]
    assert len(told) >= len(pages)
    for line in told:
        for word in shlex.split(line, comments=True):
            name, _, arguments = word.partition("=")
            assert name == "ARGS"
            assert [flag for flag in shlex.split(arguments) if flag[0] == "-" and flag not in known] == []


def test_an_unknown_step_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ADD"):
        build(Stage("x", [("ADD", "a b")]), ROOT, tmp_path)
