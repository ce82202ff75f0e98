"""`cardquota check`: the webhook's words, with the line they are about."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import ROOT, Run, spawn
from tests.unit.cli.objects import QUEUE_OF_FOUR

BROKEN = """\
apiVersion: v1
kind: Pod
metadata:
  name: two-mistakes
  annotations:
    volcano.sh/card.name: "A|"
spec:
  containers:
  - name: main
    resources:
      limits:
        vke.volcengine.com/mgpu-core: 130
---
apiVersion: v1
kind: List
items:
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata:
    name: team
    annotations:
      volcano.sh/card.quota: '{"A": -1}'
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: skipped}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml}
spec:
  template:
    metadata:
      annotations: {volcano.sh/card.card: A}
    spec:
      containers: []
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    return path


def test_text_is_one_line_per_finding_with_file_and_line(run: Run, broken: Path) -> None:
    outcome = run("check", broken)
    assert outcome.status == 1
    assert outcome.err == (
        "judged: 3; of other kinds, skipped: 1 ConfigMap; nodes, queues and namespaces of the cluster are not known: "
        "--state FILE has them judged too\n"
    )
    starts = [
        "6: error CardNameMalformed metadata.annotations[volcano.sh/card.name]: Invalid value: ",
        "12: error MgpuCore spec.containers[0].resources.limits[vke.volcengine.com/mgpu-core]: Invalid value: ",
        "22: error CardQuotaMalformed metadata.annotations[volcano.sh/card.quota][A]: Invalid value: -1: ",
        "33: warning CardNameMisspelt spec.template.metadata.annotations[volcano.sh/card.card]: ",
    ]
    lines = outcome.out.splitlines()
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(f"{broken}:{start}")


def test_json_says_the_same_for_programs(run: Run, broken: Path) -> None:
    outcome = run("check", "-o", "json", broken)
    assert outcome.status == 1
    report = json.loads(outcome.out)
    assert (report["errors"], report["warnings"]) == (3, 1)
    first, *_, last = report["findings"]
    assert first["file"] == str(broken)
    assert (first["line"], first["severity"], first["code"]) == (6, "error", "CardNameMalformed")
    assert first["path"] == "metadata.annotations[volcano.sh/card.name]"
    assert first["object"] == "Pod two-mistakes"
    assert last["object"] == "Deployment ml/web"


def test_github_gets_workflow_commands(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a,b%.yaml"
    path.write_text(BROKEN)
    outcome = run("check", "-o", "github", path)
    name = str(path).replace("%", "%25").replace(",", "%2C")
    first, *_, last = outcome.out.splitlines()
    assert first.startswith(f"::error file={name},line=6,title=CardNameMalformed::metadata.annotations[")
    assert last.startswith(f"::warning file={name},line=33,title=CardNameMisspelt::spec.template.")


def test_warnings_alone_are_no_failure(run: Run) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations: {volcano.sh/card.card: A}\n"
    outcome = run("check", "-", stdin=text)
    assert outcome.status == 0
    assert outcome.out.startswith("<stdin>:5: warning CardNameMisspelt ")


@pytest.mark.parametrize(("through", "code"), [("true", "CardQuotaAboveParent"), ("false", "CardQuotaInert")])
def test_clean_manifests_say_nothing(run: Run, tmp_path: Path, through: str, code: str) -> None:
    """Nothing is told of the examples but what those of them that are about it do on purpose."""
    settings = tmp_path / "cardquota.yaml"
    settings.write_text(f"cards: {{hierarchy: {through}}}")
    outcome = run("check", "--config", settings, "-R", ROOT / "examples")
    assert outcome.status == 0
    told = {(Path(line.split(":")[0]).parent.name, line.split()[2]) for line in outcome.out.splitlines()}
    assert told == {
        ("autoscaled", "BeyondQuota"),
        ("gang-without-podgroup", "BeyondQuota"),
        ("gpus-only-by-quota", "CardNameMissing"),
        ("parts-of-cards", "BeyondQuota"),
        ("queue-tree", code),
    }
    assert json.loads(run("check", "-o", "json", "-").out) == {"errors": 0, "warnings": 0, "findings": []}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: [", 2, "is not YAML"),
        ("3", 1, "must be a Kubernetes object"),
        ("\nkind: Pod", 2, "apiVersion: apiVersion must be set"),
        ("apiVersion: v1\nkind: 7", 2, "kind: kind must be set"),
        ("apiVersion: v1\nkind: ConfigMap\ndata: {a: 1,\n  a: 2}", 4, "data.a: Duplicate value"),
        ('{"apiVersion": "v1", "kind": "ConfigMap",\n "kind": "Pod"}', 2, "kind: Duplicate value"),
        ("apiVersion: v1\nkind: List\nitems: {}", 3, "items: items must be a list"),
        ("apiVersion: v1\nkind: List\nitems:\n- 3", 4, "must be a Kubernetes object"),
    ],
)
def test_what_no_api_server_would_read_is_an_error_in_its_line(
    run: Run, text: str, line: int, said: str
) -> None:
    outcome = run("check", "-", stdin=text)
    assert outcome.status == 1
    assert outcome.out.startswith(f"<stdin>:{line}: error ManifestMalformed {said}")
    assert len(outcome.out.splitlines()) == 1


