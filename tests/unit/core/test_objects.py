"""Projections keep what decisions need, count like kubectl, and take any garbage for absent."""

from dataclasses import replace
from typing import Any

import pytest

from core import names
from core.objects import group, job, namespace, node, pod, queue, raw
from core.objects.owner import Owner
from core.objects.pod import ContainerShare
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

GPU = "nvidia.com/gpu"
DAY = "2024-01-01"
MINUTE = 60
LIFTED = (
    a_pod()
    .created(f"{DAY}T00:00:00Z")
    .written_by("kubectl", f"{DAY}T00:00:00Z")
    .written_by("cardquota", f"{DAY}T00:01:05Z")
    .written_by("kube-scheduler", f"{DAY}T00:01:09Z")
)
ONCE_GATED = (
    a_pod()
    .created(f"{DAY}T00:01:00Z")
    .label(names.MANAGED_LABEL, "true")
    .written_by("kubectl", f"{DAY}T00:01:00Z")
    .written_by("kube-scheduler", f"{DAY}T00:01:07Z")
)


class TestPod:
    def test_identity_and_defaults(self) -> None:
        bare = pod.project({"metadata": {"name": "p"}})
        assert (bare.key, bare.scheduler_name, bare.priority) == ("default/p", "default-scheduler", 0)
        assert not any((bare.asks, bare.gated, bare.bound, bare.terminal, bare.deleting))

    def test_what_is_ours_is_seen(self) -> None:
        view = a_pod().card("A").in_queue("q").in_group("g").task("t").gated("other/gate").view()
        assert (view.card_name, view.group_name) == ("A", "g")
        assert view.gates == ("other/gate", names.GATE)
        assert view.gated

    def test_annotations_of_others_are_not_kept(self) -> None:
        kept = a_pod().annotation("example.com/big", "x" * 1000).assigned({"A": 1}).view().annotations
        assert kept == {names.ASSIGNED_ANNOTATION: '{"A": 1}'}

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_an_ended_pod_is_terminal(self, phase: str) -> None:
        assert a_pod().bound_to("n", phase=phase).view().terminal

    def test_affinity_is_kept_only_while_it_may_still_matter(self) -> None:
        waiting = a_pod().selects("zone", "a").needs_node("gpu", "x")
        assert waiting.view().node_selector == {"zone": "a"}
        assert "nodeAffinity" in waiting.view().affinity
        assert waiting.bound_to("n").view().affinity == {}

    def test_a_waiting_pod_that_preempts_nobody_has_nobody_displaced(self) -> None:
        waiting = a_pod().priority(5)
        assert (waiting.view().displaces_below, waiting.bound_to("n").view().displaces_below) == (5, 5)
        assert waiting.preempting_nobody().view().displaces_below == pod.LOWEST_PRIORITY
        assert waiting.put("spec", "preemptionPolicy", value="PreemptLowerPriority").view() == waiting.view()

    def test_only_the_controlling_owner_counts(self) -> None:
        view = a_pod().owned_by("ReplicaSet", "rs").view()
        assert view.owner == Owner("apps/v1", "ReplicaSet", "rs", "uid-rs")
        other = a_pod().put("metadata", "ownerReferences", value=[{"kind": "Node", "name": "n"}, "x"])
        assert other.view().owner is None

    @pytest.mark.parametrize(
        ("built", "deployment"),
        [
            (a_pod().of_deployment("web", "5f9c"), "web"),
            (a_pod().of_deployment("web-5f9c", "5f9c"), "web-5f9c"),
            (a_pod().owned_by("ReplicaSet", "web-5f9c"), ""),
            (a_pod().of_deployment("web", "5f9c").owned_by("ReplicaSet", "own"), ""),
            (a_pod().of_deployment("web", "5f9c").owned_by("StatefulSet", "web-5f9c"), ""),
            (a_pod().label("pod-template-hash", "5f9c"), ""),
        ],
    )
    def test_the_deployment_is_read_off_its_replica_set(self, built: PodBuilder, deployment: str) -> None:
        assert built.view().deployment == deployment

    @pytest.mark.parametrize(
        ("built", "released"),
        [
            (LIFTED, MINUTE + 5),
            (LIFTED.written_by("cardquota", f"{DAY}T00:02:00Z"), MINUTE + 60),
            (LIFTED.written_by("cardquota", "soon"), MINUTE + 5),
            (LIFTED.written_by("cardquota", f"{DAY}T08:02:00+08:00"), MINUTE + 60),
            (LIFTED.gated(), 0),
            (LIFTED.bound_to("n"), 0),
            (LIFTED.phase("Failed"), 0),
            (a_pod().created(f"{DAY}T00:01:00Z").written_by("kubectl", f"{DAY}T00:02:00Z"), MINUTE),
            (ONCE_GATED, MINUTE + 7),
            (ONCE_GATED.put("metadata", "managedFields", value=["x"]), MINUTE),
            (a_pod().put("metadata", "creationTimestamp", value=None), None),
        ],
        ids=[
            "by our lift",
            "by our last write",
            "by one that can be read",
            "in any time zone",
            "not at the gate",
            "not with a node",
            "not after its end",
            "never gated: by its creation",
            "lifted without a trace: by the last write",
            "lifted, no writers known: by its creation",
            "unknown",
        ],
    )
    def test_since_when_a_pod_waits_for_a_node_alone(self, built: PodBuilder, released: int | None) -> None:
        start = raw.timestamp(f"{DAY}T00:00:00Z")
        expected = 0 if not released else start + released * 10**6
        assert built.view().released == expected

    def test_claims_and_the_names_made_for_them(self) -> None:
        view = a_pod().claim("a", name="c1").claim("b", template="t").generated_claim("b", "c2").view()
        assert view.claims == (("a", "c1", ""), ("b", "", "t"))
        assert view.generated_claims == {"b": "c2"}
        assert view.asks

    def test_a_claim_that_the_scheduler_made_for_extended_resources_is_one_of_the_pod(self) -> None:
        made = {"resourceClaimName": "p-extended-x", "requestMappings": []}
        view = a_pod().put("status", "extendedResourceClaimStatus", value=made).view()
        assert (view.claims, view.asks) == ((("", "p-extended-x", ""),), True)

    def test_whether_there_are_annotations_is_known_even_where_none_is_kept(self) -> None:
        assert a_pod().annotation("example.com/note", "x").view().annotated
        assert not a_pod().view().annotated
        assert not a_pod().put("metadata", "annotations", value=None).view().annotated

    @pytest.mark.parametrize(
        ("statuses", "started"),
        [
            ({}, False),
            ({"containerStatuses": [{"state": {"waiting": {}}}]}, False),
            ({"containerStatuses": [{"state": {"running": {}}}]}, True),
            ({"initContainerStatuses": [{"state": {"terminated": {}}}]}, True),
            ({"containerStatuses": [{"started": True}]}, True),
        ],
    )
    def test_a_pod_has_started_once_any_container_ran(
        self, statuses: dict[str, Any], *, started: bool
    ) -> None:
        assert a_pod().put("status", value=statuses).view().started is started


