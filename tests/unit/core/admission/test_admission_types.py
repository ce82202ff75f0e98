"""A value of every JSON type at every field that a rule reads: a clear answer, whoever sends it, and of whatever kind.

The API server checks the types of its own kinds before it asks, those of custom resources afterwards, and those of a file
nobody.
"""

import copy
import json
from typing import Any

import pytest

from core import names, reasons
from core.admission.dispatch import RULES, Rule, answer, judge
from core.admission.request import Context
from core.objects.node_rules import REQUIRED
from core.settings import Settings
from kube.admission import wire
from tests.property.admission_objects import CONTROLLER, closed_view, view
from tests.unit.core.admission.samples import GATE, codes, creation, update, with_fields

Json = dict[str, Any]
Place = tuple[str | int, ...]
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    10**30,
    1.5,
    "",
    "x",
    [],
    [None],
    ["x"],
    [[]],
    [{}],
    {},
    {"x": 1},
    {"x": None},
)
CONTEXTS = (
    Context(view(), Settings(), frozenset({CONTROLLER})),
    Context(closed_view(), Settings.model_validate({"cards": {"pods_without_card_name": "infer"}})),
)

OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "j",
    "uid": "u",
    "controller": True,
}
METADATA = {
    "name": "x",
    "generateName": "x-",
    "namespace": "ml",
    "labels": {names.MANAGED_LABEL: "true"},
    "ownerReferences": [OWNER],
    "managedFields": [
        {"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:allocated": {"f:cpu": {}}}}}
    ],
    "annotations": {
        names.CARD_NAME_ANNOTATION: "A",
        names.CARD_REQUEST_ANNOTATION: '{"A": 1}',
        names.CARD_QUOTA_ANNOTATION: '{"A": 1}',
        names.DRA_QUOTA_ANNOTATION: '{"capability": {"c": {"count": 1}}}',
        names.NAMESPACES_ANNOTATION: "ml",
        names.NAMESPACE_SELECTOR_ANNOTATION: "a=b",
        names.LAST_APPLIED_ANNOTATION: "{}",
        names.QUEUE_NAME_ANNOTATION: "q",
        names.JOB_QUEUE_ANNOTATION: "q",
        names.MGPU_MULTIPLE_ANNOTATION: "1",
        names.MGPU_POLICY_KEY: "fixed-share",
        names.CROSSQUOTA_STRATEGY_ANNOTATION: "most-allocated",
        names.CROSSQUOTA_PREFIX + "cpu": "1",
    },
}
AMOUNTS = {
    "limits": {"nvidia.com/gpu": "1", names.MGPU_CORE: "50"},
    "requests": {"nvidia.com/gpu": "1", names.MGPU_MEMORY: "1024"},
}
CONTAINER = {"name": "c", "restartPolicy": "Always", "resources": AMOUNTS}
EXPRESSIONS = [{"key": "k", "operator": "In", "values": ["v"]}]
TERMS = [{"matchExpressions": EXPRESSIONS, "matchFields": EXPRESSIONS}]
POD: Json = {
    "metadata": METADATA,
    "spec": {
        "nodeName": "",
        "schedulerName": "volcano",
        "containers": [CONTAINER],
        "initContainers": [CONTAINER],
        "resourceClaims": [{"name": "c", "resourceClaimName": "n", "resourceClaimTemplateName": "t"}],
        "schedulingGates": [GATE],
        "overhead": {"cpu": "1"},
        "resources": AMOUNTS,
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": TERMS}}},
    },
}
CLASSES = {"c": {"count": 1, "capacity": {"memory": "1Gi"}}}
QUEUE: Json = {
    "metadata": METADATA,
    "spec": {
        "parent": "q",
        "capability": {"deviceclass/c": "1"},
        "dra": {"capability": CLASSES, "deserved": CLASSES, "guarantee": CLASSES},
    },
    "status": {"allocated": {"A": "1"}, "state": "Open"},
}
SCHEMA: Json = {"openAPIV3Schema": {"properties": {"spec": {"properties": {}}}}}
BODIES: dict[str, Json] = {
    "Pod": POD,
    "Queue": QUEUE,
    "Node": {"metadata": METADATA},
    "CustomResourceDefinition": {
        "metadata": {"name": "queues.scheduling.volcano.sh"},
        "spec": {
            "group": "scheduling.volcano.sh",
            "names": {"kind": "Queue"},
            "versions": [{"schema": SCHEMA}],
        },
    },
    "PodGroup": {"metadata": METADATA, "spec": {"queue": "q"}},
    "CronJob": {"metadata": METADATA, "spec": {"jobTemplate": {"spec": {"template": POD}}}},
}
TASKS = [{"name": "t", "replicas": 1, "template": POD}]


