"""Pods at creation: who gets the gate, and who is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core import names, reasons
from core.admission.dispatch import MUTATE_PODS
from core.admission.request import NOTHING_LISTED, Add, ClusterView
from core.dra.extended import DeviceClasses
from core.objects import DeviceClass
from tests.unit.core.admission.samples import (
    GATE,
    H200,
    a_card_pod,
    a_claim_pod,
    a_pod,
    a_view,
    an_mgpu_pod,
    answer,
    changed,
    codes,
    creation,
    patched,
    settings,
    update,
)

MIRROR = {names.MIRROR_POD_ANNOTATION: "hash"}
KUBELET = "system:node:n1"


@pytest.mark.parametrize(
    "pod",
    [
        a_card_pod(),
        a_card_pod("NVIDIA-H200|NVIDIA-H800"),
        an_mgpu_pod(),
        a_claim_pod(),
        a_card_pod(schedulerName="volcano"),
        a_card_pod(schedulerName="default-scheduler"),
        a_card_pod(schedulerName=""),
        a_card_pod(schedulerName=None),
        a_card_pod(nodeName=""),
        a_card_pod(initContainers=None, schedulingGates=None),
    ],
)
def test_a_pod_that_asks_gets_gate_and_label(pod: dict[str, Any]) -> None:
    decision = answer(creation(pod))
    assert decision.allowed, decision.denial
    result = patched(pod, decision.patch)
    assert result["spec"]["schedulingGates"] == [GATE]
    assert result["metadata"]["labels"] == {names.MANAGED_LABEL: "true"}
    assert answer(creation(result)).patch == ()


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod({names.CARD_NAME_ANNOTATION: ""}, limits={"nvidia.com/gpu": "1"}),
        a_pod({names.MGPU_MULTIPLE_ANNOTATION: "2"}),
        a_pod({names.CARD_REQUEST_ANNOTATION: '{"A": 1}'}),
        a_pod(limits={"vke.volcengine.com/mgpu": "1"}),
        a_card_pod(schedulerName="my-scheduler"),
        a_claim_pod(nodeName="n1"),
        a_card_pod(annotations=MIRROR, nodeName="n1"),
        a_card_pod(annotations=MIRROR),
        an_mgpu_pod(annotations=MIRROR, nodeName="n1"),
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": None},
        {"kind": "Pod", "apiVersion": "v1", "metadata": None, "spec": {"containers": None}},
    ],
)
def test_a_pod_that_asks_for_nothing_or_cannot_be_gated_stays_as_it_is(pod: dict[str, Any]) -> None:
    """As a kubelet makes it, who alone makes images of static pods."""
    decision = answer(creation(pod, KUBELET))
    assert decision.allowed, decision.denial
    assert decision.patch == ()


def test_a_request_without_limit_and_an_init_container_ask_too() -> None:
    """The API server has not validated the object when the webhook sees it; the gate must not depend on that."""
    requesting = a_pod(containers=[{"name": "c", "resources": {"requests": {names.MGPU_CORE: 1}}}])
    init = a_pod(initContainers=[{"name": "i", "resources": {"limits": {names.MGPU_MEMORY: "1"}}}])
    for pod in (requesting, init):
        assert codes(answer(creation(pod)))
        mutate = answer(creation(pod), settings=settings(features={"mgpu": False}))
        assert mutate.allowed
        assert mutate.patch == ()


def test_gates_and_labels_of_others_are_kept() -> None:
    pod = a_card_pod(
        schedulingGates=[{"name": "example.com/first"}], labels={"app": "x", names.MANAGED_LABEL: "no"}
    )
    result = patched(pod, answer(creation(pod)).patch)
    assert result["spec"]["schedulingGates"] == [{"name": "example.com/first"}, GATE]
    assert result["metadata"]["labels"] == {"app": "x", names.MANAGED_LABEL: "true"}


def test_a_gate_that_is_there_is_not_put_again() -> None:
    pod = a_card_pod(schedulingGates=[GATE, {"name": "example.com/later"}])
    assert answer(creation(pod)).patch == (Add(("metadata", "labels"), {names.MANAGED_LABEL: "true"}),)


def test_empty_lists_and_maps_are_appended_to() -> None:
    pod = a_card_pod(schedulingGates=[], labels={})
    assert answer(creation(pod)).patch == (
        Add(("spec", "schedulingGates", "-"), GATE),
        Add(("metadata", "labels", names.MANAGED_LABEL), "true"),
    )


@pytest.mark.parametrize(
    ("pod", "feature"), [(a_card_pod(), "cards"), (an_mgpu_pod(), "mgpu"), (a_claim_pod(), "dra")]
)
def test_a_feature_that_is_off_gates_and_judges_nothing(pod: dict[str, Any], feature: str) -> None:
    decision = answer(creation(pod), settings=settings(features={feature: False}))
    assert decision.allowed
    assert decision.patch == ()
    assert answer(creation(pod), settings=settings(features={"gates": False})).patch == ()


def test_scheduler_names_are_a_setting() -> None:
    only_mine = settings(schedulerNames=["mine"])
    assert answer(creation(a_card_pod()), settings=only_mine).patch == ()
    assert answer(creation(a_card_pod(schedulerName="mine")), settings=only_mine).patch


@pytest.mark.parametrize("pod", [a_card_pod(nodeName="n1"), an_mgpu_pod(nodeName="n1")])
def test_a_card_or_mgpu_pod_with_a_node_is_refused_once(pod: dict[str, Any]) -> None:
    decision = answer(creation(pod))
    assert codes(decision) == [reasons.NODE_NAME_PRESET]
    assert decision.denial is not None
    assert (decision.denial.status, decision.denial.reason) == (403, "Forbidden")
    assert "nodeName" in decision.denial.message
    assert decision.patch == ()


def test_a_pod_that_asks_for_cards_and_mgpu_hears_of_its_node_once() -> None:
    pod = a_pod(
        {names.CARD_NAME_ANNOTATION: H200},
        limits={"nvidia.com/gpu": "1", names.MGPU_CORE: "50", names.MGPU_MEMORY: "1024"},
        nodeName="n1",
    )
    assert codes(answer(creation(pod))) == [reasons.NODE_NAME_PRESET]
    pod["spec"]["schedulingGates"] = [{"name": names.GATE}]
    other = changed(pod, "metadata", annotations={names.CARD_NAME_ANNOTATION: "NVIDIA-H100"})
    assert codes(answer(update(pod, other))) == [reasons.NODE_NAME_PRESET]


@pytest.mark.parametrize(
    "key",
    [
        names.ASSIGNED_ANNOTATION,
        "cardquota.io/anything",
        names.ASSUMED_ANNOTATION,
        f"{names.GPU_INDEX_PREFIX}main",
        "vke.volcengine.com/gpu-index-",
    ],
)
@pytest.mark.parametrize("base", [a_pod, a_card_pod, an_mgpu_pod, a_claim_pod])
@pytest.mark.parametrize(
    "username", ["jane", "system:serviceaccount:cardquota-system:cardquota-controller", ""]
)
def test_ready_made_records_are_refused_whoever_brings_them(base: Any, key: str, username: str) -> None:
    pod = base()
    pod["metadata"]["annotations"][key] = "0"
    decision = answer(creation(pod, username))
    assert codes(decision) == [reasons.RECORD_PROTECTED]
    assert decision.denial is not None
    assert decision.denial.status == 403
    assert key in decision.denial.message


def test_records_are_protected_while_every_feature_is_off() -> None:
    off = settings(features={"cards": False, "mgpu": False, "dra": False})
    pod = a_pod({names.ASSUMED_ANNOTATION: "true"})
    assert codes(answer(creation(pod), settings=off)) == [reasons.RECORD_PROTECTED]


def test_all_that_is_wrong_is_said_at_once() -> None:
    pod = a_pod(
        {names.CARD_NAME_ANNOTATION: "A|", names.ASSUMED_ANNOTATION: "true"},
        limits={names.MGPU_CORE: "101", names.MGPU_MEMORY: "0"},
    )
    found = codes(answer(creation(pod)))
    assert {reasons.CARD_NAME_MALFORMED, reasons.RECORD_PROTECTED} <= set(found)
    assert any(code.startswith("Mgpu") for code in found)


def test_mgpu_rules_are_for_schedulers_of_ours() -> None:
    """Another scheduler may give these resources a meaning of its own."""
    pod = a_pod(limits={names.MGPU_CORE: "101"})
    assert codes(answer(creation(pod)))
    pod["spec"]["schedulerName"] = "other"
    assert answer(creation(pod)).allowed


def test_without_nodes_listed_what_needs_them_is_left_out() -> None:
    """A known card without its resource is refused only by who knows the card."""
    pod = a_pod({names.CARD_NAME_ANNOTATION: H200})
    assert codes(answer(creation(pod))) == [reasons.CARD_RESOURCE_MISSING]
    decision = answer(creation(pod), NOTHING_LISTED)
    assert decision.allowed
    assert decision.warnings == ()
    assert decision.patch


def test_an_unknown_card_is_admitted_gated_and_warned_about() -> None:
    decision = answer(creation(a_card_pod("NVIDIA-H2OO")))
    assert decision.allowed
    assert decision.patch
    assert "NVIDIA-H2OO" in decision.warnings[0]


def test_mutation_alone_never_denies() -> None:
    """The mutating configuration asks at its own path; what is wrong is said by the validating one."""
    from core.admission.dispatch import PATHS, review
    from core.settings import Settings

    pod = a_card_pod("A|")
    decision = review(creation(pod), NOTHING_LISTED, Settings(), rules=PATHS[MUTATE_PODS])
    assert decision.allowed
    assert decision.patch


def test_dry_run_and_generated_names_change_nothing() -> None:
    from tests.unit.core.admission.samples import with_fields

    request = creation(a_card_pod())
    assert answer(with_fields(request, dry_run=True)) == answer(request)
    assert answer(with_fields(request, name="")).patch == answer(request).patch


def test_a_mebibyte_of_annotations_is_judged() -> None:
    pod = a_card_pod(annotations={f"example.com/{number}": "x" * 1000 for number in range(1050)})
    assert patched(pod, answer(creation(pod)).patch)["spec"]["schedulingGates"] == [GATE]


class TestTheCardNameOfAWaitingPod:
    """It may change, and go; but then the pod must be as good as a new one of that kind."""

    def test_under_deny_it_cannot_be_taken_away_from_cards(self) -> None:
        waiting = a_card_pod(gated=True)
        without = changed(waiting, "metadata", annotations=None)
        deny = settings(cards={"podsWithoutCardName": "deny"})
        assert codes(answer(update(waiting, without), settings=deny)) == [reasons.CARD_NAME_MISSING]
        assert answer(update(waiting, without)).allowed
        assert answer(update(waiting, without)).warnings


def test_an_mgpu_pod_with_a_node_is_refused_whatever_its_scheduler_is_called() -> None:
    """No scheduler and no bind will ever look at it."""
    pod = an_mgpu_pod(schedulerName="nobody", nodeName="n1")
    assert codes(answer(creation(pod))) == [reasons.NODE_NAME_PRESET]
    assert answer(creation(an_mgpu_pod(schedulerName="nobody"))).allowed


@pytest.mark.parametrize("pod", [a_card_pod, an_mgpu_pod])
def test_the_image_of_a_static_pod_has_its_node_if_a_kubelet_made_it(
    pod: Callable[..., dict[str, Any]],
) -> None:
    """From anybody else the annotation would be a way past the gate into any queue."""
    image = pod(nodeName="n1", annotations=MIRROR)
    assert answer(creation(image, KUBELET)).allowed
    assert codes(answer(creation(image))) == [reasons.NODE_NAME_PRESET]


class TestExtendedResources:
    """A DeviceClass may serve them; then the pod waits for its queue's devices as one with claims does."""

    GPU = a_pod(limits={"example.com/gpu": "2"})
    IMPLICIT = a_pod(limits={"deviceclass.resource.kubernetes.io/gpus": "1"})

    @staticmethod
    def view(*classes: DeviceClass) -> ClusterView:
        serving = DeviceClasses()
        for each in classes:
            serving.put(each)
        return replace(a_view(), serving=serving)

    @pytest.mark.parametrize(
        "pod", [GPU, IMPLICIT, changed(GPU, "spec", containers=[], initContainers=GPU["spec"]["containers"])]
    )
    def test_a_pod_that_a_class_serves_is_gated(self, pod: dict[str, Any]) -> None:
        view = self.view(DeviceClass("gpus", extended="example.com/gpu"))
        assert patched(pod, answer(creation(pod), view).patch)["spec"]["schedulingGates"] == [GATE]
        assert answer(creation(pod), view, settings(features={"dra": False})).patch == ()

    @pytest.mark.parametrize("pod", [GPU, IMPLICIT])
    def test_one_that_no_class_serves_is_not(self, pod: dict[str, Any]) -> None:
        assert answer(creation(pod), self.view()).patch == ()
        assert answer(creation(pod), self.view(DeviceClass("other", extended="example.com/npu"))).patch == ()

    @pytest.mark.parametrize("pod", [GPU, IMPLICIT])
    def test_while_the_classes_are_not_known_the_controller_decides(self, pod: dict[str, Any]) -> None:
        assert answer(creation(pod), replace(a_view(), serving=None)).patch

    @pytest.mark.parametrize(
        "limits",
        [
            {"example.com/gpu": "0"},
            {"kubernetes.io/batch-cpu": "1"},
            {"cpu": "1"},
            {"vke.volcengine.com/x": "0"},
        ],
    )
    def test_what_no_class_can_serve_is_none(self, limits: dict[str, str]) -> None:
        assert answer(creation(a_pod(limits=limits)), replace(a_view(), serving=None)).patch == ()


