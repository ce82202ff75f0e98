"""What becomes of a gang while a pass is on its way to it, or at it: it is decided on as it is then, at whatever pause that comes."""

from collections.abc import Callable

import pytest

from core.objects import Group
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.unit.core.plan.stepping import all_passes

BEFORE = 8
"""Gangs that are decided on first, and do not fit."""
SIZE = 4


def gang(minimum: int = SIZE) -> Group:
    return a_group("g").in_queue("q").min_member(minimum).created("2024-01-02T00:00:00Z").uid("uid-g").view()


def books(*, in_: int, waiting: int, quota: int) -> Ledger:
    """Of a gang of four so many are in, and so many wait, for one card each."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("a").card("A", 64).view())
    ledger.put_queue(a_queue("q").cards({"A": quota}).view())
    for number in range(BEFORE):
        name = f"o{number}"
        ledger.put_group(a_group(name).in_queue("q").min_member(2).uid(name).view())
        for each in "ab":
            ledger.put_pod(a_pod(f"{name}-{each}").gpu(9).card("A").in_group(name).gated().view())
    ledger.put_group(gang())
    for number in range(in_ + waiting):
        pod = a_pod(f"m{number}").gpu(1).card("A").in_group("g")
        pod = (
            pod.gated() if number >= in_ else pod.charged("q").assigned({"A": 1}).together(SIZE).bound_to("a")
        )
        ledger.put_pod(pod.view())
    return ledger


def members_go(ledger: Ledger) -> None:
    for number in range(SIZE):
        ledger.drop_pod(f"uid-ml-m{number}")


def minimum_rises(ledger: Ledger) -> None:
    ledger.put_group(gang(2 * SIZE))


def minimum_falls(ledger: Ledger) -> None:
    ledger.put_group(gang(2))


def group_goes(ledger: Ledger) -> None:
    ledger.drop_group("ml/g")


CASES = {
    "its members go, and one that waits beside them starts nothing alone": (
        {"in_": SIZE, "waiting": 1, "quota": 5},
        members_go,
        0,
    ),
    "its members go, and several that wait beside them are too few": (
        {"in_": SIZE, "waiting": 3, "quota": 7},
        members_go,
        0,
    ),
    "its minimum rises beyond its quota": ({"in_": 0, "waiting": 2 * SIZE, "quota": SIZE}, minimum_rises, 0),
    "its minimum falls to what its quota serves": ({"in_": 0, "waiting": SIZE, "quota": 2}, minimum_falls, 2),
    "its PodGroup goes": ({"in_": 0, "waiting": SIZE, "quota": SIZE}, group_goes, 0),
}


@pytest.mark.parametrize(("begun", "event", "wanted"), CASES.values(), ids=CASES)
def test_nobody_is_let_in_by_what_a_gang_was(
    begun: dict[str, int], event: Callable[[Ledger], None], wanted: int
) -> None:
    pauses = list(all_passes(books(**begun)))
    first = next((at for at, told in enumerate(pauses) if isinstance(told, Lift)), len(pauses))
    for pause in range(first):
        ledger, lifted = books(**begun), 0
        for at, told in enumerate(all_passes(ledger)):
            lifted += isinstance(told, Lift)
            if at == pause:
                event(ledger)
        assert lifted == wanted, f"the event at pause {pause} of {first}"
