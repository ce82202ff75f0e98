"""Which queue a pod charges."""

import pytest

from core.objects import Group, Job, Namespace, Pod
from core.queues.attribution import Attribution, attribute
from tests.builders import a_group, a_job, a_namespace, a_pod

POD = a_pod("p")
JOB_POD = POD.owned_by("Job", "train", api_version="batch.volcano.sh/v1alpha1")


@pytest.mark.parametrize(
    ("pod", "group", "job", "namespace", "expected"),
    [
        pytest.param(
            POD.view(), None, None, None, Attribution("default", named=False), id="nothing names one"
        ),
        pytest.param(
            POD.view(),
            None,
            None,
            a_namespace().in_queue("team").view(),
            Attribution("team", named=True),
            id="namespace",
        ),
        pytest.param(
            POD.in_queue("own").view(),
            None,
            None,
            a_namespace().in_queue("team").view(),
            Attribution("own", named=True),
            id="own annotation before namespace",
        ),
        pytest.param(
            JOB_POD.in_queue("own").view(),
            None,
            a_job("train").in_queue("jobs").view(),
            None,
            Attribution("jobs", named=True),
            id="Volcano Job before own annotation",
        ),
        pytest.param(
            JOB_POD.annotation("volcano.sh/queue-name", "copied").in_queue("own").view(),
            None,
            None,
            None,
            Attribution("copied", named=True),
            id="the Job's queue as copied to the pod, while the Job is not in sight",
        ),
        pytest.param(
            POD.annotation("volcano.sh/queue-name", "copied").in_queue("own").view(),
            None,
            None,
            None,
            Attribution("own", named=True),
            id="the copied queue counts only on pods of a Volcano Job",
        ),
        pytest.param(
            JOB_POD.in_queue("own").view(),
            a_group().in_queue("group").view(),
            a_job("train").in_queue("jobs").view(),
            a_namespace().in_queue("team").view(),
            Attribution("group", named=True),
            id="PodGroup before all",
        ),
        pytest.param(
            POD.in_queue("own").view(),
            a_group().in_queue("").view(),
            None,
            None,
            Attribution("own", named=True),
            id="an empty queue in the PodGroup counts as unset",
        ),
        pytest.param(
            POD.in_queue("").view(),
            None,
            None,
            a_namespace().in_queue("").view(),
            Attribution("default", named=False),
            id="empty annotations count as unset",
        ),
    ],
)
def test_the_first_step_that_names_a_queue_decides(
    pod: Pod, group: Group | None, job: Job | None, namespace: Namespace | None, expected: Attribution
) -> None:
    assert attribute(pod, group, job, namespace, "default") == expected
