"""`--config`: one document, the environment over it, every mistake at once."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run

NOTHING_JUDGED = (
    "judged: 0; nodes, queues and namespaces of the cluster are not known: --state FILE has them judged too"
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cardquota.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "{}", '{"mgpu": {"policy": "spread"}}', "mgpu: {policy: spread}"]
)
def test_yaml_json_and_nothing_are_settings(run: Run, tmp_path: Path, text: str) -> None:
    outcome = run("check", "--config", write(tmp_path, text), "-")
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err.splitlines() == [NOTHING_JUDGED]


def test_every_mistake_is_named_with_its_path(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "mgpu: {policy: 3, weightofcore: 1}\nnonsense: 1\n")
    outcome = run("check", "--config", path, "-")
    assert (outcome.status, outcome.out) == (2, "")
    first, *rest, remedy = outcome.err.splitlines()
    assert remedy.startswith("try: correct each key that is named")
    assert first == f"error: {path}: the settings cannot be used:"
    assert sorted(line.split(":")[0].strip() for line in rest) == [
        "mgpu.policy",
        "mgpu.weightofcore",
        "nonsense",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", ":2: is not YAML"),
        ("mgpu: {}\nmgpu: {}\n", ":2: mgpu is given twice"),
        ("{}\n---\nmgpu: {}\n", ":3: settings are one document"),
        ("- 1", ": the settings cannot be used"),
    ],
)
def test_what_is_no_settings_file_is_refused(run: Run, tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    outcome = run("check", "--config", path, "-")
    assert outcome.status == 2
    assert outcome.err.startswith(f"error: {path}{said}")


def test_the_environment_wins(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "features: {mgpu: true}\n")
    pod = "{apiVersion: v1, kind: Pod, spec: {containers: [{resources: {limits: {vke.volcengine.com/mgpu-core: 130}}}]}}"
    assert run("check", "--config", path, "-", stdin=pod).status == 1
    monkeypatch.setenv("CARDQUOTA_FEATURES__MGPU", "false")
    assert run("check", "--config", path, "-", stdin=pod).status == 0
    monkeypatch.setenv("CARDQUOTA_FEATURES__MGPU", "maybe")
    outcome = run("check", "-", stdin=pod)
    assert outcome.status == 2
    assert outcome.err.startswith("error: environment: the settings cannot be used:\n  features.mgpu: ")


def test_warnings_do_not_stop_the_command(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "mgpu: {scheduleMode: id}\n")
    outcome = run("check", "--config", path, "-")
    assert outcome.status == 0
    assert outcome.err.startswith(f"warning: {path}: mgpu.scheduleMode: ")