def sample(rule: Rule) -> Json:
    """An object of the kind of the rule in which every field that is read has a value."""
    body = BODIES.get(rule.kind, {"metadata": METADATA, "spec": {"template": POD}})
    if rule.group == "batch.volcano.sh":
        body = {"metadata": METADATA, "spec": {"queue": "q", "schedulerName": "volcano", "tasks": TASKS}}
    version = f"{rule.group}/v1" if rule.group else "v1"
    # Through JSON, so that no part of it stands in two places.
    made: Json = json.loads(json.dumps({"apiVersion": version, "kind": rule.kind, **body}))
    return made


def places(value: Any, at: Place = ()) -> list[Place]:
    """Every place in an object, but what says its kind."""
    members: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = [(*at, key) for key, _ in members if (*at, key) not in {("apiVersion",), ("kind",)}]
    return found + [deeper for key, member in members for deeper in places(member, (*at, key))]


def replaced(raw: Json, place: Place, odd: Any) -> Json:
    """The object with another value in one place."""
    made: Any = copy.deepcopy(raw)
    target = made
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = copy.deepcopy(odd)
    result: Json = made
    return result


CASES = [
    pytest.param(rule, place, id=f"{rule.path}-{rule.resource}-{'.'.join(map(str, place))}")
    for rule in RULES
    for place in places(sample(rule))
]


@pytest.mark.parametrize(("rule", "place"), CASES)
def test_every_type_everywhere_gets_an_answer(rule: Rule, place: Place) -> None:
    """In the object that is written, and in the one that is stored, which nobody checks again."""
    good = sample(rule)
    for odd in ODD:
        bad = replaced(good, place, odd)
        deletion = with_fields(update(bad, {**bad}), operation="DELETE", object={})
        for request in (creation(bad), update(good, bad), update(bad, good), update(bad, bad), deletion):
            for sub in sorted(rule.subresources):
                for context in CONTEXTS:
                    decision = answer(with_fields(request, subresource=sub), context, rule)
                    assert wire.encode("u", decision)
                    assert decision.patch == () or decision.denial is None


WRONG_OF_POD: dict[Place, Any] = {
    ("metadata",): 1,
    ("spec",): "x",
    ("metadata", "name"): 1,
    ("metadata", "generateName"): [],
    ("metadata", "namespace"): {},
    ("metadata", "annotations"): "x",
    ("metadata", "annotations", names.CARD_NAME_ANNOTATION): {"A": 1},
    ("metadata", "labels"): ["x"],
    ("metadata", "labels", names.MANAGED_LABEL): True,
    ("spec", "nodeName"): 1,
    ("spec", "schedulerName"): [],
    ("spec", "overhead"): "1",
    ("spec", "overhead", "cpu"): [],
    ("spec", "resourceClaims"): {},
    ("spec", "resourceClaims", 0): None,
    ("spec", "resourceClaims", 0, "name"): 1,
    ("spec", "resourceClaims", 0, "resourceClaimName"): [],
    ("spec", "resourceClaims", 0, "resourceClaimTemplateName"): {},
    ("spec", "schedulingGates"): "x",
    ("spec", "schedulingGates", 0): [],
    ("spec", "schedulingGates", 0, "name"): 1,
    **{
        ("spec", kind, *place): wrong
        for kind in ("containers", "initContainers")
        for place, wrong in (
            ((), {}),
            ((0,), None),
            ((0, "name"), 1),
            ((0, "restartPolicy"), []),
            ((0, "resources"), "x"),
            ((0, "resources", "limits"), []),
            ((0, "resources", "limits", "nvidia.com/gpu"), True),
            ((0, "resources", "requests"), 1),
            ((0, "resources", "requests", names.MGPU_MEMORY), {}),
        )
    },
}
PODS_OF = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "batch.volcano.sh": ("spec", "tasks", 0, "template"),
}


def written(place: Place) -> str:
    """A place as messages write it."""
    text = ""
    for key, before in zip(place, ("", *place), strict=False):
        entry = isinstance(key, int) or before in {"annotations", "labels", "limits", "requests", "overhead"}
        text += f"[{key}]" if entry else f".{key}"
    return text.removeprefix(".")


@pytest.mark.parametrize("kind", PODS_OF)
@pytest.mark.parametrize("place", WRONG_OF_POD, ids=written)
def test_a_wrong_type_is_named_by_its_place(kind: str, place: Place) -> None:
    rule = next(rule for rule in RULES if rule.judge and kind in (rule.kind, rule.group))
    where = (*PODS_OF[kind], *place)
    bad = replaced(sample(rule), where, WRONG_OF_POD[place])
    found = judge(creation(bad), CONTEXTS[0], (rule,))
    assert [(violation.code, violation.path) for violation in found.violations] == [
        (reasons.OBJECT_MALFORMED, written(where))
    ]


@pytest.mark.parametrize("place", WRONG_OF_POD, ids=written)
def test_a_pod_with_a_wrong_type_is_not_patched(place: Place) -> None:
    rule = RULES[0]
    bad = replaced(sample(rule), place, WRONG_OF_POD[place])
    assert answer(creation(bad), CONTEXTS[0], rule).patch == ()
    assert codes(answer(creation(bad), CONTEXTS[0], rule)) == []
