"""What a new leader takes for right: the records that it finds on pods, gone through in steps."""

import pytest

from controller import caches as caches_module
from core.mgpu import records
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.unit.controller import cluster


def bound(number: int, card: str = "0") -> PodBuilder:
    pod = a_pod(f"p{number}").mgpu(core=10, memory=100).bound_to("n")
    return pod.annotation(records.key("main"), card).annotation("vke.volcengine.com/assumed", "true")


def test_records_are_kept_in_steps_and_what_changes_meanwhile_is_kept_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred thousand pods were gone through in one piece when a term began."""
    monkeypatch.setattr(caches_module, "_KEPT_IN_A_STEP", 2)
    monkeypatch.setattr(caches_module, "_OF_SHARES", 1)
    node = a_node("n").mgpu(4, memory=16384).view()
    caches = cluster.caches([node], [bound(number).view() for number in range(6)])
    steps = caches.keep_records()
    next(steps)
    cluster.show(caches.pods, "ml/p3", bound(3, "1").view())
    cluster.show(caches.pods, "ml/p4", None)
    assert len([*steps]) == 1
    cards = {uid: booking.cards["main"] for uid, booking in caches.records._bookings.items()}
    assert cards == {f"uid-ml-p{number}": (int(number == 3),) for number in (0, 1, 2, 3, 5)}
