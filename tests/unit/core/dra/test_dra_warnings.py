"""The device quota where it is written: what is admitted and mentioned."""

import json
from typing import Any

import pytest

from core import names, reasons
from core.admission.request import ClusterView, Decision
from core.dra.carriers import ANNOTATION_PATH
from tests.builders import a_queue
from tests.builders.objects import QueueBuilder
from tests.unit.core.admission.samples import answer, codes, update
from tests.unit.core.dra.writing import (
    GPU,
    NONE_LISTED,
    creating,
    in_annotation,
    in_spec,
    limit,
    with_keys,
)


def warned(decision: Decision) -> list[str]:
    assert decision.allowed
    assert all("\n" not in warning and len(warning) <= 256 for warning in decision.warnings)
    return list(decision.warnings)


def listing(*queues: QueueBuilder, classes: tuple[str, ...] | None = None) -> ClusterView:
    views = [queue.view() for queue in queues]
    return ClusterView(queues={view.name: view for view in views}, device_classes=classes)


def test_a_class_that_does_not_exist_is_mentioned() -> None:
    """W1"""
    queue = in_spec(limit({"count": 1}))
    assert warned(creating(queue, listing(classes=("nic",)))) == [
        'spec.dra.capability[gpu]: there is no DeviceClass "gpu" now'
    ]
    assert warned(creating(with_keys(deviceclass__gpu=1), listing(classes=())))
    assert warned(creating(queue, listing(classes=("gpu",)))) == []
    assert warned(creating(queue, listing(classes=None))) == []


def test_what_is_not_enforced_is_mentioned() -> None:
    """W2 and W3"""
    queue = in_spec({"deserved": GPU, "guarantee": GPU})
    assert warned(creating(queue)) == [
        "spec.dra.deserved: deserved is stored, but not enforced",
        "spec.dra.guarantee: guarantee is stored, but not enforced",
    ]
    assert warned(creating(in_annotation({"guarantee": {"nic": {"count": 1, "capacity": {"m": 1}}}}))) == [
        f"{ANNOTATION_PATH}.guarantee: guarantee is stored, but not enforced",
        f"{ANNOTATION_PATH}.guarantee[nic].capacity[m]: DeviceClass nic has a guarantee and nothing deserved",
    ]


def test_an_entry_of_null_is_mentioned() -> None:
    assert warned(creating(in_annotation(limit(None)))) == [
        f"{ANNOTATION_PATH}.capability[gpu]: null is as if it were not there: no limit"
    ]


ABOVE = (
    a_queue("team").child_of("org").put("spec", "dra", value=limit({"count": 5})),
    a_queue("org").put("spec", "dra", value=limit({"count": 1, "capacity": {"m": "1Gi"}})),
    a_queue("root").put("spec", "dra", value=limit({"count": 1}, "nic")),
)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (in_spec(limit({"count": 5})).child_of("team"), []),
        (
            in_spec(limit({"count": 6})).child_of("team"),
            [
                "spec.dra.capability[gpu].count: 6 is more than the 5 of queue team above; the smaller limit holds"
            ],
        ),
        (
            in_spec(limit({"count": 1, "capacity": {"m": "2Gi"}})).child_of("team"),
            [
                "spec.dra.capability[gpu].capacity[m]: 2147483648 is more than the 1073741824 of queue org above; the smaller limit holds"
            ],
        ),
        (
            in_spec(limit({"count": 2}, "nic")),
            [
                "spec.dra.capability[nic].count: 2 is more than the 1 of queue root above; the smaller limit holds"
            ],
        ),
        (in_spec(limit({"count": 9}, "other")).child_of("team"), []),
    ],
)
def test_a_limit_above_that_of_a_queue_above_is_mentioned(queue: QueueBuilder, expected: list[str]) -> None:
    """W4"""
    assert warned(creating(queue, listing(*ABOVE))) == expected
    assert warned(creating(queue, listing(*ABOVE), dra={"hierarchy": False})) == []


