"""Gangs without PodGroup on the real API server, with the stock kube-scheduler and kube-controller-manager."""

import json
from typing import Any

import pytest

from core import names
from hack.controlplane import wait_for
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.guarded import annotate
from tests.apiserver.manifests import JOB_OUT_OF_REACH, card_pod, queue
from tests.apiserver.watching import Watch, within


@pytest.fixture
def card(cluster: Cluster) -> str:
    """A card that one node has eight of, and no other test knows."""
    return cluster.add_card()


def in_gang(thing: Object, name: str, size: int | str, **metadata: Any) -> Object:
    """The pod, or template, as a member."""
    said = {names.GANG_NAME_ANNOTATION: name, names.GANG_SIZE_ANNOTATION: str(size)}
    old = thing["metadata"]
    return {**thing, "metadata": {**old, **metadata, "annotations": {**old["annotations"], **said}}}


def members(owner: str, card: str, in_queue: str, count: int, size: int = 4) -> list[Object]:
    """The pods of one owner, as its controller makes them of one template."""
    owners = [{**JOB_OUT_OF_REACH, "name": owner, "uid": owner}]
    pods = (card_pod(f"{owner}-{number}", card, in_queue) for number in range(count))
    return [in_gang(pod, "train", size, ownerReferences=owners) for pod in pods]


def made_by_job(cluster: Cluster, name: str, phase: str = "") -> set[str]:
    """The names of the pods of a Job, those in a phase where one is named."""
    return {
        pod
        for pod, stored in cluster.pods().items()
        if stored["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") == name
        and phase in ("", stored["status"].get("phase"))
    }


def indexed_job(name: str, card: str, in_queue: str, count: int, size: int) -> Object:
    """A real Job, of whose pods the gang is made."""
    template = in_gang(card_pod(name, card, in_queue, restartPolicy="Never"), name, size)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "template": {
                "metadata": {"annotations": template["metadata"]["annotations"]},
                "spec": template["spec"],
            },
        },
    }


def test_an_indexed_job_waits_whole_on_three_cards_and_runs_whole_on_four(
    cluster: Cluster, card: str
) -> None:
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 3})))
    cluster.create(indexed_job("train", card, name, count=4, size=4))
    wait_for("its pods are made", lambda: len(made_by_job(cluster, "train")) == 4)
    first = min(made_by_job(cluster, "train"))
    said = cluster.wait_said(first, "InsufficientScalarQuota")
    assert f"gang {cluster.namespace}/train needs 4 more members at once, 3 fit" in said
    assert cluster.gated() == made_by_job(cluster, "train")
    cluster.set_quota(path, json.dumps({card: 4}))
    wait_for("all four run", lambda: len(made_by_job(cluster, "train", "Running")) == 4)
    assert {pod["metadata"]["annotations"][names.GANG_ANNOTATION] for pod in cluster.pods().values()} == {"4"}
    cluster.finish(*made_by_job(cluster, "train"))
    wait_for("all four end well", lambda: len(made_by_job(cluster, "train", "Succeeded")) == 4)


def test_two_jobs_of_one_template_are_two_gangs_and_never_share_a_quota_of_six(
    cluster: Cluster, card: str
) -> None:
    """Their pods come in turns; neither ever holds a part of what it needs."""
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 6})))
    jobs = [members(owner, card, name, 4) for owner in ("one", "two")]
    with Watch(cluster.plane, cluster.path(), within({card: 6})) as watch:
        cluster.create(*(pod for pair in zip(*jobs, strict=True) for pod in pair))
        wait_for("one of them runs whole", lambda: len(cluster.running()) == 4)
        running = cluster.running()
        assert len({pod.partition("-")[0] for pod in running}) == 1
        waiting = set(cluster.pods()) - running
        cluster.wait_said(min(waiting), "InsufficientScalarQuota")
        assert cluster.gated() == waiting
        watch.catch_up()
    assert watch.complaints == []
    cluster.set_quota(path, json.dumps({card: 8}))
    cluster.wait_running(*running, *waiting)


def test_a_late_member_is_waited_for_and_extra_ones_follow(cluster: Cluster, card: str) -> None:
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 8})))
    *others, last, extra = members("late", card, name, 5)
    cluster.create(*others)
    said = cluster.wait_said("late-0", "GangIncomplete")
    assert "needs 4 more members at once, with only 3 ready" in said
    cluster.create(last)
    cluster.wait_running("late-0", "late-1", "late-2", "late-3")
    cluster.create(extra)
    cluster.wait_running(*(f"late-{number}" for number in range(5)))


def test_a_leader_and_its_workers_start_together_and_each_replica_by_itself(
    cluster: Cluster, card: str
) -> None:
    """As LeaderWorkerSet makes them: leaders under one StatefulSet, the workers of each under another, one label for a group."""
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 4})))

    def replica(number: int, workers: int) -> list[Object]:
        label = {names.LEADER_WORKER_GROUP_LABEL: f"key-{number}"}
        pods = [f"lws-{number}", *(f"lws-{number}-{worker + 1}" for worker in range(workers))]
        return [
            in_gang(
                card_pod(pod, card, name),
                "lws",
                3,
                labels=label,
                ownerReferences=[
                    {**JOB_OUT_OF_REACH, "uid": "leaders" if pod == pods[0] else f"lws-{number}"}
                ],
            )
            for pod in pods
        ]

    cluster.create(*replica(0, workers=1), *replica(1, workers=1))
    cluster.wait_said("lws-0", "GangIncomplete")
    cluster.wait_said("lws-1-1", "GangIncomplete")
    cluster.create(replica(1, workers=2)[-1])
    cluster.wait_running("lws-1", "lws-1-1", "lws-1-2")
    cluster.wait_said("lws-0", "GangIncomplete")


def test_a_size_that_is_none_is_refused_and_nobody_changes_one_that_is_stored(
    cluster: Cluster, card: str
) -> None:
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 3})))
    answer = cluster.try_create(in_gang(card_pod("odd", card, name), "g", "+3"))
    assert answer.status in (400, 403, 422), answer.body
    assert f"metadata.annotations[{names.GANG_SIZE_ANNOTATION}]" in answer.body["message"]
    bad = indexed_job("bad", card, name, count=2, size=0)
    answer = cluster.try_create(bad)
    assert f"spec.template.metadata.annotations[{names.GANG_SIZE_ANNOTATION}]" in answer.body["message"]
    cluster.create(in_gang(card_pod("m", card, name), "g", 4))
    for change in ({names.GANG_SIZE_ANNOTATION: "1"}, {names.GANG_NAME_ANNOTATION: None}):
        refused = annotate(cluster.api, cluster.path("m"), **change)
        assert refused.status in (403, 422), refused.body
        assert next(iter(change)) in refused.body["message"]
