"""The table of workloads: where the templates stand, how many pods are made of each, and where a fault in one is shown."""

from typing import Any

import pytest

from core import names, reasons
from core.workloads import KINDS, TABLE, pod_sets
from tests.builders.workloads import SAMPLES, Sample
from tests.unit.core.admission.samples import a_card_pod, a_pod, answer, creation, update

CARD_NAME = "metadata.annotations[volcano.sh/card.name]"
GOOD, BAD = a_card_pod("A|B"), a_card_pod("A||B")


def template(pod: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}


def of(sample: Sample) -> tuple[str, str]:
    return sample.api_version.rpartition("/")[0], sample.kind


def paths(raw: dict[str, Any]) -> list[str]:
    """Where faults are shown when the object is created."""
    denial = answer(creation(raw)).denial
    return [] if denial is None else [violation.path for violation in denial.violations]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.kind)
class TestSamples:
    def test_templates_are_found_with_their_places_and_numbers(self, sample: Sample) -> None:
        made = pod_sets(*of(sample), sample.object(template(GOOD)), nodes=5)
        assert [(each.path, each.count) for each in made] == list(
            zip(sample.paths, sample.counts, strict=True)
        )
        assert all(each.template == template(GOOD) for each in made)

    def test_a_fault_is_shown_where_it_stands_and_a_good_one_passes(self, sample: Sample) -> None:
        assert paths(sample.object(template(BAD))) == [f"{path}.{CARD_NAME}" for path in sample.paths]
        assert paths(sample.object(template(GOOD))) == []

    def test_only_templates_that_change_are_judged(self, sample: Sample) -> None:
        stored, now = sample.object(template(BAD)), sample.object(template(BAD))
        now["metadata"]["labels"] = {"a": "b"}
        assert answer(update(stored, now)).denial is None
        worse = sample.object(template(a_card_pod("A|A")))
        denial = answer(update(stored, worse)).denial
        assert denial is not None
        assert len(denial.violations) == len(sample.paths)

    def test_types_that_are_wrong_are_said_and_never_raise(self, sample: Sample) -> None:
        odd = template(GOOD) | {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: 5}}}
        denial = answer(creation(sample.object(odd))).denial
        assert denial is not None
        assert {violation.code for violation in denial.violations} == {reasons.OBJECT_MALFORMED}
        values: list[Any] = [None, [], "x", 5, {"a": None}, [None], [[]]]
        for value in values:
            raw = sample.object(template(GOOD))
            for key in list(raw["spec"]):
                assert (
                    pod_sets(*of(sample), {**raw, "spec": {**raw["spec"], key: value}}, nodes=1) is not None
                )
            assert pod_sets(*of(sample), {**raw, "spec": value}, nodes=1) is not None


def served(annotations: dict[str, str], **predictor: Any) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "w", "namespace": "ml", "annotations": annotations},
        "spec": {"predictor": {"model": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}, **predictor}},
    }


def test_the_annotations_of_an_inference_service_are_those_of_its_pods() -> None:
    (made,) = pod_sets(
        "serving.kserve.io",
        "InferenceService",
        served({names.CARD_NAME_ANNOTATION: "A"}, minReplicas=2),
        nodes=1,
    )
    assert made.count == 2
    assert made.template["metadata"]["annotations"] == {names.CARD_NAME_ANNOTATION: "A"}
    assert made.template["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert paths(served({names.CARD_NAME_ANNOTATION: "A||B"})) == [CARD_NAME]
    assert paths(served({names.CARD_NAME_ANNOTATION: "A"})) == []


def test_a_fault_in_the_pod_spec_of_a_predictor_is_shown_there() -> None:
    bad = served({}, containers=[{"name": "c", "resources": {"limits": {names.MGPU_CORE: "101"}}}])
    (path,) = {path.partition(".containers")[0] for path in paths(bad)}
    assert path == "spec.predictor"


def workflow(annotations: dict[str, str], outer: dict[str, str]) -> dict[str, Any]:
    step = {"name": "train", "container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "w", "namespace": "ml"},
        "spec": {
            "podMetadata": {"annotations": outer},
            "templates": [{"name": "all", "steps": [[]]}, {**step, "metadata": {"annotations": annotations}}],
        },
    }


def test_the_steps_of_a_workflow_are_pods_where_they_have_a_container() -> None:
    bad, good = {names.CARD_NAME_ANNOTATION: "A||B"}, {names.CARD_NAME_ANNOTATION: "A"}
    assert paths(workflow(bad, {})) == [f"spec.templates[1].{CARD_NAME}"]
    assert paths(workflow(good, bad)) == []
    assert len(paths(workflow({}, bad))) == 1
    (made,) = pod_sets("argoproj.io", "Workflow", workflow(good, {}), nodes=1)
    assert made.count == 0


def spark(driver: dict[str, Any], executor: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "w", "namespace": "ml"},
        "spec": {"driver": driver, "executor": {"instances": 4, **executor}},
    }


def test_spark_s_annotations_and_gpus_beside_the_template_count() -> None:
    gpu = {"gpu": {"name": "nvidia.com/gpu", "quantity": 1}}
    bad = {"annotations": {names.CARD_NAME_ANNOTATION: "A||B"}, **gpu}
    assert paths(spark({}, bad)) == ["spec.executor.annotations[volcano.sh/card.name]"]
    assert paths(spark({"template": template(BAD)}, {})) == [f"spec.driver.template.{CARD_NAME}"]
    made = pod_sets("sparkoperator.k8s.io", "SparkApplication", spark({}, bad), nodes=1)
    assert [each.count for each in made] == [1, 4]
    assert made[1].template["spec"]["containers"][-1]["resources"]["limits"] == {"nvidia.com/gpu": 1}


def test_a_suspended_job_set_and_numbers_below_nothing_make_nothing() -> None:
    (sample,) = (each for each in SAMPLES if each.kind == "JobSet")
    raw = sample.object(template(GOOD))
    raw["spec"]["suspend"] = True
    assert [each.count for each in pod_sets(*of(sample), raw, nodes=1)] == [0]
    (lws,) = (each for each in SAMPLES if each.kind == "LeaderWorkerSet")
    raw = lws.object(template(GOOD))
    raw["spec"]["replicas"] = -3
    assert [each.count for each in pod_sets(*of(lws), raw, nodes=1)] == [0, 0]


def test_without_a_leader_s_template_the_worker_s_makes_all() -> None:
    (lws,) = (each for each in SAMPLES if each.kind == "LeaderWorkerSet")
    raw = lws.object(template(GOOD))
    del raw["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    assert [each.count for each in pod_sets(*of(lws), raw, nodes=1)] == [8]


def test_no_kind_has_two_rows_and_those_of_others_say_where_they_were_looked_up() -> None:
    assert len(KINDS) == len(TABLE)
    assert [row.kind for row in TABLE if not row.source and row.group not in ("apps", "batch")] == []
    tested = {of(sample) for sample in SAMPLES}
    assert {kind for _, kind in KINDS.keys() - tested} == {
        *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "InferenceService"),
        *("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow", "SparkApplication"),
    }


def test_a_pod_that_asks_for_nothing_passes_whatever_makes_it() -> None:
    for sample in SAMPLES:
        assert answer(creation(sample.object(template(a_pod())))).denial is None
