"""Whose turn it is in a pass, with courses that do nothing but take their time."""

from collections.abc import Callable, Container, Iterable, Iterator
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import pytest

from core.plan.effort import Costly, Cuts, Ration
from core.plan.rotation import BEFORE_OTHERS, Rotation
from core.plan.turn import Turn
from core.queues.wakeups import Wakeups
from core.steps import Steps, finish

LONG = 2_000


class Courses:
    """Those of these queues rest many times, after a step each if their work is `hard`; all others are short."""

    def __init__(self, *long: str, hard: bool) -> None:
        self.begun: list[str] = []
        self.costly: list[str] = []
        """Who had a turn of its own in them."""
        self.left: list[str] = []
        self._long = long or ("long",)
        self._hard = hard

    def turn(self, name: str, ration: Any) -> Turn:
        self.begun.append(name)
        self.costly += [ration.costly] if ration.costly else []
        answers: Any = SimpleNamespace(end=lambda whole: self.left.append(name))
        return Turn(name, False, ration, answers)

    def decide(self, turn: Turn) -> Iterator[None]:
        for _ in range(LONG if turn.queue in self._long else 1):
            if self._hard:
                yield None
            yield from turn.rest(None)


def nobody_kept_back(*, gang: bool) -> Any:
    """`gang`: whether members of an unfinished gang are waited for in the queue `long` and in `woken`."""

    def any_of(woken: Callable[[str], bool]) -> bool:
        return gang and any(map(woken, ("long", "woken")))

    return SimpleNamespace(
        begin=lambda: None, decided=lambda queue: None, back=lambda queue: False, any_of=any_of
    )


def in_order(names: Iterable[str]) -> Steps[list[str]]:
    yield from ()
    return list(names)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("gang", [False, True])
def test_who_is_woken_late_in_a_long_turn_comes_at_once(hard: bool, gang: bool) -> None:
    """The long one has gone on alone for longer than others have to wait for it."""
    after = 40 * BEFORE_OTHERS + 1
    wakeups, courses = Wakeups(), Courses(hard=hard)
    made: Any = courses
    passing = Rotation(wakeups, made, Cuts(), nobody_kept_back(gang=gang), in_order).run(["long"])
    for _ in range(after):
        next(passing)
    assert courses.begun == ["long"]
    wakeups.look_at("woken")
    for _ in range(3):
        next(passing)
    assert courses.begun == ["long", "woken"]


def test_whoever_is_under_way_is_looked_for_once_however_often_it_is_woken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gang's own queue is woken while it has its turn: that was a look at all that wait, at each rest of it."""
    wakeups, courses, looks = Wakeups(), Courses(hard=False), 0
    made: Any = courses
    rotation = Rotation(wakeups, made, Cuts(), nobody_kept_back(gang=True), in_order)
    woken = rotation._woken

    def noted() -> Steps[list[str]]:
        nonlocal looks
        looks += 1
        return woken()

    monkeypatch.setattr(rotation, "_woken", noted)
    for rests, _ in enumerate(rotation.run(["long"])):
        wakeups.look_at("long")
        if rests < BEFORE_OTHERS:
            assert not looks, "for what is under way nobody is in a hurry"
    assert courses.begun == ["long"]
    assert looks == 1


def endless() -> Steps[str]:
    while True:
        yield


def test_who_comes_after_all_others_does_so_in_a_queue_that_came_in_between_and_is_not_through() -> None:
    """One that is woken in each pass was passed over each time. It is begun anew, and left as it is kept then."""
    cuts, wakeups, courses = Cuts(), Wakeups(), Courses("long", "woken", hard=True)
    for _ in range(2):
        finish(cuts.limited("costly", "woken", endless(), Ration(cuts.new_pass(), 1_000)))
    assert cuts.is_costly("costly")
    made: Any = courses
    for number, _ in enumerate(
        Rotation(wakeups, made, cuts, nobody_kept_back(gang=False), in_order).run(["long"])
    ):
        if number == LONG // 2:
            wakeups.look_at("woken")
            assert not courses.costly
    assert courses.begun == ["long", "woken", "woken"]
    assert courses.left == ["woken"]
    assert courses.costly == ["costly"]


@pytest.mark.parametrize(
    ("woken", "cut", "turns"), [(False, True, "ababab"), (True, True, "aba"), (False, False, "a")]
)
def test_those_who_come_last_go_on_in_turn_until_anything_happens(
    monkeypatch: pytest.MonkeyPatch, turns: str, *, woken: bool, cut: bool
) -> None:
    """Then the pass comes to its end, though whoever was woken has come in between; and when one was not cut short."""
    cuts, wakeups, courses = Cuts(), Wakeups(), Courses(hard=True)
    come = cycle((Costly("a", "one", 0), Costly("b", "two", 0)))

    def take_costly(but_of: Container[str], *, others_wait: bool) -> Costly | None:
        if woken and len(courses.costly) == 2:
            wakeups.look_at("woken")
        again = "one" in but_of or "two" in but_of
        return next(come) if len(courses.costly) < 6 and not (others_wait or again) else None

    monkeypatch.setattr(cuts, "take_costly", take_costly)
    monkeypatch.setattr(cuts, "is_costly", lambda key: cut)
    made: Any = courses
    assert [*Rotation(wakeups, made, cuts, nobody_kept_back(gang=True), in_order).run(["one"])]
    assert courses.costly == [*turns]
    assert courses.begun.count("woken") == woken
    assert not wakeups.pending
