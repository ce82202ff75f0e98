"""What becomes of a gang while a pass is on its way to it, or at it: it is decided on as it is then, at whatever pause that comes."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from core.objects import Group
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.unit.core.plan.stepping import all_passes

BEFORE = 8
"""Gangs that are decided on first, and do not fit."""


@dataclass(frozen=True)
class Gang:
    """Of a gang of that size so many are in, and so many wait, for one card each."""

    size: int
    in_: int
    waiting: int
    quota: int

    def group(self, minimum: int) -> Group:
        built = a_group("g").in_queue("q").min_member(minimum).uid("uid-g")
        return built.created("2024-01-02T00:00:00Z").view()

    def books(self) -> Ledger:
        ledger = Ledger(Settings())
        ledger.put_node(a_node("a").card("A", 200).view())
        ledger.put_queue(a_queue("q").cards({"A": self.quota}).view())
        for number in range(BEFORE):
            name = f"o{number}"
            ledger.put_group(a_group(name).in_queue("q").min_member(2).uid(name).view())
            for each in "ab":
                ledger.put_pod(a_pod(f"{name}-{each}").gpu(99).card("A").in_group(name).gated().view())
        ledger.put_group(self.group(self.size))
        for number in range(self.in_ + self.waiting):
            pod = a_pod(f"m{number}").gpu(1).card("A").in_group("g")
            let_in = pod.charged("q").assigned({"A": 1}).together(self.size).bound_to("a")
            ledger.put_pod((pod.gated() if number >= self.in_ else let_in).view())
        return ledger


def members_go(gang: Gang, ledger: Ledger) -> None:
    for number in range(gang.in_):
        ledger.drop_pod(f"uid-ml-m{number}")


def minimum_rises(gang: Gang, ledger: Ledger) -> None:
    ledger.put_group(gang.group(2 * gang.size))


def minimum_falls(gang: Gang, ledger: Ledger) -> None:
    ledger.put_group(gang.group(gang.quota))


def group_goes(_gang: Gang, ledger: Ledger) -> None:
    ledger.drop_group("ml/g")


CASES = {
    "its members go, and one that waits beside them starts nothing alone": (Gang(4, 4, 1, 5), members_go, 0),
    "its members go, and several that wait beside them are too few": (Gang(4, 4, 3, 7), members_go, 0),
    "the half that is in goes while the other half is tried": (Gang(60, 30, 30, 60), members_go, 0),
    "its minimum rises beyond its quota": (Gang(4, 0, 8, 4), minimum_rises, 0),
    "its minimum rises while it is tried": (Gang(60, 0, 120, 60), minimum_rises, 0),
    "its minimum falls to what its quota serves": (Gang(4, 0, 4, 2), minimum_falls, 2),
    "its PodGroup goes": (Gang(4, 0, 4, 4), group_goes, 0),
    "its PodGroup goes while it is tried": (Gang(60, 0, 60, 60), group_goes, 0),
}


@pytest.mark.parametrize(("gang", "event", "wanted"), CASES.values(), ids=CASES)
def test_nobody_is_let_in_by_what_a_gang_was(
    gang: Gang, event: Callable[[Gang, Ledger], None], wanted: int
) -> None:
    pauses = list(all_passes(gang.books()))
    first = next((at for at, told in enumerate(pauses) if isinstance(told, Lift)), len(pauses))
    for pause in range(first):
        ledger, lifted = gang.books(), 0
        for at, told in enumerate(all_passes(ledger)):
            lifted += isinstance(told, Lift)
            if at == pause:
                event(gang, ledger)
        assert lifted == wanted, f"the event at pause {pause} of {first}"
