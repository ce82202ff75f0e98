"""What one bind costs: nobody else is heard while it is decided, so all its searches share a number of steps."""

from random import Random

import pytest

from core import names
from core.binding.shares import Granted, decide
from core.mgpu.allocation import FIT_BUDGET, PLACEMENT_BUDGET, Policy
from core.mgpu.arrangement import CROWD_BUDGET, OnTheWay
from core.mgpu.ask import NATIVE_BURST_SHARE, MgpuAsk
from core.refusal import Refusal
from core.settings import MgpuSettings, Settings
from tests.builders import a_node, a_pod
from tests.unit.core.binding.led_crowd import Crowd, Sizes
from tests.unit.core.mgpu.cases import an_ask, filling
from tests.unit.core.mgpu.effort import Effort
from tests.unit.core.mgpu.test_mgpu_effort import a_crowd

SMALL = Sizes(range(1, 16), range(100, 2500))
NODE = a_node("n1").mgpu(16, memory=16_384, policy=NATIVE_BURST_SHARE).view()
OWN = PLACEMENT_BUDGET + FIT_BUDGET


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_a_bind_amid_a_crowd_takes_as_many_steps_as_the_crowd_is_worth_and_none_is_refused(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(16, SMALL, Random(0), policy)
    crowd.come(260)
    assert len(crowd.under_way) > 150
    effort, most = Effort.counted(monkeypatch), 0
    for _ in range(30):
        effort.anew()
        assert crowd.bind(1) == []
        most = max(most, effort.total)
    assert FIT_BUDGET // 2 < most <= CROWD_BUDGET + 1, "one step for the pod's own container"


@pytest.mark.parametrize("led", [False, True])
@pytest.mark.parametrize("giving_way", [0, 30])
@pytest.mark.parametrize(("count", "parts"), [(240, 1), (60, 4), (12, 20)])
@pytest.mark.parametrize("ask", [an_ask((1, 5, 800)), an_ask(*[(4, 5 + n, 300 + 70 * n) for n in range(6)])])
def test_whoever_comes_and_whoever_gives_way_the_searches_share_one_purse(
    count: int, parts: int, giving_way: int, led: bool, ask: MgpuAsk, monkeypatch: pytest.MonkeyPatch
) -> None:
    effort, crowd = Effort.counted(monkeypatch), a_crowd(count, parts)
    on_the_way = OnTheWay(crowd, frozenset([*crowd][:giving_way]))
    pod = a_pod("p").annotation(names.NODE_ANNOTATION, "n1" if led else "n2").view()
    decide(pod, ask, NODE, [], Settings(), on_the_way)
    assert 0 < effort.total <= OWN


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_a_pod_for_which_nothing_is_found_costs_no_more_and_is_told_that_the_search_was_cut_short(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    effort, settings = Effort.counted(monkeypatch), Settings(mgpu=MgpuSettings(policy=policy))
    answer = decide(a_pod("p").view(), filling(16), NODE, [], settings)
    assert isinstance(answer, Refusal)
    assert answer.cut_short
    assert effort.total == OWN


def test_where_all_have_room_by_a_former_answer_nothing_is_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = {f"p{n}": an_ask((1, 30 + n % 9, 3000), (1, 20, 1000 + n)) for n in range(14)}
    places = {f"p{n}": {"c0": (n,), "c1": (n,)} for n in range(14)}
    effort = Effort.counted(monkeypatch)
    ask = an_ask((1, 60, 9000))
    answer = decide(a_pod("p").view(), ask, NODE, [], Settings(), OnTheWay(crowd, frozenset(), places))
    assert isinstance(answer, Granted)
    assert answer.places.keys() == {"uid-ml-p", *crowd}
    assert effort.total <= 1