class TestAggregation:
    @pytest.mark.parametrize(
        ("built", "limits"),
        [
            (a_pod().gpu(1).gpu(1, container="c2"), 2000),
            (a_pod().gpu(1).gpu(1, container="c2").init_container("i", limits={GPU: 4}), 4000),
            (a_pod().gpu(3).init_container("i", limits={GPU: 2}), 3000),
            (a_pod().gpu(1).init_container("s", limits={GPU: 1}, sidecar=True), 2000),
            (
                a_pod()
                .gpu(1)
                .init_container("s", limits={GPU: 1}, sidecar=True)
                .init_container("i", limits={GPU: 3}),
                4000,
            ),
            (
                a_pod()
                .gpu(1)
                .init_container("i", limits={GPU: 3})
                .init_container("s", limits={GPU: 1}, sidecar=True),
                3000,
            ),
            (a_pod().gpu("500m"), 500),
            (a_pod().gpu(0), 0),
        ],
        ids=[
            "sum",
            "init peak",
            "app above init",
            "sidecar",
            "sidecar then init",
            "init then sidecar",
            "m",
            "0",
        ],
    )
    def test_containers_add_up_against_the_peak_of_the_init_sequence(self, built: Any, limits: int) -> None:
        assert built.view().limits == {GPU: limits}
        assert built.view().requests == {GPU: limits}

    def test_an_explicit_request_wins_over_the_limit(self) -> None:
        view = a_pod().limit("cpu", 4).request("cpu", "1500m").view()
        assert (view.limits["cpu"], view.requests["cpu"]) == (4000, 1500)

    def test_overhead_raises_requests_but_makes_no_limit(self) -> None:
        view = a_pod().request("cpu", 1).put("spec", "overhead", value={"cpu": "250m"}).view()
        assert (view.requests, view.limits) == ({"cpu": 1250}, {})

    def test_an_unreadable_amount_counts_as_absent(self) -> None:
        assert a_pod().gpu("many").limit("cpu", 1).view().limits == {"cpu": 1000}


