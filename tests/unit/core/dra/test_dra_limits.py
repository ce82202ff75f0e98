"""What stored quotas come to, and the check against them, with the numbers of the design."""

import json
from fractions import Fraction
from typing import Any

import pytest

from core import names, reasons
from core.dra.amounts import Amounts, DeviceKey, nano, render, thousandths
from core.dra.carriers import NO_LIMITS, DeviceLimits, device_limits_of
from core.dra.quotas import device_shortfall
from core.quantity import parse
from core.refusal import Refusal
from tests.builders import a_queue
from tests.builders.objects import QueueBuilder

HAMI = "hami-core-gpu.project-hami.io"
QUOTA = {
    "capability": {
        "nvidia-h100": {"count": 8},
        HAMI: {"count": 80, "capacity": {"cores": "800", "memory": "80Gi"}},
    }
}


def amounts(**parts: Any) -> Amounts:
    """`amounts(h100=2, hami=1, cores=10, memory="20Gi")`: devices of two classes, and dimensions of the second."""
    keys = {"h100": DeviceKey("nvidia-h100"), "hami": DeviceKey(HAMI), "nic": DeviceKey("nic.com")}
    return {keys.get(name, DeviceKey(HAMI, name)): nano(parse(value)) for name, value in parts.items()}


def check(
    queue: QueueBuilder, used: Amounts, needed: Amounts, *, deny_unlisted: bool = False
) -> Refusal | None:
    return device_shortfall(
        "q", device_limits_of(queue.view()), lambda key: used.get(key, 0), needed, deny_unlisted=deny_unlisted
    )


IN_SPEC = a_queue("q").devices(QUOTA)
IN_ANNOTATION = a_queue("q").annotation(names.DRA_QUOTA_ANNOTATION, json.dumps(QUOTA))
BY_NAME = a_queue("q").put(
    "spec",
    "capability",
    value={
        "deviceclass/nvidia-h100": "8",
        f"deviceclass/{HAMI}": 80,
        f"cores.deviceclass/{HAMI}": "800",
        f"memory.deviceclass/{HAMI}": "80Gi",
    },
)
CROWDED = amounts(hami=10, cores=790, memory="20Gi")


@pytest.mark.parametrize("queue", [IN_SPEC, IN_ANNOTATION, BY_NAME])
@pytest.mark.parametrize(
    ("used", "needed", "message"),
    [
        (amounts(h100=6), amounts(h100=2), ""),
        (
            amounts(h100=6),
            amounts(h100=3),
            "DeviceClass nvidia-h100 quota exceeded: requested 3, used 6, limit 8",
        ),
        (CROWDED, amounts(hami=1, cores=10), ""),
        (
            CROWDED,
            amounts(hami=1, cores=11),
            f"DeviceClass {HAMI}/cores quota exceeded: requested 11, used 790, limit 800",
        ),
        (
            amounts(hami=79, cores=100, memory="79Gi"),
            amounts(hami=1, memory="2Gi"),
            f"DeviceClass {HAMI}/memory quota exceeded: requested {2 * 2**30}, used {79 * 2**30}, limit {80 * 2**30}",
        ),
        (amounts(h100=8, hami=80), amounts(nic=100), ""),
        (
            {},
            amounts(hami=2, memory="82Gi"),
            (
                f"DeviceClass {HAMI}/memory quota exceeded: requested {82 * 2**30}, used 0, "
                f"limit {80 * 2**30}, more than the whole quota; ask for less, or raise it"
            ),
        ),
        (amounts(h100=9), amounts(hami=1), ""),
        (amounts(h100=9), {}, ""),
        (amounts(cores="799500m"), amounts(cores="500m"), ""),
        (
            amounts(cores="799500m"),
            amounts(cores="501m"),
            f"DeviceClass {HAMI}/cores quota exceeded: requested 501m, used 799500m, limit 800",
        ),
    ],
)
def test_the_worked_numbers(queue: QueueBuilder, used: Amounts, needed: Amounts, message: str) -> None:
    """Whichever of the three places holds the quota."""
    shortfall = check(queue, used, needed)
    expected = Refusal(reasons.INSUFFICIENT_DEVICE_QUOTA, f"queue q: {message}")
    assert shortfall == (expected if message else None)


