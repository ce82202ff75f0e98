"""What is new in a state is taken as if it were created now: judged, gated, last in line; workloads by their pods."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import GATED, NODE, POD, QUEUE

NEW = POD % ("new", "NVIDIA-H200", "team", "")
TEMPLATE = {
    "metadata": {
        "annotations": {
            "volcano.sh/card.name": "NVIDIA-H200",
            "scheduling.volcano.sh/queue-name": "team",
        }
    },
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
}


def cluster(quota: int = 2, cards: int = 8) -> str:
    return NODE % ("n1", cards) + QUEUE % ("team", json.dumps({"NVIDIA-H200": quota}))


def pods(run: Run, state: str, *objects: dict[str, Any]) -> dict[str, Any]:
    """The pods of the plan."""
    text = state + "".join(json.dumps(each) + "\n---\n" for each in objects)
    outcome = run("plan", "--state", "-", "-o", "json", stdin=text)
    assert outcome.status == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)["pods"]
    return found


def decisions(run: Run, state: str, *objects: dict[str, Any]) -> dict[str, str]:
    return {key.removeprefix("default/"): pod["decision"] for key, pod in pods(run, state, *objects).items()}


def workload(api: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "w"}, "spec": spec}


def test_a_new_pod_without_the_gate_gets_it_and_waits_for_quota(run: Run) -> None:
    assert decisions(run, cluster(quota=0) + NEW) == {"new": "hold"}
    found = pods(run, cluster() + NEW)["default/new"]
    assert found["decision"] == "lift"
    assert found["assigned"] == {"NVIDIA-H200": 1}


def test_it_is_the_last_in_line(run: Run) -> None:
    waiting = (POD % ("old", "NVIDIA-H200", "team", GATED)).replace(
        "name: old", 'name: old\n  creationTimestamp: "2026-01-01T00:00:00Z"'
    )
    assert decisions(run, NEW + cluster(quota=1) + waiting) == {"new": "hold", "old": "lift"}


@pytest.mark.parametrize(
    "trace",
    [
        ("metadata:", "metadata:\n  uid: u1"),
        ("metadata:", 'metadata:\n  creationTimestamp: "2026-01-01T00:00:00Z"'),
        ("annotations: {", """annotations: {cardquota.io/assigned: '{"NVIDIA-H200": 1}', """),
        ("annotations: {", "annotations: {cardquota.io/queue: team, "),
        ("annotations: {", 'annotations: {cardquota.io/lifted: "true", '),
    ],
    ids=["uid", "creation time", "cards on record", "queue on record", "record of earlier versions"],
)
def test_a_pod_that_somebody_has_stored_is_what_it_is(run: Run, trace: tuple[str, str]) -> None:
    assert decisions(run, cluster() + NEW.replace(*trace, 1)) == {"new": "reserved"}


@pytest.mark.parametrize(
    "stray",
    [
        "cardquota.io/anything: x",
        'cardquota.io/assigned: "{}"',
        "cardquota.io/assigned: rubbish",
        """cardquota.io/assigned: '{"NVIDIA-H200": -1}'""",
        'cardquota.io/queue: ""',
        'cardquota.io/gang: "2"',
        "cardquota.io/node: n1",
        'cardquota.io/lifted: ""',
        'vke.volcengine.com/assumed: "true"',
        'vke.volcengine.com/gpu-index-container-c: "0"',
    ],
)
def test_a_new_pod_with_keys_of_ours_that_are_no_record_is_refused_as_admission_does(
    run: Run, stray: str
) -> None:
    """It holds nothing: nobody but the controller writes them, and this one has been through no lift."""
    state = cluster() + NEW.replace("annotations: {", f"annotations: {{{stray}, ", 1)
    outcome = run("plan", "--state", "-", "-o", "json", stdin=state)
    found = json.loads(outcome.out)
    assert (found["pods"]["default/new"]["decision"], found["pods"]["default/new"]["reason"]) == (
        "ignored",
        "RecordProtected",
    )
    assert found["queues"]["team"]["reserved"] == {}
    assert "would be refused" in outcome.err


@pytest.mark.parametrize(
    ("field", "decision"), [("nodeName: n1", "allocated"), ("}]\n---", "reserved")], ids=["node", "phase"]
)
def test_one_that_has_a_node_or_a_phase_too(run: Run, field: str, decision: str) -> None:
    pod = POD % ("new", "NVIDIA-H200", "team", field if ":" in field else "")
    if ":" not in field:
        pod = pod.replace("---", "status: {phase: Pending}\n---")
    assert decisions(run, cluster() + pod) == {"new": decision}


def test_what_admission_refuses_is_told_and_holds_nothing(run: Run) -> None:
    broken = NEW.replace('"NVIDIA-H200"', '"NVIDIA-H200|"')
    outcome = run("plan", "--state", "-", "-o", "json", stdin=cluster() + broken)
    found = json.loads(outcome.out)
    assert found["pods"]["default/new"]["decision"] == "ignored"
    assert found["pods"]["default/new"]["reason"] == "CardNameMalformed"
    assert found["queues"]["team"]["waiting"] == found["queues"]["team"]["reserved"] == {}
    assert "warning: pod default/new would be refused: " in outcome.err


def test_queues_shows_it_as_waiting(run: Run) -> None:
    report = json.loads(run("queues", "--state", "-", "-o", "json", stdin=cluster() + NEW).out)
    assert (report["team"]["waiting"], report["team"]["reserved"]) == ({"NVIDIA-H200": "1"}, {})


SCALED = [("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")]


@pytest.mark.parametrize(("api", "kind"), SCALED)
def test_a_new_workload_stands_for_its_pods(run: Run, api: str, kind: str) -> None:
    made = workload(api, kind, replicas=3, template=TEMPLATE)
    assert decisions(run, cluster(), made) == {"w-0": "lift", "w-1": "lift", "w-2": "hold"}
    assert list(decisions(run, cluster(), workload(api, kind, template=TEMPLATE))) == ["w-0"]
    assert decisions(run, cluster(), workload(api, kind, replicas=0, template=TEMPLATE)) == {}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"completions": 5}, 1),
        ({"parallelism": 0}, 0),
        ({"parallelism": 2, "suspend": True}, 0),
        ({"parallelism": -1}, 0),
    ],
)
def test_a_job_stands_for_those_that_run_at_once(run: Run, spec: dict[str, Any], count: int) -> None:
    assert len(decisions(run, cluster(), workload("batch/v1", "Job", template=TEMPLATE, **spec))) == count


def test_a_daemon_set_stands_for_one_pod_on_each_node_and_a_cron_job_for_none(run: Run) -> None:
    state = cluster() + NODE % ("n2", 8)
    assert len(decisions(run, state, workload("apps/v1", "DaemonSet", template=TEMPLATE))) == 2
    picky = json.loads(json.dumps(TEMPLATE))
    picky["spec"]["nodeSelector"] = {"no": "such"}
    assert decisions(run, state, workload("apps/v1", "DaemonSet", template=picky)) == {}
    cron = workload("batch/v1", "CronJob", jobTemplate={"spec": {"template": TEMPLATE}})
    assert decisions(run, state, cron) == {}


def volcano_job(*replicas: int, **spec: Any) -> dict[str, Any]:
    template = {**TEMPLATE, "metadata": {"annotations": {"volcano.sh/card.name": "NVIDIA-H200"}}}
    tasks = [{"name": f"t{n}", "replicas": count, "template": template} for n, count in enumerate(replicas)]
    return workload("batch.volcano.sh/v1alpha1", "Job", queue="team", tasks=tasks, **spec)


def test_a_volcano_job_is_a_gang_in_its_own_queue(run: Run) -> None:
    assert set(decisions(run, cluster(quota=3), volcano_job(2, 2)).values()) == {"hold"}
    assert set(decisions(run, cluster(quota=4), volcano_job(2, 2)).values()) == {"lift"}
    elastic = decisions(run, cluster(quota=3), volcano_job(2, 2, minAvailable=3))
    assert sorted(elastic.values()) == ["hold", "lift", "lift", "lift"]
    assert pods(run, cluster(), volcano_job(1))["default/w-0"]["queue"] == "team"


def test_what_a_volcano_job_declares_is_waited_for(run: Run) -> None:
    job = volcano_job(1, minAvailable=1)
    job["metadata"]["annotations"] = {"volcano.sh/card.request": '{"NVIDIA-H200": 5}'}
    assert decisions(run, cluster(), job) == {"w-0": "hold"}


def test_a_workload_that_exists_makes_nothing_more(run: Run) -> None:
    made = workload("apps/v1", "Deployment", replicas=3, template=TEMPLATE)
    made["metadata"]["uid"] = "u1"
    assert decisions(run, cluster(), made) == {}
    owned = NEW.replace(
        "metadata:",
        "metadata:\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: w, uid: r, controller: true}]",
        1,
    )
    again = workload("apps/v1", "ReplicaSet", replicas=3, template=TEMPLATE)
    assert list(decisions(run, cluster() + owned, again)) == ["new"]


def test_workloads_of_one_name_make_the_pods_of_each(run: Run) -> None:
    """A chart calls its Deployment and its StatefulSet alike."""
    two = [
        workload("apps/v1", kind, replicas=count, template=TEMPLATE)
        for kind, count in (("Deployment", 2), ("StatefulSet", 3))
    ]
    assert sorted(decisions(run, cluster(quota=4), *two).values()) == ["hold", *["lift"] * 4]


def test_a_workload_takes_no_name_of_a_new_pod(run: Run) -> None:
    pod = NEW.replace("name: new", "name: w-0")
    made = workload("apps/v1", "Deployment", replicas=2, template=TEMPLATE)
    assert decisions(run, cluster() + pod, made) == {"w-0": "lift", "w-1": "lift", "w-2": "hold"}


def test_jobs_of_one_name_and_two_api_groups_are_two(run: Run) -> None:
    """Each makes its pods, whether or not the other has some; and the gang of one is not that of the other."""
    plain = workload("batch/v1", "Job", parallelism=2, template=TEMPLATE)
    both = decisions(run, cluster(quota=4), volcano_job(3), plain)
    assert sorted(both.values()) == ["hold", "lift", "lift", "lift", "lift"]
    owner = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: w, uid: r, controller: true}"
    owned = NEW.replace("metadata:", f"metadata:\n  ownerReferences: [{owner}]", 1)
    assert set(decisions(run, cluster() + owned, plain)) == {"new", "w-0", "w-1"}


def test_objects_whose_names_are_generated_are_not_one(run: Run) -> None:
    """Nor are they an object of the name that theirs begins with."""
    generated = workload("batch/v1", "Job", template=TEMPLATE)
    generated["metadata"] = {"generateName": "w-"}
    named = workload("batch/v1", "Job", template=TEMPLATE)
    assert len(decisions(run, cluster(), generated, generated, named)) == 3
    owner = "{apiVersion: batch/v1, kind: Job, name: w, uid: r, controller: true}"
    owned = NEW.replace("metadata:", f"metadata:\n  ownerReferences: [{owner}]", 1)
    assert len(decisions(run, cluster() + owned, generated)) == 2


def test_too_many_pods_are_refused_before_they_are_made(run: Run) -> None:
    made = workload("apps/v1", "Deployment", replicas=10**9, template=TEMPLATE)
    outcome = run("plan", "--state", "-", stdin=json.dumps(made))
    assert outcome.status == 2
    assert "Deployment default/w" in outcome.err
    assert "100,000 pods" in outcome.err


def test_a_template_that_is_refused_is_refused_for_every_pod(run: Run) -> None:
    broken = json.loads(json.dumps(TEMPLATE).replace("NVIDIA-H200", "A||B"))
    found = pods(run, cluster(), workload("apps/v1", "Deployment", replicas=2, template=broken))
    assert {pod["reason"] for pod in found.values()} == {"CardNameMalformed"}


@pytest.mark.parametrize("spec", [{"template": 3}, {"replicas": "x"}, {"tasks": [3, None]}, {"tasks": {}}])
def test_whatever_a_workload_holds_nothing_breaks(run: Run, spec: dict[str, Any]) -> None:
    for api, kind in [*SCALED, ("batch/v1", "Job"), ("batch.volcano.sh/v1alpha1", "Job")]:
        pods(run, cluster(), workload(api, kind, **spec))


def test_it_can_be_asked_for_a_node(run: Run) -> None:
    made = json.dumps(workload("apps/v1", "Deployment", replicas=1, template=TEMPLATE))
    outcome = run("place", "w-0", "--state", "-", stdin=cluster() + made)
    assert outcome.status == 0, outcome.err
    assert "n1" in outcome.out
