"""The device quota where it is written: every refusal, whichever of the three places holds it."""

import json
from typing import Any

import pytest

from core import names, reasons
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

DEEP = "a" * 63
FINE: dict[str, Any] = {
    "null for the whole": None,
    "nothing": {},
    "null for a map": {"capability": None, "deserved": None, "guarantee": None},
    "empty maps": {"capability": {}, "deserved": {}, "guarantee": {}},
    "null for an entry": limit(None),
    "null for the capacity": limit({"count": 1, "capacity": None}),
    "a float that is whole": limit({"count": 8.0}),
    "a count of nothing": limit({"count": 0}),
    "the greatest count": limit({"count": 2**63 - 1}),
    "a class of the greatest length": limit({"count": 1}, f"{DEEP}.{DEEP}.{DEEP}.{'a' * 61}"),
    "a dimension of the greatest length": limit({"count": 1, "capacity": {f"{DEEP}/{'_' * 32}": 1}}),
    "an integer for a quantity": limit({"count": 1, "capacity": {"cores": 800, "memory": "80Gi", "zero": 0}}),
    "fractions": limit({"count": 1, "capacity": {"cores": "1.5", "memory": "500m", "more": 0.25}}),
    "guarantee, deserved and capability in order": {
        "guarantee": {"gpu": {"count": 1, "capacity": {"m": "1"}}},
        "deserved": {"gpu": {"count": 1, "capacity": {"m": 1}}},
        "capability": {"gpu": {"count": 1, "capacity": {"m": "1000m"}}},
    },
    "what only one side names is not compared": {
        "guarantee": {"gpu": {"count": 1, "capacity": {"m": 5}}, "nic": {"count": 9}},
        "deserved": {"gpu": {"count": 1, "capacity": {"n": 5}}},
        "capability": {"gpu": {"count": 1, "capacity": {"n": 5}}},
    },
}

MALFORMED: dict[str, tuple[Any, str, str]] = {
    # E1
    "a map that is a list": ({"capability": []}, ".capability", "must be an object"),
    "a map that is a text": ({"deserved": "x"}, ".deserved", "must be an object"),
    "an entry that is a number": (limit(8), ".capability[gpu]", "must be an object"),
    "a capacity that is a list": (limit({"count": 1, "capacity": []}), ".capability[gpu].capacity", "object"),
    # E2
    "a misspelt map": ({"capabilty": GPU}, "[capabilty]", "is not known"),
    "a misspelt member": (
        limit({"count": 1, "capacities": {}}),
        ".capability[gpu][capacities]",
        "is not known",
    ),
    # E3
    "no count": (limit({}), ".capability[gpu].count", "must be given"),
    "only a capacity": (limit({"capacity": {"m": 1}}), ".capability[gpu].count", "must be given"),
    "null for a count": (limit({"count": None}), ".capability[gpu].count", "must be given"),
    # E4
    "a text for a count": (limit({"count": "8"}), ".capability[gpu].count", "integer"),
    "a truth for a count": (limit({"count": True}), ".capability[gpu].count", "integer"),
    "a fraction of devices": (limit({"count": 1.5}), ".capability[gpu].count", "integer"),
    # E5
    "a negative count": (limit({"count": -1}), ".capability[gpu].count", "negative"),
    "too large a count": (limit({"count": 2**63}), ".capability[gpu].count", "at most"),
    "too large a float": (limit({"count": 1e19}), ".capability[gpu].count", "at most"),
    # E6
    "an empty class": (limit({"count": 1}, ""), ".capability[]", "name of a DeviceClass"),
    "a class in capitals": (limit({"count": 1}, "GPU"), ".capability[GPU]", "name of a DeviceClass"),
    "a class with a slash": (limit({"count": 1}, "a/b"), ".capability[a/b]", "name of a DeviceClass"),
    "a class with a line end": (limit({"count": 1}, "gpu\n"), ".capability[gpu\\n]", "name of a DeviceClass"),
    "too long a class": (limit({"count": 1}, "a" * 254), ".capability[aaa", "name of a DeviceClass"),
    # E7
    "a dimension with a dash": (limit({"count": 1, "capacity": {"a-b": 1}}), "capacity[a-b]", "capacity"),
    "a dimension that starts with a digit": (limit({"count": 1, "capacity": {"1a": 1}}), "[1a]", "capacity"),
    "an empty dimension": (limit({"count": 1, "capacity": {"": 1}}), ".capacity[]", "capacity"),
    "too long a dimension": (limit({"count": 1, "capacity": {"a" * 33: 1}}), "[aaa", "capacity"),
    "a dimension with an empty domain": (limit({"count": 1, "capacity": {"/a": 1}}), "[/a]", "capacity"),
    "too long a domain": (limit({"count": 1, "capacity": {f"a{DEEP}/m": 1}}), "[aaa", "capacity"),
    "two slashes": (limit({"count": 1, "capacity": {"a/b/c": 1}}), "[a/b/c]", "capacity"),
    # E8
    "a unit that is none": (limit({"count": 1, "capacity": {"m": "80GB"}}), ".capacity[m]", "quantity"),
    "a blank in a quantity": (limit({"count": 1, "capacity": {"m": "10 Gi"}}), ".capacity[m]", "quantity"),
    "an empty quantity": (limit({"count": 1, "capacity": {"m": ""}}), ".capacity[m]", "quantity"),
    "a truth for a quantity": (limit({"count": 1, "capacity": {"m": True}}), ".capacity[m]", "quantity"),
    "null for a quantity": (limit({"count": 1, "capacity": {"m": None}}), ".capacity[m]", "quantity"),
    "a negative quantity": (limit({"count": 1, "capacity": {"m": "-1"}}), ".capacity[m]", "negative"),
}

