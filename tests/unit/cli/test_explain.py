"""`cardquota explain`: what somebody reads whose pod waits, word for word where it is stable."""

import json
from typing import Any

import pytest
import yaml

from cli import dump
from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import CPU_POD, GATED, NODE, POD, QUEUE, SHARE_NODE, SHARE_POD

FULL = (
    NODE % ("n1", 8)
    + QUEUE % ("team", '{"NVIDIA-H200": 2}')
    + POD % ("one", "NVIDIA-H200", "team", "nodeName: n1")
    + POD % ("two", "NVIDIA-H200", "team", "nodeName: n1")
)
WAITING = (
    FULL + POD % ("first", "NVIDIA-H200", "team", GATED) + POD % ("second", "NVIDIA-H200", "team", GATED)
)
SECOND = """\
Pod default/second waits in queue team: InsufficientScalarQuota
  Queue <team> has insufficient <NVIDIA-H200> quota: requested <1000>, total would be <3000>, but capability
  is <2000>. In cards: asks for 1, 2 of 2 are in use; wait for cards to come back, or raise the quota.

Queue         team, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       1 NVIDIA-H200 (nvidia.com/gpu)
In line       2 of 2 (whoever fits goes)
              behind Pod default/first (1 NVIDIA-H200): InsufficientScalarQuota
Quota         NVIDIA-H200: asks for 1, 2 of 2 in use, 1 missing
Held by       default/one: 1 NVIDIA-H200, on n1
              default/two: 1 NVIDIA-H200, on n1
Cards         NVIDIA-H200: 6 of 8 are free, at most 6 of a node's 8 (n1)
May start     nobody can say: no end is to be seen that gave back NVIDIA-H200 in this queue, and it takes 5

What would help (each was tried, and lifts the pod; the smallest first):
  1. raise the quota of queue team for NVIDIA-H200 by 2 (2 -> 4)
       kubectl annotate queue team --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 4}'
  2. 2 pods ending: default/one, default/two
"""


def explained(run: Run, state: str, *target: str) -> dict[str, Any]:
    outcome = run("explain", *target, "--state", "-", "-o", "json", stdin=state)
    assert outcome.status == 0, outcome.err
    report: dict[str, Any] = json.loads(outcome.out)
    return report


def told(run: Run, state: str, *target: str) -> str:
    outcome = run("explain", *target, "--state", "-", stdin=state)
    assert outcome.status == 0, outcome.err
    return outcome.out


def helping(report: dict[str, Any]) -> list[list[str]]:
    """The actions of each remedy."""
    return [[step["action"] for step in remedy["steps"]] for remedy in report["help"]]


def test_who_waits_reads_what_for_behind_whom_who_holds_it_and_what_helps(run: Run) -> None:
    assert told(run, WAITING, "second") == SECOND


def test_the_json_says_the_same(run: Run) -> None:
    report = explained(run, WAITING, "default/second")
    assert (report["decision"], report["queue"], report["queueFrom"]) == ("hold", "team", "annotation")
    assert report["counted"] == {"NVIDIA-H200": "1"}
    assert report["position"]["number"] == 2
    assert [one["object"] for one in report["position"]["before"]] == ["Pod default/first"]
    assert report["quota"] == {"NVIDIA-H200": {"asked": "1", "used": "2", "limit": "2", "missing": "1"}}
    assert [one["pod"] for one in report["heldBy"]] == ["default/one", "default/two"]
    assert helping(report) == [["raise"], ["end"]]
    assert (report["help"][0]["steps"][0]["by"], report["help"][0]["steps"][0]["to"]) == ("2", "4")


def test_those_who_are_let_in_by_the_same_pass_count_as_in_use(run: Run) -> None:
    """Two of three new pods go; for the third the quota is short although nobody has it yet."""
    state = (
        NODE % ("n1", 8)
        + QUEUE % ("team", '{"NVIDIA-H200": 2}')
        + "".join(POD % (name, "NVIDIA-H200", "team", GATED) for name in ("a", "b", "c"))
    )
    report = explained(run, state, "c")
    assert report["quota"]["NVIDIA-H200"]["missing"] == "1"
    assert report["help"][0]["steps"][0]["text"].endswith("for NVIDIA-H200 by 1 (2 -> 3)")


@pytest.mark.parametrize(
    ("pod", "line"),
    [
        ("one", "Pod default/one has its quota and a node"),
        ("cpu", "Pod default/cpu holds nothing and waits for nothing of cardquota's"),
        ("free", "Pod default/free is let in by the next pass of the controller"),
        ("stuck", "Pod default/stuck has its quota and no node yet: it waits for its scheduler"),
    ],
)
def test_who_does_not_wait_is_told_so(run: Run, pod: str, line: str) -> None:
    state = (
        WAITING
        + CPU_POD % "cpu"
        + QUEUE % ("other", '{"NVIDIA-H200": 2}')
        + POD % ("free", "NVIDIA-H200", "other", GATED)
        + (POD % ("stuck", "NVIDIA-H200", "other", "")).replace("name: stuck", "name: stuck\n  uid: u1")
    )
    assert told(run, state, pod).splitlines()[0] == line