@pytest.mark.parametrize("text", [b"a: \xff\xfe", b"a: 1\n\0"])
def test_binary_input_is_an_error(run: Run, text: bytes) -> None:
    outcome = run("check", "-", stdin=text)
    assert outcome.status == 1
    assert "error ManifestMalformed" in outcome.out


def test_findings_before_a_syntax_error_and_in_later_files_are_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text(BROKEN + "---\n}")
    (tmp_path / "2.yaml").write_text(BROKEN)
    lines = run("check", tmp_path).out.splitlines()
    assert len(lines) == 4 + 1 + 4
    assert "ManifestMalformed" in lines[4]


def test_wrong_types_are_named_with_their_path(run: Run) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    volcano.sh/card.name: yes\n"
    outcome = run("check", "-", stdin=text)
    assert outcome.status == 1
    assert outcome.out.startswith(
        "<stdin>:5: error ObjectMalformed metadata.annotations[volcano.sh/card.name]: Invalid value: true: "
    )


def test_text_from_a_manifest_cannot_start_a_line_of_its_own(run: Run) -> None:
    text = 'apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {"cardquota.io/x\\ny\\e[2J": z}}\n'
    outcome = run("check", "-", stdin=text)
    assert outcome.status == 1
    assert len(outcome.out.splitlines()) == 1
    assert "\x1b" not in outcome.out


class TestFolders:
    """What a folder stands for."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("b.yaml", "a.yml", "c.json", "notes.txt", "sub/d.yaml"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("{}")
        return tmp_path

    def files(self, run: Run, *arguments: object) -> list[str]:
        findings = json.loads(run("check", "-o", "json", *arguments).out)["findings"]
        return [Path(finding["file"]).name for finding in findings]

    def test_its_manifests_in_order(self, run: Run, folder: Path) -> None:
        assert self.files(run, folder) == ["a.yml", "b.yaml", "c.json"]

    def test_recursive_takes_the_folders_below(self, run: Run, folder: Path) -> None:
        assert self.files(run, "-R", folder) == ["a.yml", "b.yaml", "c.json", "d.yaml"]

    def test_a_file_is_taken_whatever_its_name(self, run: Run, folder: Path) -> None:
        assert self.files(run, folder / "notes.txt") == ["notes.txt"]

    def test_a_folder_without_manifests_is_an_error(self, run: Run, tmp_path: Path) -> None:
        outcome = run("check", tmp_path)
        assert outcome.status == 2
        told = f"error: {tmp_path}: the folder has no *.yaml, *.yml or *.json file"
        assert outcome.err.splitlines()[0] == told


@pytest.mark.parametrize(
    "arguments", [("none.yaml",), ("-", "-"), ("--state", "none.yaml", "-"), ("--config", "x", "-")]
)
def test_input_that_is_not_there_is_status_2(run: Run, arguments: tuple[str, ...]) -> None:
    outcome = run("check", *arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert "Traceback" not in outcome.err


NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {nvidia.com/gpu.product: NVIDIA-H200, nvidia.com/gpu.count: "8", nvidia.com/gpu.memory: "143771"}
status:
  allocatable: {nvidia.com/gpu: "8"}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
  annotations: {volcano.sh/card.name: %s}
spec:
  containers:
  - name: c
    resources: {limits: {%s: 1}}
"""


