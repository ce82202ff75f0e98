"""A standby takes over from a leader that was killed, whatever has happened while it stood by: it decides, and nothing ends it.

An exception in the first moments of leading ends the process, and with it the next leader that stands by for as long. What it
has gathered must not show either: its books, and what it makes of them, are those of a process that has just listed everything.
"""

import asyncio
import logging
import os
from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import pytest

from controller.caches import Caches
from core import names
from core.mgpu import records
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.offline import decisions
from core.queues.audit import audit
from core.steps import finish
from kube.lease import Resigned
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.property.takeover_world import Replica, Stored, fresh
from tests.property.watching_replica import WatchingReplica
from tests.unit.controller.test_binding import binding

pytestmark = pytest.mark.looptime(start=1_000_000)

NODES = ("n0", "n1", "n2", "n3")
QUEUES = ("default", "q0", "q1")
GROUPS = ("g0", "g1")
QUOTAS = ('{"A": 4}', '{"A": 2, "B": 2}', '{"A": 0, "A|B": 3}', "{", '{"A": "many"}')
CARDS = ("A", "A|B", "B|A", "A|A", "gone", "|")
RECORDS = ("", "0", "1", "0,1", "7", "x", "9" * 400, "-1", "0,", "\0")
COUNTS = ("0", "1", "2", "1,1", "x")
SEEDS = int(os.environ.get("CARDQUOTA_TAKEOVERS", "6"))
TERM_S = 20.0
"""Long enough for the wait that a new leader begins with, for repetitions of failed writes, and for pods to be overdue."""
WATCHED_TERM_S = 60.0
"""As a rule long enough for a new leader to catch up with watches that are late, cut off and refused, as well."""
LATEST_S = 140.0
"""By then one decides that had to resign once, for its lists failed at random for as long as it waits for them."""
CREATED = "1970-01-12T13:46:40Z"


