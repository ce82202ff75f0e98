"""Which devices the status of a queue shows."""

from typing import Any

from core.dra.amounts import NANO, Amounts, DeviceKey
from core.dra.carriers import device_limits_of
from core.dra.links import card_key
from core.dra.status import MOST_KEYS, published
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim, a_way
from tests.builders.objects import QueueBuilder

GPU = DeviceKey("gpu")
MEMORY = DeviceKey("gpu", "memory")


def listing(*classes: str, **capacity: int) -> QueueBuilder:
    listed = {name: {"count": 1, "capacity": capacity} for name in classes}
    return a_queue("q").devices({"capability": listed})


def shown(allocated: Amounts, *levels: QueueBuilder, classes: tuple[str, ...] = ()) -> dict[str, str]:
    """What a queue shows that has these limits itself and above."""
    limits = [device_limits_of(level.view()) for level in levels]
    return published(a_queue("q").view(), allocated, limits, lambda name: name in classes)


def made_up(count: int, device_class: str = "") -> dict[DeviceKey, int]:
    """Names that nobody but the tenant knows: classes, or capacities of one."""
    names = [f"a{number:04}" for number in range(count)]
    return {DeviceKey(device_class, name) if device_class else DeviceKey(name): NANO for name in names}


def test_amounts_are_quantities_under_the_names_of_resource_lists() -> None:
    allocated = {GPU: 2 * NANO, MEMORY: 2**33 * NANO, DeviceKey("gpu", "cores"): NANO // 2}
    assert shown(allocated, classes=("gpu",)) == {
        "deviceclass/gpu": "2",
        "memory.deviceclass/gpu": "8589934592",
        "cores.deviceclass/gpu": "500m",
    }


def test_keys_that_the_scheduler_owns_are_left_to_it() -> None:
    fields: dict[str, Any] = {"f:status": {"f:allocated": {"f:deviceclass/gpu": {}}}}
    manager = {"manager": "vc-scheduler", "fieldsV1": fields}
    owned = a_queue("q").put("metadata", "managedFields", value=[manager]).view()
    assert published(owned, {GPU: NANO, MEMORY: NANO}, (), lambda _: True) == {"memory.deviceclass/gpu": "1"}


def test_a_class_that_does_not_exist_is_shown_where_a_queue_of_the_chain_lists_it() -> None:
    """Its devices may be in use still when it has gone; what a claim merely names is nobody's."""
    allocated = {GPU: NANO, MEMORY: NANO, **made_up(3)}
    both = {"deviceclass/gpu": "1", "memory.deviceclass/gpu": "1"}
    assert shown(allocated, listing("nic")) == {}
    assert shown(allocated, listing("gpu")) == both
    assert shown(allocated, listing(), listing("gpu")) == both
    assert shown(allocated, classes=("gpu",)) == both


def test_of_more_than_fit_those_are_shown_that_queues_list_and_devices_before_capacities() -> None:
    card, nic, zoned = card_key("Z"), DeviceKey("nic"), DeviceKey("gpu", "zones")
    allocated = {**made_up(2 * MOST_KEYS, "gpu"), zoned: NANO, MEMORY: NANO, nic: NANO, GPU: NANO, card: NANO}
    found = list(shown(allocated, listing("gpu", zones=1), listing("gpu", memory=1), classes=("nic",)))
    assert len(found) == MOST_KEYS
    assert found[:6] == [
        "Z",
        "deviceclass/gpu",
        "zones.deviceclass/gpu",
        "memory.deviceclass/gpu",
        "deviceclass/nic",
        "a0000.deviceclass/gpu",
    ]


def test_names_that_a_pod_makes_up_do_not_make_the_status_too_large_to_be_written() -> None:
    """With its node given it is let in unasked, and a request may name alternatives."""
    claim = a_claim("c")
    for request in range(32):
        ways = (a_way(f"made-up-{request}-{way}", name=f"w{way}") for way in range(8))
        claim = claim.first_available(f"r{request}", *ways)
    ledger = Ledger(Settings())
    queue = a_queue("q").view()
    ledger.put_queue(queue)
    ledger.devices.put_claim(claim.exactly("own", "gpu").view())
    ledger.put_pod(a_pod("p").claim("dev", name="c").in_queue("q").bound_to("n").view())
    assert len(ledger.devices.allocated("q")) == 32 * 8 + 1
    assert ledger.devices.published(queue) == {}
    ledger.put_queue(listing("gpu").view())
    assert ledger.devices.published(queue) == {"deviceclass/gpu": "1"}
