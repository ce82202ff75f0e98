"""`cardquota dump`: what the other commands read, and nothing that is its owner's business."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cli import cluster, leader_books
from cli.dump import shareable
from cli.live import Reading
from core.objects.pod import project
from tests.unit.cli.conftest import Outcome, Run

SECRET = "s3cret"
LAST_APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "kept": "x"}
CONTAINER = {
    "name": "c",
    "image": SECRET,
    "command": [SECRET],
    "args": [SECRET],
    "env": [{"name": "TOKEN", "value": SECRET}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
    "restartPolicy": "Always",
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "uid": "u", "annotations": LAST_APPLIED},
    "spec": {
        "containers": [CONTAINER, None],
        "initContainers": [CONTAINER],
        "volumes": [{"name": SECRET}],
        "imagePullSecrets": [{"name": SECRET}],
        "schedulingGates": [{"name": "g"}],
    },
    "status": {"phase": "Pending"},
}
TEMPLATE = {"metadata": {"annotations": {"a": "b"}}, "spec": POD["spec"]}


def test_of_a_pod_only_what_decisions_look_at_is_left() -> None:
    assert shareable(POD) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u", "annotations": {"kept": "x"}},
        "spec": {
            "containers": [
                {"name": "c", "resources": CONTAINER["resources"], "restartPolicy": "Always"},
                None,
            ],
            "initContainers": [{"name": "c", "resources": CONTAINER["resources"], "restartPolicy": "Always"}],
            "schedulingGates": [{"name": "g"}],
        },
        "status": {"phase": "Pending"},
    }


TERMINATED = {"exitCode": 1, "reason": SECRET, "message": SECRET, "finishedAt": "2026-01-01T00:02:00Z"}
CONTAINER_STATUS = {
    "name": "c",
    "image": SECRET,
    "imageID": SECRET,
    "containerID": SECRET,
    "started": False,
    "state": {"terminated": TERMINATED},
    "lastState": {"terminated": TERMINATED},
    "resources": {"requests": {"nvidia.com/gpu": "2"}},
    "allocatedResources": {"nvidia.com/gpu": "2"},
    "volumeMounts": [{"name": SECRET, "mountPath": SECRET}],
}
WAITING = {
    "name": "i",
    "image": SECRET,
    "state": {"waiting": {"message": f"Back-off pulling image {SECRET}"}},
}
FIELDS: dict[str, Any] = {"f:spec": {"f:volumes": {f'k:{{"name":"{SECRET}"}}': {}}}}
WRITTEN = [
    {"manager": "cardquota", "operation": "Update", "time": "2026-01-01T00:01:00Z", "fieldsV1": FIELDS}
]
ENDED: dict[str, Any] = {
    **POD,
    "metadata": {"name": "p", "uid": "u", "managedFields": WRITTEN},
    "spec": {**POD["spec"], "schedulingGates": [], "nodeName": "n"},
    "status": {
        "phase": "Failed",
        "message": SECRET,
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "PodScheduled", "status": "True", "message": "said by its scheduler"}],
        "containerStatuses": [CONTAINER_STATUS, None],
        "initContainerStatuses": [WAITING],
        "ephemeralContainerStatuses": [CONTAINER_STATUS],
        "resourceClaimStatuses": [{"name": "d", "resourceClaimName": "p-d"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "p-x"},
    },
}
RELEASED = {
    **ENDED,
    "spec": {"containers": [CONTAINER]},
    "status": {"phase": "Pending", "conditions": ENDED["status"]["conditions"]},
}


@pytest.mark.parametrize("raw", [ENDED, RELEASED])
def test_images_output_and_names_of_the_environment_are_left_out_wherever_they_stand(
    raw: dict[str, Any],
) -> None:
    assert SECRET not in json.dumps(shareable(raw))


@pytest.mark.parametrize("raw", [POD, ENDED, RELEASED])
def test_decisions_read_of_the_dump_what_they_read_of_the_cluster(raw: dict[str, Any]) -> None:
    assert project(shareable(raw)) == project(raw)
    assert shareable(raw)["status"].get("conditions") == raw["status"].get("conditions")


def test_a_queue_keeps_who_wrote_which_field_of_it() -> None:
    queue = {
        "kind": "Queue",
        "metadata": {"name": "q", "managedFields": WRITTEN},
        "status": {"state": "Open"},
    }
    assert shareable(queue) == queue


def test_the_volumes_of_a_volcano_job_are_left_out() -> None:
    job = {"kind": "Job", "spec": {"queue": "q", "volumes": [{"mountPath": SECRET}]}}
    assert shareable(job) == {"kind": "Job", "spec": {"queue": "q"}}


def test_the_templates_of_a_volcano_job_are_treated_alike() -> None:
    job = {"kind": "Job", "spec": {"queue": "q", "tasks": [{"name": "t", "template": TEMPLATE}, 3]}}
    assert SECRET not in json.dumps(shareable(job))
    assert shareable(job)["spec"]["queue"] == "q"


def test_a_queue_keeps_the_manifest_that_shows_a_dropped_quota() -> None:
    queue: dict[str, Any] = {"kind": "Queue", "metadata": {"name": "q", "annotations": LAST_APPLIED}}
    assert shareable(queue) == queue


@pytest.mark.parametrize(
    "raw", [{}, {"kind": "Pod", "spec": 3, "metadata": None}, {"kind": "Job", "spec": {"tasks": 3}}]
)
def test_whatever_an_object_holds_nothing_breaks(raw: dict[str, Any]) -> None:
    assert shareable(raw) == raw


QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "q", "annotations": {"volcano.sh/card.quota": '{"A": 4}'}},
    "spec": {},
}


def books(**allocated: str) -> tuple[dict[str, Any], str]:
    """What the leader tells of queue q."""
    status = {"source": "answer", "leader": "c-0", "queues": {"q": {"allocated": allocated}}, "drift": 0}
    head = {"apiVersion": "cardquota.io/v1", "kind": "LeaderBooks"}
    return head | {"metadata": {"name": "cardquota", "namespace": "cardquota-system"}, "status": status}, ""


class Live:
    """A cluster with these objects, whose leader answers so, one time after the other."""

    def __init__(self, run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run, self.path, self._patch = run, path, monkeypatch

    def dump(
        self, *told: tuple[dict[str, Any], str], objects: Sequence[dict[str, Any]] = (POD, QUEUE)
    ) -> Outcome:
        answers = iter(told)
        self._patch.setattr(cluster, "reading", lambda _options: Reading(objects=list(objects)))
        self._patch.setattr(leader_books, "asked", lambda _options: next(answers))
        return self._run("dump", "-o", self.path)

    def verify(self) -> tuple[int, list[tuple[str, str]]]:
        """Exit status, and what is said of the leader's books."""
        outcome = self._run("verify", "--state", self.path, "-o", "json")
        checks = json.loads(outcome.out)["checks"]
        said = [(one["result"], one["found"]) for one in checks if one["check"] == "leader's books"]
        return outcome.status, said


