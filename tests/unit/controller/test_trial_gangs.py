"""Members of groups whose lifts may be refused: a gang that is asked about comes as a whole, and waits for nobody it can do without."""

import asyncio

import pytest

from controller.flight import key_of
from controller.refused_lifts import FIRST_S, MAX_S, RefusedLifts
from core import names
from core.affinity import NodeRequirement
from core.plan.decision import Lift
from tests.builders import a_group
from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import BROKEN, CUT, FORBIDDEN, SLOW_DOWN, World, lifted, pod
from tests.unit.controller.trial_world import FIRST_WAIT_S, MOMENT_S, waits_s

pytestmark = pytest.mark.looptime


def a_gang_comes(world: World, *names: str, namespace: str = "ml", least: int = 0) -> None:
    group = a_group("g", namespace=namespace).min_member(least or len(names)).in_queue("q")
    show(world.caches.groups, f"{namespace}/g", group.view())
    for name in names:
        world.comes(pod(name, 2, namespace=namespace).in_group("g"))


async def test_a_gang_of_which_others_are_in_is_not_left_by_half_for_a_failure_of_the_moment() -> None:
    """What lacks it is not asked about first: the others hold their quota for nothing meanwhile."""
    world = World(pod("x", 1), quota=2)
    world.writer.answer_to = lambda name: BROKEN if name == "x" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        show(world.caches.groups, "ml/g", a_group("g").min_member(2).in_queue("q").view())
        world.shows(lifted("a").in_group("g"))
        failing = [CUT, CUT]
        world.writer.answer_to = lambda name: failing.pop() if name == "b" and failing else BROKEN
        world.comes(pod("b", 2).in_group("g"))
        await asyncio.sleep(0.5)
        world.comes(pod("c", 1, namespace="fine"))
        world.writer.answer_to = lambda name: BROKEN if name == "x" else None
        await asyncio.sleep(5)
        assert "b" not in world.asked()
        assert "b" in world.names()
        assert "c" not in world.names()
        assert world.used() == 2


@pytest.mark.parametrize("fails", ["b", "a"])
async def test_nobody_of_a_gang_is_let_in_before_all_that_are_asked_about_are_answered(fails: str) -> None:
    """Its quota would go to others when one of them fails, and those that are in would hold theirs for nothing."""
    world = World(pod("x", 1), quota=2)
    world.writer.answer_to = lambda name: BROKEN if name == "x" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        before, failing = len(world.names()), [BROKEN]
        world.writer.answer_to = lambda name: (
            BROKEN if name == "x" else failing.pop() if name == fails and failing else None
        )
        world.writer.latency_s = lambda name: 0.3 if name == "b" else 0.001
        a_gang_comes(world, "a", "b")
        await asyncio.sleep(0.1)
        world.comes(pod("z", 5, namespace="fine"))
        await asyncio.sleep(1)
        assert world.names()[before:] == ["z"]
        show(world.caches.pods, "fine/z", None)
        await asyncio.sleep(FIRST_S + 5)
        assert sorted(world.names()[before:]) == ["a", "b", "z"]
        written = [write.at for write in world.writer.writes if write.name in "ab"]
        assert max(written) - min(written) < 0.01


@pytest.mark.parametrize("second", [1, 3], ids=["before the other", "after the other"])
async def test_a_member_that_is_made_anew_is_not_left_behind_by_one_that_was_asked_about(second: int) -> None:
    """Either both wait for the answer, or neither does."""
    world = World(pod("x", 1), quota=2)
    world.writer.answer_to = lambda name: BROKEN if name == "x" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.latency_s = lambda _name: 0.3
        a_gang_comes(world, "a", "b")
        await asyncio.sleep(0.1)
        for name in ("y", "z"):
            world.comes(pod(name, namespace="fine"))
        await asyncio.sleep(1)
        before = len(world.names())
        assert world.names()[-2:] == ["y", "z"]
        assert sorted(world.asked()) == ["a", "b"]
        show(world.caches.pods, "ml/b", None)
        world.comes(pod("c", second).in_group("g"))
        await asyncio.sleep(1)
        for name in ("y", "z"):
            show(world.caches.pods, f"fine/{name}", None)
        await asyncio.sleep(0.1)
        world.comes(pod("w", 5, namespace="fine"))
        await asyncio.sleep(1)
        came = ["w"] if second == 1 else ["a", "c"]
        assert (sorted(world.names()[before:]), "c" in world.asked()) == (came, second == 1)
        show(world.caches.pods, "fine/w", None)
        await asyncio.sleep(1)
        assert sorted(world.names()[-2:]) == ["a", "c"]


async def test_who_was_never_refused_waits_for_the_answer_about_others_of_its_gang_in_a_trusted_namespace_too() -> (
    None
):
    """One was, would have been taken in, and has to be asked about again: all that was answered before a lift was given up has."""
    world, records = World(quota=2), {names.GANG_ANNOTATION: "2"}
    views = [pod(name, 2).in_group("g").view() for name in "ab"]
    first, second = (Lift(each, "q", {}, records, NodeRequirement(), each.ungated(records)) for each in views)
    a, b, x = key_of(first.pod), key_of(second.pod), ("ml", "uid-ml-x")
    refused = RefusedLifts(world.caches.ledger)
    refused.refuse(b, second, "no", 0.0)
    refused.clear(b)
    refused.doubt("ml", "given up")
    refused.stored(x)
    assert not refused.doubts(a, first)
    assert refused.doubts(b, second)
    refused.ask(b, second)
    assert refused.doubts(a, first)
    refused.ask(a, first)
    refused.clear(a)
    refused.clear(b)
    assert not refused.doubts(a, first)
    assert not refused.doubts(b, second)


