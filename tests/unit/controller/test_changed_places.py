"""Whose place a member of its task has taken is looked at after the bind is seen, in steps, and comes to what it would have at once."""

import asyncio
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Final

import pytest

from controller import changed_places as module
from controller.changed_places import ChangedPlaces
from core.mgpu.destination import gives_way, nominated_for, task_of
from core.objects import Pod
from core.plan.admitted import AdmittedNodes
from core.plan.stuck import place_gone, takes_now
from core.queues.ledger import Ledger
from core.steps import Steps
from kube.turns import Turns
from tests.builders import a_node
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.fakes.counted import calls_of
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.test_nominations import World, member
from tests.unit.core.plan import stuck_now

pytestmark = pytest.mark.looptime

MEMBERS: Final = 300
A_CALL: Final = 60
"""Calls for a bind that is noted, however many members there are."""
NODES: Final = {"m0": 1, "m1": 8, "m2": 1}


class Places:
    """Members of a task with places on three nodes, and what is moved."""

    def __init__(self, *pods: PodBuilder) -> None:
        nodes = [a_node(name).mgpu(cards, memory=16384).view() for name, cards in NODES.items()]
        self.caches = caches(nodes, [pod.view() for pod in pods])
        self.moved: list[tuple[str, str]] = []
        self.places = ChangedPlaces(self.caches, self._move)

    def _move(self, pod: Pod, node: str) -> None:
        self.caches.ledger.move_room(pod.uid, node)
        self.moved.append((pod.name, node))

    def binds(self, pod: PodBuilder, node: str) -> Pod:
        """The watch shows a bind; it is to be noted."""
        bound = pod.bound_to(node).view()
        show(self.caches.pods, bound.key, bound)
        return bound

    async def look(self, meanwhile: Callable[["Places"], None] = lambda _: None) -> list[tuple[str, str]]:
        """What is moved for all that is noted; `meanwhile` happens between two steps."""
        async with background(self.places.run()):
            await rounds(2)
            meanwhile(self)
            while len(self.places):
                await rounds(1)
        moved, self.moved = self.moved, []
        return moved


