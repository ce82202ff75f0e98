"""A gang of very many members is decided on in steps: nothing goes through all of them in one piece."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.plan import one_card, together
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue

MEMBERS = 120
PIECE = 10


def gang(expression: str, quota: int, minimum: int = MEMBERS) -> Ledger:
    ledger = Ledger(Settings())
    for card in "AB":
        ledger.put_node(a_node(card.lower()).card(card, MEMBERS).view())
    ledger.put_queue(a_queue("q").cards(dict.fromkeys("AB", quota)).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
    pod = a_pod("p").gpu(1).card(expression).in_group("g").gated().view()
    for number in range(MEMBERS):
        ledger.put_pod(replace(pod, name=f"p{number:03}", uid=f"uid-{number:03}"))
    return ledger


@pytest.mark.parametrize(
    ("expression", "quota", "minimum", "lifts"),
    [
        pytest.param("A", MEMBERS, MEMBERS, MEMBERS, id="it fits"),
        pytest.param("A|B", MEMBERS, MEMBERS, MEMBERS, id="with choices"),
        pytest.param("A", MEMBERS // 2, MEMBERS, 0, id="it does not fit"),
        pytest.param("A", MEMBERS, MEMBERS + 1, 0, id="members are missing"),
    ],
)
def test_no_step_goes_through_more_members_than_a_piece(
    monkeypatch: pytest.MonkeyPatch, expression: str, quota: int, minimum: int, lifts: int
) -> None:
    for module, size in (
        (together, "_IN_ONE_STEP"),
        (together, "_COPIED_IN_A_STEP"),
        (together, "_TOLD_IN_A_STEP"),
        (one_card, "_IN_ONE_STEP"),
    ):
        monkeypatch.setattr(module, size, PIECE)
    looks, most = 0, 0
    current = Ledger.current

    def looked(ledger: Ledger, entry: Entry) -> Entry | None:
        nonlocal looks
        looks += 1
        return current(ledger, entry)

    class Counting(Hold):
        def __init__(self, *args: Any, **more: Any) -> None:
            nonlocal looks
            looks += 1
            super().__init__(*args, **more)

    def counted(items: Sequence[Any], count: int) -> Iterable[Sequence[Any]]:
        nonlocal looks
        for start in range(0, len(items), count):
            looks += len(items[start : start + count])
            yield items[start : start + count]

    monkeypatch.setattr(Ledger, "current", looked)
    monkeypatch.setattr(together, "Hold", Counting)
    for module in (together, one_card):
        monkeypatch.setattr(module, "batched", counted)
    ledger = gang(expression, quota, minimum)
    decisions = []
    for decision in Planner(ledger).run(["q"]):
        most, looks = max(most, looks), 0
        decisions.append(decision)
    assert sum(isinstance(decision, Lift) for decision in decisions) == lifts
    assert most <= 4 * PIECE


def test_a_pass_that_is_given_up_at_any_step_leaves_nothing_booked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was handed out by then is the caller's."""
    for size in ("_IN_ONE_STEP", "_COPIED_IN_A_STEP"):
        monkeypatch.setattr(together, size, PIECE)
    steps = len([*Planner(gang("A", MEMBERS)).run(["q"])])
    before = 0
    for given_up in range(1, steps - MEMBERS):
        ledger = gang("A", MEMBERS)
        run = Planner(ledger).run(["q"])
        handed_out = sum(isinstance(next(run), Lift) for _ in range(given_up))
        run.close()
        finish(ledger.settle())
        assert ledger.used("q", "A") == 1000 * handed_out
        before += handed_out == 0
    assert before > MEMBERS // PIECE