async def test_members_beyond_those_that_a_gang_starts_with_are_asked_about_as_others_are() -> None:
    """Nobody waits for them: two run, and forty workers behind a webhook that hangs would each hold a card for minutes."""
    world = World(pod("x", 1), quota=3)
    world.writer.answer_to = lambda name: BROKEN if name[0] in "xw" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        show(world.caches.groups, "ml/g", a_group("g").min_member(2).in_queue("q").view())
        for name in "ab":
            world.shows(lifted(name).in_group("g").together(2))
        for number in range(10):
            world.comes(pod(f"w{number}", 2).in_group("g"))
        await asyncio.sleep(1)
        assert await waits_s(world, "good", 1) < MOMENT_S
        assert not any(name.startswith("w") for name in world.names())


async def test_members_of_a_group_that_start_one_by_one_do_not_wait_for_each_other() -> None:
    """Volcano makes a PodGroup for each ReplicaSet."""
    world = World(pod("x", 1), quota=50)
    world.writer.answer_to = lambda name: BROKEN if name[0] in "xh" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.latency_s = lambda name: 4.0 if name[0] == "h" else 0.001
        group = a_group("g").min_member(1).in_queue("q")
        show(world.caches.groups, "ml/g", group.view())
        world.writer.stored["ml/g"] = group.build()
        world.comes(pod("a", 2).in_group("g"))
        world.comes(pod("h", 3).in_group("g"))
        await asyncio.sleep(1)
        assert "a" in world.names()


async def test_a_gang_does_not_wait_for_a_member_whose_question_the_server_wants_put_off() -> None:
    world = World(pod("x", 1), quota=3)
    world.writer.answer_to = {"x": BROKEN, "c": SLOW_DOWN}.get
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        a_gang_comes(world, "a", "b", "c", least=2)
        await asyncio.sleep(1)
        assert {"a", "b"} <= set(world.names())


async def test_a_gang_of_which_dry_runs_alone_are_denied_is_let_in_as_soon_as_a_pod_would_be() -> None:
    """Its members are refused, and asked about, in the same second: were one of a namespace to go, it never would be whole."""
    world = World(pod("x", 1), quota=30)
    gang = [f"m{number}" for number in range(20)]
    world.writer.answer_to = lambda _name: BROKEN
    async with world.running():
        a_gang_comes(world, *gang)
        await asyncio.sleep(3 * FIRST_WAIT_S)
        world.writer.answer_to = lambda name: BROKEN if name == "x" else None
        world.writer.trial_answer = lambda _name: FORBIDDEN
        before = len(world.names())
        await asyncio.sleep(6 * MAX_S)
        assert set(gang) <= set(world.names()[before:])


async def test_a_gang_does_not_wait_for_a_member_that_it_can_do_without_and_that_is_refused() -> None:
    world = World(pod("x", 1), quota=3)
    world.writer.answer_to = lambda name: BROKEN if name in "xc" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        a_gang_comes(world, "a", "b", "c", least=2)
        await asyncio.sleep(1)
        assert {"a", "b"} <= set(world.names())
        assert "c" not in world.names()


@pytest.mark.parametrize("least", [1, 2], ids=["one by one", "gangs"])
async def test_all_groups_of_a_namespace_are_asked_about_in_one_pass(least: int) -> None:
    """With quota for one of them, a pass for each would keep younger pods waiting."""
    world = World(pod("x", 1), quota=2)
    world.writer.answer_to = lambda _name: BROKEN
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.latency_s = lambda name: 0.001 if name == "z" else 1.0
        world.writer.answer_to = lambda name: None if name == "z" else BROKEN
        passes = world.passes()
        for number in range(50):
            group = a_group(f"g{number}").min_member(least).in_queue("q")
            show(world.caches.groups, f"ml/g{number}", group.view())
            for member in range(2):
                world.comes(pod(f"p{number}-{member}", 2).in_group(f"g{number}"))
        world.comes(pod("z", 5, namespace="fine"))
        await asyncio.sleep(MOMENT_S)
        assert "z" in world.names()
        assert world.passes() - passes <= 3


async def test_a_gang_does_not_wait_for_the_answer_about_a_member_that_is_gone() -> None:
    world = World(pod("x", 1), quota=3)
    world.writer.answer_to = lambda name: BROKEN if name == "x" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.latency_s = lambda name: 4.0 if name == "c" else 0.001
        a_gang_comes(world, "a", "b", "c", least=2)
        await asyncio.sleep(0.5)
        assert not {"a", "b"} & set(world.names())
        show(world.caches.pods, "ml/c", None)
        await asyncio.sleep(0.5)
        assert {"a", "b"} <= set(world.names())