def test_what_the_scheduler_says_of_one_without_a_node_is_told(run: Run) -> None:
    why = "{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/4 nodes are available}"
    pod = POD % ("stuck", "NVIDIA-H200", "team", "")
    state = NODE % ("n1", 8) + pod.replace("---\n", f"status: {{phase: Pending, conditions: [{why}]}}\n---\n")
    assert "Scheduler     Unschedulable: 0/4 nodes are available" in told(run, state, "stuck")


def test_a_pod_that_volcanos_own_quota_keeps_is_told_so(run: Run) -> None:
    """The card quota has two, the capability one: one runs, the other holds quota and gets no node."""
    queue = QUEUE % ("team", '{"NVIDIA-H200": 2}')
    narrow = (
        f"{queue.rstrip().removesuffix('---').rstrip()}\nspec: {{capability: {{nvidia.com/gpu: 1}}}}\n---\n"
    )
    stuck = (POD % ("stuck", "NVIDIA-H200", "team", "")).replace("name: stuck", "name: stuck\n  uid: u1")
    runs = POD % ("one", "NVIDIA-H200", "team", "nodeName: n1")
    said = told(run, NODE % ("n1", 8) + narrow + runs + stuck, "stuck")
    assert "Capability    nvidia.com/gpu: pods of the queue hold 2, and its spec.capability allows 1;" in said
    assert "Capability" not in told(run, NODE % ("n1", 8) + narrow + stuck, "stuck")
    assert "Capability" not in told(run, NODE % ("n1", 8) + queue + runs + stuck, "stuck")
    warned = run("queues", "--state", "-", stdin=NODE % ("n1", 8) + narrow)
    assert warned.err.startswith("warning: queue team: spec.capability allows 1 of nvidia.com/gpu, and")
    assert run("queues", "--state", "-", stdin=NODE % ("n1", 8) + queue).err == ""


def test_a_card_that_no_node_has_gets_the_one_that_is_meant(run: Run) -> None:
    state = FULL.replace(": 2}", ": 3}") + POD % ("typo", "NVIDIA-H2OO", "team", GATED)
    report = explained(run, state, "typo")
    assert report["reason"] == "GetTaskRequestResourceFailed"
    assert helping(report) == [["card"]]
    assert "volcano.sh/card.name=NVIDIA-H200" in report["help"][0]["steps"][0]["text"]


def test_more_than_any_node_has_is_told_beside_the_quota(run: Run) -> None:
    huge = (POD % ("huge", "NVIDIA-H200", "team", GATED)).replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 12")
    assert "no node has 12 NVIDIA-H200: the largest has 8" in told(run, FULL + huge, "huge")
    assert "no node has" not in told(run, WAITING, "second")


def test_a_missing_queue_blames_nobody(run: Run) -> None:
    report = explained(run, FULL + POD % ("lost", "NVIDIA-H200", "nowhere", GATED), "lost")
    assert (report["reason"], report["heldBy"], report["quota"]) == ("QueueNotFound", [], {})
    assert helping(report) == [["create"]]


def test_a_queue_that_was_deleted_is_to_be_made_with_what_its_pods_use_and_more(run: Run) -> None:
    """Not with so little that it would have to be raised at once."""
    state = (
        NODE % ("n1", 8)
        + POD % ("one", "NVIDIA-H200", "team", "nodeName: n1")
        + POD % ("two", "NVIDIA-H200", "team", "nodeName: n1")
        + POD % ("late", "NVIDIA-H200", "team", GATED)
    )
    report = explained(run, state, "late")
    assert helping(report)[0] == ["create"]
    text = 'create queue team with the card quota {"NVIDIA-H200": 3}'
    assert report["help"][0]["steps"][0]["text"] == text


def test_shares_are_told_node_by_node_and_the_same_pods_once(run: Run) -> None:
    """Two cards, each half taken: a whole one is free once either pod ends."""
    bound = (SHARE_POD % ("half", 60, 4000)).replace(GATED, "nodeName: s1")
    state = SHARE_NODE % ("s1", 100, 8000, 100, 8000) + bound + SHARE_POD % ("more", 60, 4000)
    report = explained(run, state, "more")
    assert report["reason"] == "NoFreeCard"
    assert report["nodes"]["s1"]["fits"] is False
    assert [remedy["steps"][0]["pods"] for remedy in report["help"]] == [["default/half"]]


