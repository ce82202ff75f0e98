"""Admission rules: every row of the tables of amounts, counts, names and records."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from core import names, reasons
from core.objects.draft import Draft
from core.settings import MgpuSettings, Settings
from core.violations import Findings
from tests.builders import a_pod
from tests.builders.objects import PodBuilder
from tests.unit.core.mgpu.judging import Amount, a_share, found_in, judged

CORE, MEMORY, MULTIPLE = names.MGPU_CORE, names.MGPU_MEMORY, names.MGPU_MULTIPLE_ANNOTATION


def details(found: Findings) -> list[str]:
    return [violation.detail for violation in found.violations]


OK: tuple[str, ...] = ()
A1 = ("must be a whole number", "integer")
A2_CORE = ("mgpu-core", "must be greater than 0")
A2_MEMORY = ("mgpu-memory", "must be greater than 0")
N1 = ("mgpu-memory", "256 MiB")
N2 = ("mgpu-core", "multiple of 100")
N3 = M6 = ("mgpu-memory", "must not be set", "full cards")
M7 = ("256 MiB", "per card")
M9 = ("100 per card",)


@pytest.mark.parametrize(
    ("core", "memory", "counts", "words"),
    [
        (None, None, None, OK),
        (None, 1024, None, A2_CORE),
        (0, 1024, None, A2_CORE),
        (-1, 1024, None, A2_CORE),
        (1, 256, None, OK),
        (99, 255, None, N1),
        (99, 256, None, OK),
        (99, None, None, N1),
        (50, 0, None, A2_MEMORY),
        (50, -1, None, A2_MEMORY),
        (100, None, None, OK),
        (100, 0, None, N3),
        (100, 4096, None, N3),
        (101, None, None, N2),
        (101, 4096, None, N2),
        (120, 128, None, N2),
        (200, None, None, OK),
        (200, "6k", None, N3),
        (50, "6k", None, OK),
        (100, 8192, "2", OK),
        (100, None, "1", OK),
        (100, 4096, "1", M6),
        (100, 0, "1", M6),
        (200, None, "2", OK),
        (200, "6k", "2", M6),
        (200, None, "1", (*M7, "mgpu-memory")),
        (200, None, "1", M9),
        (200, 8192, "4", OK),
        (60, 511, "2", (*M7, "255")),
        (60, 512, "2", OK),
        (60, 513, "2", ("mgpu-memory", "divisible by 2")),
        (130, "6k", "3", ("mgpu-core", "divisible by 3")),
        (300, "6k", "2", M9),
        (1, 2048, "2", ("mgpu-core", "divisible by 2")),
        (50, 2048, "1", OK),
        (0, 2048, "1", A2_CORE),
        (None, 2048, "1", A2_CORE),
        (50, 0, "1", A2_MEMORY),
        (99, 1024, "3", ("mgpu-memory", "divisible by 3")),
        (99, 1023, "3", OK),
    ],
)
def test_amounts_at_the_limits(
    core: Amount, memory: Amount, counts: str | None, words: Sequence[str]
) -> None:
    """The table of boundary values: a verdict, and the words that users search for."""
    found = details(judged(a_share(core, memory, counts)))
    if not words:
        assert found == []
        return
    assert any(all(word in detail for word in words) for detail in found), found
    assert all(detail.startswith('container "main": ') for detail in found)


@pytest.mark.parametrize(
    ("written", "as_core", "as_memory"),
    [
        ("0", A2_CORE, A2_MEMORY),
        ("-3", A2_CORE, A2_MEMORY),
        ("500m", A1, A1),
        ("0.5", A1, A1),
        ("1", OK, N1),
        ("1e2", OK, N1),
        ("0.1k", OK, N1),
        ("1k", OK, OK),
        ("1Ki", N2, OK),
        ("1Gi", N2, OK),
        ("many", A1, A1),
        ("", A1, A1),
        (None, A1, A1),
        (True, A1, A1),
        ([], A1, A1),
        ("9" * 300, A1, A1),
        (1.5, A1, A1),
    ],
)
def test_quantities_as_written(written: Any, as_core: Sequence[str], as_memory: Sequence[str]) -> None:
    """Every spelling of a quantity, as the core share and as the memory share of an otherwise right container."""
    memory_beside = None if written in ("1e2", "0.1k", "1k") else 1024
    for key, beside, words in ((CORE, {MEMORY: memory_beside}, as_core), (MEMORY, {CORE: 50}, as_memory)):
        limits = {key: written} | {name: amount for name, amount in beside.items() if amount is not None}
        pod = a_pod().put("spec", "containers", value=[{"name": "c", "resources": {"limits": limits}}])
        found = details(judged(pod))
        assert bool(found) == bool(words), (key, found)
        assert not words or any(all(word in detail for word in (*words,)) for detail in found), (key, found)


@pytest.mark.parametrize(
    ("limit", "request_", "words", "place"),
    [
        (50, 50, None, ""),
        ("100m", "0.1", ("must be a whole number",), "limits"),
        ("50", "5e1", None, ""),
        (50, 60, ("must equal the limit", "50"), "requests"),
        (50, "x", ("must be a whole number",), "requests"),
        ("x", 50, ("must be a whole number",), "limits"),
        (None, 50, ("must equal the limit",), "limits"),
        (None, "0.5", ("must be a whole number",), "requests"),
    ],
)
def test_request_and_limit(limit: Amount, request_: Amount, words: Sequence[str] | None, place: str) -> None:
    """A request must be there for nothing, or equal the limit; the path leads to the amount to be changed."""
    limits = {MEMORY: 1024} | ({} if limit is None else {CORE: limit})
    requests = {} if request_ is None else {CORE: request_}
    found = judged(a_pod().container(limits=limits, requests=requests)).violations
    if words is None:
        assert found == []
        return
    assert [violation.path for violation in found] == [f"spec.containers[0].resources.{place}[{CORE}]"]
    assert all(word in found[0].detail for word in (CORE, *words))


@pytest.mark.parametrize("sidecar", [False, True])
@pytest.mark.parametrize("kind", ["limits", "requests"])
def test_init_containers_cannot_ask(sidecar: bool, kind: str) -> None:
    """Neither an init container nor a sidecar gets cards, even when no other container asks."""
    amounts: dict[str, dict[str, int | str]] = {kind: {CORE: 0}}
    found = judged(a_pod().init_container("setup", **amounts, sidecar=sidecar)).violations
    assert [violation.code for violation in found] == [reasons.MGPU_INIT_CONTAINER]
    assert all(word in found[0].detail for word in ('container "setup": ', "init container", "not supported"))
    assert found[0].path == f"spec.initContainers[0].resources.{kind}[{CORE}]"


@pytest.mark.parametrize(
    "key",
    [names.ASSUMED_ANNOTATION, f"{names.GPU_INDEX_PREFIX}main", f"{names.GPU_INDEX_PREFIX}other"],
)
@pytest.mark.parametrize("template", [False, True])
def test_records_are_not_for_users(key: str, template: bool) -> None:
    """A record that comes with the pod or its template is refused, whoever sends it."""
    found = judged(a_share(50, 1024).annotation(key, "true"), template=template).violations
    assert [violation.code for violation in found] == [reasons.RECORD_PROTECTED]
    assert found[0].path == f"{'spec.template.' * template}metadata.annotations[{key}]"
    assert found[0].detail == f"pod: {key} is set by the scheduler/controller only"


def test_a_preset_node_is_refused_for_pods_only() -> None:
    """Such a pod passes no Binding; a template never names a node, and a mirror pod always does."""
    pod = a_share(50, 1024).put("spec", "nodeName", value="n1")
    found = judged(pod).violations
    assert [violation.code for violation in found] == [reasons.NODE_NAME_PRESET]
    assert "nodeName" in found[0].detail
    assert judged(pod, template=True).violations == []
    assert judged(pod.mirror()).violations == []


@pytest.mark.parametrize(("length", "refused"), [(1, False), (43, False), (44, True), (63, True)])
def test_length_of_the_container_name(length: int, refused: bool) -> None:
    """A longer name leaves no room for itself in the key of the record."""
    name = "c" * length
    found = judged(a_pod().mgpu(name, core=50, memory=1024)).violations
    assert [violation.code for violation in found] == [reasons.MGPU_CONTAINER_NAME] * refused
    assert all("43" in violation.detail and name in violation.detail for violation in found)


def test_a_long_name_of_a_container_that_asks_for_nothing() -> None:
    """Only asking containers get a record."""
    assert judged(a_share(50, 1024).container("c" * 60)).violations == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("blank",)),
        (" ", ("blank",)),
        ("1,", ("blank",)),
        (",1", ("blank",)),
        ("1, 1", ("not a whole number",)),
        ("one,1", ("not a whole number",)),
        ("+1,1", ("not a whole number",)),
        ("1_0,1", ("not a whole number",)),
        ("\u0661,1", ("not a whole number",)),
        ("1.0,1", ("not a whole number",)),
        ("1;1", ("not a whole number",)),
        ("1" * 10 + ",1", ("9 digits",)),
        ("1," * 5000 + "1", ("4096",)),
    ],
)
def test_card_counts_that_cannot_be_read(text: str, words: Sequence[str]) -> None:
    """ASCII digits between commas, nothing else."""
    pod = a_share(50, 1024, text).mgpu("second", core=50, memory=1024)
    found = judged(pod).violations
    assert [violation.code for violation in found] == [reasons.MGPU_CARD_COUNTS]
    assert found[0].path == f"metadata.annotations[{MULTIPLE}]"
    expected = ("pod: ", MULTIPLE, "comma-separated whole numbers", *words)
    assert all(word in found[0].detail for word in expected), found[0].detail


@pytest.mark.parametrize("text", ["1", "1,1,1"])
def test_as_many_card_counts_as_containers(text: str) -> None:
    """Init containers do not count."""
    pod = a_share(50, 1024, text).mgpu("second", core=50, memory=1024).init_container("setup")
    found = details(judged(pod))
    expected = (MULTIPLE, str(text.count(",") + 1), "number of containers is 2")
    assert len(found) == 1
    assert all(word in found[0] for word in expected)


@pytest.mark.parametrize(
    ("count", "core", "memory", "words"),
    [
        (-1, 50, 1024, (MULTIPLE, "negative")),
        (-1, None, None, (MULTIPLE, "negative")),
        (0, None, None, None),
        (0, 50, 1024, ("0 cards but asks for mGPU",)),
        (0, None, 0, ("0 cards but asks for mGPU",)),
        (0, 0, None, ("0 cards but asks for mGPU",)),
        (1, None, None, ("mgpu-core", "greater than 0")),
        (2, None, None, ("mgpu-core", "greater than 0")),
        (999_999_999, 50, 1024, ("divisible by 999999999",)),
    ],
)
def test_counts_against_what_the_container_asks(
    count: int, core: Amount, memory: Amount, words: Sequence[str] | None
) -> None:
    """A count goes with a container that asks, 0 with one that does not."""
    found = details(
        judged(a_share(100, None, f"1,{count}").container("second").mgpu("second", core=core, memory=memory))
    )
    if words is None:
        assert found == []
        return
    assert any(detail.startswith('container "second": ') for detail in found)
    assert any(all(word in detail for word in words) for detail in found), found


def test_a_full_card_container_hides_nothing_behind_it() -> None:
    """After a valid full-card container the next ones are still judged."""
    pod = a_share(100, None, "1,2,1").mgpu("b", core=50, memory=1).mgpu("c", core=150, memory=None)
    found = details(judged(pod))
    assert any('container "b": ' in detail and "256 MiB per card" in detail for detail in found)
    assert any('container "c": ' in detail and "100 per card" in detail for detail in found)
    normal = a_share(100, None).mgpu("b", core=120)
    assert ['container "b": ' in detail for detail in details(judged(normal))] == [True]


def test_everything_wrong_is_reported_at_once() -> None:
    """All rules, all containers, in one answer."""
    pod = (
        a_pod()
        .put("spec", "nodeName", value="n1")
        .annotation(names.ASSUMED_ANNOTATION, "true")
        .init_container("setup", limits={MEMORY: 1})
        .mgpu("main", core="0.5", memory=100)
        .mgpu("second", core=150)
    )
    assert [violation.code for violation in judged(pod).violations] == [
        reasons.RECORD_PROTECTED,
        reasons.NODE_NAME_PRESET,
        reasons.MGPU_INIT_CONTAINER,
        reasons.MGPU_QUANTITY,
        reasons.MGPU_CORE,
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod.annotation(MULTIPLE, "nonsense"),
        lambda pod: pod.annotation(names.ASSUMED_ANNOTATION, "true"),
        lambda pod: pod.annotation(names.MGPU_POLICY_KEY, "nonsense"),
        lambda pod: pod.put("spec", "nodeName", value="n1"),
    ],
)
def test_pods_without_shares_are_left_alone(change: Callable[[PodBuilder], PodBuilder]) -> None:
    """Annotations alone make no mGPU pod."""
    assert judged(change(a_pod().gpu(1))) == Findings()


def test_paths_in_a_template() -> None:
    """Every path starts where the template stands."""
    pod = a_share(50, 1, "1").annotation(names.ASSUMED_ANNOTATION, "x").mgpu_policy("fixed-share")
    found = judged(pod, prefix="spec.template.", template=True)
    paths = [violation.path for violation in found.violations] + [hint.path for hint in found.hints]
    assert paths == [
        f"spec.template.metadata.annotations[{names.ASSUMED_ANNOTATION}]",
        f"spec.template.spec.containers[0].resources.limits[{MEMORY}]",
        f"spec.template.metadata.annotations[{names.MGPU_POLICY_KEY}]",
    ]


def test_the_floors_are_settings() -> None:
    """Vendors that ask for more memory per card can say so, for both kinds of pod."""
    settings = Settings(mgpu=MgpuSettings(min_normal_memory=512, min_multi_memory=1024))
    assert "512 MiB" in details(judged(a_share(50, 511), settings=settings))[0]
    assert details(judged(a_share(50, 512), settings=settings)) == []
    assert "1024 MiB per card" in details(judged(a_share(60, 512, "2"), settings=settings))[0]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": None},
        {"containers": "x"},
        {"containers": [None, 1, {"resources": {"limits": {CORE: {"a": 1}}}}]},
        {"containers": [{"name": 7, "resources": {"requests": [CORE]}}]},
        {"containers": [{"name": "\n\u2028", "resources": {"limits": {MEMORY: 1}}}], "nodeName": 3},
    ],
)
def test_objects_of_the_wrong_shape_never_raise(spec: dict[str, Any]) -> None:
    """The shape is checked elsewhere; here it must only do no harm, and stay on one line."""
    found = found_in(Draft.of({"metadata": {"annotations": 5}, "spec": spec}))
    assert all(
        "\n" not in str(violation) and "\u2028" not in str(violation) for violation in found.violations
    )