CONTRADICTORY: dict[str, tuple[Any, str]] = {
    # E9
    "deserved above capability": (
        {"deserved": {"gpu": {"count": 9}}, "capability": GPU},
        ".deserved[gpu].count",
    ),
    "guarantee above deserved": (
        {"guarantee": {"gpu": {"count": 9}}, "deserved": GPU},
        ".guarantee[gpu].count",
    ),
    "guarantee above capability": (
        {"guarantee": {"gpu": {"count": 9}}, "capability": GPU},
        ".guarantee[gpu].count",
    ),
    "a dimension above its limit": (
        {
            "deserved": {"gpu": {"count": 1, "capacity": {"m": "1001m"}}},
            "capability": {"gpu": {"count": 1, "capacity": {"m": 1}}},
        },
        ".deserved[gpu].capacity[m]",
    ),
}


@pytest.mark.parametrize("place", [in_spec, in_annotation])
@pytest.mark.parametrize("dra", FINE.values(), ids=FINE)
def test_a_quota_that_can_be_read_is_admitted(place: Any, dra: Any) -> None:
    if dra is not None or place is in_spec:
        assert creating(place(dra)).allowed


@pytest.mark.parametrize(("place", "prefix"), [(in_spec, "spec.dra"), (in_annotation, ANNOTATION_PATH)])
@pytest.mark.parametrize(("dra", "path", "words"), MALFORMED.values(), ids=MALFORMED)
def test_a_quota_that_cannot_be_read_is_refused_by_its_path(
    place: Any, prefix: str, dra: Any, path: str, words: str
) -> None:
    denial = creating(place(dra)).denial
    assert denial is not None
    assert {violation.code for violation in denial.violations} == {reasons.DEVICE_QUOTA_MALFORMED}
    assert any(each.path.startswith(prefix) and path in each.path for each in denial.violations)
    assert words in denial.message
    assert (denial.status, denial.reason) == (400, "BadRequest")


@pytest.mark.parametrize("dra", [[], "x", 8, True])
def test_spec_dra_must_be_an_object(dra: Any) -> None:
    assert codes(creating(in_spec(dra))) == [reasons.DEVICE_QUOTA_MALFORMED]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "ends too early"),
        (" ", "blank"),
        ('{"capability": {}, "capability": {}}', "duplicate key"),
        ('{"capability": {"a": {"count": 1}, "a": {"count": 2}}}', "duplicate key"),
        ('{"capability": {"a": {"count": NaN}}}', "NaN"),
        ("[]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ("{} {}", "Extra data"),
    ],
)
def test_the_annotation_is_one_json_object(text: str, words: str) -> None:
    """E11"""
    decision = creating(in_annotation(text))
    assert codes(decision) == [reasons.DEVICE_QUOTA_MALFORMED]
    assert decision.denial is not None
    assert words in decision.denial.message


