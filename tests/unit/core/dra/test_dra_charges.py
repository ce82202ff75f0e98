"""What a queue is charged for a claim that pods share, also while some of them are booked with what it cost before."""

from collections.abc import Iterable

from core.dra.amounts import DeviceKey
from core.dra.charges import Charges

GPU, NIC = DeviceKey("gpu"), DeviceKey("nic")
OLD, NEW = {GPU: 2, NIC: 1}, {GPU: 3}
MOST = {GPU: 3, NIC: 1}


def charging(*costs: dict[DeviceKey, int]) -> Charges:
    """Pods that share a claim, each booked with one of these."""
    charges = Charges()
    for cost in costs:
        charges.add({"c": cost})
    return charges


def test_a_claim_costs_once_however_many_hold_it() -> None:
    charges = charging(OLD, OLD, dict(OLD))
    assert charges.sums == OLD
    charges.remove({"c": OLD})
    charges.remove({"c": OLD})
    assert charges.sums == OLD
    charges.remove({"c": OLD})
    assert (charges.sums, "c" in charges) == ({}, False)


def test_while_a_change_has_not_come_to_all_holders_the_most_of_it_is_charged() -> None:
    charges = charging(OLD, OLD)
    seen: list[dict[DeviceKey, int]] = []
    for _ in range(2):
        charges.remove({"c": OLD})
        charges.add({"c": NEW})
        seen.append(dict(charges.sums))
    assert seen == [MOST, NEW]


def test_it_does_not_matter_in_which_order_the_holders_come_and_go() -> None:
    def sums(gone: Iterable[dict[DeviceKey, int]], *there: dict[DeviceKey, int]) -> dict[DeviceKey, int]:
        charges = charging(*there)
        for cost in gone:
            charges.remove({"c": cost})
        return charges.sums

    third = {GPU: 1}
    assert sums((), NEW, OLD) == sums((), OLD, NEW, OLD) == sums([third], third, NEW, OLD, OLD) == MOST
    assert sums([NEW], OLD, NEW) == sums([NEW, NEW], NEW, OLD, NEW, OLD) == OLD
    assert sums([OLD, NEW], OLD, NEW) == {}