def test_with_a_state_the_cards_of_its_nodes_are_known(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(NODE)
    wrong, unknown = POD % ("NVIDIA-H200", "example.com/x"), POD % ("NVIDIA-H100", "nvidia.com/gpu")
    assert run("check", "-", stdin=wrong).status == 0
    outcome = run("check", "--state", state, "-", stdin=wrong)
    assert outcome.status == 1
    assert " error CardResourceMissing " in outcome.out
    outcome = run("check", "--state", state, "-", stdin=unknown)
    assert outcome.status == 0
    assert " warning CardUnknown " in outcome.out


WAITING = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: j
  annotations:
    volcano.sh/card.request: '{"NVIDIA-H200": 12}'
spec:
  queue: team
  tasks:
  - name: t
    replicas: 2
    template:
      metadata:
        annotations:
          volcano.sh/card.name: NVIDIA-H200
          scheduling.volcano.sh/queue-name: other
      spec:
        containers:
        - name: c
          resources: {limits: {nvidia.com/gpu: 5}}
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  annotations:
    volcano.sh/card.name: NVIDIA-H200
    scheduling.volcano.sh/queue-name: team-x
spec:
  containers:
  - name: c
    resources: {limits: {nvidia.com/gpu: 1}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: more
  annotations:
    volcano.sh/card.quota: |
      {"NVIDIA-H200": 5, "NVIDIA-H2OO": 1}
"""


def test_with_a_state_it_is_told_what_its_queues_could_never_serve(run: Run, tmp_path: Path) -> None:
    """Warnings only: a quota may grow, and a queue may be created later."""
    state = tmp_path / "state.yaml"
    state.write_text(NODE + "---\n" + QUEUE_OF_FOUR % "team")
    outcome = run("check", "--state", state, "-", stdin=WAITING)
    assert (outcome.status, outcome.err) == (0, "judged: 3\n")
    found = [line.split(" ", 3)[:3] for line in outcome.out.splitlines()]
    assert found == [
        ["<stdin>:6:", "warning", "BeyondQuota"],
        ["<stdin>:6:", "warning", "CardRequestDiffers"],
        ["<stdin>:15:", "warning", "BeyondQuota"],
        ["<stdin>:16:", "warning", "QueueNameUnread"],
        ["<stdin>:28:", "warning", "QueueNotFound"],
        ["<stdin>:39:", "warning", "CardUnknown"],
        ["<stdin>:39:", "warning", "QuotaBeyondCluster"],
    ]
    assert [line.split(" ")[2] for line in run("check", "-", stdin=WAITING).out.splitlines()] == [
        "QueueNameUnread"
    ]


def test_a_namespace_of_the_state_names_the_queue_of_its_pods(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "state.yaml"
    annotations = "{scheduling.volcano.sh/queue-name: team}"
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: ml, annotations: {annotations}}}\n"
    state.write_text(
        NODE + "---\n" + QUEUE_OF_FOUR % "team" + "---\n" + QUEUE_OF_FOUR % "default" + "---\n" + namespace
    )
    pod = (POD % ("NVIDIA-H200", "nvidia.com/gpu")).replace("gpu: 1", "gpu: 5")
    for name, queue in (("ml", "team"), ("other", "default")):
        text = pod.replace("  name: p", f"  name: p\n  namespace: {name}")
        assert f"whole quota of queue {queue} (4)" in run("check", "--state", state, "-", stdin=text).out


def test_the_settings_decide_what_is_judged(run: Run, tmp_path: Path, broken: Path) -> None:
    config = tmp_path / "cardquota.yaml"
    config.write_text("features: {mgpu: false}\n")
    assert "MgpuCore" in run("check", broken).out
    assert "MgpuCore" not in run("check", "--config", config, broken).out


def test_as_a_process() -> None:
    outcome = spawn("check", "-", stdin=BROKEN.encode())
    assert outcome.status == 1
    assert outcome.out.startswith("<stdin>:6: error CardNameMalformed ")
    assert outcome.err.startswith("judged: 3; ")


ACCESS = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: team
  annotations:
    cardquota.io/namespaces: %s
---
apiVersion: v1
kind: Namespace
metadata: {name: ml}
"""
NAMING = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml}
spec:
  template:
    metadata:
      annotations:
        volcano.sh/card.name: A
        scheduling.volcano.sh/queue-name: team
    spec:
      containers:
      - name: main
        resources: {limits: {nvidia.com/gpu: 1}}
"""


@pytest.mark.parametrize(("admitted", "status"), [("web", 1), ("m*", 0)])
def test_a_template_that_names_a_closed_queue_is_an_error_at_its_line(
    run: Run, tmp_path: Path, admitted: str, status: int
) -> None:
    """As far as the state shows queue and namespace; without one it passes."""
    state, manifest = tmp_path / "state.yaml", tmp_path / "web.yaml"
    state.write_text(ACCESS % admitted)
    manifest.write_text(NAMING)
    outcome = run("check", "--state", state, manifest)
    assert outcome.status == status
    said = f"{manifest}:9: error QueueNotAllowed spec.template.metadata.annotations[scheduling.volcano.sh/queue-name]"
    assert (said in outcome.out) is (status == 1)
    assert run("check", manifest).status == 0


def test_who_may_use_a_queue_is_linted(run: Run, tmp_path: Path) -> None:
    manifest = tmp_path / "queue.yaml"
    manifest.write_text(ACCESS % "Team_A")
    outcome = run("check", manifest)
    assert outcome.status == 1
    said = f"{manifest}:6: error QueueAccessMalformed metadata.annotations[cardquota.io/namespaces]: Invalid value"
    assert said in outcome.out