def workload(kind: str, name: str) -> str:
    api = "batch/v1" if kind == "Job" else "apps/v1"
    owner = f"ownerReferences: [{{apiVersion: {api}, kind: {kind}, name: {name}, uid: u, controller: true}}]"
    return "".join(
        (POD % (f"{name}-{n}", "NVIDIA-H200", "team", GATED)).replace("metadata:", f"metadata:\n  {owner}", 1)
        for n in range(3)
    )


@pytest.mark.parametrize(
    ("kind", "target"),
    [("Job", "job/w"), ("Job", "jobs.batch/default/w"), ("StatefulSet", "sts/w"), ("ReplicaSet", "RS/w")],
)
def test_of_a_workload_all_pods_are_counted_and_the_first_in_line_is_explained(
    run: Run, kind: str, target: str
) -> None:
    report = explained(
        run, NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 1}') + workload(kind, "w"), target
    )
    assert report["pods"] == {"lift": 1, "hold": 2}
    assert report["pod"] == "default/w-1"


def test_the_counts_of_a_workload_come_in_the_same_order_whichever_pod_is_first(run: Run) -> None:
    owner = "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: w, uid: u, controller: true}]"
    pods = [
        (POD % (name, "NVIDIA-H200", "team", more)).replace("metadata:", f"metadata:\n  {owner}", 1)
        for name, more in (("w-0", "nodeName: n1"), ("w-1", GATED))
    ]
    around = NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 1}')
    for stored in (pods, pods[::-1]):
        outcome = run("explain", "job/w", "--state", "-", stdin=around + "".join(stored))
        assert outcome.out.splitlines()[0] == "Job default/w: 1 with a node, 1 waiting"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nope"], "there is no Pod default/nope"),
        (["ml/one"], "there is no Pod ml/one; there is one in namespace default"),
        (["job/nope"], "there is no pod of Job default/nope"),
        (["pg/nope"], "there is no PodGroup default/nope"),
        (["boat/a/b"], "boat is no kind that can be explained; those that can: ClusterTrainingRuntime"),
        (["a/b/c/d"], "a/b/c/d is not [KIND/][NAMESPACE/]NAME"),
        (["pod/"], "pod/ is not [KIND/][NAMESPACE/]NAME"),
        ([""], "an empty name is not [KIND/][NAMESPACE/]NAME"),
        (["ml/one", "-n", "default"], "ml/one names another namespace than -n default"),
    ],
)
def test_what_is_not_there_is_wrong_input(run: Run, arguments: list[str], problem: str) -> None:
    outcome = run("explain", *arguments, "--state", "-", stdin=WAITING)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {problem}")


ENDED = """\
apiVersion: v1
kind: Pod
metadata:
  name: done-%d
  annotations: {volcano.sh/card.name: NVIDIA-H200, cardquota.io/queue: %s, cardquota.io/assigned: '{"NVIDIA-H200": 1}'}
spec:
  nodeName: n1
  containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]
status:
  phase: Succeeded
  containerStatuses: [{name: c, state: {terminated: {finishedAt: "2026-01-01T%02d:00:00Z"}}}]
---
"""


def test_when_it_may_start_is_a_range_with_its_basis(run: Run) -> None:
    """Every hour a card came back for half a day; two have to."""
    state = WAITING + "".join(ENDED % (hour, "team", hour) for hour in range(13))
    start = explained(run, state, "second")["start"]
    assert start["basis"] == {"ends": 12, "freed": "12", "seconds": 12 * 3600}
    assert start["needed"] == "2"
    assert 0 < start["earliestSeconds"] < 2 * 3600 < start["latestSeconds"] < 12 * 3600
    line = next(line for line in told(run, state, "second").splitlines() if line.startswith("May start"))
    assert line.startswith("May start     in ")
    assert " (2 NVIDIA-H200 have to come free; lately 12 ends gave back 12 in 12 h)" in " ".join(
        told(run, state, "second").split()
    )


@pytest.mark.parametrize(
    "state",
    [WAITING, WAITING + "".join(ENDED % (hour, "other", hour) for hour in range(13))],
    ids=["no ends", "ends in another queue"],
)
def test_without_history_no_start_is_told(run: Run, state: str) -> None:
    report = explained(run, state, "second")
    assert "start" not in report
    assert report["startUnknown"] == (
        "no end is to be seen that gave back NVIDIA-H200 in this queue, and it takes 5"
    )


