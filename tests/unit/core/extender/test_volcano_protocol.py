"""Volcano's extender plugin: recorded requests, the state of the session in them, and everything that may be null."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from core import names
from core.extender.shapes import ShapeError
from core.steps import finish
from tests.builders.objects import GPU, a_node, a_pod
from tests.unit.core.crossquota.ruling import gpu_node, ruled
from tests.unit.core.extender.asking import (
    ALLOCATED,
    BINDING,
    BOUND,
    FAILED,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    cluster,
    cpu_pod,
    predicated,
    recorded,
    resreq,
    scored,
    session_node,
    task,
)

TIGHT = ruled(quotaResources=["cpu", "memory"], quota={"cpu": 4, "memory": "8Gi"})
NODE = gpu_node("gpu").build()
PASS = {"status": "", "code": 0}
MEBI = 2**20


def asking(cpu: float = 2000, memory: float = 1024 * MEBI, **scalars: float) -> dict[str, Any]:
    return task(cpu_pod("asking"), amounts=resreq(cpu, memory, **scalars))


def on_node(name: str, status: int, cpu: float = 3000) -> dict[str, Any]:
    return task(cpu_pod(name), status=status, amounts=resreq(cpu, 0, pods=1))


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        (PENDING, False),
        (ALLOCATED, True),
        (PIPELINED, False),
        (BINDING, True),
        (BOUND, True),
        (RUNNING, True),
        (RELEASING, False),
        (SUCCEEDED, False),
        (FAILED, False),
        (UNKNOWN, False),
    ],
)
def test_what_the_session_has_allocated_counts(status: int, counts: bool) -> None:
    answer = predicated(asking(), session_node(NODE, on_node("other", status)), cluster(settings=TIGHT))
    full = {"status": "cpu quota exceeded: required 2, used 3, quota 4", "code": 2}
    assert answer == (full if counts else PASS)


def test_the_caches_do_not_count() -> None:
    """The session knows better: a pod that ended a moment ago, or one that was only just allocated."""
    stale = cpu_pod("gone", cpu=4).bound_to("gpu").view()
    asked = cluster([gpu_node("gpu").view()], [stale], TIGHT)
    assert predicated(asking(), session_node(NODE), asked) == PASS
    assert predicated(asking(), session_node(NODE, on_node("new", ALLOCATED)), asked)["code"] == 2


def test_the_task_itself_does_not_count() -> None:
    itself = {**asking(cpu=3000), "Status": RUNNING}
    assert predicated(asking(cpu=3000), session_node(NODE, itself), cluster(settings=TIGHT)) == PASS


def test_a_request_beyond_the_whole_quota_is_unresolvable() -> None:
    answer = predicated(asking(cpu=4001), session_node(NODE), cluster(settings=TIGHT))
    assert answer == {"status": "cpu quota exceeded: required 4001m, used 0, quota 4", "code": 3}


@pytest.mark.parametrize(
    ("amounts", "code"),
    [
        (resreq(4000), 0),
        (resreq(4000.0), 0),
        (resreq(4000.0000001), 3),
        (resreq(0, 8 * 1024 * MEBI), 0),
        (resreq(0, 8 * 1024 * MEBI + 1), 3),
        (resreq(0, 8.0 * 1024 * MEBI), 0),
        ({**resreq(9000), "ScalarResources": {GPU: 1000}}, 0),
        ({**resreq(9000), "ScalarResources": {GPU: 0}}, 3),
        ({"MilliCPU": None, "Memory": None, "ScalarResources": None}, 0),
        ({}, 0),
    ],
    ids=[
        "whole numbers",
        "floats",
        "a little more",
        "bytes",
        "one byte more",
        "bytes as a float",
        "a GPU pod",
        "no GPU after all",
        "nulls",
        "nothing",
    ],
)
def test_amounts_are_those_of_the_scheduler(amounts: Mapping[str, Any], code: int) -> None:
    answer = predicated(task(a_pod("asking"), amounts=amounts), session_node(NODE), cluster(settings=TIGHT))
    assert answer["code"] == code


def test_pods_are_counted_in_pieces() -> None:
    settings = ruled(quotaResources=["pods"], quota={"pods": 2})
    site = session_node(NODE, on_node("one", RUNNING))
    assert predicated(asking(pods=1), site, cluster(settings=settings)) == PASS
    site = session_node(NODE, on_node("one", RUNNING), on_node("two", ALLOCATED))
    assert predicated(asking(pods=1), site, cluster(settings=settings))["code"] == 2


@pytest.mark.parametrize("amounts", [None, "missing"])
def test_amounts_that_are_missing_are_counted_from_the_pod(amounts: Any) -> None:
    def without(raw: dict[str, Any]) -> dict[str, Any]:
        return {**raw, "Resreq": None} if amounts is None else {k: v for k, v in raw.items() if k != "Resreq"}

    pod = cpu_pod("asking", cpu=2, memory="1Gi")
    site = session_node(NODE, without(task(cpu_pod("other", cpu=3, memory="1Gi"), status=RUNNING)))
    answer = predicated(without(task(pod)), site, cluster(settings=TIGHT))
    assert answer["status"] == "cpu quota exceeded: required 2, used 3, quota 4"


def test_selected_pods_alone_count_and_are_limited() -> None:
    settings = ruled(quota={"cpu": 4}, labelSelector={"matchLabels": {"tier": "batch"}})
    batch, web = (cpu_pod(name).label("tier", name) for name in ("batch", "web"))
    site = session_node(
        NODE,
        task(batch.uid("b2"), status=RUNNING, amounts=resreq(3000)),
        task(web.uid("w2"), status=RUNNING, amounts=resreq(3000)),
    )
    asked = cluster(settings=settings)
    answer = predicated(task(batch, amounts=resreq(2000)), site, asked)
    assert answer["status"] == "cpu quota exceeded: required 2, used 3, quota 4"
    assert predicated(task(web, amounts=resreq(2000)), site, asked) == PASS


def test_limits_are_those_of_the_node_in_the_request() -> None:
    asked = cluster([gpu_node("gpu").view()], settings=TIGHT)
    wide = gpu_node("gpu").annotation("volcano.sh/crossquota-cpu", "50").build()
    assert predicated(asking(cpu=40_000), session_node(wide), asked) == PASS
    assert predicated(asking(cpu=40_000), session_node(a_node("gpu").build()), asked) == PASS


def test_the_strategy_is_that_of_the_pod() -> None:
    least = cpu_pod("p").annotation(names.CROSSQUOTA_STRATEGY_ANNOTATION, "least-allocated")
    settings = ruled(quota={"cpu": 4})
    site = session_node(NODE)
    amounts = resreq(1000)
    asked = cluster(settings=settings)
    assert scored(task(cpu_pod("p"), amounts=amounts), site, asked=asked)["nodeScore"] == {"gpu": 2.5}
    assert scored(task(least, amounts=amounts), site, asked=asked)["nodeScore"] == {"gpu": 7.5}
    by_task = {
        **task(a_pod("p"), amounts=amounts),
        "Pod": None,
        "PodAnnotations": {names.CROSSQUOTA_STRATEGY_ANNOTATION: "least-allocated"},
    }
    assert scored(by_task, site, asked=asked)["nodeScore"] == {"gpu": 7.5}


@pytest.mark.parametrize(
    "site",
    [
        {"Name": "gpu", "Node": NODE, "Tasks": None},
        {"Name": "gpu", "Node": NODE},
        {"Name": "", "Node": NODE, "Tasks": {"a/b": None, "c/d": {}, "e/f": {"Status": 32, "Pod": None}}},
        {"Name": "gpu", "Node": None, "Tasks": {}},
        {"Name": "gpu", "NewField": {"x": [1]}, "Tasks": {}},
    ],
)
def test_nulls_and_unknown_fields_are_fine(site: dict[str, Any]) -> None:
    asked = cluster([gpu_node("gpu").view()], settings=TIGHT)
    assert predicated(asking(), site, asked) == PASS
    assert predicated(asking(cpu=5000), site, asked)["code"] == 3
    assert scored(asking(), site, asked=asked)["nodeScore"]["gpu"] > 0


def test_a_node_that_nobody_knows_is_refused_and_scores_nothing() -> None:
    answer = predicated(asking(), {"Name": "who", "Node": None}, cluster(settings=TIGHT))
    assert answer == {"status": "[NodeNotFound] node who is not known here", "code": 2}
    assert scored(asking(), {"Name": "who"}, None)["nodeScore"] == {"who": 0.0}


@pytest.mark.parametrize("nodes", [None, []])
def test_scores_are_never_null(nodes: Any) -> None:
    """The scheduler would not place the task at all, and give no reason."""
    from core.extender import volcano

    answer = volcano.prioritize_answer(finish(volcano.scored({"task": asking(), "nodes": nodes}, cluster())))
    assert answer == {"nodeScore": {}, "errorMessage": ""}


@pytest.mark.parametrize(
    "body", [None, [], {}, {"task": None, "node": {}}, {"task": {}, "node": None}, {"task": [], "node": {}}]
)
def test_what_is_no_request_is_refused(body: Any) -> None:
    from core.extender import volcano

    with pytest.raises(ShapeError):
        finish(volcano.predicate(body, cluster()))
    with pytest.raises(ShapeError):
        finish(volcano.scored({"task": {}, "nodes": "n"}, cluster()))


# -- mGPU in a session ----------------------------------------------------------------------------------------------


def share(name: str, core: int = 60) -> Any:
    return a_pod(name).mgpu("c", core=core, memory=512).only("c")


def share_task(name: str, status: int = PENDING, core: int = 60) -> dict[str, Any]:
    amounts = resreq(0, 0, **{names.MGPU_CORE: core * 1000.0, names.MGPU_MEMORY: 512_000.0})
    return task(share(name, core), status=status, amounts=amounts)


SHARES = a_node("m").mgpu(1, memory=1024)


@pytest.mark.parametrize(
    ("status", "fits"),
    [(PENDING, True), (ALLOCATED, False), (BOUND, False), (RELEASING, False), (SUCCEEDED, True)],
)
def test_cards_that_the_session_has_given_away_are_taken(status: int, fits: bool) -> None:
    """Of a task that is only allocated nobody has written down the cards yet; a terminating one still runs."""
    site = session_node(SHARES.build(), share_task("other", status))
    answer = predicated(share_task("asking"), site, cluster([SHARES.view()]))
    assert (answer["code"] == 0) is fits
    assert answer["status"].startswith("" if fits else "[MgpuNoRoom] ")


def test_a_bound_pod_is_on_the_cards_that_are_known_for_it() -> None:
    """The scheduler's own copy may be older than the record."""
    node = a_node("m").mgpu(2, memory=1024)
    bound = [
        share(name, core).bound_to("m").annotation(names.GPU_INDEX_PREFIX + "c", "1").view()
        for name, core in (("a", 30), ("b", 70))
    ]
    site = session_node(node.build(), share_task("a", RUNNING, 30), share_task("b", RUNNING, 70))
    whole = task(a_pod("w").mgpu("c", core=100).only("c"))
    assert predicated(whole, site, cluster([node.view()], bound)) == PASS