async def rounds(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def nothing(_: Places) -> None:
    """Nothing changes."""


def at_once(ledger: Ledger, bound: Pod) -> list[tuple[str, str]]:
    """What is to be moved for a bind by the books as they are."""
    task, left = task_of(bound), nominated_for(bound)
    led = (entry.pod for entry in ledger.led_to(bound.node_name).values())
    lost = (pod for pod in led if gives_way(pod, task) and stuck_now.place_gone(ledger, pod))
    return next(([(pod.name, left)] for pod in lost if stuck_now.takes_now(ledger, pod, left)), [])


def crowd(rng: Random, members: int = MEMBERS) -> list[PodBuilder]:
    """Some of whom ask for more than the place of the first one, and some of another task."""
    tasks = rng.choices("wv", (9, 1), k=members)
    return [
        member(f"p{each}", "m1", core=rng.choice((5, 40, 90)), task=task) for each, task in enumerate(tasks)
    ]


@pytest.mark.parametrize("seed", range(4))
async def test_one_of_hundreds_gets_the_place_that_is_left_as_it_would_have_at_once(seed: int) -> None:
    first = member("first", "m0", core=40)
    places = Places(first, *crowd(Random(seed)))
    bound = places.binds(first, "m1")
    expected = at_once(places.caches.ledger, bound)
    assert len(expected) == 1
    places.places.note(bound)
    assert await places.look() == expected


@pytest.mark.parametrize("members", [3, MEMBERS])
async def test_a_bind_is_only_noted_however_many_members_may_have_lost_their_place(
    members: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(member("first", "m0"), *crowd(Random(0), members))

    def never(*_asked: object) -> Steps[bool]:
        raise AssertionError("nothing is looked at when a bind is seen")

    async with world.leading():
        with monkeypatch.context() as patched:
            patched.setattr(module, "place_gone", never)
            patched.setattr(module, "takes_now", never)
            world.shows(member("first", "m0").bound_to("m1"))
        assert len(world.nominations._places) == 1
        old, new = member("second", "m0").view(), member("second", "m0").bound_to("m1").view()
        assert calls_of(lambda: world.nominations._pod_changed(old, new)) < A_CALL
        await world.written()
        assert len(world.nominations._places) == 0


def test_each_step_looks_at_one_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its place, or at one that was left."""
    first = member("first", "m0")
    places = Places(first, *(member(f"p{each}", "m1", core=90) for each in range(MEMBERS)))
    bound, looks, most = places.binds(first, "m1"), list[str](), 0

    def gone(ledger: Ledger, pod: Pod, admitted: AdmittedNodes) -> Steps[bool]:
        looks.append(pod.name)
        return (yield from place_gone(ledger, pod, admitted))

    def takes(ledger: Ledger, pod: Pod, node: str, admitted: AdmittedNodes) -> Steps[bool]:
        looks.append(node)
        return (yield from takes_now(ledger, pod, node, admitted)) and pod.name == f"p{MEMBERS - 1}"

    monkeypatch.setattr(module, "place_gone", gone)
    monkeypatch.setattr(module, "takes_now", takes)
    task = task_of(bound)
    assert task is not None
    steps, before = places.places._change(task, "m1", "m0"), 0
    for _ in steps:
        most, before = max(most, len(looks) - before), len(looks)
    assert most == 1
    assert len(looks) > MEMBERS
    assert places.moved == [(f"p{MEMBERS - 1}", "m0")]


A, B, C = member("a", "m0"), member("b", "m2"), member("c", "m2")


def gone(places: Places) -> None:
    show(places.caches.pods, "ml/b", None)


def bound(places: Places) -> None:
    show(places.caches.pods, "ml/b", B.bound_to("m1").view())


def moved(places: Places) -> None:
    show(places.caches.pods, "ml/b", member("b", "m1").view())


def other_gone(places: Places) -> None:
    show(places.caches.pods, "ml/a", None)


def node_gone(places: Places) -> None:
    show(places.caches.nodes, "m2", None)


def place_left_gone(places: Places) -> None:
    show(places.caches.nodes, "m0", None)


def place_taken(places: Places) -> None:
    show(places.caches.pods, "ml/x", member("x", task="v").bound_to("m0").view())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (nothing, [("b", "m0")]),
        (gone, [("c", "m0")]),
        (bound, [("c", "m0")]),
        (moved, [("c", "m0")]),
        (other_gone, [("c", "m0")]),
        (node_gone, [("b", "m0")]),
        (place_left_gone, []),
        (place_taken, []),
    ],
)
@pytest.mark.parametrize("between", [False, True], ids=["before it is looked", "between two steps"])
async def test_what_changes_before_a_member_is_looked_at_counts(
    change: Callable[[Places], None], expected: list[tuple[str, str]], *, between: bool
) -> None:
    """Two have their place on a node that has room for one."""
    places = Places(A, B, C)
    places.caches.turns = Turns(2, count().__next__)
    places.places.note(places.binds(A, "m2"))
    if not between:
        change(places)

    def meanwhile(_: Places) -> None:
        assert (len(places.places), places.moved) == (1, [])
        if between:
            change(places)

    assert await places.look(meanwhile) == expected


@pytest.mark.parametrize("change", [gone, bound, moved])
async def test_who_has_another_place_once_one_is_found_for_it_leaves_that_to_the_next(
    change: Callable[[Places], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at a node may be paused, too."""
    places = Places(A, B, C)

    def takes(ledger: Ledger, pod: Pod, node: str, admitted: AdmittedNodes) -> Steps[bool]:
        found = yield from takes_now(ledger, pod, node, admitted)
        change(places)
        return found

    monkeypatch.setattr(module, "takes_now", takes)
    places.places.note(places.binds(A, "m2"))
    assert await places.look() == [("c", "m0")]


async def test_of_binds_that_are_seen_together_whoever_has_no_place_gets_the_one_that_nobody_has() -> None:
    """`a` has come to `b`'s place before `c` came to that of `a`, which `b` would have been given at once."""
    places = Places(A, member("b", "m2"), member("c", "m1"))
    for each in [places.binds(A, "m2"), places.binds(member("c", "m1"), "m0")]:
        places.places.note(each)
    assert await places.look() == [("b", "m1")]


async def test_a_place_that_is_taken_between_two_steps_is_followed_to_the_one_that_was_left() -> None:
    places = Places(A, member("b", "m2"), member("c", "m1"))
    places.caches.turns = Turns(2, count().__next__)
    places.places.note(places.binds(A, "m2"))
    assert await places.look(lambda _: places.places.note(places.binds(member("c", "m1"), "m0"))) == [
        ("b", "m1")
    ]


async def test_members_that_have_all_changed_places_with_each_other_move_nobody() -> None:
    """One who is too many there has nowhere to go, and its look ends."""
    places = Places(A, member("c", "m2"), member("late", "m0"))
    for each in [places.binds(A, "m2"), places.binds(member("c", "m2"), "m0")]:
        places.places.note(each)
    assert await places.look() == []


async def test_two_that_leave_one_place_leave_it_to_two() -> None:
    first, second = member("first", "m0", core=40), member("second", "m0", core=40)
    others = [member(f"b{each}", "m2", core=40) for each in range(4)]
    places = Places(first, second, *others)
    for each in [places.binds(first, "m2"), places.binds(second, "m2")]:
        places.places.note(each)
    assert await places.look() == [("b0", "m0"), ("b1", "m0")]


async def test_what_a_term_has_not_looked_at_is_nothing_to_the_next_one() -> None:
    world = World(member("a", "m0"), member("b", "m1"), member("x", "m0", task="v"))
    async with world.leading():
        await world.written()
        world.caches.turns = Turns(2, count().__next__)
        world.shows(member("a", "m0").bound_to("m1"))
        world.shows(member("x", "m0", task="v").bound_to("m2"))
        assert len(world.nominations._places) == 2
    assert (len(world.nominations._places), world.nominations._places._left) == (0, {})
    world.shows(member("late", "m1"))
    async with world.leading():
        moves = [(name, subresource) for name, subresource, _ in await world.written(10)]
    assert moves == [("b", "status"), ("late", "status")]
    assert world.caches.ledger.moving_to("uid-ml-b") == ""
