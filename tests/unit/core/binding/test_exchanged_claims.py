"""A bind that gives a lifted pod other claims than it was lifted with: should it fail, the pod is back at the first ones."""

import pytest

from core import names
from core.binding.binder import Binder
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import PodBuilder
from tests.unit.core.binding.deciding import binder, books

NIC, GPU = "deviceclass/nic", "deviceclass/gpu"


def lifted(counted: str) -> PodBuilder:
    pod = a_pod("p").claim("dev", name="mine").charged("q")
    return pod.annotation(names.CLAIMS_ANNOTATION, counted)


def granted(pod: PodBuilder, device_class: str = "gpu", count: int = 1) -> tuple[Ledger, Binder]:
    """It was lifted with something else than the claim is for now; and somebody waits for a NIC."""
    other = a_pod("w").claim("dev", name="wanted").in_queue("q").gated()
    queue = a_queue("q").devices({"capability": {"gpu": {"count": 2}, "nic": {"count": 2}}})
    ledger = books(pod, other, queue=queue)
    ledger.devices.serve(True)
    ledger.devices.put_claim(a_claim("wanted").exactly("r", "nic").view())
    ledger.devices.put_claim(a_claim("mine").exactly("r", device_class, count=count).view())
    binds = binder(ledger)
    found = binds.decide(pod.view(), "a")
    assert not isinstance(found, Refusal), found
    binds.book(pod.view(), "a", found)
    return ledger, binds


def used(ledger: Ledger) -> dict[str, int]:
    """All that is allocated or reserved."""
    allocated, reserved = ledger.devices.allocated("q"), ledger.devices.reserved("q")
    return {key: allocated.get(key, 0) + reserved.get(key, 0) for key in (NIC, GPU)}


def test_the_first_ones_are_given_to_nobody_until_the_bind_is_stored() -> None:
    pod = lifted('{"dev":{"uid":"old","deviceclass/nic":"2"}}')
    ledger, binds = granted(pod)
    assert used(ledger) == {NIC: 2000, GPU: 1000}
    assert [each.pod.name for each in Planner(ledger).decide("q") if isinstance(each, Lift)] == []
    binds.take_back(pod.view().uid)
    assert used(ledger) == {NIC: 2000, GPU: 0}


def test_once_the_watch_shows_the_bind_they_are_free() -> None:
    pod = lifted('{"dev":{"uid":"old","deviceclass/nic":"2"}}')
    ledger, binds = granted(pod)
    bound = ledger.pod(pod.view().uid)
    assert bound is not None
    ledger.put_pod(bound)
    binds.observe(pod.view(), bound)
    assert used(ledger) == {NIC: 0, GPU: 1000}
    assert [each.pod.name for each in Planner(ledger).decide("q") if isinstance(each, Lift)] == ["w"]


@pytest.mark.parametrize(
    "counted", ['{"dev":{"deviceclass/nic":"1"}}', '{"dev":{"uid":"old","deviceclass/nic":"1"}}']
)
def test_what_costs_the_same_is_charged_once(counted: str) -> None:
    """Every claim that is made from a template after the lift."""
    ledger, _ = granted(lifted(counted), "nic")
    assert used(ledger) == {NIC: 1000, GPU: 0}


def test_of_more_than_it_has_now_all_is_kept() -> None:
    """Held twice for a moment where some would do: nobody gets what the pod may need again."""
    ledger, _ = granted(lifted('{"dev":{"uid":"old","deviceclass/nic":"2"}}'), "nic")
    assert used(ledger) == {NIC: 3000, GPU: 0}
