"""What one review costs: calls in proportion to the object, and never more than fit into a tenth of a second.

Calls are counted, of Python and of built-in functions alike; times would say how busy the machine is.
"""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from core import names, reasons
from core.admission.dispatch import PATHS, answer
from core.admission.request import AdmissionRequest, Context, Decision
from core.objects.node_rules import REQUIRED
from core.settings import Settings
from kube.admission import wire
from tests.fakes.counted import calls_of
from tests.property.admission_objects import view
from tests.unit.core.admission.samples import a_card_pod, an_mgpu_pod, codes

Json = dict[str, Any]
LARGEST = 3 * 2**20
"""Bytes: the API server takes in no larger object."""
MOST = 500_000
"""Calls; a million of them take about a tenth of a second."""
GROWTH = 8
STORED = 20_000
WORKLOADS = "/validate/workloads"
VOLCANO_JOBS = ("batch.volcano.sh", "jobs")
SETTINGS = Settings(cards={"pods_without_card_name": "infer"})  # type: ignore[arg-type]


def several(item: Callable[[int], Any], count: int) -> list[Any]:
    return [item(number) for number in range(count)]


def entries(key: str, value: str, count: int) -> dict[str, str]:
    return {key.format(number): value.format(number) for number in range(count)}


def resources(count: int, name: str = "x.com/a{}", value: str = "1.5e{}") -> Json:
    return {"resources": {"limits": entries(name, value, count)}}


def annotated(count: int, key: str) -> Json:
    return {**a_card_pod("A")["metadata"], "annotations": entries(key, "", count)}


def terms(count: int) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": several(lambda _: {}, count)}}}


CONTAINERS: dict[str, Callable[[int], Json]] = {
    "nothing": lambda _: {},
    "an amount of its own": lambda number: resources(1, f"x.com/{number}", f"1.{number}"),
    "mGPU": lambda number: resources(1, names.MGPU_CORE, "x"),
    "a long name and mGPU": lambda number: {"name": "n" * 60, **resources(1, names.MGPU_CORE, "50")},
    "a sidecar": lambda number: {"restartPolicy": "Always", **resources(1, f"x.com/{number}", "1")},
}


def listing(key: str, one: Callable[[int], Json]) -> Callable[[int], Json]:
    return lambda count: {key: several(one, count)}


SPECS: dict[str, Callable[[int], Json]] = {
    **{f"containers: {name}": listing("containers", one) for name, one in CONTAINERS.items()},
    **{f"inits: {name}": listing("initContainers", one) for name, one in CONTAINERS.items()},
    "amounts": lambda n: {"containers": [resources(n)]},
    "amounts of the pod": resources,
    "overhead": lambda n: {"overhead": entries("a{}", "1.5e{}", n)},
    "claims": lambda n: {"resourceClaims": several(lambda _: {}, n)},
    "gates": lambda n: {"schedulingGates": several(lambda _: {}, n)},
    "terms": lambda n: {"affinity": terms(n)},
    "no container": lambda n: {"containers": several(lambda _: 0, n)},
    "the last is no container": lambda n: {"containers": [*several(lambda _: {}, n), 0]},
}
METADATA: dict[str, Callable[[int], Json]] = {
    "annotations": lambda n: annotated(n, "a{}"),
    "records": lambda n: annotated(n, names.OWN_PREFIX + "{}"),
    "GPU indexes": lambda n: annotated(n, names.GPU_INDEX_PREFIX + "{}"),
    "labels": lambda n: {"labels": entries("a{}", "", n)},
    "owners": lambda n: {"ownerReferences": several(lambda _: {}, n)},
    "alternatives": lambda n: {"annotations": {names.CARD_NAME_ANNOTATION: "|".join(several(str, n))}},
    "counts": lambda n: {"annotations": {names.MGPU_MULTIPLE_ANNOTATION: ",".join(several(str, n))}},
}


def of_kind(path: str, group: str, resource: str, raw: Json, old: Json | None = None) -> AdmissionRequest:
    operation = "CREATE" if old is None else "UPDATE"
    kind = next(rule.kind for rule in PATHS[path] if (rule.group, rule.resource) == (group, resource))
    return AdmissionRequest(
        "u", group, resource, kind, operation, "", "ml", "x", "jane", "", False, raw, old or {}
    )


def pods(raw: Json) -> list[tuple[str, AdmissionRequest]]:
    """The ways of a new pod through the house: as it is, and as a template."""
    deployment = {"metadata": {"name": "d"}, "spec": {"template": raw}}
    job = {"metadata": {"name": "j"}, "spec": {"tasks": [{"name": "t", "template": raw}]}}
    return [
        ("/mutate/pods", of_kind("/mutate/pods", "", "pods", raw)),
        ("/validate/pods", of_kind("/validate/pods", "", "pods", raw)),
        ("/validate/workloads", of_kind("/validate/workloads", "apps", "deployments", deployment)),
        ("/validate/workloads", of_kind("/validate/workloads", "batch.volcano.sh", "jobs", job)),
    ]


