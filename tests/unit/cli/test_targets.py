"""By which names pods, workloads and queues are found, and what is said of a name that is nearly one that is there."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.workloads import TABLE
from tests.builders import a_node, a_pod, a_queue
from tests.unit.cli.conftest import Outcome, Run

PODS = [
    a_pod("train-worker-0").gpu(1).card("A").in_queue("team-a").gated(),
    a_pod("serve-x").gpu(1).card("A").in_queue("team-a").gated().of_deployment("serve", "abc"),
    a_pod("g-0").gpu(1).card("A").in_queue("team-a").in_group("gang-of-four").gated(),
]


def owned(name: str, kind: str, owner: str, *, group: str, **labels: str) -> dict[str, Any]:
    pod = a_pod(name).gpu(1).card("A").in_queue("team-a").gated().build()
    reference = {"apiVersion": f"{group}/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
    pod["metadata"] |= {"ownerReferences": [reference], "labels": labels}
    return pod


def written(folder: Path, *items: dict[str, Any]) -> Path:
    path = folder / "state.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    queues = [a_queue(name).cards({"A": 8}) for name in ("team-a", "research")]
    items = [thing.build() for thing in (a_node("n").card("A", 8), *queues, *PODS)]
    items += [
        owned(f"of-{row.resource}.{row.group}", row.kind, f"my-{row.kind.lower()}", group=row.group)
        for row in TABLE
    ]
    named = {"jobset.sigs.k8s.io/jobset-name": "set"}
    items.append(owned("of-a-set", "Job", "set-workers-0", group="batch", **named))
    named = {"ray.io/originated-from-cr-name": "ray"}
    items.append(owned("of-a-ray-job", "RayCluster", "r-raycluster-x", group="ray.io", **named))
    return written(tmp_path, *items)


def told(outcome: Outcome) -> str:
    assert (outcome.status, outcome.out) == (2, "")
    return outcome.err.splitlines()[0].removeprefix("error: ")


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.kind}.{row.group}")
def test_every_kind_of_the_table_of_workloads_can_be_explained(run: Run, state: Path, row: Any) -> None:
    """By its kind and by its resource, with or without its group."""
    for kind in (row.kind, row.kind.lower(), row.resource, f"{row.resource}.{row.group}"):
        outcome = run("explain", f"{kind}/ml/my-{row.kind.lower()}", "--state", state, "-o", "json")
        assert (outcome.status, outcome.err) == (0, ""), kind
        assert json.loads(outcome.out)["object"] == f"{row.kind} ml/my-{row.kind.lower()}"


@pytest.mark.parametrize("target", ["po/train-worker-0", "pods/train-worker-0", "podgroup/gang-of-four"])
def test_pods_and_groups_can_be_named_by_kind(run: Run, state: Path, target: str) -> None:
    assert run("explain", target, "-n", "ml", "--state", state).status == 0


@pytest.mark.parametrize(
    "target", ["pg/gang-of-four", "deploy/serve", "jobset/set", "rayjob/ray", "vcjob/my-job"]
)
def test_short_names_and_pods_of_something_in_between(run: Run, state: Path, target: str) -> None:
    """A JobSet makes Jobs and a RayJob a RayCluster; their pods carry the name in a label."""
    assert run("explain", target, "-n", "ml", "--state", state).status == 0


@pytest.mark.parametrize(
    ("kind", "pods"),
    [
        ("vcjob", 1),
        ("vj", 1),
        ("jobs.batch.volcano.sh", 1),
        ("job.v1alpha1.batch.volcano.sh", 1),
        ("jobs.batch", 2),
        ("job.v1.batch", 2),
        ("job", 3),
    ],
)
def test_of_two_objects_of_one_name_the_api_group_tells_which_is_meant(
    run: Run, tmp_path: Path, kind: str, pods: int
) -> None:
    """A Job of Kubernetes has two pods, a Volcano Job of its name one; without a group both are meant."""
    path = written(
        tmp_path,
        owned("a", "Job", "web", group="batch"),
        owned("b", "Job", "web", group="batch"),
        owned("c", "Job", "web", group="batch.volcano.sh"),
    )
    outcome = run("explain", f"{kind}/ml/web", "--state", path, "-o", "json")
    assert outcome.status == 0, outcome.err
    assert sum(json.loads(outcome.out)["pods"].values()) == pods


def test_a_pod_group_is_that_of_the_api_group_that_is_named(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, a_pod("g-0").gpu(1).card("A").in_group("g").gated().build())
    for kind in ("pg", "podgroups.scheduling.volcano.sh"):
        assert run("explain", f"{kind}/ml/g", "--state", path).status == 0
    assert (
        "there is no PodGroup ml/g" in run("explain", "podgroups.scheduling.k8s.io/ml/g", "--state", path).err
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ml/train-workr-0", "there is no Pod ml/train-workr-0; did you mean train-worker-0?"),
        ("deploy/ml/server", "there is no pod of Deployment ml/server; did you mean serve?"),
        ("pg/ml/gang-of-for", "there is no PodGroup ml/gang-of-for; did you mean gang-of-four?"),
        ("rayjob/ml/rays", "there is no pod of RayJob ml/rays; did you mean ray?"),
        ("ml/zzz", "there is no Pod ml/zzz"),
        ("other/train-worker-0", "there is no Pod other/train-worker-0; there is one in namespace ml"),
        ("mll/train-workr-0", "there is no Pod mll/train-workr-0; did you mean namespace ml?"),
        ("deplyment/serve", "there is no Pod deplyment/serve; did you mean deployment/serve?"),
        ("deplyment/ml/serve", "deplyment is no kind that can be explained; did you mean deployment?"),
    ],
)
def test_a_misspelt_name(run: Run, state: Path, target: str, said: str) -> None:
    assert told(run("explain", target, "--state", state)) == said


def test_a_kind_that_is_like_none_is_told_with_those_that_there_are(run: Run, state: Path) -> None:
    said = told(run("explain", "zzz/ml/x", "--state", state))
    assert said.startswith("zzz is no kind that can be explained; those that can: ")
    assert all(row.kind in said for row in TABLE)


def test_a_misspelt_pod_to_place(run: Run, state: Path) -> None:
    said = told(run("place", "ml/train-workr-0", "--state", state))
    assert said == "there is no pod ml/train-workr-0; did you mean train-worker-0?"


@pytest.mark.parametrize(
    "arguments", [("queues", "--queue", "teem-a"), ("plan", "--queue", "teem-a"), ("advise", "teem-a")]
)
def test_a_misspelt_queue(run: Run, state: Path, arguments: tuple[str, ...]) -> None:
    said = told(run(*arguments, "--state", state))
    assert said.startswith("there is no queue teem-a, and no pod ")
    assert said.endswith("; did you mean team-a?")


def test_a_queue_like_none_gets_no_suggestion(run: Run, state: Path) -> None:
    assert "did you mean" not in run("queues", "--queue", "zzz", "--state", state).err
