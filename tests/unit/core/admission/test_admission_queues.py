"""Queues: the card quota where it is written, and the status that two managers share."""

from typing import Any

import pytest

from core import names, reasons
from core.admission.request import Add
from tests.unit.core.admission.samples import (
    a_queue,
    annotated,
    answer,
    changed,
    codes,
    creation,
    patched,
    settings,
    update,
    with_fields,
)


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (None, ()),
        ("", ("is empty: leave the annotation out",)),
        ("{}", ()),
        ('{"NVIDIA-H200": 2}\n', ()),
        ('{"NVIDIA-H200": 0}', ()),
        ('{"NVIDIA-H200": 1000000000}', ()),
        (" ", ("JSON",)),
        ('{"NVIDIA-H200": 3', ("JSON",)),
        ('{"NVIDIA-H200": "3"}', ("NVIDIA-H200", "integer")),
        ('{"NVIDIA-H200": -1}', ("NVIDIA-H200", "negative")),
        ('{"A": 1.5}', ("integer",)),
        ('{"A": true}', ("integer",)),
        ('["A"]', ("object",)),
        ('{"A": 1, "A": 2}', ("duplicate",)),
        ('{"A|B": 1}', ("|",)),
        ('{"A": 99999999999999999999999999}', ("A",)),
    ],
)
def test_a_card_quota_that_cannot_be_read_is_refused(quota: str | None, words: tuple[str, ...]) -> None:
    decision = answer(creation(a_queue(quota)))
    assert set(codes(decision)) == ({reasons.CARD_QUOTA_MALFORMED} if words else set())
    if decision.denial is not None:
        first = decision.denial.message.splitlines()[0]
        assert first.startswith(
            f"Queue team-a is refused: metadata.annotations[{names.CARD_QUOTA_ANNOTATION}]"
        )
        assert all(word in decision.denial.message for word in words)
        assert (decision.denial.status, decision.denial.reason) == (400, "BadRequest")


def test_a_bad_quota_that_is_stored_does_not_lock_the_queue() -> None:
    stored = a_queue("{")
    assert answer(update(stored, changed(stored, "spec", weight=2))).allowed
    assert answer(update(stored, changed(stored, "metadata", finalizers=["x"]))).allowed
    assert answer(update(stored, annotated(stored, **{names.CARD_QUOTA_ANNOTATION: None}))).allowed
    assert answer(update(stored, a_queue('{"A": 1}'))).allowed
    assert codes(answer(update(stored, a_queue("[")))) == [reasons.CARD_QUOTA_MALFORMED]
    assert codes(answer(update(a_queue(), stored))) == [reasons.CARD_QUOTA_MALFORMED]


def test_a_quota_of_the_wrong_type_is_refused_by_its_path() -> None:
    """A YAML writer forgets the quotes easily; the API server sees it only after the webhooks."""
    for metadata in ({"annotations": {names.CARD_QUOTA_ANNOTATION: {"A": 1}}}, {"annotations": "x"}):
        decision = answer(creation(changed(a_queue(), "metadata", **metadata)))
        assert codes(decision) == [reasons.OBJECT_MALFORMED]
    off = settings(features={"cards": False})
    assert answer(creation(a_queue("{")), settings=off).allowed


OLD = a_queue(
    status={"state": "Open", "allocated": {"NVIDIA-H200": "2", "A/mps-80g*1/8": "1", "cpu": "4", "pods": 3}},
    managedFields=[
        {"manager": "cardquota", "fieldsV1": {"f:status": {"f:allocated": {"f:NVIDIA-H200": {}}}}},
        {"manager": "vc-scheduler", "fieldsV1": {"f:status": {"f:allocated": {"f:cpu": {}, "f:pods": {}}}}},
    ],
)


def write(new: dict[str, Any], field_manager: str = "", old: dict[str, Any] = OLD) -> tuple[Add, ...]:
    decision = answer(update(old, new, subresource="status", field_manager=field_manager))
    assert decision.allowed
    return decision.patch


