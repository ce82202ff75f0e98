"""However many gangs wait in a queue, no step of a pass is longer for it. In calls, not in time."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from core import names
from core.plan import effort
from core.plan.units import queues_to_finish, units_of
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.fakes.counted import longest_step
from tests.unit.core.plan.stepping import all_passes

Steps = Iterator[Any]

MARGIN = 1.3
"""The size of the last piece, and what a first one makes for all."""
FEW, MANY = 100, 400
MEMBERS = 10


def books(gangs: int, *, let_in: int = 0, quota: int) -> Ledger:
    """Gangs that need all of their members, so many of whom are let in, in a queue with so many cards."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", MEMBERS * gangs).view())
    ledger.put_queue(a_queue("q").cards({"A": quota}).view())
    waits = a_pod("p").gpu(1).card("A").gated()
    runs = a_pod("p").gpu(1).card("A").assigned({"A": 1}).charged("q")
    runs = runs.annotation(names.GANG_ANNOTATION, str(MEMBERS)).bound_to("n")
    for number in range(gangs):
        gang = f"g{number:04}"
        ledger.put_group(a_group(gang).in_queue("q").min_member(MEMBERS).view())
        running, waiting = (kind.in_group(gang).view() for kind in (runs, waits))
        for member in range(MEMBERS):
            view = running if member < let_in else waiting
            ledger.put_pod(replace(view, name=f"{gang}-{member}", uid=f"uid-{gang}-{member}"))
    finish(ledger.settle())
    return ledger


def short(gangs: int) -> Ledger:
    """The quota does for half of the gangs and a part of one more."""
    return books(gangs, quota=MEMBERS * gangs // 2 + 1)


def begun(gangs: int) -> Ledger:
    """Half of each is in, and the quota does for all."""
    return books(gangs, let_in=MEMBERS // 2, quota=MEMBERS * gangs)


def cut(gangs: int) -> Ledger:
    """Half of each is in, and the quota would not do for the whole of any."""
    return books(gangs, let_in=MEMBERS // 2, quota=MEMBERS - 1)


def in_line(ledger: Ledger) -> Steps:
    return units_of(ledger, "q")


@pytest.mark.parametrize(
    ("work", "kind"),
    [
        (in_line, short),
        (in_line, cut),
        (queues_to_finish, begun),
        (queues_to_finish, cut),
        (all_passes, short),
        (all_passes, begun),
        (all_passes, cut),
    ],
)
def test_no_step_is_longer_where_more_gangs_wait(
    work: Callable[[Ledger], Steps], kind: Callable[[int], Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "OF_A_PASS", 1_000_000)
    few, many = (longest_step(work(kind(number))) for number in (FEW, MANY))
    assert many < MARGIN * few
