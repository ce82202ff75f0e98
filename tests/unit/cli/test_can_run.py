"""`cardquota can-run`: refused, waits or runs, offline; what the real control plane makes of the same is shown elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import CPU_POD, GATED, NODE, POD, QUEUE

STATE = (
    NODE % ("n1", 4)
    + NODE % ("n2", 2)
    + QUEUE % ("team", '{"NVIDIA-H200": 3}')
    + POD % ("old", "NVIDIA-H200", "team", "nodeName: n1")
)
TEMPLATE = {
    "metadata": {
        "annotations": {
            "volcano.sh/card.name": "NVIDIA-H200",
            "scheduling.volcano.sh/queue-name": "team",
        }
    },
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
}
NEW = POD % ("new", "NVIDIA-H200", "team", "")


def workload(replicas: int, kind: str = "Deployment") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "template": TEMPLATE},
    }


class Asked:
    """`can-run` on manifests over a state, both in files."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder

    def __call__(
        self, manifest: str | dict[str, Any], *flags: str, state: str = STATE, form: str = "json"
    ) -> tuple[int, Any, str]:
        """Exit status, the report or the text, and what stands on standard error."""
        given = manifest if isinstance(manifest, str) else json.dumps(manifest)
        cluster, file = self._folder / "state.yaml", self._folder / "m.yaml"
        cluster.write_text(state, "utf-8")
        file.write_text(given, "utf-8")
        outcome = self._run("can-run", file, "--state", cluster, "-o", form, *flags)
        told = json.loads(outcome.out) if form == "json" and outcome.out else outcome.out
        return outcome.status, told, outcome.err.replace(f"{self._folder}/", "")


@pytest.fixture
def asked(run: Run, tmp_path: Path) -> Asked:
    return Asked(run, tmp_path)


def test_what_runs_is_told_with_its_cards_and_where_there_is_room(asked: Asked) -> None:
    status, text, _ = asked(workload(2), form="text")
    assert status == 0
    assert text == (
        "runs: Deployment default/web in queue team: all 2 pods are let in now on 2 NVIDIA-H200, room on n2 (2)\n"
    )


def test_what_waits_is_explained(asked: Asked) -> None:
    status, report, _ = asked(workload(4))
    assert (status, report["verdict"], report["ever"]) == (3, "waits", False)
    (one,) = report["objects"]
    assert one["pods"] == {"runs": 2, "waits": 2}
    assert one["cards"] == {"NVIDIA-H200": 2}
    assert report["waits"]["pod"] == "default/web-2"
    assert report["waits"]["help"][0]["steps"][0]["to"] == "4"
    _, text, _ = asked(workload(4), form="text")
    assert text.startswith(
        "waits: Deployment default/web in queue team: 2 of 4 pods wait: InsufficientScalarQuota\n"
        "  2 would run on 2 NVIDIA-H200, room on n2 (2)\n"
    )
    assert "Not all of these would run even if everybody else were gone." in text


def test_each_object_that_would_never_run_says_why(asked: Asked) -> None:
    """What is told at length is one pod only: why another one never runs stood nowhere."""
    huge = (POD % ("huge", "NVIDIA-H200", "wide", "")).replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 12")
    lost = (CPU_POD % "lost").replace("spec:", "spec:\n  nodeSelector: {zone: moon}")
    more = f"{json.dumps(workload(3))}\n---\n{huge}{lost}"
    status, text, _ = asked(more, form="text", state=STATE + QUEUE % ("wide", '{"NVIDIA-H200": 20}'))
    assert status == 3
    told = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    assert (
        "Pod default/huge in queue wide: NoFreeCard not even if everybody else were gone: no node has 12 NVIDIA-H200: "
        "the largest has 4 "
    ) in told
    assert told.endswith(
        "not even if everybody else were gone: node n1: the pod's node selector or affinity does not admit it"
    )
    assert told.count("not even if everybody else were gone") == 2


def test_what_waits_for_others_to_end_is_no_hopeless_case(asked: Asked) -> None:
    status, report, _ = asked(workload(3))
    assert (status, report["verdict"], report["ever"]) == (3, "waits", True)


