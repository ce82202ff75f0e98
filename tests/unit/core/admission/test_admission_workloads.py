"""Workloads: the template's errors are said when the workload is written, with the template's path."""

from typing import Any

import pytest

from core import names, reasons
from core.admission.dispatch import creation_of
from tests.unit.core.admission.samples import (
    CONTROLLER,
    H200,
    a_card_pod,
    a_pod,
    an_mgpu_pod,
    annotated,
    answer,
    changed,
    codes,
    creation,
    settings,
    update,
)

AT_SPEC = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
]


def template(pod: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}


def workload(api_version: str, kind: str, pod: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"replicas": 1, "template": template(pod)}
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template(pod)}}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "w", "namespace": "ml"},
        "spec": spec,
    }


def volcano_job(*pods: dict[str, Any], request: str | None = None, **spec: Any) -> dict[str, Any]:
    tasks = [
        {"name": f"t{index}", "replicas": 1, "template": template(pod)} for index, pod in enumerate(pods)
    ]
    annotations = {} if request is None else {names.CARD_REQUEST_ANNOTATION: request}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ml", "annotations": annotations},
        "spec": {"minAvailable": 1, "tasks": tasks, **spec},
    }


def pod_group(request: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ml", "annotations": {names.CARD_REQUEST_ANNOTATION: request}},
        "spec": {"minMember": 1},
    }


@pytest.mark.parametrize(("api_version", "kind"), [*AT_SPEC, ("batch/v1", "CronJob")])
def test_a_template_gets_the_rules_of_its_pods_with_its_own_path(api_version: str, kind: str) -> None:
    prefix = "spec.jobTemplate.spec.template." if kind == "CronJob" else "spec.template."
    good = workload(api_version, kind, a_card_pod())
    decision = answer(creation(good))
    assert decision.allowed, decision.denial
    assert decision.patch == ()
    for pod, code, path in (
        (
            a_card_pod("A||B"),
            reasons.CARD_NAME_MALFORMED,
            f"metadata.annotations[{names.CARD_NAME_ANNOTATION}]",
        ),
        (a_pod({names.ASSUMED_ANNOTATION: "true"}), reasons.RECORD_PROTECTED, names.ASSUMED_ANNOTATION),
        (a_pod({names.ASSIGNED_ANNOTATION: "{}"}), reasons.RECORD_PROTECTED, names.ASSIGNED_ANNOTATION),
        (a_pod(limits={names.MGPU_CORE: "101"}), reasons.MGPU_CORE, "spec.containers[0]"),
    ):
        for username in ("jane", CONTROLLER):
            denied = answer(creation(workload(api_version, kind, pod), username))
            assert code in codes(denied)
            assert denied.denial is not None
            assert denied.denial.message.startswith(f"{kind} ml/w is refused: {prefix}")
            assert path in denied.denial.message


@pytest.mark.parametrize(("api_version", "kind"), AT_SPEC)
def test_only_a_changed_template_is_judged_again(api_version: str, kind: str) -> None:
    """A workload that was stored before the rule existed can still be scaled and labelled."""
    stored = workload(api_version, kind, a_card_pod("A||B"))
    assert answer(update(stored, changed(stored, "spec", replicas=5))).allowed
    assert answer(update(stored, changed(stored, "metadata", labels={"a": "b"}))).allowed
    edited = changed(stored, "spec", "template", "spec", priorityClassName="high")
    assert codes(answer(update(stored, edited))) == [reasons.CARD_NAME_MALFORMED]


def test_a_cron_job_is_judged_when_its_template_changes() -> None:
    stored = workload("batch/v1", "CronJob", a_card_pod("A||B"))
    assert answer(update(stored, changed(stored, "spec", schedule="0 0 * * *"))).allowed
    edited = workload("batch/v1", "CronJob", a_card_pod("A||C"))
    assert codes(answer(update(stored, edited))) == [reasons.CARD_NAME_MALFORMED]


def test_a_template_with_a_node_is_left_to_its_pods() -> None:
    """The pods of a DaemonSet get their node by affinity; a nodeName in a template is refused pod by pod."""
    assert answer(creation(workload("apps/v1", "DaemonSet", a_card_pod(nodeName="n1")))).allowed


def test_limits_of_a_template_count_although_nothing_was_defaulted_yet() -> None:
    assert answer(creation(workload("apps/v1", "Deployment", an_mgpu_pod()))).allowed


@pytest.mark.parametrize(
    "spec", [None, {}, {"template": None}, {"template": {}}, {"template": {"spec": None, "metadata": None}}]
)
def test_a_missing_template_is_the_api_servers_business(spec: Any) -> None:
    raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": spec}
    assert answer(creation(raw)).allowed


def test_every_task_of_a_volcano_job_is_judged() -> None:
    job = volcano_job(a_card_pod(), a_card_pod("A|"), a_pod(), an_mgpu_pod())
    decision = answer(creation(job))
    assert codes(decision) == [reasons.CARD_NAME_MALFORMED]
    assert decision.denial is not None
    assert decision.denial.violations[0].path.startswith("spec.tasks[1].template.metadata.annotations[")
    assert answer(creation(volcano_job(a_card_pod(), an_mgpu_pod(), request='{"NVIDIA-H200": 1}'))).allowed