class TestShares:
    def test_amounts_are_whole_units_and_zero_is_not_absent(self) -> None:
        view = a_pod().mgpu("c1", core=30, memory="1Ki").mgpu("c2", core=0).view()
        assert view.shares == (ContainerShare(1, "c1", 30, 1024), ContainerShare(2, "c2", 0, None))
        assert view.asks_mgpu
        assert not view.share_in_init

    def test_shares_in_init_containers_are_only_noted(self) -> None:
        view = a_pod().init_container("i", limits={names.MGPU_CORE: 10}).view()
        assert (view.shares, view.share_in_init, view.asks_mgpu) == ((), True, True)


class TestOthers:
    def test_node(self) -> None:
        built = a_node("n").card("NVIDIA-H200", 8).annotation(names.CROSSQUOTA_PREFIX + "cpu", "4")
        view = built.annotation("other", "x").view()
        assert view.allocatable == {GPU: 8000}
        assert view.annotations == {names.CROSSQUOTA_PREFIX + "cpu": "4"}
        assert (view.ready, view.unschedulable) == (True, False)
        assert not a_node().not_ready().view().ready
        assert a_node().cordoned().view().unschedulable

    def test_a_node_without_conditions_counts_as_ready(self) -> None:
        assert node.project({"metadata": {"name": "n"}}).ready

    @pytest.mark.parametrize(
        ("state", "is_open"),
        [("Open", True), ("", True), ("Closed", False), ("Closing", False), ("Unknown", False)],
    )
    def test_a_queue_without_state_is_open(self, state: str, *, is_open: bool) -> None:
        assert a_queue().state(state).view().open is is_open

    def test_queue(self) -> None:
        built = a_queue("q").cards({"A": 1}).capability(cpu="4").guarantee(cpu=1).child_of("p").fifo()
        view = built.allocated({"A": "1"}).devices({"capability": {}}).priority(3).view()
        assert view.card_quota == '{"A": 1}'
        assert (view.capability, view.guarantee, view.has_capability) == ({"cpu": 4000}, {"cpu": 1000}, True)
        assert (view.parent, view.fifo, view.priority, view.spec_dra) == ("p", True, 3, {"capability": {}})

    @pytest.mark.parametrize("dra", [[], "x", 3, {"capability": 1}])
    def test_a_device_quota_of_the_wrong_type_is_not_taken_for_none(self, dra: Any) -> None:
        assert a_queue().put("spec", "dra", value=dra).view().spec_dra == dra
        assert a_queue().put("spec", "dra", value=None).view().spec_dra is None

    @pytest.mark.parametrize(
        ("applied", "sent"),
        [
            ('{"spec": {"dra": {"capability": {}}}}', True),
            ('{"spec": {"dra": {}}}', False),
            ('{"spec": {"weight": 1}}', False),
            ('{"dra": {"a": 1}}', False),
            ('{"spec": {"dra": 1', False),
            ("[" * 100_000 + '"dra"', False),
        ],
    )
    def test_what_kubectl_last_sent_tells_of_a_dropped_device_quota(
        self, applied: str, *, sent: bool
    ) -> None:
        assert a_queue().annotation(names.LAST_APPLIED_ANNOTATION, applied).view().sent_dra is sent

    def test_usage_may_be_written_as_a_bare_number(self) -> None:
        built = a_queue().put("status", "allocated", value={"A": 2, "B": "3", "C": None, "D": {}, "E": True})
        assert built.view().allocated == {"A": "2", "B": "3"}

    def test_keys_of_usage_that_others_own_are_found(self) -> None:
        fields: dict[str, Any] = {"f:status": {"f:allocated": {"f:cpu": {}, ".": {}}}}
        managed = [{"manager": "volcano", "fieldsV1": fields}, {"manager": "cardquota", "fieldsV1": {}}, None]
        assert a_queue().put("metadata", "managedFields", value=managed).view().foreign_allocated == {"cpu"}

    def test_group_job_and_namespace(self) -> None:
        gang = (
            a_group("g").in_queue("q").min_member(4).min_task("w", 3).cards({"A": 4}).phase("Inqueue").view()
        )
        assert (gang.key, gang.queue, gang.min_member, gang.min_task_member) == ("ml/g", "q", 4, {"w": 3})
        assert (gang.card_request, gang.phase, gang.min_resources) == ('{"A": 4}', "Inqueue", None)
        assert a_group().min_resources(cpu=2).view().min_resources == {"cpu": 2000}
        training = a_job("j").in_queue("q").cards({"A": 1}).view()
        assert (training.key, training.queue, training.card_request) == ("ml/j", "q", '{"A": 1}')
        assert a_namespace("ns").in_queue("q").view().queue == "q"


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01T00:00:01Z", 10**6),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01T00:00:00.123456789Z", 123456),
        ("", 0),
        ("yesterday", 0),
        ("0001-01-01T00:00:00+14:00", -62135647200000000),
        (None, 0),
        (5, 0),
    ],
)
def test_timestamps_are_exact_integers(text: object, microseconds: int) -> None:
    assert raw.timestamp(text) == microseconds