def test_with_a_choice_it_starts_with_whichever_card_comes_first(run: Run) -> None:
    """Of one card ends are seen each hour; of the other none: it may come at any time."""
    both = '{"NVIDIA-H200": 2, "NVIDIA-A100": 0}'
    state = (
        FULL.replace('{"NVIDIA-H200": 2}', both)
        + POD % ("choosy", "NVIDIA-H200|NVIDIA-A100", "team", GATED)
        + "".join(ENDED % (hour, "team", hour) for hour in range(13))
    )
    report = explained(run, state, "choosy")
    assert (report["start"]["card"], report["start"]["needed"]) == ("NVIDIA-H200", "1")
    assert report["start"]["latestSeconds"] < 12 * 3600
    open_ended = state.replace(both, '{"NVIDIA-H200": 2, "NVIDIA-A100": 1}') + (
        POD % ("other", "NVIDIA-A100", "team", "nodeName: n1")
    )
    later = explained(run, open_ended, "choosy")["start"]
    assert report["start"]["earliestSeconds"] > 0
    assert (later["earliestSeconds"], later["latestSeconds"]) == (0, report["start"]["latestSeconds"])


def test_a_quota_that_is_too_small_gives_no_start(run: Run) -> None:
    state = FULL.replace('{"NVIDIA-H200": 2}', '{"NVIDIA-H200": 0}') + (
        POD % ("first", "NVIDIA-H200", "team", GATED)
    )
    report = explained(run, state, "first")
    assert report["startUnknown"] == "the quota is too small for it, however long it waits"


OLD = FULL + (POD % ("old", "NVIDIA-H200", "team", GATED)).replace(
    "metadata:\n", 'metadata:\n  creationTimestamp: "2026-01-01T00:00:00Z"\n'
)


def test_how_long_it_waits_is_told_by_when_the_cluster_was_read(run: Run) -> None:
    """Of a dump, in either notation, with what was appended to it."""
    objects = [json.loads(json.dumps(one, default=str)) for one in yaml.safe_load_all(OLD) if one is not None]
    dumped = json.dumps(dump.listed(objects, 1_767_225_600 + 3 * 3600))
    for state in (dumped, f"{dumped}\n---\n{NODE % ('n2', 8)}"):
        report = explained(run, state, "old")
        assert (report["since"], report["waitedSeconds"]) == ("2026-01-01T00:00:00Z", 3 * 3600)
        assert "Waits since   2026-01-01T00:00:00Z (3 h)\n" in told(run, state, "old")


def test_of_a_file_that_does_not_say_when_it_was_read_only_since_when(run: Run) -> None:
    """However young other objects are: nobody knows how much later it is read."""
    state = OLD + ENDED % (1, "other", 3)
    assert "waitedSeconds" not in explained(run, state, "old")
    assert "Waits since   2026-01-01T00:00:00Z\n" in told(run, state, "old")
    assert "since" not in explained(run, WAITING, "second")


def test_nobody_is_told_to_leave_the_line_for_his_own_sake(run: Run) -> None:
    """Of a gang at the head of a fifo queue the first member that waits keeps back the others."""
    queue = (QUEUE % ("team", '{"NVIDIA-H200": 2}')).replace(
        "metadata:", "spec: {dequeueStrategy: fifo}\nmetadata:", 1
    )
    group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {queue: team, minMember: 1}\n---\n"
    pods = "".join(
        (POD % (f"m{n}", "NVIDIA-H200", "team", GATED))
        .replace("annotations: {", "annotations: {scheduling.k8s.io/group-name: g, ")
        .replace("nvidia.com/gpu: 1", f"nvidia.com/gpu: {count}")
        for n, count in enumerate((1, 4, 1))
    )
    report = explained(run, NODE % ("n1", 8) + queue + group + pods, "m2")
    assert report["decision"] == "hold"
    assert report["help"], "there is a way"
    assert "leave" not in [action for actions in helping(report) for action in actions]


CHOICE = (
    NODE % ("n1", 8)
    + QUEUE % ("team", '{"NVIDIA-A100": 3}')
    + (POD % ("p", "NVIDIA-A100|NVIDIA-H200", "team", GATED)).replace("gpu: 1}", "gpu: 1, cpu: 500m}")
)


def test_of_a_choice_the_quota_of_the_card_that_is_free_is_raised(run: Run) -> None:
    """There is quota for a card that no node carries, and none for the one that is there."""
    report = explained(run, CHOICE, "p")
    assert report["reason"] == "NoFreeCard"
    assert [(step["action"], step["key"], step["to"]) for step in report["help"][0]["steps"]] == [
        ("raise", "NVIDIA-H200", "1")
    ]


def test_behind_each_amount_stands_what_it_is_of(run: Run) -> None:
    """The resource behind its card; a card that no node carries without figures."""
    text = told(run, CHOICE, "p")
    assert "Counted       1 NVIDIA-A100|NVIDIA-H200 (nvidia.com/gpu), 0.5 cpu\n" in text
    assert "Cards         NVIDIA-A100: no node carries any\n" in text
