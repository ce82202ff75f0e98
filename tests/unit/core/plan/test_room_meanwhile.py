"""Whatever comes free while a large gang is decided on reaches it: by the search that is under way, or by another one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.unit.core.plan.stepping import all_passes

MEMBERS = 260
"""More than are gone through in one step."""

Event = Callable[[Ledger], object]


def node(cards: int) -> Event:
    return lambda ledger: ledger.put_node(a_node("a").card("A", cards).view())


def quota(cards: int, cpu: int = MEMBERS) -> Event:
    view = a_queue("q").cards({"A": cards, "B": cards}).capability(cpu=cpu).view()
    return lambda ledger: ledger.put_queue(view)


def minimum(members: int) -> Event:
    view = a_group("g").in_queue("q").min_member(members).view()
    return lambda ledger: ledger.put_group(view)


def books(expression: str, *events: Event) -> Ledger:
    """A gang for which there is just room and quota, but for what these events make of it."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("b").card("B", 0).view())
    for event in (node(MEMBERS), quota(MEMBERS), minimum(MEMBERS), *events):
        event(ledger)
    member = a_pod("p").gpu(1).card(expression).request("cpu", 1).in_group("g").gated().view()
    for number in range(MEMBERS):
        ledger.put_pod(replace(member, name=f"p{number:05}", uid=f"uid-{number:05}"))
    return ledger


def lifted_with(ledger: Ledger, event: Event, pause: int) -> int:
    """How many are lifted in the end when this happens at that pause."""
    lifted = 0
    for number, decision in enumerate(all_passes(ledger)):
        if number == pause:
            event(ledger)
        lifted += isinstance(decision, Lift)
    return lifted


SHORT: dict[str, tuple[str, Event, Event]] = {
    "a card": ("A|B", node(MEMBERS - 1), node(MEMBERS)),
    "quota": ("A", quota(MEMBERS - 1), quota(MEMBERS)),
    "quota for a choice": ("A|B", quota(MEMBERS // 2), quota(MEMBERS)),
    "cpu": ("A", quota(MEMBERS, MEMBERS - 1), quota(MEMBERS)),
    "a member": ("A", minimum(MEMBERS + 1), minimum(MEMBERS)),
}


@pytest.mark.parametrize(("expression", "lack", "end"), SHORT.values(), ids=SHORT)
def test_what_a_large_gang_lacks_reaches_it_at_whatever_pause_it_comes(
    expression: str, lack: Event, end: Event
) -> None:
    decided = next(
        number for number, told in enumerate(all_passes(books(expression, lack))) if told is not None
    )
    # Each of the last ones: what was found is remembered there. Of those before every twelfth.
    pauses = {*range(0, decided, 12), *range(max(0, decided - 15), decided)}
    assert len(pauses) > 5, "it is decided on in many steps"
    for pause in sorted(pauses):
        assert lifted_with(books(expression, lack), end, pause) == MEMBERS, f"at pause {pause} of {decided}"