@pytest.mark.parametrize(
    "project", [pod.project, node.project, queue.project, group.project, job.project, namespace.project]
)
@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"metadata": None, "spec": 3, "status": []},
        {
            "metadata": {
                "labels": {1: "x", None: 2},
                "annotations": {5: "x"},
                "managedFields": [{"fieldsV1": {"f:status": {"f:allocated": {7: {}}}}}],
            }
        },
        {"spec": {"containers": [None, 1, {"resources": {"limits": {3: 4}}}], "minTaskMember": {1: 1}}},
        {"spec": {"schedulingGates": [None, "x"], "resourceClaims": [None], "initContainers": {"a": 1}}},
        {"status": {"allocatable": {1: 1, "a": []}, "conditions": [None, {"type": "Ready"}]}},
    ],
)
def test_garbage_is_absent_also_with_keys_that_only_yaml_has(project: Any, garbage: dict[str, Any]) -> None:
    project(garbage)


def test_a_pod_without_its_gate_differs_in_nothing_else() -> None:
    gated = a_pod("p").gpu(1).card("A").gated("other.io/gate").needs_node("zone", "a").view()
    expected = replace(gated, gates=("other.io/gate",), annotations={"a": "b"})
    assert gated.ungated({"a": "b"}) == expected


@pytest.mark.parametrize("text", [None, "", "a, b"])
def test_an_annotation_that_says_nothing_is_not_one_that_is_missing(text: str | None) -> None:
    view = a_queue().used_by(text, text).view()
    assert (view.namespaces, view.namespace_selector) == (text, text)


def test_a_namespace_has_the_label_of_its_name_as_the_api_server_sees_to_it() -> None:
    """Also in a file that nobody has completed; and nobody gives it another one."""
    labelled = a_namespace("ml").label("env", "dev").label(names.NAMESPACE_NAME_LABEL, "other")
    assert labelled.view().labels == {"env": "dev", names.NAMESPACE_NAME_LABEL: "ml"}
    assert a_namespace("ml").view().labels == {names.NAMESPACE_NAME_LABEL: "ml"}
