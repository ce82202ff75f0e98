"""Whatever JSON a scheduler sends, it is answered or refused as no request; and both protocols come to one verdict."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.extender import enqueue, kube, volcano
from core.extender.shapes import ShapeError
from core.steps import finish
from tests.builders.objects import a_queue
from tests.unit.core.crossquota.ruling import gpu_node, ruled
from tests.unit.core.extender.asking import (
    RUNNING,
    books,
    by_name,
    by_node,
    cluster,
    cpu_pod,
    filtered,
    predicated,
    prioritized,
    scored,
    session_node,
    task,
)

KEYS = (
    *(
        "metadata",
        "name",
        "namespace",
        "uid",
        "labels",
        "annotations",
        "spec",
        "status",
        "nodeName",
        "containers",
    ),
    *(
        "resources",
        "requests",
        "limits",
        "allocatable",
        "cpu",
        "nvidia.com/gpu",
        "phase",
        "containerStatuses",
    ),
    *("UID", "Name", "Pod", "Node", "Tasks", "Status", "Resreq", "MilliCPU", "Memory", "ScalarResources"),
    *("PodGroup", "Queue", "ownerReferences", "allocatedResources", "vke.volcengine.com/mgpu-core"),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(KEYS),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=30,
)
SETTINGS = ruled(
    quotaResources=["cpu", "memory", "pods"],
    labelSelector={"matchExpressions": [{"key": "name", "operator": "Exists"}]},
)
ASKED = cluster([gpu_node("n").mgpu(2, memory=1024).view()], settings=SETTINGS)


@given(pod=JSON, node=JSON, names=JSON)
def test_kube_requests_are_answered_or_refused(pod: Any, node: Any, names: Any) -> None:
    for body in (
        {"Pod": pod, "Nodes": {"items": [node]}},
        {"Pod": pod, "NodeNames": names},
        {"Pod": {"metadata": pod, "spec": node, "status": names}, "NodeNames": ["n"]},
        {"Pod": {"spec": {"containers": [node]}}, "Nodes": {"items": [{"metadata": names, "status": pod}]}},
        pod,
    ):
        with suppress(ShapeError):
            assert filtered(body, ASKED)["Error"] == ""
            assert all(0 <= score <= 10 for score in prioritized(body, ASKED).values())


@given(one=JSON, other=JSON, tasks=st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_volcano_requests_are_answered_or_refused(one: Any, other: Any, tasks: Any) -> None:
    for asking, site in (
        (one, other),
        ({"Pod": one, "Resreq": other}, {"Name": "n", "Node": other, "Tasks": tasks}),
        (one, {"Name": "n", "Node": gpu_node("n").mgpu(1, memory=9).build(), "Tasks": tasks}),
    ):
        with suppress(ShapeError):
            assert predicated(asking, site, ASKED)["code"] in {
                volcano.SUCCESS,
                volcano.UNSCHEDULABLE,
                volcano.UNRESOLVABLE,
            }
            assert scored(asking, site, asked=ASKED)["errorMessage"] == ""


@given(job=JSON, group=JSON)
def test_votes_are_cast_or_refused(job: Any, group: Any) -> None:
    ledger = books(queues=[a_queue("name").view()], settings=SETTINGS)
    for body in (job, {"job": job}, {"job": {"PodGroup": group, "Queue": job}}, {"queue": group}):
        with suppress(ShapeError):
            assert finish(enqueue.vote(body, ledger, enqueue.Promises(), 0.0)).status in {-1, 0, 1}
        with suppress(ShapeError):
            assert enqueue.overused_answer(body, ledger) == {"overused": False}


@given(
    asked=st.integers(0, 5000),
    used=st.integers(0, 5000),
    limit=st.integers(1, 5000),
    memory=st.integers(0, 4),
)
def test_both_protocols_and_both_forms_come_to_one_verdict(
    asked: int, used: int, limit: int, memory: int
) -> None:
    settings = ruled(quota={"cpu": f"{limit}m"})
    node = gpu_node("n")
    there = cpu_pod("there", cpu=f"{used}m").bound_to("n")
    pod = cpu_pod("asking", cpu=f"{asked}m", memory=f"{memory}Gi")
    found = cluster([node.view()], [there.view()], settings)
    answers = [filtered(body, found) for body in (by_name(pod, "n"), by_node(pod, node.build()))]
    session = predicated(task(pod), session_node(node.build(), task(there, status=RUNNING)), found)
    texts = {
        next(iter([*answer["FailedNodes"].values(), *answer["FailedAndUnresolvableNodes"].values()]), "")
        for answer in answers
    }
    assert texts == {session["status"]}
    assert (session["code"] == 3) is (asked > limit)
    scores = [prioritized(body, found)["n"] for body in (by_name(pod, "n"), by_node(pod, node.build()))]
    exact = scored(task(pod), session_node(node.build(), task(there, status=RUNNING)), asked=found)[
        "nodeScore"
    ]["n"]
    assert scores == [int(exact + 0.5)] * 2


def test_a_request_may_name_a_node_twice() -> None:
    answer = filtered(by_name(cpu_pod(), "n", "n"), ASKED)
    assert answer["NodeNames"] == ["n", "n"]
    assert kube.request_of(by_name(cpu_pod(), "n", "n")).names == ("n", "n")
