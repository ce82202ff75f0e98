"""kube-scheduler's extender protocol: recorded requests, both forms, and everything that may be missing."""

from typing import Any

import pytest

from core.extender import kube
from core.extender.shapes import ShapeError
from core.mgpu.ask import NATIVE_BURST_SHARE
from core.objects import node
from tests.builders.objects import a_node
from tests.unit.core.crossquota.ruling import gpu_node, ruled
from tests.unit.core.extender.asking import (
    by_name,
    by_node,
    cluster,
    cpu_pod,
    filtered,
    prioritized,
    recorded,
)
from tests.unit.core.mgpu.cases import a_filling_pod

TIGHT = ruled(quotaResources=["cpu", "memory"], quota={"cpu": 4, "memory": "8Gi"})
FULL = cpu_pod("full", cpu=3, memory="1Gi").bound_to("full").view()
NODES = [gpu_node("free").view(), gpu_node("full").view(), a_node("cpu").view()]
ALL = ("free", "full", "cpu")


def test_a_node_without_room_is_left_out_and_says_why() -> None:
    answer = filtered(by_name(cpu_pod(cpu=2, memory="1Gi"), *ALL), cluster(NODES, [FULL], TIGHT))
    assert answer == {
        "Nodes": None,
        "NodeNames": ["free", "cpu"],
        "FailedNodes": {"full": "cpu quota exceeded: required 2, used 3, quota 4"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_preemption_is_not_tried_where_it_cannot_help() -> None:
    answer = filtered(by_name(cpu_pod(cpu=5, memory="1Gi"), *ALL), cluster(NODES, [FULL], TIGHT))
    assert answer["NodeNames"] == ["cpu"]
    assert answer["FailedNodes"] == {}
    assert answer["FailedAndUnresolvableNodes"] == {
        "free": "cpu quota exceeded: required 5, used 0, quota 4",
        "full": "cpu quota exceeded: required 5, used 3, quota 4",
    }


def test_preemption_is_tried_where_nobody_knows_whether_it_can_help() -> None:
    """The search for room on idle cards was cut short."""
    node = a_node("m1").mgpu(8, memory=16_384, policy=NATIVE_BURST_SHARE).view()
    answer = filtered(by_name(a_filling_pod("p", 8), "m1"), cluster([node]))
    assert answer["FailedAndUnresolvableNodes"] == {}
    assert "cut short" in answer["FailedNodes"]["m1"]


def test_when_no_node_fits_the_list_is_empty_and_not_missing() -> None:
    asked = cluster(NODES, [FULL], TIGHT)
    assert filtered(by_name(cpu_pod(cpu=2, memory="1Gi"), "full"), asked)["NodeNames"] == []
    answer = filtered(by_node(cpu_pod(cpu=2, memory="1Gi"), gpu_node("full").build()), asked)
    assert (answer["Nodes"], answer["NodeNames"]) == ({"items": []}, None)


def test_whole_nodes_go_back_as_they_came() -> None:
    nodes = [
        gpu_node(name).put("status", "images", value=[{"names": ["x"], "sizeBytes": 1}]).build()
        for name in ALL
    ]
    answer = filtered(by_node(cpu_pod(cpu=2, memory="1Gi"), *nodes), cluster(NODES, [FULL], TIGHT))
    assert answer["Nodes"] == {"items": [nodes[0], nodes[2]]}
    assert answer["NodeNames"] is None


def test_whole_nodes_count_as_they_were_sent_and_pods_as_they_are_known() -> None:
    asked = cluster(NODES, [FULL], TIGHT)
    sent = gpu_node("full").annotation("volcano.sh/crossquota-cpu", "6")
    pod = cpu_pod(cpu=2, memory="1Gi")
    assert filtered(by_name(pod, "full"), asked)["NodeNames"] == []
    assert filtered(by_node(pod, sent.build()), asked)["FailedNodes"] == {}
    sent = sent.annotation("volcano.sh/crossquota-cpu", "1")
    assert filtered(by_node(pod, sent.build()), asked)["FailedAndUnresolvableNodes"].keys() == {"full"}


def test_a_name_that_nobody_knows_is_no_node_for_a_pod_that_is_limited() -> None:
    asked = cluster(NODES)
    answer = filtered(by_name(cpu_pod(), "free", "who"), asked)
    assert answer["NodeNames"] == ["free"]
    assert answer["FailedNodes"] == {"who": "[NodeNotFound] node who is not known here"}
    assert prioritized(by_name(cpu_pod(), "who"), asked) == {"who": 0}
    assert filtered(by_name(cpu_pod().gpu(1), "free", "who"), asked)["NodeNames"] == ["free", "who"]


def test_no_name_is_answered_that_was_not_asked_for() -> None:
    body = by_name(cpu_pod(cpu=2), "cpu")
    answer = filtered(body, cluster(NODES, [FULL], TIGHT))
    named = [*answer["NodeNames"], *answer["FailedNodes"], *answer["FailedAndUnresolvableNodes"]]
    assert named == ["cpu"]


@pytest.mark.parametrize("keys", [("Pod", "NodeNames"), ("pod", "nodenames"), ("POD", "nodeNames")])
def test_keys_are_read_in_any_case(keys: tuple[str, str]) -> None:
    body = {keys[0]: cpu_pod(cpu=2, memory="1Gi").build(), keys[1]: ["full"]}
    assert filtered(body, cluster(NODES, [FULL], TIGHT))["FailedNodes"].keys() == {"full"}
    assert prioritized(body, cluster(NODES)) == {"full": 1}


class Unread(str):
    """A key that nobody is to put into small letters."""

    __slots__ = ()

    def lower(self) -> str:
        raise AssertionError("a key of megabytes takes as long as a thousand nodes")


def test_keys_that_are_too_long_to_be_meant_are_passed_over() -> None:
    long = Unread("é" * 100)
    pod = cpu_pod(cpu=2, memory="1Gi").build()
    request = kube.request_of({"Pod": pod, "Nodes": {"Items": [], long: 1}, "NodeNames": ["n"], long: 1})
    assert request == kube.Request(pod, (), ("n",))


@pytest.mark.parametrize("nodes", [{"items": []}, {"Items": []}, {"items": None}, {}, []])
def test_a_list_of_nodes_may_be_empty(nodes: Any) -> None:
    answer = filtered({"pod": cpu_pod().build(), "nodes": nodes}, cluster(NODES))
    assert answer["Nodes"] == {"items": []}


def test_both_forms_are_answered_where_both_were_sent() -> None:
    body = {**by_node(cpu_pod(), gpu_node("free").build()), "NodeNames": ["free"]}
    answer = filtered(body, cluster(NODES))
    assert (len(answer["Nodes"]["items"]), answer["NodeNames"]) == (1, ["free"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "JSON object"),
        (None, "JSON object"),
        ({}, "Pod"),
        ({"Pod": None, "NodeNames": ["n"]}, "Pod"),
        ({"Pod": {}}, "neither Nodes nor NodeNames"),
        ({"Pod": {}, "Nodes": None, "NodeNames": None}, "neither Nodes nor NodeNames"),
        ({"Pod": {}, "Nodes": "n"}, "Nodes"),
        ({"Pod": {}, "Nodes": {"items": [None]}}, "Nodes"),
        ({"Pod": {}, "NodeNames": "n"}, "NodeNames"),
        ({"Pod": {}, "NodeNames": [1]}, "NodeNames"),
    ],
)
def test_what_is_no_request_is_refused(body: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        kube.request_of(body)


def test_an_error_lets_no_node_through() -> None:
    assert kube.filter_error("later") == {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "later",
    }


RECORDED_NODES = [node.project(raw) for raw in recorded("kube-scheduler-filter")["Nodes"]["items"]]


@pytest.mark.parametrize("form", ["kube-scheduler", "kube-scheduler-nodecache"])
def test_recorded_requests_are_answered_in_their_form(form: str) -> None:
    """Pod asks for 4 cores and 8Gi; both nodes have 32 cores, 256Gi and GPUs."""
    body = recorded(f"{form}-filter")
    asked = cluster(RECORDED_NODES, settings=ruled(quotaResources=["cpu", "memory"]))
    answer = filtered(body, asked)
    assert answer["FailedNodes"] == answer["FailedAndUnresolvableNodes"] == {}
    assert answer["NodeNames"] == body["NodeNames"]
    assert (answer["Nodes"] or {"items": None})["items"] == (body["Nodes"] or {"items": None})["items"]
    scores = prioritized(recorded(f"{form}-prioritize"), asked)
    assert scores == {"n1": 1, "n2": 1}


def test_a_recorded_request_is_refused_by_a_small_quota() -> None:
    for form in ("kube-scheduler-filter", "kube-scheduler-nodecache-filter"):
        answer = filtered(recorded(form), cluster(RECORDED_NODES, settings=ruled(quota={"cpu": 3})))
        why = "cpu quota exceeded: required 4, used 0, quota 3"
        assert answer["FailedAndUnresolvableNodes"] == {"n1": why, "n2": why}
