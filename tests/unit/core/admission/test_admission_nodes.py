"""CrossQuota's annotations, judged where they are written: on nodes, and the one on pods."""

from collections.abc import Mapping
from typing import Any

import pytest

from core import names, reasons
from core.admission.request import AdmissionRequest, Decision
from tests.unit.core.admission.samples import (
    a_card_pod,
    a_pod,
    answer,
    changed,
    codes,
    creation,
    settings,
    update,
)

CPU = "volcano.sh/crossquota-cpu"
PERCENT = "volcano.sh/crossquota-percentage-cpu"
MEMORY = "volcano.sh/crossquota-memory"
LIMITED = settings(crossQuota={"quotaResources": ["cpu", "memory"]})


def a_node(annotations: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu-1", "annotations": {"example.com/other": "x", **annotations}},
    }


def judged(request: AdmissionRequest) -> Decision:
    return answer(request, settings=LIMITED)


@pytest.mark.parametrize(
    ("annotations", "key"),
    [
        ({CPU: "32"}, None),
        ({CPU: "31500m", MEMORY: "64Gi"}, None),
        ({CPU: "0"}, None),
        ({CPU: ""}, None),
        ({CPU: "  "}, None),
        ({PERCENT: "100"}, None),
        ({PERCENT: "0.5"}, None),
        ({CPU: "many"}, CPU),
        ({CPU: "-1"}, CPU),
        ({MEMORY: "64GB"}, MEMORY),
        ({PERCENT: "0"}, PERCENT),
        ({PERCENT: "101"}, PERCENT),
        ({PERCENT: "50%"}, PERCENT),
        ({PERCENT: "NaN"}, PERCENT),
        ({PERCENT: "1_0"}, PERCENT),
    ],
)
def test_a_limit_that_cannot_be_read_is_refused_by_its_key(
    annotations: dict[str, str], key: str | None
) -> None:
    decision = judged(creation(a_node(annotations)))
    assert codes(decision) == ([] if key is None else [reasons.CROSS_QUOTA_MALFORMED])
    if decision.denial is not None:
        assert decision.denial.message.startswith(
            f"Node gpu-1 is refused: metadata.annotations[{key}]: Invalid value"
        )


def test_all_mistakes_are_in_one_message() -> None:
    decision = judged(creation(a_node({CPU: "x", PERCENT: "y", MEMORY: "z"})))
    assert codes(decision) == [reasons.CROSS_QUOTA_MALFORMED] * 3


def test_what_stood_there_before_keeps_nobody_from_writing_the_node() -> None:
    stored = a_node({CPU: "many", MEMORY: "1Gi"})
    assert judged(update(stored, changed(stored, "metadata", labels={"a": "b"}))).allowed
    assert judged(update(stored, a_node({CPU: "many", MEMORY: "2Gi"}))).allowed
    assert judged(update(stored, a_node({}))).allowed
    assert codes(judged(update(stored, a_node({CPU: "more", MEMORY: "1Gi"})))) == [
        reasons.CROSS_QUOTA_MALFORMED
    ]


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({CPU: "1"}, ()),
        (
            {"volcano.sh/crossquota-hugepages-1Gi": "1Gi"},
            ('"hugepages-1Gi" is none of crossQuota.quotaResources',),
        ),
        ({CPU: "1", PERCENT: "50"}, (f"{CPU} is set as well and wins",)),
        ({CPU: " ", PERCENT: "50"}, ()),
    ],
    ids=["used", "not limited at all", "both forms", "a blank one is none"],
)
def test_a_limit_without_effect_is_warned_about(annotations: dict[str, str], words: tuple[str, ...]) -> None:
    decision = judged(creation(a_node(annotations)))
    assert decision.allowed
    assert len(decision.warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, decision.warnings, strict=True))


@pytest.mark.parametrize("stood", [CPU, PERCENT])
def test_of_two_forms_either_may_come_second(stood: str) -> None:
    decision = judged(update(a_node({stood: "50"}), a_node({CPU: "50", PERCENT: "50"})))
    (warning,) = decision.warnings
    assert PERCENT in warning
    assert f"{CPU} is set as well and wins" in warning


def test_an_old_limit_is_not_warned_about_again() -> None:
    stored = a_node({CPU: "1", PERCENT: "50"})
    assert judged(update(stored, changed(stored, "metadata", labels={"a": "b"}))).warnings == ()


def test_a_feature_that_is_off_says_nothing() -> None:
    off = settings(features={"crossQuota": False})
    assert answer(creation(a_node({CPU: "many"})), settings=off) == Decision()
    strategy = {names.CROSSQUOTA_STRATEGY_ANNOTATION: "spread"}
    assert answer(creation(a_pod(strategy)), settings=off).warnings == ()


@pytest.mark.parametrize("text", ["most-allocated", "least-allocated", None])
def test_a_known_strategy_is_fine(text: str | None) -> None:
    annotations = {} if text is None else {names.CROSSQUOTA_STRATEGY_ANNOTATION: text}
    assert judged(creation(a_pod(annotations))).warnings == ()


@pytest.mark.parametrize("text", ["", "binpack", "Most-Allocated", " least-allocated"])
@pytest.mark.parametrize("scheduler", ["default-scheduler", "somebody-else"])
def test_an_unknown_strategy_is_warned_about_and_admitted(text: str, scheduler: str) -> None:
    pod = a_pod({names.CROSSQUOTA_STRATEGY_ANNOTATION: text}, schedulerName=scheduler)
    decision = judged(creation(pod))
    assert decision.allowed
    (warning,) = decision.warnings
    assert warning.startswith(f"metadata.annotations[{names.CROSSQUOTA_STRATEGY_ANNOTATION}]: ")
    assert "most-allocated is used" in warning


def test_a_template_is_warned_about_by_its_path() -> None:
    pod = a_pod({names.CROSSQUOTA_STRATEGY_ANNOTATION: "spread"})
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ml"},
        "spec": {"template": template},
    }
    (warning,) = judged(creation(deployment)).warnings
    assert warning.startswith("spec.template.metadata.annotations[")


def test_a_refused_pod_hears_of_its_strategy_too() -> None:
    pod = a_card_pod("A|", annotations={names.CROSSQUOTA_STRATEGY_ANNOTATION: "spread"})
    decision = judged(creation(pod))
    assert not decision.allowed
    assert any("most-allocated is used" in warning for warning in decision.warnings)
