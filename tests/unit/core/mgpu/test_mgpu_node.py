"""The node model and the filter."""

from itertools import permutations
from typing import Any

import pytest

from core import names, reasons
from core.mgpu import filter as node_filter
from core.mgpu.allocation import feasible
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import fits
from core.mgpu.node import CARDS_MAX, NodeModel, NodeState, Usage, after, idle_state, model_of
from core.settings import MgpuSettings, Settings
from tests.builders import a_node
from tests.builders.objects import NodeBuilder
from tests.unit.core.mgpu.cases import a_model, a_normal_ask, a_state, an_ask, filling

CORE, MEMORY = names.MGPU_CORE, names.MGPU_MEMORY


@pytest.mark.parametrize(
    ("node", "cards", "memory"),
    [
        (a_node(), 0, 0),
        (a_node().mgpu(2, memory=16384), 2, 16384),
        (a_node().allocatable(CORE, 250).allocatable(MEMORY, 20001), 2, 10000),
        (a_node().allocatable(CORE, 99).allocatable(MEMORY, 20001), 0, 0),
        (a_node().allocatable(CORE, 200), 2, 0),
        (a_node().allocatable(MEMORY, 200), 0, 0),
        (a_node().allocatable(CORE, "2k").allocatable(MEMORY, "160k"), 20, 8000),
        (a_node().allocatable(CORE, "x").allocatable(MEMORY, "y"), 0, 0),
        (a_node().allocatable(CORE, -100).allocatable(MEMORY, 5), 0, 0),
        (a_node().allocatable(CORE, 100).allocatable(MEMORY, -5), 1, 0),
        (a_node().allocatable(CORE, "9E").allocatable(MEMORY, "9E"), CARDS_MAX, 100),
    ],
)
def test_cards_of_a_node(node: NodeBuilder, cards: int, memory: int) -> None:
    """Whole cards, equal memory, remainders left out, a figure beyond all reason cut."""
    model = model_of(node.view())
    assert (model.cards, model.memory) == (cards, memory)
    assert len(idle_state(model).cards) == cards


def test_labels_of_a_node() -> None:
    """A node without policy label serves fixed-share; only the type mgpu is ours."""
    model = model_of(a_node().mgpu(1, memory=1).view())
    assert (model.kind, model.policy, model.serves) == ("mgpu", "fixed-share", True)
    other = (
        a_node().mgpu(1, memory=1, policy="native-burst-share").label(names.MGPU_NODE_TYPE_LABEL, "nvidia")
    )
    assert (model_of(other.view()).policy, model_of(other.view()).serves) == ("native-burst-share", False)
    assert not model_of(a_node().label(names.MGPU_NODE_TYPE_LABEL, "mgpu").view()).serves


def test_equal_nodes_have_equal_models() -> None:
    """The name is no part of the model, so that answers are shared."""
    assert model_of(a_node("a").mgpu(4, memory=9).view()) == model_of(a_node("b").mgpu(4, memory=9).view())


NATIVE, FIXED = "native-burst-share", "fixed-share"
HALF, WHOLE = (1, 50, 5000), (1, 100, None)


