"""A standby takes over from a leader that was killed, whatever has happened while it stood by: it decides, and nothing ends it.

An exception in the first moments of leading ends the process, and with it the next leader that stands by for as long. What it
has gathered must not show either: its books, and what it makes of them, are those of a process that has just listed everything.
"""

import asyncio
import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

from controller.caches import Caches
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.offline import decisions
from core.queues.audit import audit
from core.steps import finish
from kube.lease import Resigned
from tests.property.takeover_history import NODES, QUEUES, History
from tests.property.takeover_replica import Replica, fresh
from tests.property.watching_replica import WatchingReplica

pytestmark = pytest.mark.looptime(start=1_000_000)

SEEDS = int(os.environ.get("CARDQUOTA_TAKEOVERS", "6"))
TERM_S = 20.0
"""Long enough for the wait that a new leader begins with, for repetitions of failed writes, and for pods to be overdue."""
WATCHED_TERM_S = 60.0
"""As a rule long enough for a new leader to catch up with watches that are late, cut off and refused, as well."""
LATEST_S = 140.0
"""By then one decides that had to resign once, for its lists failed at random for as long as it waits for them."""


async def lead_and_die(
    history: History, leader: Replica, *others: Replica, epoch: int, term_s: float = TERM_S
) -> None:
    """One controller leads for a while, while things happen and all hear of them; what ends it by itself is raised.

    It is killed when it has just heard of records that it had no time to mend.
    """
    clock = asyncio.get_running_loop().time
    begun, leading = clock(), asyncio.create_task(_campaign(leader, epoch))
    while not leading.done() and clock() < begun + (term_s if leader.hook.leading else LATEST_S):
        history.happen()
        for replica in (leader, *others):
            replica.hear(history.rng.choice((0, 1, 5, 1000)))
        bind = asyncio.create_task(history.schedule(leader))
        await asyncio.wait({leading, bind}, timeout=history.rng.choice((0.001, 0.05, 0.5)))
        await bind
        leader.scraped()
    if leading.done():
        leading.result()
        pytest.fail("the leader has ended by itself")
    assert leader.hook.leading, "nothing was decided"
    history.meddle()
    leader.hear(len(leader.unheard))
    leader.kill()
    leading.cancel()
    await asyncio.wait({leading})


async def _campaign(leader: Replica, epoch: int) -> None:
    """Leads, and tries again after it has resigned because its lists failed for too long, as its elector has it do."""
    while True:
        try:
            await leader.lead(epoch)
        except Resigned:
            epoch += 1
        else:
            return


def known(caches: Caches) -> dict[str, object]:
    """What books say, and what would be decided by them next, without what is known for a time only.

    A process that begins has not heard of classes that have gone, nor has it waited for deleted pods that run on.
    """
    ledger = caches.ledger
    finish(ledger.devices.breaks.end())
    for served in tuple(ledger.devices.book.classes.orphaned):
        ledger.release_resource(served)
    for pod in [caches.ledger.observed(uid) for uid in ledger.stages.overrun]:
        assert pod is not None
        caches.count_overrun(pod, overrun=False)
    finish(ledger.settle())
    said: dict[str, object] = {
        "sums": {
            name: parts for name in (*QUEUES, "root", "gone") if any(parts := _parts(ledger.sums(name)))
        },
        "nodes": {name: {pod.key: pod for pod in ledger.pods_on(name)} for name in NODES},
        "stages": {entry.pod.key: entry.stage for entry in ledger.entries()},
    }
    made = {each.pod.key: _made(each) for each in decisions(ledger, Planner(ledger))}
    return {**said, "decisions": made}


def _parts(sums: Any) -> tuple[dict[str, int], ...]:
    return tuple(
        {key: amount for key, amount in getattr(sums, part).items() if amount}
        for part in ("allocated", "reserved", "waiting")
    )


def _made(decision: Any) -> object:
    return dict(decision.assigned) if isinstance(decision, Lift) else decision.why.code


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_standby_takes_over_whatever_has_happened_and_knows_what_a_new_process_knows(
    seed: int,
) -> None:
    history = History(seed)
    leader, standby = Replica(history.stored), Replica(history.stored)
    async with standby.running():
        async with leader.running():
            await lead_and_die(history, leader, standby, epoch=0)
        for _ in range(20):
            history.happen()
            standby.hear(history.rng.choice((0, 1, 5)))
        await lead_and_die(history, standby, epoch=1)
    standby.hear(len(standby.unheard))
    assert finish(audit(standby.caches.ledger, standby.caches.pods.views)) == []
    assert known(standby.caches) == known(fresh(history.stored))


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_so_it_does_where_it_lists_and_watches_what_happens_and_catches_up_while_more_happens(
    seed: int,
) -> None:
    """Watches are late, each by itself, lists take long and fail: it hears of pods before their nodes, and of some twice."""
    history = History(seed)
    leader, standby = WatchingReplica(history.stored), WatchingReplica(history.stored)
    async with standby.running():
        async with leader.running():
            await lead_and_die(history, leader, standby, epoch=0, term_s=WATCHED_TERM_S)
        standby.cut_off()
        for _ in range(20):
            history.happen()
            standby.hear(history.rng.choice((0, 1)))
            await asyncio.sleep(0.01)
        await lead_and_die(history, standby, epoch=1, term_s=WATCHED_TERM_S)
        standby.hear(1)
        await standby.caches.catch_up()
        assert finish(audit(standby.caches.ledger, standby.caches.pods.views)) == []
        assert known(standby.caches) == known(fresh(history.stored))