def test_what_is_refused_is_told_with_place_and_remedy(asked: Asked) -> None:
    status, report, _ = asked(NEW.replace('"NVIDIA-H200"', '"A||B"'))
    assert (status, report["verdict"]) == (1, "refused")
    (one,) = report["refused"]
    assert (one["object"], one["code"], one["line"]) == ("Pod default/new", "CardNameMalformed", 5)
    assert one["remedy"].startswith("write names as")
    assert report["objects"] == []


def test_the_good_ones_are_judged_beside_a_refused_one(asked: Asked) -> None:
    status, report, _ = asked(NEW + POD % ("bad", "A||B", "team", ""))
    assert status == 1
    assert [one["object"] for one in report["objects"]] == ["Pod default/new"]


def test_let_in_without_a_node_is_no_running(asked: Asked) -> None:
    """Quota there is, but both nodes are full of what another queue uses."""
    others = "".join(
        (POD % (f"x{n}", "NVIDIA-H200", "rest", f"nodeName: {node}")).replace("gpu: 1", f"gpu: {count}")
        for n, (node, count) in enumerate((("n1", 3), ("n2", 2)))
    )
    status, report, _ = asked(NEW, state=STATE + others)
    assert (status, report["ever"]) == (3, True)
    assert report["objects"][0]["reason"] == "NoFreeCard"
    assert "nvidia.com/gpu" in report["objects"][0]["message"]
    assert report["waits"]["decision"] == "lift"


@pytest.mark.parametrize(
    ("field", "runs"),
    [
        ("nodeSelector: {zone: mars}", False),
        ("tolerations: [{key: gpu, operator: Exists}]", True),
        ("priority: 3", False),
    ],
)
def test_selectors_and_taints_of_nodes_count(asked: Asked, field: str, runs: bool) -> None:
    tainted = STATE.replace("kind: Node\n", "kind: Node\nspec: {taints: [{key: gpu, effect: NoSchedule}]}\n")
    status, _, _ = asked(POD % ("new", "NVIDIA-H200", "team", field), state=tainted)
    assert (status == 0) is runs


def test_another_queue_may_be_asked_about(asked: Asked) -> None:
    state = STATE + QUEUE % ("wide", '{"NVIDIA-H200": 9}')
    assert asked(workload(3), state=state)[0] == 3
    status, report, _ = asked(workload(3), "--queue", "wide", state=state)
    assert (status, report["objects"][0]["queues"]) == (0, ["wide"])


def test_a_queue_among_the_manifests_counts_as_applied(asked: Asked) -> None:
    assert asked(QUEUE % ("team", '{"NVIDIA-H200": 4}') + json.dumps(workload(3)))[0] == 0
    closed = STATE.replace("kind: Queue\n", "kind: Queue\nstatus: {state: Closed}\n")
    assert asked(QUEUE % ("team", '{"NVIDIA-H200": 4}') + NEW, state=closed)[0] == 3, "and stays closed"


def test_what_is_there_already_is_taken_as_made_anew(asked: Asked) -> None:
    """Else the pod itself would stand in its own way."""
    old = POD % ("old", "NVIDIA-H200", "team", "")
    status, report, said = asked(old, state=STATE.replace(": 3}", ": 1}"))
    assert (status, report["replaced"]) == (0, ["Pod default/old"])
    _, _, said = asked(old, form="text")
    assert said == "note: Pod default/old is there already; judged as if it were deleted and created anew\n"


def test_the_name_of_a_pod_that_is_there_is_nobody_elses(asked: Asked) -> None:
    """The first pod of the Deployment would be called as one that runs, which goes on holding its card."""
    state = STATE.replace("name: old", "name: web-0")
    assert asked(workload(3), state=state)[0] == 3
    assert asked(workload(2), state=state)[0] == 0