def test_a_pod_that_ended_makes_room() -> None:
    queue = a_queue("q").devices({"capability": {HAMI: {"count": 9, "capacity": {"cores": 400}}}})
    needed = amounts(hami=1, cores=200)
    assert check(queue, amounts(hami=2, cores=300), needed) is not None
    assert check(queue, amounts(hami=1, cores=200), needed) is None


def test_all_that_is_exceeded_is_named() -> None:
    shortfall = check(IN_SPEC, CROWDED, amounts(h100=9, hami=1, cores=11))
    assert shortfall is not None
    assert shortfall.message.count("quota exceeded") == 2


def test_sums_beyond_64_bits_compare_exactly() -> None:
    most = 2**63 - 1
    queue = a_queue("q").devices({"capability": {HAMI: {"count": most, "capacity": {"memory": most}}}})
    assert check(queue, amounts(memory=most - 1), amounts(memory=1)) is None
    assert check(queue, {DeviceKey(HAMI, "memory"): nano(40 * most)}, amounts(memory=1)) is not None
    assert check(queue, {DeviceKey(HAMI): nano(most)}, amounts(hami=1)) is not None


def test_amounts_finer_than_a_thousandth_are_not_rounded() -> None:
    queue = a_queue("q").devices({"capability": {HAMI: {"count": 9, "capacity": {"cores": "1500u"}}}})
    assert check(queue, amounts(cores="1u"), amounts(cores="1499u")) is None
    assert check(queue, amounts(cores="1u"), amounts(cores="1499001n")) is not None


@pytest.mark.parametrize(
    ("queue", "fits"),
    [
        (a_queue("q").devices({"capability": {"nvidia-h100": {"count": 0}}}), False),
        (
            a_queue("q").annotation(
                names.DRA_QUOTA_ANNOTATION, '{"capability": {"nvidia-h100": {"count": 0}}}'
            ),
            False,
        ),
        # As resource names, absent and 0 are the same.
        (a_queue("q").put("spec", "capability", "deviceclass/nvidia-h100", value=0), True),
        (a_queue("q").put("spec", "capability", "cores.deviceclass/nvidia-h100", value=5), True),
        (a_queue("q"), True),
        (a_queue("q").devices({}), True),
        (a_queue("q").devices({"capability": {}, "deserved": {"nvidia-h100": {"count": 0}}}), True),
        (a_queue("q").devices({"guarantee": {"nvidia-h100": {"count": 0}}}), True),
        (a_queue("q").annotation(names.DRA_QUOTA_ANNOTATION, ""), True),
    ],
)
def test_nothing_is_a_limit_and_no_limit_is_none(queue: QueueBuilder, fits: bool) -> None:
    assert (check(queue, {}, amounts(h100=1)) is None) is fits


def test_a_dimension_that_is_not_listed_is_free_unless_that_is_denied() -> None:
    queue = a_queue("q").devices({"capability": {HAMI: {"count": 9}}})
    needed = amounts(hami=1, cores=5)
    assert check(queue, {}, needed) is None
    shortfall = check(queue, {}, needed, deny_unlisted=True)
    assert shortfall is not None
    assert shortfall.message == f"queue q: DeviceClass {HAMI}/cores is not in the quota: requested 5"
    assert check(a_queue("q"), {}, needed, deny_unlisted=True) is None
    assert check(queue, {}, amounts(hami=1), deny_unlisted=True) is None


def test_a_count_by_resource_name_is_rounded_up() -> None:
    queue = a_queue("q").put(
        "spec", "capability", value={"deviceclass/nvidia-h100": "1500m", "deviceclass/": 1}
    )
    assert device_limits_of(queue.view()).bounds == amounts(h100=2)