@pytest.mark.parametrize(
    ("ask", "model", "code", "words"),
    [
        (a_normal_ask(HALF), a_model(1, kind="nvidia", policy=FIXED), reasons.MGPU_NODE_TYPE, '"nvidia"'),
        (a_normal_ask(HALF), a_model(1, kind="", policy=FIXED), reasons.MGPU_NODE_TYPE, "not set"),
        (a_normal_ask(WHOLE), a_model(1, kind="", policy=FIXED), reasons.MGPU_NODE_TYPE, "node type"),
        (a_normal_ask(WHOLE), a_model(0), reasons.MGPU_NODE_TYPE, "no mGPU cards"),
        (a_normal_ask(HALF), a_model(1, policy=FIXED), None, ""),
        (a_normal_ask(HALF), a_model(1, policy=NATIVE), reasons.MGPU_POLICY_MISMATCH, f'"{FIXED}"'),
        (
            a_normal_ask(HALF, policy=NATIVE),
            a_model(1, policy=FIXED),
            reasons.MGPU_POLICY_MISMATCH,
            f'"{NATIVE}"',
        ),
        (a_normal_ask(HALF, policy=NATIVE), a_model(1, policy=NATIVE), None, ""),
        (a_normal_ask(HALF, policy="own"), a_model(1, policy="own"), None, ""),
        (a_normal_ask(HALF, policy="Own"), a_model(1, policy="own"), reasons.MGPU_POLICY_MISMATCH, '"Own"'),
        (a_normal_ask(WHOLE, policy="any"), a_model(1, policy=NATIVE), None, ""),
        (
            a_normal_ask(WHOLE, HALF),
            a_model(2, policy=NATIVE),
            reasons.MGPU_POLICY_MISMATCH,
            "compute policy",
        ),
        (an_ask(WHOLE), a_model(1, policy=NATIVE), None, ""),
        (an_ask(WHOLE), a_model(1, policy=FIXED), reasons.MGPU_POLICY_MISMATCH, "compute policy"),
        (an_ask(WHOLE, policy=FIXED), a_model(1, policy=FIXED), reasons.MGPU_POLICY_MISMATCH, NATIVE),
        (an_ask(WHOLE, policy=FIXED), a_model(1, policy=NATIVE), reasons.MGPU_POLICY_MISMATCH, f'"{FIXED}"'),
        (an_ask((3, 50, 1)), a_model(2), reasons.MGPU_TOO_FEW_CARDS, "asks for 3 cards, node has 2"),
        (a_normal_ask((3, 100, None)), a_model(2), reasons.MGPU_TOO_FEW_CARDS, 'container "c0"'),
        (an_ask((2, 50, 1)), a_model(2), None, ""),
        (an_ask((2, 50, 10_001)), a_model(2), reasons.MGPU_NO_ROOM, "not even on idle cards"),
        (an_ask((1, 60, 1), (1, 60, 1)), a_model(1), reasons.MGPU_NO_ROOM, 'container "c1"'),
        (an_ask(*[(1, 40, 1)] * 3, *[(1, 1, 1)] * 2), a_model(1), reasons.MGPU_NO_ROOM, 'container "c2"'),
    ],
)
def test_the_filter_on_idle_nodes(ask: MgpuAsk, model: NodeModel, code: str | None, words: str) -> None:
    """The first rule that fails is the reason; all of these hold whatever else runs on the node."""
    unfit = fits(ask, model, idle_state(model), Settings())
    if code is None:
        assert unfit is None
    else:
        assert unfit is not None
        assert (unfit.code, unfit.unresolvable) == (code, True)
        assert words in unfit.message


@pytest.mark.parametrize(
    ("ask", "state", "words"),
    [
        (an_ask(HALF, HALF, HALF), a_state((50, 5000), (50, 5000)), 'container "c2"'),
        (
            an_ask((2, 50, 5000)),
            a_state((50, 5000), (49, 5000)),
            "mgpu-core 50 and mgpu-memory 5000 each on 2 cards",
        ),
        (an_ask(WHOLE), a_state((99, 10_000), (0, 0)), 'container "c0", which asks for 1 card whole'),
        (an_ask(HALF, WHOLE), a_state((100, 10_000), (49, 5000)), 'container "c1"'),
    ],
)
def test_the_filter_on_used_nodes(ask: MgpuAsk, state: NodeState, words: str) -> None:
    """No room now: the message names the first container that cannot be placed; other pods may go."""
    model = a_model(len(state.cards), policy=NATIVE)
    assert fits(ask, model, idle_state(model), Settings()) is None
    unfit = fits(ask, model, state, Settings())
    assert unfit is not None
    assert (unfit.code, unfit.unresolvable) == (reasons.MGPU_NO_ROOM, False)
    assert words in unfit.message


@pytest.mark.parametrize(
    ("state", "words", "cut_short"),
    [
        (idle_state(a_model(8, 16_384)), ", as far as a search that was cut short can tell", True),
        (a_state(*[(0, 0)] * 8), "; the search for some on idle cards was cut short", False),
    ],
)
def test_a_search_that_was_cut_short_is_no_proof_that_idle_cards_have_no_room(
    state: NodeState, words: str, *, cut_short: bool
) -> None:
    """By construction they have, but to find out how takes more than any budget."""
    unfit = fits(filling(8), a_model(8, 16_384), state, Settings())
    assert unfit is not None
    assert (unfit.unresolvable, unfit.cut_short) == (False, cut_short)
    assert unfit.message.endswith(words)
    assert "not even on idle cards" not in unfit.message


