"""Workloads whose templates are a part of their pods: what may still be added is no fault, what is wrong anyway is refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from core import names, reasons
from core.admission.near_misses import hints
from core.admission.request import ClusterView
from core.objects import namespace, queue
from core.settings import Settings
from core.violations import Violation
from tests.unit.core.admission.samples import (
    H200,
    a_queue,
    a_view,
    annotated,
    answer,
    changed,
    codes,
    creation,
    settings,
    update,
)

Json = dict[str, Any]

CARD = {names.CARD_NAME_ANNOTATION: H200}
GPU: Json = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
PATCH = (
    '{"containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"{{inputs.parameters.gpus}}"}}}]}'
)


def a_workload(api_version: str, kind: str, spec: Json, **metadata: Any) -> Json:
    metadata = {"name": "w", "namespace": "ml", **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def served(annotations: Mapping[str, str], **model: Any) -> Json:
    """An InferenceService whose container comes from a ServingRuntime."""
    predictor = {"model": {"modelFormat": {"name": "huggingface"}, "runtime": "vllm", **model}}
    return a_workload(
        "serving.kserve.io/v1beta1", "InferenceService", {"predictor": predictor}, annotations=annotations
    )


def a_runtime(annotations: Mapping[str, str], kind: str = "TrainingRuntime", **container: Any) -> Json:
    """A runtime whose container `node` gets the resources that a TrainJob gives."""
    pod = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "node", "image": "torch", **container}]},
    }
    jobs = [{"name": "node", "template": {"spec": {"template": pod}}}]
    return a_workload("trainer.kubeflow.org/v1alpha1", kind, {"template": {"spec": {"replicatedJobs": jobs}}})


def spark(annotations: Mapping[str, str], **executor: Any) -> Json:
    """A SparkApplication whose executors get their GPUs by its configuration."""
    conf = {"spark.executor.resource.gpu.amount": "1", "spark.executor.resource.gpu.vendor": "nvidia.com"}
    executor = {"instances": 2, "annotations": annotations, **executor}
    return a_workload(
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {"sparkConf": conf, "driver": {}, "executor": executor},
    )


def a_workflow(annotations: Mapping[str, str], kind: str = "Workflow", **step: Any) -> Json:
    """An Argo workflow with one step."""
    step = {"name": "t", "metadata": {"annotations": annotations}, "container": {"image": "i"}, **step}
    spec: Json = {"templates": [step]}
    return a_workload(
        "argoproj.io/v1alpha1", kind, {"workflowSpec": spec} if kind == "CronWorkflow" else spec
    )


MAKERS = [served, a_runtime, spark, a_workflow]
every_kind = pytest.mark.parametrize("make", MAKERS)
WORKFLOWS = ["Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow"]


def violations(raw: Json, **sections: Any) -> tuple[Violation, ...]:
    denial = answer(creation(raw), settings=settings(**sections)).denial
    return () if denial is None else denial.violations


@pytest.mark.parametrize(
    "raw",
    [
        served(CARD),
        a_runtime(CARD),
        a_runtime(CARD, "ClusterTrainingRuntime"),
        spark(CARD),
        *(a_workflow(CARD, kind, podSpecPatch=PATCH) for kind in WORKFLOWS),
    ],
    ids=lambda raw: raw["kind"],
)
def test_a_resource_that_comes_from_elsewhere_is_not_missed(raw: Json) -> None:
    decision = answer(creation(raw))
    assert decision.allowed, decision.denial
    assert not any("nvidia.com/gpu" in warning for warning in decision.warnings)
    group = raw["apiVersion"].partition("/")[0]
    guesses = hints(group, raw["kind"], raw, Settings())
    assert reasons.CARD_RESOURCE_MISSING not in {hint.code for hint in guesses}


@pytest.mark.parametrize("kind", WORKFLOWS)
@pytest.mark.parametrize(
    "annotations",
    [
        {names.CARD_NAME_ANNOTATION: "{{workflow.parameters.card}}"},
        {names.CARD_NAME_ANNOTATION: f"{H200}/{{{{workflow.parameters.share}}}}"},
        {**CARD, names.GANG_NAME_ANNOTATION: "{{workflow.uid}}", names.GANG_SIZE_ANNOTATION: "4"},
        {**CARD, names.GANG_NAME_ANNOTATION: "g", names.GANG_SIZE_ANNOTATION: "{{workflow.parameters.n}}"},
        {**CARD, names.QUEUE_NAME_ANNOTATION: "{{workflow.parameters.queue}}"},
    ],
)
def test_a_text_that_a_parameter_makes_is_not_judged(kind: str, annotations: dict[str, str]) -> None:
    decision = answer(creation(a_workflow(annotations, kind, container=GPU)))
    assert decision.allowed, decision.denial
    assert not any("{{" in warning for warning in decision.warnings)


def test_what_is_written_out_beside_a_parameter_is_judged() -> None:
    wrong = {
        names.CARD_NAME_ANNOTATION: "{{workflow.parameters.card}}",
        names.GANG_NAME_ANNOTATION: "{{workflow.uid}}",
        names.GANG_SIZE_ANNOTATION: "many",
        names.ASSIGNED_ANNOTATION: "{{workflow.parameters.card}}",
    }
    found = {violation.code for violation in violations(a_workflow(wrong, container=GPU))}
    assert found == {reasons.GANG_MALFORMED, reasons.RECORD_PROTECTED}


@every_kind
def test_a_card_name_that_is_wrong_anyway_is_refused(make: Any) -> None:
    denied = answer(creation(make({names.CARD_NAME_ANNOTATION: "A||B"})))
    assert codes(denied) == [reasons.CARD_NAME_MALFORMED]
    assert codes(answer(creation(make({**CARD, names.GANG_NAME_ANNOTATION: "-"})))) == [
        reasons.GANG_MALFORMED
    ]


@every_kind
def test_a_closed_queue_is_refused(make: Any) -> None:
    closed = queue.project(a_queue(annotations={names.NAMESPACES_ANNOTATION: "others"}))
    home = namespace.project({"metadata": {"name": "ml"}})
    view: ClusterView = replace(a_view(), queues={closed.name: closed}, namespaces={"ml": home})
    raw = make({**CARD, names.QUEUE_NAME_ANNOTATION: closed.name})
    assert codes(answer(creation(raw), view)) == [reasons.QUEUE_NOT_ALLOWED]


def test_more_than_is_looked_at_is_refused() -> None:
    steps = a_workflow(CARD)
    steps["spec"]["templates"] *= 501
    assert [violation.code for violation in violations(steps)] == [reasons.TOO_MANY_TEMPLATES]


@pytest.mark.parametrize(
    "raw",
    [served({}, **GPU), a_runtime({}, **GPU), a_workflow({}, container=GPU)],
    ids=lambda raw: raw["kind"],
)
def test_a_card_without_a_name_is_no_more_than_a_warning_where_names_are_asked_for(raw: Json) -> None:
    """A runtime, or the workflow that uses a template, may give the name."""
    decision = answer(creation(raw), settings=settings(cards={"podsWithoutCardName": "deny"}))
    assert decision.allowed, decision.denial
    assert any("pods are refused where nothing else names their card" in line for line in decision.warnings)


def test_a_card_beside_the_one_that_is_named_is_refused_where_names_are_asked_for() -> None:
    other = {"resources": {"limits": {"huawei.com/Ascend910B": "1"}}}
    found = violations(a_workflow(CARD, container=other), cards={"podsWithoutCardName": "deny"})
    assert [violation.code for violation in found] == [reasons.CARD_NAME_MISSING]


def test_card_counts_may_be_for_containers_that_are_added() -> None:
    """Argo puts a container of its own before that of a step."""
    share = {"resources": {"limits": {names.MGPU_CORE: "200"}}}
    for counts, expected in (("0,2", []), ("0,x", [reasons.MGPU_CARD_COUNTS])):
        raw = a_workflow({names.MGPU_MULTIPLE_ANNOTATION: counts}, container=share)
        assert [violation.code for violation in violations(raw)] == expected


@pytest.mark.parametrize("place", ["container", "script", "sidecars", "initContainers"])
def test_every_container_of_a_step_is_read_and_named_by_its_place(place: str) -> None:
    wrong: Json = {"name": "c", "resources": {"limits": {names.MGPU_CORE: "abc"}}}
    listed = place in ("sidecars", "initContainers")
    containers: dict[str, Any] = {place: [{"name": "first"}, wrong] if listed else wrong}
    raw = a_workflow({}, **containers)
    if place == "script":
        del raw["spec"]["templates"][0]["container"]
    at = f"spec.templates[0].{place}{'[1]' if listed else ''}.resources.limits[{names.MGPU_CORE}]"
    assert {violation.path for violation in violations(raw)} == {at}


def test_a_container_of_a_set_is_named_by_its_place_in_it() -> None:
    wrong = {"name": "c", "resources": {"limits": {names.MGPU_CORE: "abc"}}}
    raw = a_workflow({}, containerSet={"containers": [{"name": "first"}, wrong]})
    del raw["spec"]["templates"][0]["container"]
    (found,) = violations(raw)
    assert found.path.startswith("spec.templates[0].containerSet.containers[1].resources")


@pytest.mark.parametrize(
    "predictor",
    [
        {"minReplicas": 0},
        {"maxReplicas": 9},
        {"canaryTrafficPercent": 10},
        {"timeout": 60},
        {"labels": {"a": "b"}},
    ],
)
def test_a_stored_inference_service_that_a_rule_refuses_now_can_still_be_scaled(predictor: Json) -> None:
    stored = served({names.CARD_NAME_ANNOTATION: "A||B"})
    decision = answer(update(stored, changed(stored, "spec", "predictor", **predictor)))
    assert decision.allowed, decision.denial


def test_a_stored_inference_service_that_a_rule_refuses_now_can_still_be_annotated() -> None:
    stored = served({names.CARD_NAME_ANNOTATION: "A||B"})
    assert answer(update(stored, annotated(stored, team="a"))).allowed
    of_component = changed(stored, "spec", "predictor", annotations={"sidecar.istio.io/inject": "false"})
    assert answer(update(stored, of_component)).allowed


@pytest.mark.parametrize(
    "fields",
    [
        {"model": GPU},
        {"containers": [{"name": "c"}]},
        {"initContainers": [{"name": "c"}]},
        {"schedulerName": "volcano"},
        {"nodeSelector": {"a": "b"}},
        {"affinity": {"nodeAffinity": {}}},
        {"tolerations": [{"operator": "Exists"}]},
        {"resourceClaims": [{"name": "c"}]},
        {"annotations": {names.QUEUE_NAME_ANNOTATION: "q"}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_inference_service_is_judged_when_what_rules_read_changes(fields: Json) -> None:
    stored = served({names.CARD_NAME_ANNOTATION: "A||B"})
    edited = changed(stored, "spec", "predictor", **fields)
    assert codes(answer(update(stored, edited))) == [reasons.CARD_NAME_MALFORMED]


@pytest.mark.parametrize("record", [names.ASSIGNED_ANNOTATION, names.ASSUMED_ANNOTATION])
def test_a_record_that_is_written_on_an_inference_service_is_refused(record: str) -> None:
    stored = served(CARD)
    assert codes(answer(update(stored, annotated(stored, **{record: "x"})))) == [reasons.RECORD_PROTECTED]