def updates(raw: Json) -> list[tuple[str, AdmissionRequest]]:
    """A stored pod that becomes this one, or was this one."""
    path, other = "/validate/pods", a_card_pod("B", gated=True)
    return [(path, of_kind(path, "", "pods", *both)) for both in ((raw, other), (other, raw))]


def calls(path: str, request: AdmissionRequest) -> tuple[int, Decision]:
    """How many calls the answer takes, its encoding included."""
    rule = next(r for r in PATHS[path] if (r.group, r.resource) == (request.group, request.resource))
    decisions: list[Decision] = []

    def answered() -> None:
        decisions.append(answer(request, Context(view(), SETTINGS), rule))
        wire.encode("u", decisions[0])

    counted = calls_of(answered)
    return counted, decisions[0]


def fitting(made: Callable[[int], Json]) -> int:
    """So many parts that the object has the largest size, but no more than the reader of bodies lets through."""
    size = len(orjson.dumps(made(1000))) - len(orjson.dumps(made(0)))
    return min(200_000, LARGEST * 1000 // size)


def with_part(base: Json, part: str, made: Callable[[int], Json]) -> Callable[[int], Json]:
    return lambda count: {**base, part: {**base[part], **made(count)}}


def shapes() -> list[tuple[str, Callable[[int], Json]]]:
    parts = (("spec", SPECS), ("metadata", METADATA))
    return [
        (name, with_part(base, part, made))
        for base in (a_card_pod("A"), an_mgpu_pod())
        for part, table in parts
        for name, made in table.items()
    ]


SHAPES = [pytest.param(made, id=f"{name}-{number}") for number, (name, made) in enumerate(shapes())]


@pytest.mark.parametrize("made", SHAPES)
def test_the_cost_of_a_pod_grows_with_its_size_and_no_faster(made: Callable[[int], Json]) -> None:
    small, large = made(150), made(150 * GROWTH)
    ways = zip((*pods(small), *updates(small)), (*pods(large), *updates(large)), strict=True)
    for (path, less), (_, more) in ways:
        # What was read once is remembered.
        calls(path, less), calls(path, more)
        assert calls(path, more)[0] <= 1.3 * GROWTH * calls(path, less)[0]


@pytest.mark.parametrize("made", SHAPES)
def test_a_pod_of_the_largest_size_is_answered_at_once(made: Callable[[int], Json]) -> None:
    largest = fitting(made)
    # What is stored the API server has looked at before: there are at most 256 KiB of annotations.
    for path, request in (*pods(made(largest)), *updates(made(min(largest, STORED)))):
        assert calls(path, request)[0] <= MOST


def quotas() -> dict[str, tuple[str, str, str, Callable[[int], Json]]]:
    def metadata(key: str, text: Callable[[int], str]) -> Callable[[int], Json]:
        return lambda n: {"metadata": {"name": "q", "annotations": {key: text(n)}}, "spec": {}}

    def of_spec(spec: Callable[[int], Json]) -> Callable[[int], Json]:
        return lambda n: {"metadata": {"name": "q"}, "spec": spec(n)}

    def cards(count: int) -> str:
        return orjson.dumps({f"a{number}": number for number in range(count)}).decode()

    def classes(count: int) -> Json:
        return {"capability": {f"a{number}": {"count": 1} for number in range(count)}}

    queue, group = (
        ("/validate/queues", "scheduling.volcano.sh"),
        ("/validate/workloads", "scheduling.volcano.sh"),
    )
    return {
        "cards": (*queue, "queues", metadata(names.CARD_QUOTA_ANNOTATION, cards)),
        "request": (*group, "podgroups", metadata(names.CARD_REQUEST_ANNOTATION, cards)),
        "devices": (
            *queue,
            "queues",
            metadata(names.DRA_QUOTA_ANNOTATION, lambda n: orjson.dumps(classes(n)).decode()),
        ),
        "spec.dra": (*queue, "queues", of_spec(lambda n: {"dra": classes(n)})),
        "keys": (*queue, "queues", of_spec(lambda n: {"capability": entries("deviceclass/a{}", "{}", n)})),
        "nodes": (
            "/validate/nodes",
            "",
            "nodes",
            lambda n: {"metadata": annotated(n, names.CROSSQUOTA_PREFIX + "a{}")},
        ),
    }


@pytest.mark.parametrize("name", quotas())
def test_so_it_is_with_quotas(name: str) -> None:
    path, group, resource, made = quotas()[name]
    costs = [
        calls(path, of_kind(path, group, resource, made(count)))[0] for count in (500, 4000, fitting(made))
    ]
    assert costs[1] <= 1.3 * 8 * costs[0]
    assert costs[2] <= MOST


LISTED: dict[tuple[str, str], Callable[[list[Json]], Json]] = {
    VOLCANO_JOBS: lambda all_: {"tasks": named(all_, lambda each: {"template": each})},
    ("flow.volcano.sh", "jobtemplates"): lambda all_: {"tasks": named(all_, lambda each: {"template": each})},
    ("ray.io", "rayclusters"): lambda all_: {"workerGroupSpecs": [{"template": each} for each in all_]},
    ("kubeflow.org", "pytorchjobs"): lambda all_: {
        "pytorchReplicaSpecs": {f"r{number}": {"template": each} for number, each in enumerate(all_)}
    },
    ("jobset.x-k8s.io", "jobsets"): lambda all_: {
        "replicatedJobs": named(all_, lambda each: {"template": {"spec": {"template": each}}})
    },
    ("argoproj.io", "workflows"): lambda all_: {
        "templates": named(all_, lambda each: {"metadata": each["metadata"], "containerSet": each["spec"]})
    },
}
"""Kinds with any number of templates, and how their spec holds them."""


def named(templates: list[Json], holder: Callable[[Json], Json]) -> list[Json]:
    return [{"name": f"t{number}", **holder(each)} for number, each in enumerate(templates)]


def asking_for(amounts: int) -> Json:
    """A template of so many parts and the five of its container."""
    container = resources(amounts - 1)
    container["resources"]["limits"]["nvidia.com/gpu"] = "1"
    return {
        "metadata": {"annotations": {names.CARD_NAME_ANNOTATION: "A"}},
        "spec": {"containers": [container]},
    }


def in_a_gang(size: int) -> Json:
    """The metadata of a member of a gang of so many."""
    gang = {names.GANG_NAME_ANNOTATION: "g", names.GANG_SIZE_ANNOTATION: str(size)}
    return {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: "A", **gang}}}


