"""What is drawn from a seed."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.chaos.beside import DEVICE_LOAD, LINE_LOAD
from tests.chaos.faults import Faults
from tests.chaos.load import Load
from tests.chaos.plan import CLOCKS, FAULTS, LOAD, draw

SECONDS = 180.0


def test_a_seed_draws_the_same_plan_each_time_and_another_one_another() -> None:
    assert draw(7, SECONDS) == draw(7, SECONDS)
    assert draw(7, SECONDS) != draw(8, SECONDS)


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    short, long_ = draw(7, 60), draw(7, SECONDS)
    assert long_.steps[: len(short.steps)] == short.steps
    assert long_.faults[: len(short.faults) - 1] == short.faults[:-1]


def test_without_faults_the_load_is_the_same() -> None:
    assert draw(7, SECONDS, {}).faults == ()
    assert draw(7, SECONDS, {}).steps == draw(7, SECONDS).steps


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_drawn_in_time_and_nothing_happens_to_two_of_a_kind_at_once(seed: int) -> None:
    plan = draw(seed, 600)
    assert {step.deed for step in plan.steps} == {*LOAD, *LINE_LOAD, *DEVICE_LOAD}
    assert {fault.kind for fault in plan.faults} == set(FAULTS)
    assert all(0 <= step.at < 600 for step in plan.steps)
    lasting: list[tuple[float, str]] = []
    for fault in sorted(plan.faults, key=lambda each: each.at):
        target = fault.kind.rpartition("_")[2].rstrip("s")
        lasting = [(ends, other) for ends, other in lasting if ends > fault.at]
        assert target not in {other for _, other in lasting}
        assert len(lasting) < 2
        lasting.append((fault.at + fault.length, target))


@pytest.mark.parametrize("seed", range(20))
def test_every_clock_is_wrong_for_a_while_and_only_one_at_a_time(seed: int) -> None:
    """Whatever the faults are; without any they are right."""
    clocks = draw(seed, 600).clocks
    assert {clock.who for clock in clocks} == set(CLOCKS)
    assert {clock.by_s > 0 for clock in clocks} == {True, False}
    assert all(before.at + before.length < after.at for before, after in pairwise(clocks))
    assert draw(seed, 600, {"kill_leader": 1}).clocks == clocks
    assert draw(seed, 600, {}).clocks == ()


def test_whoever_is_finished_or_deleted_was_made_before_and_only_once() -> None:
    made: set[str] = set()
    ended: Counter[str] = Counter()
    for step in draw(3, 600).steps:
        if step.deed in ("pod", "share", "line_pod", "claim_pod"):
            made.add(step.how["name"])
        made.update(step.how.get("members", ()), step.how.get("names", ()) if step.deed == "crowd" else ())
        if step.deed in (
            "finish",
            "delete",
            "delete_gang",
            "line_finish",
            "line_delete",
            "claim_finish",
            "claim_delete",
        ):
            ended.update(step.how["names"])
    assert set(ended) <= made
    assert set(ended.values()) == {1}


def test_each_fault_and_each_deed_can_be_done() -> None:
    assert [kind for kind in FAULTS if not hasattr(Faults, f"_{kind}")] == []
    assert [deed for deed in (*LOAD, *LINE_LOAD, *DEVICE_LOAD) if not hasattr(Load, f"_{deed}")] == []
