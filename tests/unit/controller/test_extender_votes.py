"""Votes on jobs of Volcano: given for PodGroups that the cluster has, and the reason is told once."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.extender import Extender
from controller.extender_metrics import ExtenderMetrics
from controller.extender_votes import VoteNotes
from core import reasons
from core.extender.enqueue import REJECT, Vote
from core.objects import group
from core.refusal import Refusal
from core.settings import Settings
from core.steps import finish
from tests.builders.objects import a_group, a_queue
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import show
from tests.unit.controller.extender_server import filled, serving
from tests.unit.controller.fakes import Recorder
from tests.unit.core.extender.asking import recorded


async def test_every_vote_is_told() -> None:
    held, votes = filled(Settings()), list[Vote]()
    show(held.queues, "research", a_queue("research").cards({"NVIDIA-H20": 1}).view())
    body = recorded("volcano-jobEnqueueable")
    asking = group.project(body["job"]["PodGroup"])
    show(held.groups, asking.key, asking)
    async with serving(held, votes.append) as asked:
        assert await asked.post("/volcano/jobEnqueueable", body) == (200, {"status": -1})
    (vote,) = votes
    assert vote.group.name.startswith("train-")
    assert vote.why is not None


async def test_jobs_that_the_cluster_does_not_have_get_no_vote_and_leave_nothing_behind() -> None:
    """Anybody on the port could else hold a queue's room for them, or let the process grow."""
    held, votes = filled(Settings()), list[Vote]()
    show(held.queues, "research", a_queue("research").cards({"NVIDIA-H20": 2}).view())
    body = recorded("volcano-jobEnqueueable")
    real = group.project(body["job"]["PodGroup"])
    extender = Extender(held, ExtenderMetrics(CollectorRegistry()), votes.append)
    for number in range(50):
        body["job"]["PodGroup"]["metadata"]["name"] = f"made-up-{number}"
        assert await extender._job_enqueueable(finish(extender._vote(body))) == {"status": 0}
    body["job"]["PodGroup"]["metadata"]["name"] = real.name
    show(held.groups, real.key, real)
    body["job"]["PodGroup"]["metadata"]["uid"] = "of-another-one"
    assert await extender._job_enqueueable(finish(extender._vote(body))) == {"status": 0}
    assert extender._promises._kept == {}
    body["job"]["PodGroup"]["metadata"]["uid"] = real.uid
    body["job"]["PodGroup"]["metadata"]["annotations"]["volcano.sh/card.request"] = "{}"
    assert await extender._job_enqueueable(finish(extender._vote(body))) == {"status": 1}
    (promise,) = extender._promises._kept.values()
    assert promise.amounts["NVIDIA-H20"] == 2000, "what the cluster's own PodGroup declares"
    show(held.groups, real.key, None)
    assert extender._promises._kept == {}


def short(text: str) -> Vote:
    return Vote(REJECT, a_group("g").view(), Refusal(reasons.INSUFFICIENT_SCALAR_QUOTA, text))


@pytest.mark.looptime
async def test_the_reason_is_said_once_on_the_group_until_it_changes() -> None:
    """The scheduler asks each second; a job that is let in right afterwards hears nothing, nor does any twice an hour."""
    recorder = Recorder()
    notes = VoteNotes(recorder)
    said = ("PodGroup g", reasons.INSUFFICIENT_SCALAR_QUOTA)
    permit = Vote(1, a_group("g").view())
    async with background(notes.run()):
        for vote in (short("a 1"), permit, short("a 1"), short("a 2"), short("a 3"), short("b 1"), permit):
            notes.told(vote)
            await asyncio.sleep(0.9)
        assert recorder.emitted == [(*said, "a 2")]
        for vote in (short("b 1"), short("b 2"), short("b 3"), permit, short("b 4"), short("b 4")):
            notes.told(vote)
            await asyncio.sleep(0.9)
        assert recorder.emitted == [(*said, "a 2"), (*said, "b 2")]
        await asyncio.sleep(3600)
        assert recorder.emitted[2:] == [(*said, "b 4")]


@pytest.mark.looptime
async def test_a_group_that_is_made_anew_hears_it_again() -> None:
    recorder = Recorder()
    notes = VoteNotes(recorder)
    async with background(notes.run()):
        notes.told(short("a"))
        await asyncio.sleep(2)
        notes.group_changed(a_group("g").view(), None)
        notes.told(short("a"))
        await asyncio.sleep(2)
    assert len(recorder.emitted) == 2


@pytest.mark.looptime
async def test_a_vote_on_a_group_that_is_gone_leaves_nothing_behind() -> None:
    recorder, there = Recorder(), True
    notes = VoteNotes(recorder, exists=lambda _: there)
    notes.told(short("a"))
    assert len(notes._sayings) == 1
    there = False
    notes.group_changed(a_group("g").view(), None)
    notes.told(short("a"))
    assert len(notes._sayings) == 0