def test_keys_that_a_scheduler_drops_are_put_back() -> None:
    """Ours by managedFields, and the one that nobody owns since an earlier put-back."""
    new = a_queue(status={"state": "Open", "allocated": {"cpu": "5"}})
    patch = write(new)
    assert patched(new, patch)["status"]["allocated"] == {
        "cpu": "5",
        "NVIDIA-H200": "2",
        "A/mps-80g*1/8": "1",
    }
    assert [operation.pointer for operation in patch] == [
        "/status/allocated/NVIDIA-H200",
        "/status/allocated/A~1mps-80g*1~18",
    ]


@pytest.mark.parametrize(
    "new", [a_queue(), a_queue(status={}), a_queue(status={"allocated": None}), {**a_queue(), "status": None}]
)
def test_a_missing_parent_is_added_first(new: dict[str, Any]) -> None:
    patch = write(new)
    assert len(patch) == 1
    result = patched(new, patch)
    assert result["status"]["allocated"] == {"NVIDIA-H200": "2", "A/mps-80g*1/8": "1"}
    assert write(result) == ()


def test_our_own_writes_pass_untouched() -> None:
    """The leader removes a key with an explicit null; that must stay."""
    assert write(a_queue(status={"allocated": {}}), field_manager="cardquota") == ()
    assert write(a_queue(status={"allocated": {}}), field_manager="cardquota2") != ()


def test_values_that_changed_are_the_writers() -> None:
    new = a_queue(status={"allocated": {"NVIDIA-H200": "9", "A/mps-80g*1/8": "0"}})
    assert write(new) == ()


@pytest.mark.parametrize("status", ["x", [], {"allocated": "x"}, {"allocated": ["x"]}, 0, False])
def test_a_status_of_the_wrong_type_is_the_schemas_business(status: Any) -> None:
    assert write({**a_queue(), "status": status}) == ()


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        "x",
        [None],
        [{"manager": "x"}],
        [{"manager": "x", "fieldsV1": {"f:status": []}}],
        [{"manager": "x", "fieldsV1": {"f:status": {"f:allocated": {"k:{}": {}, "NVIDIA-H200": {}}}}}],
    ],
)
def test_unusable_managed_fields_own_nothing(fields: Any) -> None:
    old = changed(OLD, "metadata", managedFields=fields)
    assert len(write(a_queue(status={"allocated": {}}), old=old)) == 4


def test_the_main_resource_is_not_touched() -> None:
    decision = answer(update(OLD, a_queue()))
    assert decision.patch == ()


# -- deletion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allocated", "told"),
    [
        (None, ""),
        ({}, ""),
        ({"cpu": "64", "memory": "1Ti", "pods": "3"}, ""),
        ({"NVIDIA-H200": "0", "deviceclass/gpu": "none"}, ""),
        ({"NVIDIA-H200": "3", "cpu": "4"}, '3 "NVIDIA-H200" in use'),
        (
            {"A": "1", "B": "500m", "C": "2", "D": "3", "E": "4"},
            '1 "A", 500m "B", 2 "C", 3 "D" and 1 more in use',
        ),
    ],
)
def test_whoever_deletes_a_queue_that_is_in_use_is_told_and_not_refused(
    allocated: dict[str, str] | None, told: str
) -> None:
    stored = a_queue("{}", status={"allocated": allocated})
    request = with_fields(creation(stored), operation="DELETE", object={}, old_object=stored)
    decision = answer(request)
    assert decision.allowed
    assert [told in warning for warning in decision.warnings] == ([True] if told else [])
    assert all(warning.startswith("status.allocated: ") for warning in decision.warnings)


def test_a_deletion_is_not_judged_as_a_write() -> None:
    """A quota that is malformed must not keep its queue alive."""
    request = with_fields(creation(a_queue("{")), operation="DELETE", object={}, old_object=a_queue("{"))
    assert answer(request).allowed


def test_an_empty_quota_that_is_stored_already_keeps_nobody_from_editing_the_queue() -> None:
    assert answer(update(a_queue(""), a_queue("", labels={"x": "y"}))).allowed
    assert codes(answer(update(a_queue("{}"), a_queue("")))) == [reasons.CARD_QUOTA_MALFORMED]