@pytest.mark.parametrize("place", [in_spec, in_annotation])
@pytest.mark.parametrize(("dra", "path"), CONTRADICTORY.values(), ids=CONTRADICTORY)
def test_parts_that_contradict_each_other_are_refused(place: Any, dra: Any, path: str) -> None:
    denial = creating(place(dra)).denial
    assert denial is not None
    assert [violation.code for violation in denial.violations] == [reasons.DEVICE_QUOTA_CONTRADICTORY]
    assert denial.violations[0].path.endswith(path)


SPEC = in_spec(limit({"count": 8, "capacity": {"m": "1Gi"}}))
SAME = json.dumps(limit({"count": 8, "capacity": {"m": 2**30}}))


@pytest.mark.parametrize(
    ("queue", "path"),
    [
        (SPEC.annotation(names.DRA_QUOTA_ANNOTATION, SAME), ""),
        (SPEC.put("spec", "capability", value={"deviceclass/gpu": "8", "m.deviceclass/gpu": "1Gi"}), ""),
        (SPEC.annotation(names.DRA_QUOTA_ANNOTATION, json.dumps(limit({"count": 9}, "nic"))), ""),
        (
            SPEC.annotation(names.DRA_QUOTA_ANNOTATION, json.dumps(limit({"count": 8}))),
            f"{ANNOTATION_PATH}.capability[gpu]",
        ),
        (
            SPEC.annotation(names.DRA_QUOTA_ANNOTATION, SAME.replace("8", "9")),
            f"{ANNOTATION_PATH}.capability[gpu]",
        ),
        (SPEC.put("spec", "capability", "deviceclass/gpu", value=8), "spec.capability[deviceclass/gpu]"),
        (
            in_annotation(limit({"count": 8})).put("spec", "capability", "deviceclass/gpu", value=7),
            "spec.capability[deviceclass/gpu]",
        ),
        # As resource names 0 devices means "not limited".
        (
            in_annotation(limit({"count": 0})).put("spec", "capability", "deviceclass/gpu", value=0),
            "spec.capability[deviceclass/gpu]",
        ),
    ],
)
def test_a_class_has_the_same_limits_wherever_it_is_limited(queue: QueueBuilder, path: str) -> None:
    """E10"""
    decision = creating(queue)
    assert codes(decision) == ([reasons.DEVICE_QUOTA_CONTRADICTORY] if path else [])
    if decision.denial is not None:
        assert decision.denial.violations[0].path == path


def test_contradictions_are_seen_across_the_places() -> None:
    queue = in_annotation({"deserved": {"gpu": {"count": 9}}}).put("spec", "dra", value=limit({"count": 8}))
    assert codes(creating(queue)) == [reasons.DEVICE_QUOTA_CONTRADICTORY]


def test_amounts_by_resource_name_must_not_be_negative() -> None:
    assert creating(with_keys(deviceclass__gpu="8", **{"m.deviceclass__gpu": 0, "cpu": -1})).allowed
    for name in ("deviceclass__gpu", "m.deviceclass__gpu"):
        assert codes(creating(with_keys(**{name: "-1"}))) == [reasons.DEVICE_QUOTA_MALFORMED]


def test_everything_wrong_is_said_at_once() -> None:
    queue = in_annotation("[]").put(
        "spec", "dra", value={"x": 1, **limit({"count": "8", "capacity": {"m": ""}})}
    )
    assert len(codes(creating(queue))) == 4


# -- what is stored stays editable ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stored", [in_spec(limit({"count": "8"})), in_annotation("{"), with_keys(deviceclass__gpu=-1)]
)
def test_a_bad_quota_that_is_stored_does_not_lock_the_queue(stored: QueueBuilder) -> None:
    old = stored.build()
    for new in (
        stored.put("spec", "weight", value=2),
        stored.terminating(),
        stored.label("a", "b"),
        a_queue("q"),
    ):
        assert answer(update(old, new.build()), NONE_LISTED).allowed
    assert not answer(update(a_queue("q").build(), old), NONE_LISTED).allowed
    assert not answer(update(old, stored.put("spec", "dra", value=[]).build()), NONE_LISTED).allowed


def test_switched_off_nothing_is_judged() -> None:
    assert creating(in_annotation("{"), features={"dra": False}).allowed
