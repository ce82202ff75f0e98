"""The event on a pod that has got its quota: only where it was said to wait, and by the leader alone."""

import asyncio
from dataclasses import replace

import pytest

from core import names, reasons
from tests.fakes.apiserver import background
from tests.unit.controller.announcing import NODE, POD, QUEUE, Records, World, next_leader, stored

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("records", "told"),
    [
        (
            {names.CHARGED_QUEUE_ANNOTATION: "q", names.ASSIGNED_ANNOTATION: '{"NVIDIA-H200":2}'},
            ["Queue <q> lets the pod in with 2 <NVIDIA-H200>; a scheduler looks for a node now"],
        ),
        (
            {names.CHARGED_QUEUE_ANNOTATION: "q"},
            ["Queue <q> lets the pod in; a scheduler looks for a node now"],
        ),
        ({}, []),
    ],
    ids=["cards", "shares", "the gate was taken away by somebody else"],
)
async def test_a_pod_that_was_said_to_wait_is_told_when_it_is_let_in(
    records: dict[str, str], told: list[str]
) -> None:
    world = World(NODE, QUEUE, POD)
    async with background(world.announcements.run()):
        world.passes()
        await asyncio.sleep(5)
        waiting = POD.view()
        let_in = replace(waiting, gates=(), annotations={**waiting.annotations, **records})
        world.announcements.pod_changed(waiting, let_in)
        world.announcements.pod_changed(let_in, replace(let_in, node_name="n"))
        await asyncio.sleep(5)
    assert [(about, note) for about, reason, note in world.recorder.emitted if reason == reasons.LIFTED] == [
        ("Pod p", note) for note in told
    ]


async def test_who_was_lifted_before_anything_was_said_has_no_event_at_all() -> None:
    """Most pods wait for less than a second, and thousands of events would say so."""
    world, waiting = World(NODE, QUEUE, POD), POD.view()
    let_in = replace(waiting, gates=(), annotations={names.CHARGED_QUEUE_ANNOTATION: "q"})
    async with background(world.announcements.run()):
        world.passes()
        world.announcements.pod_changed(waiting, let_in)
        await asyncio.sleep(5)
    assert world.recorder.emitted == []


async def test_a_lift_is_told_by_the_leader_alone_and_says_nothing_to_the_next_one() -> None:
    world, waiting = World(NODE, QUEUE, POD), POD.view()
    assert len(await world.decides()) == 1
    records = {**waiting.annotations, names.CHARGED_QUEUE_ANNOTATION: "q"}
    world.announcements.pod_changed(waiting, replace(waiting, gates=(), annotations=records))
    assert len(world.recorder.emitted) == 1
    lifted = stored(("Pod p", reasons.LIFTED, "Queue <q> lets the pod in"))
    follower = World(NODE, QUEUE, POD)
    next_leader(follower, Records(lifted))
    assert len(await follower.decides()) == 1
