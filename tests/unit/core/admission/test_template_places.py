"""An object with more pod templates than are looked at costs a review nothing, whatever its kind: they are counted, not read."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core import names, reasons, workload_readers
from core.admission.limits import MAX_PLACES
from core.pod_sets import PodSet, list_of, places_at
from core.workloads import TABLE, Workload
from tests.unit.core.admission.samples import answer, changed, codes, creation, update

Json = dict[str, Any]

MANY = [row for row in TABLE if any("[]" in path or "{}" in path for path in row.templates)]
every_kind = pytest.mark.parametrize("row", MANY, ids=lambda row: f"{row.group}/{row.kind}")


def at(path: str, count: int) -> Json:
    """An object with so many templates at a path."""
    head, mark, rest = path.partition("[]" if "[]" in path else "{}")
    item: Any = {"spec": {"containers": [{"name": "main", "image": "i"}]}, "container": {"image": "i"}}
    for key in reversed(rest.strip(".").split(".") if rest else []):
        item = {key: item}
    found: Any = [item] * count if mark == "[]" else {f"r{number}": item for number in range(count)}
    for key in reversed(head.split(".")):
        found = {key: found}
    made: Json = found
    return made


def an_object(row: Workload, count: int) -> Json:
    path = next(path for path in row.templates if "[]" in path or "{}" in path)
    about = {"apiVersion": f"{row.group}/v1", "kind": row.kind, "metadata": {"name": "w", "namespace": "ml"}}
    return {**about, **at(path, count)}


@every_kind
def test_beyond_the_limit_it_is_refused_before_any_template_is_read(
    row: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any) -> Iterator[PodSet]:
        raise AssertionError("a template was read")

    monkeypatch.setattr("core.pod_sets._templates", read)
    monkeypatch.setattr("core.pod_sets.PodSet", read)
    monkeypatch.setattr("core.workload_readers.PodSet", read)
    many = an_object(row, MAX_PLACES + 1)
    assert codes(answer(creation(many))) == [reasons.TOO_MANY_TEMPLATES]
    denial = answer(creation(many)).denial
    assert denial is not None
    where = next(path for path in map(list_of, row.templates) if path)
    said = "must have at most 500 new or changed templates, and 1,000 in all; make several objects of it"
    assert f"{where}: Too many: 1001: {said}" in denial.message
    assert codes(answer(update(an_object(row, MAX_PLACES), many))) == [reasons.TOO_MANY_TEMPLATES]


@every_kind
def test_what_is_stored_with_more_can_be_labelled_changed_and_cleaned_up_but_does_not_grow(
    row: Workload,
) -> None:
    stored = an_object(row, MAX_PLACES + 2)
    labelled = changed(stored, "metadata", labels={"a": "b"})
    for new in (labelled, an_object(row, MAX_PLACES + 1), an_object(row, 1)):
        assert answer(update(stored, new)).allowed
    assert codes(answer(update(stored, an_object(row, MAX_PLACES + 3)))) == [reasons.TOO_MANY_TEMPLATES]


@every_kind
def test_up_to_the_limit_what_changes_is_judged(row: Workload) -> None:
    old, new = an_object(row, MAX_PLACES - 1), an_object(row, MAX_PLACES)
    assert answer(update(old, new)).allowed
    assert codes(answer(creation(an_object(row, 500)))) == []
    assert codes(answer(creation(an_object(row, 501)))) == [reasons.TOO_MANY_TEMPLATES]


@pytest.mark.parametrize(
    ("path", "raw", "count"),
    [
        ("spec.template", {"spec": {"template": {}}}, 1),
        ("spec.template", {}, 0),
        ("spec.tasks[].template", {"spec": {"tasks": [1, {}, None]}}, 3),
        ("spec.templates[]", {"spec": {"templates": [{}, {}]}}, 2),
        ("spec.roles{}.template", {"spec": {"roles": {"a": {}, "b": {}}}}, 2),
        ("spec.a[].b{}.c[].d", {"spec": {"a": [{"b": {"x": {"c": [1, 2]}, "y": {"c": [3]}}}, {}, 7]}}, 3),
        ("spec.tasks[].template", {"spec": []}, 0),
        ("spec.tasks[].template", {"spec": {"tasks": "many"}}, 0),
        ("spec.tasks[].template", {}, 0),
    ],
)
def test_templates_are_counted_by_what_they_stand_in(path: str, raw: Json, count: int) -> None:
    assert places_at(path, raw) == count


class TestAnnotationsOfAllSteps:
    """Each step of an Argo workflow has those of `podMetadata`, however many there are."""

    @staticmethod
    def templates(annotations: dict[str, str], steps: int = 3) -> list[Any]:
        spec = {
            "podMetadata": {"annotations": annotations},
            "templates": [{"container": {"image": "i"}}] * steps,
        }
        return [
            made.template["metadata"]["annotations"]
            for made in workload_readers.steps("spec")({"spec": spec}, 0)
        ]

    def test_those_that_rules_are_about_count(self) -> None:
        ours = {names.CARD_NAME_ANNOTATION: "A", f"{names.GPU_INDEX_GUARD_PREFIX}main": "0"}
        assert self.templates({"example.com/a": "b", **ours}) == [ours] * 3

    @pytest.mark.parametrize(
        "name",
        [lambda number: f"example.com/a{number}", lambda number: f"{names.GPU_INDEX_GUARD_PREFIX}c{number}"],
    )
    def test_no_more_are_copied_than_anybody_is_told_of(self, name: Callable[[int], str]) -> None:
        many = {name(number): "" for number in range(50_000)}
        assert sum(map(len, self.templates(many, 500))) <= 500 * 200
