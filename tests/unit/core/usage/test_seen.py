"""What a pod is counted for over time: cards by their name, shares of mGPU cards in cards, devices of claims by their class."""

from typing import Any

import pytest

from core.names import MGPU_CORE
from core.objects.device_class import DeviceClass
from core.queues.ledger import Ledger
from core.settings import Settings
from core.usage.seen import charge_of, quota_of, sight_of_ended
from core.usage.sums import Series
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template

GPU = "nvidia.com/gpu"
CAPACITY = {"memory": "10Gi"}


def a_ledger(settings: Settings | None = None) -> Ledger:
    ledger = Ledger(settings or Settings())
    ledger.put_queue(a_queue("q").view())
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.devices.put_claim(a_claim("two").exactly("r", "gpu", count=2, capacity=CAPACITY).view())
    ledger.devices.put_template(a_template("one").exactly("r", "gpu").view())
    return ledger


def charged(ledger: Ledger, pod: Any) -> dict[str, int]:
    """By key, of a pod in queue q."""
    view = pod.in_queue("q").view()
    ledger.put_pod(view)
    entry = ledger.entry(view.uid)
    assert entry is not None
    found = charge_of(ledger, entry)
    assert {series._replace(card="") for series, _ in found} <= {Series("q", "", "ml", "online")}
    return {series.card: milli for series, milli in found}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod().gpu(2).card("A"), {"A": 2000}),
        (a_pod().mgpu(core=40, memory=10_000), {MGPU_CORE: 400}),
        (a_pod().mgpu(core=400), {MGPU_CORE: 4000}),
        (a_pod().claim("dev", name="two"), {"deviceclass/gpu": 2000}),
        (a_pod().claim("a", name="two").claim("b", template="one"), {"deviceclass/gpu": 3000}),
        (a_pod().claim("dev", name="unknown"), {}),
        (a_pod().gpu(1).card("A").claim("dev", name="two"), {"A": 1000, "deviceclass/gpu": 2000}),
        (
            a_pod().mgpu(core=5, memory=1_000).claim("dev", template="one"),
            {MGPU_CORE: 50, "deviceclass/gpu": 1000},
        ),
    ],
)
def test_each_is_counted_under_its_own_key(pod: Any, expected: dict[str, int]) -> None:
    assert charged(a_ledger(), pod) == expected


def test_a_claim_that_two_pods_share_is_counted_for_each() -> None:
    ledger = a_ledger()
    for name in ("a", "b"):
        assert charged(ledger, a_pod(name).claim("dev", name="two")) == {"deviceclass/gpu": 2000}


def test_a_card_that_is_a_device_too_is_counted_once() -> None:
    """Under the name that the pod gives it; without one under that of the class that serves the resource."""
    settings = Settings.model_validate({"cards": {"equivalents": {"A": ["gpu"]}}})
    ledger = a_ledger(settings)
    ledger.devices.put_class(DeviceClass("gpu", extended=GPU))
    assert charged(ledger, a_pod("named").gpu(2).card("A")) == {"A": 2000}
    assert charged(ledger, a_pod("bare").gpu(2).gated()) == {"deviceclass/gpu": 2000}
    both = a_pod("both").gpu(1).card("A").claim("dev", name="two")
    assert charged(ledger, both) == {"A": 1000, "deviceclass/gpu": 2000}


def test_what_is_switched_off_is_not_counted() -> None:
    settings = Settings.model_validate({"features": {"dra": False, "mgpu": False}})
    assert charged(a_ledger(settings), a_pod().mgpu(core=40, memory=10_000).claim("dev", name="two")) == {}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod().mgpu(core=40, memory=10_000), (MGPU_CORE, 400)),
        (a_pod().claim("dev", name="two"), ("deviceclass/gpu", 2000)),
    ],
)
def test_a_pod_that_had_ended_before_is_counted_for_the_same(pod: Any, expected: tuple[str, int]) -> None:
    ended = pod.charged("q").bound_to("n").phase("Succeeded")
    ended = ended.condition("PodScheduled", "True", "2026-01-01T00:00:05Z")
    ended = ended.condition("Ready", "False", "2026-01-01T00:00:25Z")
    sight = sight_of_ended(a_ledger(), ended.view(), 1_800_000_000)
    assert sight is not None
    assert [(series.card, milli) for series, milli in sight.charge] == [expected]
    assert sight.end is not None
    assert sight.end - sight.scheduled == 20


def test_quota_goes_by_the_same_keys() -> None:
    """A quota of memory, of shares or of devices, is of nothing that is counted."""
    ledger = a_ledger()
    dra = {"capability": {"gpu": {"count": 4, "capacity": {"memory": "80Gi"}}}}
    ledger.put_queue(a_queue("q").cards({"A": 8}).shares(core=250, memory=100_000).devices(dra).view())
    assert quota_of(ledger, "q") == {"A": 8000, MGPU_CORE: 2500, "deviceclass/gpu": 4000}
    ledger.drop_queue("q")
    assert quota_of(ledger, "q") == {}