def test_a_limit_below_what_is_in_use_is_mentioned() -> None:
    """W5; by the status of the stored queue alone, since no verdict depends on usage."""
    stored = in_spec(limit({"count": 8, "capacity": {"m": 8}})).allocated(
        {"deviceclass/gpu": "5", "m.deviceclass/gpu": "1500m", "cpu": "9", "deviceclass/odd": "?"}
    )
    new = stored.put("spec", "dra", value=limit({"count": 4, "capacity": {"m": 1}}))
    assert warned(answer(update(stored.build(), new.build()), NONE_LISTED)) == [
        "spec.dra.capability[gpu].count: 5 of gpu are in use, more than 4; nothing is evicted, new pods wait",
        "spec.dra.capability[gpu].capacity[m]: 1500m of gpu/m are in use, more than 1; nothing is evicted, new pods wait",
    ]
    enough = stored.put("spec", "dra", value=limit({"count": 5, "capacity": {"m": 2}}))
    assert warned(answer(update(stored.build(), enough.build()), NONE_LISTED)) == []


def test_a_class_that_is_closed_is_mentioned() -> None:
    """W6; as a resource name 0 means something else."""
    assert warned(creating(in_spec(limit({"count": 0})))) == [
        "spec.dra.capability[gpu]: count 0: no pod of the queue may use DeviceClass gpu"
    ]
    assert warned(creating(with_keys(deviceclass__gpu=0))) == []


def applied(queue: QueueBuilder, spec: Any) -> QueueBuilder:
    return queue.annotation(names.LAST_APPLIED_ANNOTATION, json.dumps({"spec": spec}))


def test_a_quota_that_the_api_server_dropped_is_mentioned() -> None:
    """W7"""
    pruned = applied(a_queue("q"), {"dra": limit({"count": 8})})
    (warning,) = warned(creating(pruned))
    assert warning.startswith("spec.dra: was dropped")
    assert names.DRA_QUOTA_ANNOTATION in warning
    assert warned(answer(update(a_queue("q").build(), pruned.build()), NONE_LISTED)) == [warning]
    assert warned(answer(update(pruned.build(), pruned.label("a", "b").build()), NONE_LISTED)) == []
    for other in (
        pruned.put("spec", "dra", value={}),
        pruned.annotation(names.DRA_QUOTA_ANNOTATION, "{}"),
        pruned.put("spec", "capability", "deviceclass/gpu", value=8),
        applied(a_queue("q"), {"weight": 1}),
        applied(a_queue("q"), {"dra": {}}),
        a_queue("q").annotation(names.LAST_APPLIED_ANNOTATION, "{"),
        a_queue("q").annotation(names.LAST_APPLIED_ANNOTATION, "[" * 100_000),
    ):
        assert warned(creating(other)) == []


# -- parents -------------------------------------------------------------------------------------------------


def test_a_queue_is_not_its_own_parent() -> None:
    assert codes(creating(a_queue("q").child_of("q"))) == [reasons.QUEUE_HIERARCHY_BROKEN]
    assert creating(a_queue("q").child_of("q"), dra={"hierarchy": False}).allowed
    assert creating(a_queue("root").child_of("root")).allowed
    stored = a_queue("q").child_of("q")
    assert answer(update(stored.build(), stored.label("a", "b").build()), NONE_LISTED).allowed


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (a_queue("q").child_of("team"), ""),
        (a_queue("q").child_of("root"), ""),
        (a_queue("q"), ""),
        (a_queue("q").child_of("nowhere"), "queue q has the parent nowhere, which does not exist"),
        (a_queue("org").child_of("team"), "queue team has the parent org, which closes a circle"),
    ],
)
def test_a_parent_that_is_missing_or_closes_a_circle_is_mentioned(queue: QueueBuilder, words: str) -> None:
    """Another queue may still be created or mended: the order in which files are applied is not ours to dictate."""
    view = listing(a_queue("team").child_of("org"), a_queue("org"))
    warnings = warned(creating(queue, view))
    assert warnings == (
        [f"spec.parent: {words}; pods with claims wait until that is mended"] if words else []
    )
    assert warned(creating(queue, ClusterView())) == []
