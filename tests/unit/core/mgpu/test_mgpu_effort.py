"""What one answer may cost: all its searches share a number of steps, for nobody else is heard meanwhile."""

from random import Random

import pytest

from core.mgpu.allocation import FIT_BUDGET, any_placement, feasible
from core.mgpu.arrangement import CROWD_BUDGET, OnTheWay, arranged, left_beside
from core.mgpu.ask import NATIVE_BURST_SHARE, MgpuAsk
from core.mgpu.filter import REFUSAL_BUDGET, fits
from core.mgpu.node import Card, NodeState, idle_state
from core.mgpu.occupancy import HELD_BUDGET, Irregular, occupancy
from core.mgpu.purse import Purse
from core.settings import Settings
from tests.builders.objects import PodBuilder
from tests.unit.core.mgpu.cases import a_filling_pod, a_model, a_normal_ask, a_state, an_ask, filling
from tests.unit.core.mgpu.effort import Effort

MODEL = a_model(16, 16_384)
IDLE = idle_state(MODEL)
NEARLY_IDLE = NodeState((*IDLE.cards[:-1], Card(60, 9_000, 1)))


def a_crowd(count: int, parts: int = 1) -> dict[str, MgpuAsk]:
    """Pods for whom no arrangement is found, though there may be one."""
    sizes = Random(3)
    most = count * parts
    wishes = [
        (1, sizes.randint(1, 3200 // most - 1), sizes.randint(100, 524_288 // most - 200))
        for _ in range(most)
    ]
    return {f"p{n}": an_ask(*wishes[n * parts : (n + 1) * parts]) for n in range(count)}


@pytest.mark.parametrize("state", [IDLE, NEARLY_IDLE])
def test_a_refusal_takes_no_more_steps_than_the_question_and_its_words_may(
    state: NodeState, monkeypatch: pytest.MonkeyPatch
) -> None:
    effort = Effort.counted(monkeypatch)
    ask = an_ask(*((part.cards, part.core, part.memory) for part in filling(16).parts[1:]))
    assert fits(ask, MODEL, state, Settings()) is not None
    assert 900 < effort.total <= FIT_BUDGET + REFUSAL_BUDGET


def test_the_words_are_found_by_what_the_question_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no room is told as far as that goes: here nobody looked any further."""
    effort = Effort.counted(monkeypatch)
    unfit = fits(filling(16), MODEL, IDLE, Settings())
    assert unfit is not None
    assert unfit.cut_short
    assert max(effort.steps[1:]) <= REFUSAL_BUDGET // 2


def test_what_is_left_beside_a_crowd_is_found_out_within_one_purse(monkeypatch: pytest.MonkeyPatch) -> None:
    effort, crowd = Effort.counted(monkeypatch), a_crowd(60, 4)
    late = an_ask((1, 3, 500), (2, 2, 300))
    assert left_beside(late, OnTheWay(crowd), MODEL, IDLE, Settings()) == IDLE
    assert 0 < effort.total <= CROWD_BUDGET


def test_a_crowd_of_pods_with_very_many_containers_is_arranged_within_one_purse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    effort = Effort.counted(monkeypatch)
    arranged(a_crowd(12, 20), MODEL, IDLE, cap=16, places={})
    assert effort.total <= CROWD_BUDGET


def hard_pod(number: int) -> PodBuilder:
    """Another one for each number."""
    names = [part.container for part in filling(8).parts]
    return a_filling_pod(f"p{number}", 8).only(*names[number:]).uid(f"u{number}").bound_to("m1")


def test_pods_without_a_record_are_placed_within_one_purse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for whom nothing is found any more are said to have no room."""
    effort = Effort.counted(monkeypatch)
    pods = [hard_pod(number).view() for number in range(5)]
    found = occupancy(a_model(8, 16_384), pods, Settings().mgpu)
    assert FIT_BUDGET < effort.total <= HELD_BUDGET
    assert {each.kind for each in found.irregularities} == {Irregular.NO_ROOM}


def test_no_search_begins_that_could_not_place_every_container(monkeypatch: pytest.MonkeyPatch) -> None:
    effort, ask = Effort.counted(monkeypatch), filling(2)
    purse = Purse(len(ask.parts) - 1)
    assert any_placement(ask, a_model(2, 16_384), idle_state(a_model(2, 16_384)), cap=16, purse=purse) is None
    assert (effort.steps, purse.left) == ([], len(ask.parts) - 1)


def test_an_empty_purse_buys_what_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    effort, model = Effort.counted(monkeypatch), a_model(2)
    assert any_placement(an_ask((1, 60, 1)), model, idle_state(model), cap=16, purse=Purse(0)) == {"c0": (0,)}
    assert feasible(an_ask((2, 60, 1)), model, a_state((60, 1), (50, 1)), cap=16, purse=Purse(0)) is False
    assert effort.steps == []


def test_what_is_kept_for_later_searches_comes_back() -> None:
    purse = Purse(90)
    with purse.kept_for(2):
        assert purse.left == 30
        purse.spend(10)
    assert purse.left == 80
    with purse.kept_for(1):
        purse.spend(40)
        assert purse.left == 0
    assert purse.left == 40


def test_a_normal_pod_costs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    effort = Effort.counted(monkeypatch)
    ask = a_normal_ask((1, 30, 2000), (1, 100, None))
    assert ask.policy != NATIVE_BURST_SHARE
    assert fits(ask, a_model(8, policy=ask.policy), idle_state(a_model(8)), Settings()) is None
    assert effort.steps == []
