"""Gangs by annotations: what is refused when a pod or a template is written, warned about, and fixed on a stored pod."""

from typing import Any

import pytest

from core import names, reasons
from core.admission.request import ClusterView
from tests.unit.core.admission.samples import (
    CONTROLLER,
    a_card_pod,
    a_pod,
    annotated,
    answer,
    codes,
    creation,
    update,
)

NAME, SIZE = names.GANG_KEYS


def gang(name: str | None = "train", size: str | None = "4", **more: str | None) -> dict[str, Any]:
    """A card pod with these annotations; None leaves one out."""
    said = {NAME: name, SIZE: size, **more}
    return annotated(a_card_pod(), **{key: value for key, value in said.items() if value is not None})


def hints(raw: dict[str, Any]) -> list[str]:
    return [text for text in answer(creation(raw)).warnings if NAME in text or SIZE in text]


def test_a_pod_may_name_its_gang() -> None:
    assert codes(answer(creation(gang()))) == []
    assert hints(gang()) == []


@pytest.mark.parametrize("size", ["0", "-1", "+3", "1000000", "\u0664", "", "four"])
def test_a_size_that_is_none_is_refused_with_its_place_and_what_to_write(size: str) -> None:
    decision = answer(creation(gang(size=size)))
    assert decision.denial is not None
    (found,) = decision.denial.violations
    assert (found.code, found.path) == (reasons.GANG_MALFORMED, f"metadata.annotations[{SIZE}]")
    assert 'from 1 to 100000 in plain digits, such as "4"' in str(found)


def test_both_mistakes_are_told_at_once() -> None:
    assert codes(answer(creation(gang(name="a b", size="0")))) == [reasons.GANG_MALFORMED] * 2


def test_a_malformed_half_is_refused_though_nobody_reads_it() -> None:
    assert codes(answer(creation(gang(name=None, size="-1")))) == [reasons.GANG_MALFORMED]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (gang(size=None), f"is not read without {SIZE}"),
        (gang(name=None), f"is not read without {NAME}"),
        (gang(**{names.GROUP_NAME_ANNOTATION: "pg"}), "PodGroup pg says who starts together"),
        (annotated(a_pod(), **{NAME: "g", SIZE: "2"}), "asks for neither cards, shares nor claims"),
        (
            annotated(a_card_pod(schedulerName="other"), **{NAME: "g", SIZE: "2"}),
            "pods of scheduler other are not held",
        ),
    ],
)
def test_what_nobody_reads_is_warned_about_and_let_through(raw: dict[str, Any], said: str) -> None:
    assert codes(answer(creation(raw))) == []
    (hint,) = hints(raw)
    assert said in hint


def job(template: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ml"},
        "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}},
    }


def test_a_template_is_refused_with_the_path_into_it() -> None:
    request = creation(job(gang(size="0")))
    decision = answer(request)
    assert decision.denial is not None
    assert [each.path for each in decision.denial.violations] == [
        f"spec.template.metadata.annotations[{SIZE}]"
    ]


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("change", [{SIZE: "2"}, {NAME: "other"}, {SIZE: None}, {NAME: None}])
def test_nobody_takes_a_stored_pod_to_another_gang(gated: bool, change: dict[str, Any]) -> None:
    """Others were told already with whom they start."""
    stored = annotated(a_card_pod(gated=gated), **{NAME: "g", SIZE: "4"})
    assert codes(answer(update(stored, annotated(stored, **change)))) == [reasons.FIELD_FIXED]
    assert codes(answer(update(stored, annotated(stored, **change), username=CONTROLLER))) == []


def test_nor_into_one() -> None:
    stored = a_card_pod(gated=True)
    assert (
        codes(answer(update(stored, annotated(stored, **{NAME: "g", SIZE: "4"}))))
        == [reasons.FIELD_FIXED] * 2
    )


GROUP = {"podGroupName": "g"}


def grouped(raw: dict[str, Any], served: bool | None = False) -> list[str]:
    raw["spec"]["schedulingGroup"] = GROUP
    found = answer(creation(raw), view=ClusterView(kubernetes_groups_served=served))
    return [text for text in found.warnings if "schedulingGroup" in text]


def test_where_the_podgroups_of_kubernetes_are_not_served_that_is_told() -> None:
    (said,) = grouped(a_card_pod())
    assert "spec.schedulingGroup" in said
    assert f"give their template {NAME} and {SIZE} as well" in said


@pytest.mark.parametrize("served", [True, None])
def test_where_they_are_or_nobody_knows_there_is_nothing_to_tell(served: bool | None) -> None:
    assert grouped(a_card_pod(), served) == []


@pytest.mark.parametrize("raw", [gang(), a_pod()], ids=["gang by annotations", "asks for nothing"])
def test_where_something_else_says_who_starts_together_it_is_not_missed(raw: dict[str, Any]) -> None:
    assert grouped(raw) == []


@pytest.mark.parametrize("served", [True, False, None])
def test_beside_a_podgroup_of_volcano_it_is_not_read_and_that_is_told(served: bool | None) -> None:
    (said,) = grouped(annotated(a_card_pod(), **{names.GROUP_NAME_ANNOTATION: "pg"}), served)
    assert f"is not read beside {names.GROUP_NAME_ANNOTATION}: PodGroup pg says who starts together" in said
