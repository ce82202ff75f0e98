"""What is kept about shares that are asked for goes with the last pod that asks for them."""

from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.plan.by_ask import ByAsk
from tests.builders.objects import PodBuilder
from tests.unit.core.mgpu.cases import an_ask
from tests.unit.core.plan.shares import of_containers


def asked(pod: PodBuilder) -> MgpuAsk:
    ask = mgpu_ask(pod.view())
    assert isinstance(ask, MgpuAsk)
    return ask


def test_answers_stay_while_a_pod_alike_is_there() -> None:
    known = ByAsk[str, int](10)
    first, second = (asked(of_containers("p", 40)) for _ in range(2))
    known.note(known.about(first), "m1", 1)
    del first
    assert known.about(second) == {"m1": 1}
    assert len(known) == 1
    del second
    assert len(known) == 0


def test_all_are_forgotten_rather_than_that_too_many_are_kept() -> None:
    known, asks = ByAsk[str, int](3), [an_ask((1, core, 1)) for core in (1, 2, 3)]
    for ask, answers in zip(asks, (2, 1, 4), strict=True):
        about = known.about(ask)
        assert about == {}
        for number in range(answers):
            known.note(about, f"m{number}", number)
    # The last one is kept whatever it needs.
    assert len(known) == 4
    assert known.about(asks[0]) == {}
    assert len(known) == 0


def test_so_they_are_where_very_much_is_asked_about_the_same_shares() -> None:
    known, ask = ByAsk[int, int](3), an_ask((1, 1, 1))
    for number in range(100):
        known.note(known.about(ask), number, number)
        assert len(known) <= 3


def test_room_that_is_freed() -> None:
    known, ask = ByAsk[str, int](10), an_ask((1, 1, 1))
    known.note(known.about(ask), "m1", 1)
    known.clear()
    assert known.about(ask) == {}