@pytest.mark.parametrize(
    ("manifest", "pods"),
    [
        (
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": {"name": "w"},
                "spec": {"jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}},
            },
            {"runs": 2, "waits": 0},
        ),
        (
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "w"},
                "spec": {"queue": "team", "tasks": [{"name": "t", "replicas": 3, "template": TEMPLATE}]},
            },
            {"runs": 0, "waits": 3},
        ),
        (workload(2, "StatefulSet"), {"runs": 2, "waits": 0}),
        (workload(1, "DaemonSet"), {"runs": 2, "waits": 0}),
    ],
    ids=["the next run of a CronJob", "a gang", "StatefulSet", "one on each node"],
)
def test_every_kind_stands_for_its_pods(asked: Asked, manifest: dict[str, Any], pods: dict[str, int]) -> None:
    assert asked(manifest)[1]["objects"][0]["pods"] == pods


HELPER = {"spec": {"containers": [{"name": "c"}]}}


def with_helper(scheduler: str, minimum: int, workers: int) -> dict[str, Any]:
    """A Volcano Job with a pod that asks for no cards beside those that do."""
    tasks = [
        {"name": "helper", "replicas": 1, "template": HELPER},
        {"name": "worker", "replicas": workers, "template": TEMPLATE},
    ]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "g"},
        "spec": {"queue": "team", "schedulerName": scheduler, "minAvailable": minimum, "tasks": tasks},
    }


@pytest.mark.parametrize(
    ("scheduler", "minimum", "workers", "pods"),
    [
        pytest.param("volcano", 4, 2, {"runs": 0, "waits": 3}, id="a gang that can never be whole"),
        pytest.param("volcano", 4, 3, {"runs": 0, "waits": 4}, id="a gang with too little quota"),
        pytest.param("volcano", 3, 2, {"runs": 3, "waits": 0}, id="a gang that fits"),
        pytest.param("volcano", 1, 3, {"runs": 3, "waits": 1}, id="a gang that starts without all"),
        pytest.param(
            "default-scheduler", 4, 2, {"runs": 1, "waits": 2}, id="of a scheduler that knows no such gangs"
        ),
    ],
)
def test_a_member_without_cards_starts_with_its_gang(
    asked: Asked, scheduler: str, minimum: int, workers: int, pods: dict[str, int]
) -> None:
    # The queue's third card is in use.
    _, report, _ = asked(with_helper(scheduler, minimum, workers))
    (one,) = report["objects"]
    assert one["pods"] == pods
    if not pods["runs"]:
        assert one["nodes"] == {}
        assert report["waits"]["pod"] == "default/g-1"


def test_of_a_gang_without_cards_that_is_never_whole_none_runs(asked: Asked) -> None:
    status, report, _ = asked(with_helper("volcano", 2, 0))
    (one,) = report["objects"]
    assert (status, one["reason"], one["ever"]) == (3, "GangIncomplete", False)
    assert one["message"] == ("PodGroup default/g starts as a whole, and still lacks 1 member")


NAMESPACES = "cardquota.io/namespaces"


@pytest.mark.parametrize(
    ("before", "live", "manifest", "refused"),
    [
        pytest.param({NAMESPACES: "ml"}, {NAMESPACES: "ml"}, {}, False, id="taken out of the manifest"),
        pytest.param({}, {NAMESPACES: "ml"}, {}, True, id="written by others"),
        pytest.param(None, {NAMESPACES: "ml"}, {}, True, id="never applied"),
        pytest.param({}, {NAMESPACES: "ml"}, {NAMESPACES: "*"}, False, id="written anew"),
    ],
)
def test_a_queue_that_is_there_is_what_apply_makes_of_it(
    asked: Asked,
    run: Run,
    tmp_path: Path,
    before: dict[str, str] | None,
    live: dict[str, str],
    manifest: dict[str, str],
    refused: bool,
) -> None:
    """What the manifest before had and this one has not goes, what others have written stays; for `check` as well."""
    quota = {"volcano.sh/card.quota": '{"NVIDIA-H200": 3}'}

    def queue(annotations: dict[str, str]) -> dict[str, Any]:
        kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        return kind | {"metadata": {"name": "team", "annotations": annotations}}

    stored = quota | live
    if before is not None:
        applied = json.dumps(queue(quota | before))
        stored |= {"kubectl.kubernetes.io/last-applied-configuration": applied}
    home = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n---\n"
    state = NODE % ("n1", 4) + home + json.dumps(queue(stored))
    given = f"{json.dumps(queue(quota | manifest))}\n---\n{json.dumps(workload(1))}"
    assert asked(given, state=state)[1]["verdict"] == ("refused" if refused else "runs")
    assert run("check", tmp_path / "m.yaml", "--state", tmp_path / "state.yaml").status == int(refused)


