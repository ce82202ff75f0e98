"""Cards that pods may also have by claims, beyond the card quota: it is said once, with the pairs."""

import pytest

from core import reasons
from core.display.notices import QueueNotice, queue_notices
from core.objects import DeviceClass, device_class
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_queue
from tests.builders.objects import QueueBuilder

CARDS = a_queue("q").cards({"A": 4})


def notices(queue: QueueBuilder, *classes: DeviceClass, dra: bool = True) -> list[QueueNotice]:
    ledger = Ledger(Settings.model_validate({"features": {"dra": dra}}))
    ledger.put_node(a_node("n").card("A", 8).view())
    for each in classes:
        ledger.put_class(each)
    ledger.put_queue(queue.view())
    return [one for one in queue_notices(ledger, "q") if one.reason == reasons.DEVICES_COUNTED_TWICE]


@pytest.mark.parametrize(
    "one",
    [
        DeviceClass("gpu.nvidia.com"),
        DeviceClass("nvidia.com"),
        DeviceClass("big", drivers=("gpu.nvidia.com",)),
        DeviceClass("big", extended="nvidia.com/gpu"),
    ],
    ids=["name", "name of the vendor", "driver", "extended resource"],
)
def test_a_class_of_the_vendor_is_told(one: DeviceClass) -> None:
    (found,) = notices(CARDS, one)
    assert found.message == (
        f"Queue <q>: <A> and DeviceClass {one.name} (no limit) may be the same devices; "
        "claims are not counted by the card quota"
    )


@pytest.mark.parametrize(
    "one", [DeviceClass("gpu.example.com"), DeviceClass("notnvidia.com"), DeviceClass("x", drivers=("nic",))]
)
def test_another_vendor_is_not(one: DeviceClass) -> None:
    assert notices(CARDS, one) == []


def limited(count: int) -> QueueBuilder:
    return CARDS.devices({"capability": {"gpu.nvidia.com": {"count": count}}})


def test_the_limit_is_told_and_a_closed_class_is_the_way_out() -> None:
    one = DeviceClass("gpu.nvidia.com")
    assert "(limit 4)" in notices(limited(4), one)[0].message
    assert notices(limited(0), one) == []
    assert notices(a_queue("q"), one) == []
    assert notices(a_queue("q").cards({"A": 0}), one) == []
    assert notices(a_queue("q").cards({"elsewhere": 1}), one) == []
    assert notices(CARDS, one, dra=False) == []


def test_a_class_that_comes_has_every_queue_looked_at() -> None:
    ledger = Ledger(Settings())
    ledger.put_queue(CARDS.view())
    ledger.wakeups.take_figures()
    ledger.put_class(DeviceClass("gpu.nvidia.com"))
    assert ledger.wakeups.take_figures() == {"q"}
    ledger.drop_class("gpu.nvidia.com")
    assert ledger.wakeups.take_figures() == {"q"}


def test_of_many_pairs_some_are_named() -> None:
    (found,) = notices(CARDS, *(DeviceClass(f"c{number}.nvidia.com") for number in range(9)))
    assert "c4.nvidia.com" in found.message
    assert "c5.nvidia.com" not in found.message
    assert "and 4 more pairs" in found.message


def test_drivers_are_read_off_the_selectors() -> None:
    spec = {
        "selectors": [
            {"cel": {"expression": "device.driver == 'gpu.nvidia.com' && device.attributes['x'].y"}},
            {"cel": {"expression": 'device.driver=="b"'}},
            {"cel": None},
            7,
        ]
    }
    assert device_class.project({"metadata": {"name": "c"}, "spec": spec}).drivers == ("gpu.nvidia.com", "b")