def of_templates(
    kind: tuple[str, str], templates: list[Json], old: list[Json] | None = None
) -> tuple[int, Decision]:
    made = LISTED[kind]
    written, stored = (
        None if each is None else {"metadata": {"name": "j"}, "spec": made(each)} for each in (templates, old)
    )
    return calls(WORKLOADS, of_kind(WORKLOADS, *kind, written or {}, stored))


@pytest.mark.parametrize("kind", LISTED)
class TestAllTemplatesOfAnObjectTogether:
    def test_they_are_limited(self, kind: tuple[str, str]) -> None:
        counted, decision = of_templates(kind, [asking_for(300)] * 400)
        assert counted <= MOST
        assert codes(decision) == [reasons.OBJECT_TOO_LARGE]
        assert decision.denial is not None
        path = "spec.tasks" if kind == VOLCANO_JOBS else "spec"
        assert f"{path}: Too many: must have at most 20,000 containers" in decision.denial.message

    def test_those_after_the_limit_are_not_even_taken_apart(self, kind: tuple[str, str]) -> None:
        """But for that there are so many: what it takes to find one and to compare it with what is stored."""
        of_templates(kind, [asking_for(1000)] * 21)
        first, _ = of_templates(kind, [asking_for(1000)] * 21)
        all_, _ = of_templates(kind, [asking_for(1000)] * 500)
        assert all_ - first <= 50 * (500 - 21)

    def test_as_many_as_are_allowed_are_judged_in_time(self, kind: tuple[str, str]) -> None:
        counted, decision = of_templates(kind, [asking_for(195)] * 100)
        assert counted <= MOST
        assert codes(decision) == []
        assert codes(of_templates(kind, [*[asking_for(195)] * 99, asking_for(196)])[1]) == [
            reasons.OBJECT_TOO_LARGE
        ]

    def test_a_single_one_is_judged_whole_or_refused(self, kind: tuple[str, str]) -> None:
        """Of what is not taken apart nobody knows whether it is right."""
        misnamed = asking_for(9_000)
        misnamed["metadata"]["annotations"][names.CARD_NAME_ANNOTATION] = "A|"
        assert codes(of_templates(kind, [misnamed])[1]) == [reasons.CARD_NAME_MALFORMED]
        assert codes(of_templates(kind, [asking_for(12_000)])[1]) == [reasons.OBJECT_TOO_LARGE]

    def test_what_is_stored_already_does_not_count(self, kind: tuple[str, str]) -> None:
        stored = [asking_for(300)] * 400
        assert codes(of_templates(kind, [*stored[1:], asking_for(5)], stored)[1]) == []


@pytest.mark.parametrize("kind", [kind for kind in LISTED if kind != VOLCANO_JOBS])
def test_a_write_that_changes_no_template_takes_none_apart(kind: tuple[str, str]) -> None:
    """Not even one that names a gang. Of Volcano Jobs the types of all tasks are looked at, within the same limit."""
    gangs = [{**asking_for(amounts), **in_a_gang(size=100)} for amounts in (1000, 10)]
    large, small = (of_templates(kind, [each] * 40, [each] * 40)[0] for each in gangs)
    assert large <= small + 100


def test_what_is_beyond_the_limits_is_named_and_what_is_within_is_not() -> None:
    for containers, refused in ((1990, False), (2001, True)):
        raw = a_card_pod("A")
        raw["spec"]["containers"] += [{"name": "c"}] * (containers - 1)
        _, decision = calls("/validate/pods", of_kind("/validate/pods", "", "pods", raw))
        assert codes(decision) == [reasons.OBJECT_TOO_LARGE] * refused
        assert calls("/mutate/pods", of_kind("/mutate/pods", "", "pods", raw))[1].patch == () or not refused