def test_who_asks_for_nothing_runs_and_what_makes_no_pods_is_said(asked: Asked) -> None:
    assert asked(CPU_POD % "cpu")[0] == 0
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    status, text, said = asked(service, form="text")
    assert (status, text) == (0, "runs: no pods come of these manifests now\n")
    assert said == "note: not judged, for no pods come of it: Service s\n"


def test_a_pod_that_was_got_from_a_cluster_is_judged_as_new(asked: Asked) -> None:
    stored = POD % ("got", "NVIDIA-H200", "team", "")
    stored = stored.replace("name: got", "name: got\n  uid: u\n  resourceVersion: '3'")
    status, report, _ = asked(stored.replace("---\n", "status: {phase: Running}\n---\n"))
    assert (status, report["objects"][0]["pods"]) == (0, {"runs": 1, "waits": 0})


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("", "m.yaml: holds no Kubernetes object"),
        ("{", "m.yaml:2: is not YAML"),
        ("a: [1\n", "m.yaml:"),
        ("3", "m.yaml:1: must be a Kubernetes object"),
        ("kind: Pod", "m.yaml:1: apiVersion must be set, for instance to v1"),
        ("apiVersion: v1\nkind: Pod\n", "a Pod needs metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: [1]\n", "m.yaml:3: metadata of a Pod must be a mapping"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: x\n", "m.yaml:4: spec of a Pod must be"),
        ("apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a}\n", "m.yaml:3: kind is given twice"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(asked: Asked, manifest: str, said: str) -> None:
    status, report, told = asked(manifest)
    assert (status, report) == (2, "")
    assert told.startswith("error: ")
    assert said in told
    assert told.splitlines()[1].startswith("try: ")
    assert told.count("\n") == 2


def test_a_file_that_is_not_there(run: Run) -> None:
    outcome = run("can-run", "nowhere.yaml", "--state", "-", stdin=STATE)
    assert (outcome.status, outcome.err) == (
        2,
        (
            "error: nowhere.yaml: No such file or directory\n"
            "try: name a file that can be read, or - for standard input\n"
        ),
    )


def test_who_waits_already_comes_first(asked: Asked) -> None:
    state = STATE + POD % ("w1", "NVIDIA-H200", "team", GATED) + POD % ("w2", "NVIDIA-H200", "team", GATED)
    status, report, _ = asked(NEW, state=state)
    assert (status, report["ever"]) == (3, True)


UNNAMED = CPU_POD.replace("{name: %s}", "{name: %s, annotations: {cardquota.io/queue: team}}").replace(
    "{name: c}", "{name: c, resources: {limits: {nvidia.com/gpu: 1}}}"
)
"""Let in, and without a card: it may go to any node that has a device."""
A100 = (NODE % ("n2", 1)).replace("NVIDIA-H200", "NVIDIA-A100")
QUOTA = QUEUE % ("team", '{"NVIDIA-H200": 8}')


def test_who_was_let_in_and_may_go_anywhere_is_not_put_where_another_pod_has_to_go(asked: Asked) -> None:
    """A scheduler may place the two either way; nothing is seen that keeps the new one from running."""
    status, report, _ = asked(NEW, state=NODE % ("n1", 1) + A100 + QUOTA + UNNAMED % "x")
    assert (status, report["verdict"]) == (0, "runs")


def test_where_somebody_would_go_short_those_who_were_let_in_come_first(asked: Asked) -> None:
    status, report, _ = asked(NEW, state=NODE % ("n1", 1) + A100 + QUOTA + UNNAMED % "x" + UNNAMED % "z")
    assert (status, report["verdict"]) == (3, "waits"), report