# -- as recorded ----------------------------------------------------------------------------------------------------


def test_a_recorded_predicate_is_answered() -> None:
    """An mGPU pod that asks for one core and 1Gi, on a node where a CPU pod uses four cores."""
    body = recorded("volcano-predicate")
    assert predicated(body["task"], body["node"]) == PASS
    small = ruled(quota={"cpu": "4500m"})
    answer = predicated(body["task"], body["node"], cluster(settings=small))
    assert answer == {"status": "cpu quota exceeded: required 1, used 4, quota 4500m", "code": 2}
    shares_too = ruled(gpuResourceNames=["nvidia.com/gpu", "mgpu-core"], quota={"cpu": "1"})
    assert predicated(body["task"], body["node"], cluster(settings=shares_too)) == PASS


def test_a_recorded_prioritize_is_answered() -> None:
    body = recorded("volcano-prioritize")
    answer = scored(body["task"], *body["nodes"], asked=cluster(settings=ruled(quota={"cpu": 32})))
    names_sent = {entry["Name"] for entry in body["nodes"]}
    assert answer["nodeScore"].keys() == names_sent
    assert answer["errorMessage"] == ""
    assert all(score > 0 for score in answer["nodeScore"].values())


def paths(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The path of every member and item."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (*path, key)
        yield from paths(inner, (*path, key))


@pytest.mark.parametrize("name", ["volcano-predicate", "volcano-prioritize"])
def test_any_one_field_of_a_recorded_request_may_be_null(name: str) -> None:
    """Answered, or refused as no request: never anything else."""
    body = recorded(name)
    asked = cluster(settings=TIGHT)
    for path in paths(body):
        if "managedFields" in path:
            continue
        broken = copy.deepcopy(body)
        target = broken
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = None
        try:
            if "node" in body:
                assert predicated(broken["task"], broken["node"], asked)["code"] in {0, 2, 3}
            else:
                assert None not in scored(broken["task"], *(broken["nodes"] or ()), asked=asked)["nodeScore"]
        except ShapeError:
            assert path in {("task",), ("node",)}