@pytest.fixture
def live(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    return Live(run, tmp_path / "state.json", monkeypatch)


NOBODY: tuple[dict[str, Any], str] = ({}, "nobody leads: there is no Lease cardquota")


def test_it_is_read_by_the_other_commands(run: Run, live: Live) -> None:
    outcome = live.dump(books(), books())
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == f"{live.path}: 2 objects and the leader's books\n"
    assert [file.name for file in live.path.parent.iterdir()] == ["state.json"]
    report = run("plan", "--state", live.path, "-o", "json")
    assert list(json.loads(report.out)["pods"]) == ["default/p"]
    assert report.err == ""


def test_books_that_agree_with_the_pods(live: Live) -> None:
    live.dump(books(), books())
    assert live.verify() == (0, [("ok", "0 figures agree with the pods")])


def test_books_that_do_not_agree_are_found_in_the_dump(live: Live) -> None:
    live.dump(books(A="2"), books(A="2"))
    assert live.verify() == (1, [("wrong", "queue q: 2 of A, and its pods use 0")])


def test_what_changed_while_the_pods_were_read_is_held_against_nobody(live: Live) -> None:
    live.dump(books(A="1"), books(A="2"))
    assert live.verify() == (0, [("unknown", "they changed while the pods were read: queue q")])


@pytest.mark.parametrize("told", [(NOBODY,), (books(A="1"), NOBODY)])
def test_that_the_leader_told_nothing_is_said(
    live: Live, told: tuple[tuple[dict[str, Any], str], ...]
) -> None:
    outcome = live.dump(*told)
    assert outcome.status == 0
    assert outcome.err.splitlines() == [
        "warning: without the leader's own view: nobody leads: there is no Lease cardquota",
        f"{live.path}: 2 objects",
    ]
    assert live.verify() == (0, [])


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, ("ok", "0 figures agree with the pods")),
        ({"queues": 3, "drift": "x", "changing": [3]}, ("ok", "0 figures agree with the pods")),
        ({"queues": {"q": {"allocated": {"A": []}}}}, ("unknown", "queue q: A is [], which is no amount")),
        ({"queues": {}, "drift": 2}, ("wrong", "its own audit has found 2 places that are wrong")),
    ],
)
def test_whatever_a_file_says_of_the_books(live: Live, status: dict[str, Any], said: tuple[str, str]) -> None:
    edited = {**books()[0], "status": status}
    live.path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [QUEUE, edited]}))
    assert live.verify() == (int(said[0] == "wrong"), [said])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("answer", ("wrong", "queue q: 0 of A, and its pods use 2")),
        ("metrics", ("ok", "0 figures agree with the pods")),
    ],
)
def test_metrics_know_nothing_of_keys_that_they_do_not_show(
    live: Live, source: str, said: tuple[str, str]
) -> None:
    told = books()[0]
    told["status"]["source"] = source
    pod = json.loads(json.dumps(POD))
    pod["metadata"]["annotations"] = {"volcano.sh/card.name": "A", "scheduling.volcano.sh/queue-name": "q"}
    pod["spec"]["nodeName"] = "n"
    live.dump((told, ""), (told, ""), objects=[pod, QUEUE])
    assert live.verify()[1] == [said]


def test_a_place_that_cannot_be_written_is_told(run: Run, live: Live, tmp_path: Path) -> None:
    live.path = tmp_path / "missing" / "state.json"
    outcome = live.dump(NOBODY)
    assert outcome.status == 2
    assert outcome.err.splitlines()[-2].startswith("error: ")


def test_a_folder_in_its_place_is_told_and_nothing_is_left_beside_it(live: Live) -> None:
    live.path.mkdir()
    outcome = live.dump(NOBODY)
    assert outcome.status == 2
    assert outcome.err.splitlines()[-2].startswith(f"error: {live.path}: ")
    assert list(live.path.parent.iterdir()) == [live.path]


def test_what_is_no_name_of_a_file_is_told_too(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    live.path = Path()
    assert live.dump(NOBODY).status == 2
    assert list(tmp_path.iterdir()) == []