@pytest.mark.parametrize(
    "tasks", [None, [], [{}], [{"name": "a", "template": None}], [{"template": {"spec": {}}}]]
)
def test_a_volcano_job_without_usable_tasks_is_the_api_servers_business(tasks: Any) -> None:
    job = changed(volcano_job(), "spec", tasks=tasks)
    assert answer(creation(job)).allowed
    assert answer(update(job, job)).allowed


@pytest.mark.parametrize(
    "tasks", ["x", [None], ["x"], [{"template": "x"}], [{"template": {"spec": {"containers": {}}}}]]
)
def test_a_volcano_job_of_the_wrong_shape_is_refused_with_the_place(tasks: Any) -> None:
    """The schema of a custom resource is checked only after the webhooks."""
    decision = answer(creation(changed(volcano_job(), "spec", tasks=tasks)))
    assert set(codes(decision)) == {reasons.OBJECT_MALFORMED}
    assert decision.denial is not None
    assert "spec.tasks" in decision.denial.message


def test_only_changed_tasks_of_a_volcano_job_are_judged_again() -> None:
    stored = volcano_job(a_card_pod("A|"), a_card_pod())
    assert answer(update(stored, changed(stored, "spec", minAvailable=2))).allowed
    turned = changed(stored, "spec", tasks=list(reversed(stored["spec"]["tasks"])))
    assert answer(update(stored, turned)).allowed
    broken = volcano_job(a_card_pod("A|"), a_card_pod("B|"))
    assert codes(answer(update(stored, broken))) == [reasons.CARD_NAME_MALFORMED]
    more = volcano_job(a_card_pod("A|"), a_card_pod(), a_card_pod("B|"))
    decision = answer(update(stored, more))
    assert decision.denial is not None
    assert [violation.path.split(".")[1] for violation in decision.denial.violations] == ["tasks[2]"]


def test_a_task_is_called_by_its_name_beside_the_path() -> None:
    """People know what they called it; its place in the list nobody knows. What is said of the job as a whole names none."""
    job = volcano_job(a_card_pod(), a_card_pod("A|"), a_card_pod("NVIDIA-X"), a_card_pod("B|"), request="{")
    for task, name in zip(job["spec"]["tasks"], ("master", "wor\nker", "ps", None), strict=True):
        task["name"] = name
    denial = answer(creation(job)).denial
    assert denial is not None
    said = {violation.path.partition(".template")[0]: violation.detail for violation in denial.violations}
    assert said["spec.tasks[1]"].startswith('task "wor\\nker": has an empty alternative')
    assert said["spec.tasks[3]"].startswith("has an empty alternative")
    assert said["metadata.annotations[volcano.sh/card.request]"].startswith("is not valid JSON")
    hinted = answer(creation(changed(job, "spec", tasks=job["spec"]["tasks"][2:3])))
    assert any(
        "spec.tasks[0].template" in line and ': task "ps": no node carries' in line
        for line in hinted.warnings
    )


def test_the_scheduler_of_a_volcano_job_is_that_of_its_pods() -> None:
    broken = a_pod(limits={names.MGPU_CORE: "101"})
    only_volcano = settings(schedulerNames=["volcano"])
    assert codes(answer(creation(volcano_job(broken)), settings=only_volcano))
    assert answer(creation(volcano_job(broken, schedulerName="other")), settings=only_volcano).allowed
    deployment = workload("apps/v1", "Deployment", broken)
    assert answer(creation(deployment), settings=only_volcano).allowed


@pytest.mark.parametrize("raw", [volcano_job(), pod_group("")])
@pytest.mark.parametrize(
    ("request_text", "good"),
    [
        ("", True),
        ("{}", True),
        ('{"NVIDIA-H200": 0}', True),
        ('{"NVIDIA-H200": 4, "A|B": 1000000000}', True),
        ('{"NVIDIA-H200": 1000000001}', False),
        ('{"NVIDIA-H200": -1}', False),
        ('{"NVIDIA-H200": "1"}', False),
        ('{"A|": 1}', False),
        ('{"A": 1, "A": 2}', False),
        ('{"NVIDIA-H200": 3', False),
        (" ", False),
    ],
)
def test_a_card_request_is_judged_on_jobs_and_groups(
    raw: dict[str, Any], request_text: str, good: bool
) -> None:
    new = annotated(raw, **{names.CARD_REQUEST_ANNOTATION: request_text})
    expected = [] if good else [reasons.CARD_REQUEST_MALFORMED]
    assert codes(answer(creation(new))) == expected
    assert codes(answer(update(raw, new))) == expected
    assert answer(update(new, annotated(new, other="x"))).allowed
    assert answer(creation(new), settings=settings(features={"cards": False})).allowed


def test_a_card_name_on_the_workload_itself_means_nothing() -> None:
    """Only the template's annotations reach the pods."""
    raw = workload("apps/v1", "Deployment", a_pod())
    raw["metadata"]["annotations"] = {names.CARD_NAME_ANNOTATION: "A||B"}
    assert answer(creation(raw)).allowed


def test_kinds_without_rules_are_none_of_ours() -> None:
    assert creation_of({"apiVersion": "v1", "kind": "Service"}) is None
    assert creation_of({"apiVersion": "apps/v1", "kind": "Job"}) is None
    assert creation_of({}) is None
    request = creation_of(workload("batch/v1", "Job", a_card_pod(H200)))
    assert request is not None
    assert (request.group, request.resource) == ("batch", "jobs")