class TestInferredCards:
    """`podsWithoutCardName: infer` gates who asks for a card without naming it; the controller knows the namespace's card."""

    INFER = settings(cards={"podsWithoutCardName": "infer"})
    GPU = a_pod(limits={"nvidia.com/gpu": "1"})

    def test_the_gate_holds_it(self) -> None:
        decision = answer(creation(self.GPU), settings=self.INFER)
        assert patched(self.GPU, decision.patch)["spec"]["schedulingGates"] == [GATE]
        assert decision.warnings == ()

    def test_what_is_no_card_is_left_alone_once_the_nodes_are_seen(self) -> None:
        pod = a_pod(limits={"rdma/hca": "1"})
        assert answer(creation(pod), settings=self.INFER).patch == ()
        blind = replace(a_view(), inventory=None)
        assert answer(creation(pod), blind, self.INFER).patch

    def test_one_that_has_its_node_already_is_refused(self) -> None:
        pod = changed(self.GPU, "spec", nodeName="n1")
        assert codes(answer(creation(pod), settings=self.INFER)) == [reasons.NODE_NAME_PRESET]

    def test_a_second_card_beside_the_named_one_cannot_be_inferred(self) -> None:
        pod = a_card_pod()
        pod["spec"]["containers"][0]["resources"]["limits"]["huawei.com/Ascend910B"] = "1"
        assert codes(answer(creation(pod), settings=self.INFER)) == [reasons.CARD_NAME_MISSING]
