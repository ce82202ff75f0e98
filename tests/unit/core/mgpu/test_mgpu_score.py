"""Scores of nodes against each other."""

from fractions import Fraction

import pytest

from core.mgpu.allocation import combination, node_score
from core.mgpu.filter import preference
from core.mgpu.node import idle_state
from core.settings import MgpuSettings, Settings
from tests.unit.core.mgpu.cases import a_model, a_state, an_ask


def test_the_fuller_node_wins_under_binpack() -> None:
    """n1 carries 40/4096 already: 33 against 12; spread turns it round, 88 against 67."""
    ask, model = an_ask((1, 30, 2048)), a_model(2, 16384)
    used, empty = a_state((60, 12288), (100, 16384)), idle_state(model)
    scores = [
        node_score(ask, model, state, {"c0": (0,)}, policy=policy, weight=20)
        for policy in ("binpack", "spread")
        for state in (used, empty)
    ]
    assert scores == [33, 12, 67, 88]


@pytest.mark.parametrize(("policy", "scores"), [("binpack", [33, 12, 0]), ("spread", [67, 88, 0])])
def test_preference_places_and_scores(policy: str, scores: list[int]) -> None:
    """The same numbers through the search; 0 for a node that does not fit."""
    settings = Settings(mgpu=MgpuSettings.model_validate({"policy": policy}))
    ask, model = an_ask((1, 30, 2048)), a_model(2, 16384)
    states = [a_state((100, 16384), (60, 12288)), idle_state(model), a_state((20, 16384), (20, 16384))]
    if policy == "spread":
        states[0] = a_state((60, 12288), (0, 0))
        assert preference(ask, model, states.pop(0), settings) < preference(ask, model, states[0], settings)
        scores = scores[1:]
    assert [preference(ask, model, state, settings) for state in states] == scores
    assert preference(ask, a_model(2, 16384, policy="fixed-share"), states[0], settings) == 0


def test_a_node_without_memory() -> None:
    """The memory part is 0, not undefined."""
    model = a_model(2, 0)
    ask = an_ask((1, 100, None))
    assert node_score(ask, model, idle_state(model), {"c0": (1,)}, policy="binpack", weight=20) == 15
    assert combination(idle_state(model), model, policy="binpack", weight=20) == Fraction(1, 5)
    assert combination(idle_state(a_model(0)), a_model(0), policy="binpack", weight=20) == 0


@pytest.mark.parametrize(("core", "weight", "expected"), [(100, 100, 100), (100, 0, 0), (50, 100, 50)])
def test_the_weight_of_core(core: int, weight: int, expected: int) -> None:
    """All the weight on core leaves memory out."""
    model = a_model(1)
    ask = an_ask((1, core, 0))
    assert (
        node_score(ask, model, idle_state(model), {"c0": (0,)}, policy="binpack", weight=weight) == expected
    )