# -- what is stored and cannot be read -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "closed"),
    [
        (a_queue("q").annotation(names.DRA_QUOTA_ANNOTATION, "{"), {"nvidia-h100", "nic.com"}),
        (a_queue("q").annotation(names.DRA_QUOTA_ANNOTATION, "[]"), {"nvidia-h100", "nic.com"}),
        (a_queue("q").devices({"capabilty": {}}), {"nvidia-h100", "nic.com"}),
        (a_queue("q").devices({"capability": []}), {"nvidia-h100", "nic.com"}),
        (a_queue("q").devices({"capability": {"nvidia-h100": {"count": "8"}}}), {"nvidia-h100"}),
        (a_queue("q").devices({"capability": {"nvidia-h100": {"count": 8, "limit": 1}}}), {"nvidia-h100"}),
        (a_queue("q").devices({"capability": {"nvidia-h100": 8}}), {"nvidia-h100"}),
        (a_queue("q").put("spec", "capability", "m.deviceclass/nvidia-h100", value=-1), {"nvidia-h100"}),
        (a_queue("q").devices({"deserved": {"nvidia-h100": {"count": "8"}}}), set()),
        (a_queue("q").devices({"capability": {"nvidia-h100": None}}), set()),
    ],
)
def test_what_cannot_be_read_closes_what_it_may_be_about(queue: QueueBuilder, closed: set[str]) -> None:
    for name, needed in (("nvidia-h100", amounts(h100=1)), ("nic.com", amounts(nic=1))):
        shortfall = check(queue, {}, needed)
        if name in closed:
            assert shortfall is not None
            assert shortfall.code == reasons.DEVICE_QUOTA_MALFORMED
            assert shortfall.message.startswith(
                f"queue q: DeviceClass {name} is closed, the device quota cannot be read: "
            )
        else:
            assert shortfall is None
        assert check(queue, {}, {}) is None
    assert bool(device_limits_of(queue.view()).malformed) is bool(closed)


def test_of_two_places_that_differ_the_smaller_limit_counts() -> None:
    queue = (
        a_queue("q")
        .devices({"capability": {HAMI: {"count": 8, "capacity": {"cores": 5}}}})
        .annotation(names.DRA_QUOTA_ANNOTATION, json.dumps({"capability": {HAMI: {"count": 9}}}))
        .put("spec", "capability", f"cores.deviceclass/{HAMI}", value=4)
    )
    assert device_limits_of(queue.view()).bounds == amounts(hami=8, cores=4)


def test_no_quota_is_no_limit() -> None:
    assert device_limits_of(a_queue("q").capability(cpu=4).view()) == NO_LIMITS == DeviceLimits()


# -- keys and numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("deviceclass/gpu", DeviceKey("gpu")),
        ("memory.deviceclass/gpu.example.com", DeviceKey("gpu.example.com", "memory")),
        ("example.com/memory.deviceclass/gpu", DeviceKey("gpu", "example.com/memory")),
        ("a.deviceclass/b.deviceclass/gpu", DeviceKey("gpu", "a.deviceclass/b")),
        ("deviceclass/", None),
        ("memory.deviceclass/", None),
        (".deviceclass/gpu", None),
        ("gpu.deviceclass.resource.k8s.io/devices", None),
        ("cpu", None),
    ],
)
def test_resource_names_are_keys_and_back(text: str, key: DeviceKey | None) -> None:
    assert DeviceKey.parse(text) == key
    if key is not None:
        assert key.resource == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2", "2"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1500u", "1500u"),
        ("1n", "1n"),
        ("4Gi", "4294967296"),
    ],
)
def test_amounts_are_rendered_exactly(value: str, text: str) -> None:
    assert render(nano(parse(value))) == text
    assert parse(text) == parse(value)


def test_amounts_stand_beside_cards_in_thousandths() -> None:
    found = thousandths({DeviceKey("gpu"): nano(2), DeviceKey("gpu", "m"): nano(Fraction(1, 10**6))})
    assert found == {"deviceclass/gpu": 2000, "m.deviceclass/gpu": 1}