class History:
    """Users, schedulers, nodes and administrators at random; both controllers hear of it when they do."""

    def __init__(self, seed: int) -> None:
        self.stored = Stored(seed, stormy=(0.0, 0.1, 0.3)[seed % 3])
        self.rng = self.stored.rng
        self.numbers = count()
        self.changes = (self.node, self.queue, self.group, *3 * (self.pod,), *2 * (self.edit,), self.end)
        for name in NODES[:3]:
            self.stored.put("nodes", name, a_node(name).mgpu(4, memory=16384).card("A", 8))

    def happen(self) -> None:
        for _ in range(self.rng.choice((0, 1, 1, 2, 5))):
            self.rng.choice(self.changes)()

    def node(self) -> None:
        built = a_node(name := self.rng.choice(NODES)).mgpu(self.rng.choice((1, 2, 4)), memory=16384)
        self._put_or_drop("nodes", name, built.card(self.rng.choice("AB"), self.rng.choice((2, 8))))

    def queue(self) -> None:
        name = self.rng.choice(QUEUES)
        built = a_queue(name).cards(self.rng.choice(QUOTAS))
        if self.rng.random() < 0.3:
            built = built.shares(core=self.rng.choice((100, 400)))
        self._put_or_drop("queues", name, built.fifo() if self.rng.random() < 0.2 else built)

    def group(self) -> None:
        built = a_group(name := self.rng.choice(GROUPS)).in_queue(self.rng.choice(QUEUES))
        self._put_or_drop("podgroups", f"ml/{name}", built.min_member(self.rng.choice((1, 2, 3))))

    def _put_or_drop(self, plural: str, key: str, built: Any) -> None:
        if (plural, key) in self.stored.objects and self.rng.random() < 0.4:
            self.stored.drop(plural, key)
        else:
            self.stored.put(plural, key, built)

    def pod(self) -> None:
        rng = self.rng
        pod = a_pod(f"p{next(self.numbers)}").in_queue(rng.choice(("", *QUEUES))).created(CREATED)
        if rng.random() < 0.6:
            pod = pod.mgpu(core=rng.choice((5, 10, 60, 100, 200)), memory=rng.choice((1024, 4096, None)))
        else:
            pod = pod.gpu(rng.choice((1, 2))).card(rng.choice(CARDS))
        if rng.random() < 0.1:
            pod = pod.mgpu("wide", core=100, memory=4096).cards_per_container(1, 2)
        if rng.random() < 0.3:
            pod = pod.in_group(rng.choice(GROUPS))
        if rng.random() < 0.5:
            pod = pod.owned_by("ReplicaSet", "set")
        self._put_pod(pod.gated() if rng.random() < 0.9 else pod)

    def edit(self) -> None:
        """Bound past the hook, ungated by hand, with another record, started, done, on its way out."""
        if not self._pods():
            return
        pod, rng = self.rng.choice(self._pods()), self.rng
        edits = (
            lambda: pod.annotation(records.key("main"), rng.choice(RECORDS)),
            lambda: pod.annotation(names.MGPU_MULTIPLE_ANNOTATION, rng.choice(COUNTS)),
            lambda: pod.bound_to(_node(pod) or rng.choice(NODES), phase="Pending"),
            lambda: pod.put("spec", "schedulingGates", value=[]),
            pod.started,
            pod.terminating,
            lambda: pod.phase("Succeeded"),
        )
        self._put_pod(rng.choice(edits)())

    def end(self) -> None:
        """Deletes a pod; now and then all of them, as the end of a job does."""
        keys = self.stored.all("pods")
        for key in keys if self.rng.random() < 0.02 else self.rng.sample(keys, min(1, len(keys))):
            self.stored.drop("pods", key)

    def meddle(self) -> None:
        """Somebody writes another record to every pod that has one."""
        for pod in self._pods():
            if records.key("main") in pod.raw["metadata"].get("annotations", {}):
                self._put_pod(pod.annotation(records.key("main"), self.rng.choice(RECORDS)))

    async def schedule(self, replica: Replica) -> None:
        """A scheduler asks for a bind; what is granted is stored, late, or never."""
        waiting = [
            pod for pod in self._pods() if not pod.raw["spec"].get("schedulingGates") and not _node(pod)
        ]
        if not waiting:
            return
        asked, node = self.rng.choice(waiting).raw["metadata"], self.rng.choice(NODES)
        decision = await replica.review(binding(asked["name"], node=node, uid=asked["uid"]))
        await asyncio.sleep(self.rng.choice((0.001, 0.05)))
        now = self.stored.objects.get(("pods", f"ml/{asked['name']}"))
        if not decision.allowed or now is None or self.rng.random() < 0.1:
            return
        if now.raw["metadata"]["uid"] == asked["uid"] and not _node(now):
            for key, text in (decision.patch[0].value if decision.patch else {}).items():
                now = now.annotation(key, text)
            self._put_pod(cast("PodBuilder", now).bound_to(node, phase="Pending"))

    def _pods(self) -> list[PodBuilder]:
        return [cast("PodBuilder", self.stored.objects["pods", key]) for key in self.stored.all("pods")]

    def _put_pod(self, pod: PodBuilder) -> None:
        metadata = pod.raw["metadata"]
        self.stored.put("pods", f"{metadata['namespace']}/{metadata['name']}", pod)


def _node(pod: Any) -> str:
    return str(pod.raw["spec"].get("nodeName", ""))


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
    """What books say, and what would be decided by them next."""
    ledger = caches.ledger
    finish(ledger.settle())
    said: dict[str, object] = {
        "sums": {name: _parts(ledger.sums(name)) for name in sorted({*ledger.accounts, *ledger.queues})},
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
    await lead_and_die(history, leader, standby, epoch=0)
    for _ in range(20):
        history.happen()
        standby.hear(history.rng.choice((0, 1, 5)))
    await lead_and_die(history, standby, epoch=1)
    standby.hear(len(standby.unheard))
    assert finish(audit(standby.caches.ledger, standby.caches.pods.values())) == []
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
        assert finish(audit(standby.caches.ledger, standby.caches.pods.values())) == []
        assert known(standby.caches) == known(fresh(history.stored))
