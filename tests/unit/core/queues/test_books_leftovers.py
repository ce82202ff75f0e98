"""Ten thousand objects that come, are let in, are bound and go: the books are as large afterwards as they were before."""

from collections import Counter

import pytest

from core.objects import DeviceClass
from core.plan import admitted, placement, stock
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues import journal, occupants
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.controller.leftovers import census

GENERATIONS = 5
OBJECTS = 2000
REMEMBERED = 10
"""What some memories keep at the most."""
SETTINGS = Settings.model_validate(
    {
        "cards": {"podsWithoutCardName": "infer", "unlimitedCpuMemory": True},
        "crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"], "quota": {"cpu": 4}},
    }
)


@pytest.fixture(autouse=True)
def small_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (admitted, placement, stock, journal):
        monkeypatch.setattr(module, "_KEPT", REMEMBERED)
    monkeypatch.setattr(occupants, "_GONE_KEPT", REMEMBERED)


def pods_of(name: str, number: int) -> list[PodBuilder]:
    return [
        a_pod(f"{name}-a", namespace=name).gpu(1).card(f"CARD-{name}").in_queue(name).gated(),
        a_pod(f"{name}-b", namespace=name).gpu(1).card(f"CARD-{name}|OTHER").in_queue(name).gated(),
        a_pod(f"{name}-c", namespace=name).mgpu(core=30, memory=256).in_group(name).task(name).gated(),
        a_pod(f"{name}-d", namespace=name).gpu(1).in_queue(name).gated().priority(number),
        a_pod(f"{name}-e", namespace=name).gpu(9).card(f"CARD-{name}").in_group(name).gated(),
        a_pod(f"{name}-f", namespace=name).request("cpu", 1).bound_to(name),
    ]


def live(ledger: Ledger, planner: Planner, name: str) -> int:
    """Returns how many were let in."""
    ledger.put_namespace(a_namespace(name).view())
    ledger.put_queue(a_queue(name).cards({f"CARD-{name}": 5}).shares(core=100).view())
    ledger.put_node(a_node(name).card(f"CARD-{name}", 8).mgpu(2, memory=8192).view())
    ledger.put_group(a_group(name, namespace=name).in_queue(name).min_member(1).view())
    ledger.put_job(a_job(name, namespace=name).in_queue(name).view())
    ledger.put_class(DeviceClass(name, extended=f"example.com/{name}"))
    pods = [pod.view() for pod in pods_of(name, len(name))]
    for pod in pods:
        ledger.put_pod(pod)
    decisions = [each for each in planner.run(ledger.wakeups.take_queues()) if each is not None]
    lifts = [each for each in decisions if isinstance(each, Lift)]
    for lift in lifts:
        ledger.put_pod(lift.lifted)
    ledger.wakeups.take_figures()
    ledger.drop_node(name)
    ledger.drop_queue(name)
    for pod in pods:
        ledger.drop_pod(pod.uid)
    ledger.drop_class(name)
    for resource in tuple(ledger.devices.book.classes.orphaned):
        ledger.release_resource(resource)
    ledger.drop_job(f"{name}/{name}")
    ledger.drop_group(f"{name}/{name}")
    ledger.drop_namespace(name)
    finish(ledger.settle())
    return len(lifts)


def grown(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    """What holds more than before, but for a memory that was filled meanwhile: a few entries, each of a few parts."""
    return {
        where: (before[where], size)
        for where, size in after.items()
        if size > before[where] + 10 * REMEMBERED
    }


def test_after_ten_thousand_objects_the_books_and_what_a_planner_remembers_are_as_large_as_before() -> None:
    ledger = Ledger(SETTINGS)
    planner = Planner(ledger)
    each = 6 + len(pods_of("x", 0))
    sizes = [census(ledger, planner)]
    for generation in range(GENERATIONS):
        lifted = sum(live(ledger, planner, f"g{generation}-{n}") for n in range(OBJECTS // each))
        assert lifted >= 2 * (OBJECTS // each)
        sizes.append(census(ledger, planner))
    assert grown(sizes[0], sizes[-1]) == {}
    assert grown(sizes[1], sizes[-1]) == {}
    assert sizes[-1].total() <= sizes[1].total() + 10 * REMEMBERED
    assert not ledger.wakeups.pending
