"""Bookings of members that are to be decided on again, and are taken back together before the next pass."""

import pytest

from controller.flight import key_of
from controller.returned_lifts import ReturnedLifts
from core import names
from core.affinity import NodeRequirement
from core.plan.decision import Lift
from tests.unit.controller.lift_world import World, pod

pytestmark = pytest.mark.looptime


async def test_what_is_kept_for_the_next_pass_ends_one_that_goes_on_because_nobody_waits() -> None:
    """Its quota is held until then, and who is costly may be decided on for minutes."""
    world, begun = World(pod("a", 1).in_group("g"), quota=1), list[bool]()
    ledger = world.caches.ledger
    member = ledger.observed(key_of(pod("a", 1).view())[1])
    assert member is not None
    records = {names.CHARGED_QUEUE_ANNOTATION: "q", names.ASSIGNED_ANNOTATION: '{"A":1}'}
    lifted = member.ungated(records)
    ledger.assume(lifted)
    ledger.wakeups.take_queues()
    returned = ReturnedLifts(world.caches, lambda: begun.append(True))
    returned.take(Lift(member, "q", {"A": 1}, records, NodeRequirement(), lifted))
    assert list(ledger.wakeups.pending) == ["q"]
    assert begun == [True]
    assert world.used() == 1
    await returned.give_back()
    assert world.used() == 0