class Searches:
    """Counts how often it is asked whether there is room, by the number of containers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.containers: list[int] = []

        def searched(ask: MgpuAsk, *question: Any, **more: Any) -> bool | None:
            self.containers.append(len(ask.parts))
            return feasible(ask, *question, **more)

        monkeypatch.setattr(node_filter, "feasible", searched)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            an_ask(*[(1, 1, 1)] * 1000),
            'container "c128", which asks for mgpu-core 1 and mgpu-memory 1 on 1 card, not even on idle cards; with those before it that makes 129 places on cards, the node has 128',
        ),
        (
            an_ask(*[(1, 40, 1)] * 21),
            'container "c20", which asks for mgpu-core 40 and mgpu-memory 1 on 1 card, not even on idle cards; with those before it that makes mgpu-core 840, the node has 800',
        ),
        (
            an_ask(HALF, (8, 100, None)),
            'container "c1", which asks for 8 cards whole, not even on idle cards; with those before it that makes mgpu-core 850, the node has 800',
        ),
        (
            an_ask((8, 1, 10_001)),
            'container "c0", which asks for mgpu-core 1 and mgpu-memory 10001 each on 8 cards, not even on idle cards',
        ),
    ],
)
def test_who_asks_for_more_than_all_cards_of_a_node_is_told_so_without_a_search(
    ask: MgpuAsk, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever else is there."""
    searches, model = Searches(monkeypatch), a_model(8)
    for state in (idle_state(model), a_state(*[(1, 1)] * 8)):
        unfit = fits(ask, model, state, Settings())
        assert unfit is not None
        assert (unfit.code, unfit.unresolvable) == (reasons.MGPU_NO_ROOM, True)
        assert unfit.message == f"not enough mGPU: no room for {words}"
    assert searches.containers == []


def test_the_container_at_which_the_places_end_is_found_by_one_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All containers, those that have places, and all on idle cards."""
    searches, state = Searches(monkeypatch), a_state(*[(90, 9000, 11)] * 8)
    unfit = fits(an_ask(*[(1, 2, 3)] * 100), a_model(8), state, Settings())
    assert unfit is not None
    assert 'container "c40"' in unfit.message
    assert not unfit.unresolvable
    assert searches.containers == [100, 40, 100]


def test_nodes_in_like_states_share_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which number a card has, and which node it is in, makes no difference."""
    searches = Searches(monkeypatch)
    ask, model = an_ask((1, 77, 7777)), a_model(4)
    for cards in permutations([(76, 7777), (77, 7777), (0, 0), (50, 1)]):
        assert fits(ask, model, a_state(*cards), Settings()) is None
    assert searches.containers == [1]


def test_the_filter_counts_containers_per_card() -> None:
    """The limit of containers on one card is a setting."""
    settings = Settings(mgpu=MgpuSettings(max_containers_per_card=2))
    state = a_state((90, 9000, 2))
    assert fits(an_ask((1, 1, 1)), a_model(1), state, Settings()) is None
    unfit = fits(an_ask((1, 1, 1)), a_model(1), state, settings)
    assert unfit is not None
    assert unfit.code == reasons.MGPU_NO_ROOM


def test_booking_adds_up_and_clamps_at_the_end() -> None:
    """The order of bookings changes nothing, even where a card is booked beyond its size."""
    model = a_model(2)
    first, second = an_ask((2, 70, 4000)), an_ask((1, 60, 2000), WHOLE)
    states = []
    for bookings in ((first, second), (second, first)):
        usage = Usage(model)
        for ask in bookings:
            for part in ask.parts:
                usage.book(part, range(part.cards))
        assert usage.overbooked() == [0]
        states.append(usage.state())
    assert states[0] == states[1] == a_state((0, 0, 3), (30, 6000, 1))


def test_one_more_pod() -> None:
    """A tentative placement takes exactly its share."""
    model = a_model(3)
    end = after(idle_state(model), model, an_ask((2, 30, 1000), WHOLE), {"c0": (0, 2), "c1": (1,)})
    assert end == a_state((70, 9000), (0, 0), (70, 9000))
