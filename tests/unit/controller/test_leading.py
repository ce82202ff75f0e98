"""The order in which a replica begins and ends to lead."""

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller import flight, repair, unfinished
from controller.announcements import Announcements
from controller.auditing import Auditor
from controller.discovery import NodeWatch
from controller.leading import QUIET_S, Leader, anything_let_in
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.nominations import Nominations
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.queue_records import QueueRecords
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from controller.stranded import StrandedPods
from controller.usage_following import UsageFollower
from controller.usage_keeping import UsageKeeper
from core import reasons
from core.queues.ledger import Ledger
from core.settings import Settings
from kube import transport
from kube.health import Health
from kube.lease import Durations, Term
from tests.builders import a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import NoUsage, NoWrites, show
from tests.unit.controller.fakes import Recorder, Writer, term
from tests.unit.controller.test_binding import World, share
from tests.unit.kube.leases import Network, Store, Work, elector, until

pytestmark = pytest.mark.looptime

SETTLED_S, IDLE_S = 120.0, 3600.0
LOOKS_EVERY_S = (unfinished._LOOK_S, flight.PATIENCE_S / 4)
"""Whoever looks whether there is something to do, and how often: for unfinished gangs, and for lifts that were never tried."""
OTHER_TIMERS = 12
"""In an hour: the books are audited every ten minutes."""

LEAVE = Settings.model_validate({"dra": {"queueCRD": "leave"}})


class Leading:
    """A leader over a binding hook's world; `order` notes what happens at its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *pods: PodBuilder) -> None:
        self.world = World(*pods)
        self.world.hook.stop()
        self.order: list[bool] = []
        self.writer = writer = Writer()
        metrics, recorder = Metrics(CollectorRegistry()), Recorder()
        parts = (writer, self.world.caches, Announcements(recorder), metrics)
        self.leader = Leader(
            self.world.caches,
            Lifter(*parts),
            Nominations(writer, self.world.caches),
            Publisher(*parts),
            Repairer(writer, self.world.caches, recorder, metrics, Settings()),
            ReservationWatch(writer, *parts[1:], Settings(), lambda: 0),
            StrandedPods(self.world.caches, parts[2]),
            QueueDefinitionKeeper(NoWrites(), self.world.caches, recorder, metrics, LEAVE),
            QueueRecords(writer, self.world.caches),
            self.world.hook,
            QueueSeries(self.world.caches.ledger),
            Auditor(self.world.caches, metrics),
            NodeWatch(self.world.caches, parts[2]),
            UsageKeeper(
                NoUsage(), self.world.caches, UsageFollower(self.world.caches, lambda: 0), metrics, "ns"
            ),
        )
        forget_all = Ledger.forget_all

        def noted(ledger: Ledger) -> None:
            self.order.append(self.world.hook.leading)
            forget_all(ledger)

        monkeypatch.setattr(Ledger, "forget_all", noted)

    def lists_within(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nobody lists anything in these caches; to catch up only takes its time."""

        async def refreshed() -> None:
            await asyncio.sleep(seconds)

        monkeypatch.setattr(self.world.caches, "catch_up", refreshed)


async def test_nobody_is_granted_cards_while_what_was_assumed_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leading = Leading(monkeypatch, share("a").gated())
    task = asyncio.create_task(leading.leader.lead(term()))
    await asyncio.sleep(0.1)
    assert leading.world.hook.leading
    task.cancel()
    await asyncio.wait({task})
    assert leading.order == [False]
    assert not leading.world.hook.leading


@pytest.mark.parametrize("loop", [Lifter, Repairer, Publisher])
async def test_a_loop_that_fails_gives_nothing_back_while_binds_are_granted(
    monkeypatch: pytest.MonkeyPatch, loop: type[Lifter | Repairer | Publisher]
) -> None:
    """Neither quota nor cards, of which somebody else might be granted what was booked and is still to be stored."""
    leading = Leading(monkeypatch, share("a").gated())
    show(leading.world.caches.queues, "default", a_queue("default").view())
    leading.writer.stuck.add("a")
    run = loop.run

    async def fail() -> None:
        await asyncio.sleep(1)
        raise RuntimeError("broken")

    async def running(self: Any, term: Term) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run(self, term))
            tasks.create_task(fail())

    monkeypatch.setattr(loop, "run", running)
    with pytest.raises(ExceptionGroup):
        await leading.leader.lead(term())
    assert [write.name for write in leading.writer.writes] == ["a"]
    assert leading.order == [False]
    assert leading.world.caches.ledger.assumed("uid-ml-a") is None


async def leads_after(leading: Leading, term: Term, quiet_s: float) -> None:
    """Asserts that it begins to decide after so many seconds, not before."""
    task = asyncio.create_task(leading.leader.lead(term))
    if quiet_s:
        await asyncio.sleep(quiet_s - 0.1)
        assert not leading.world.hook.leading
    await asyncio.sleep(0.2)
    assert leading.world.hook.leading
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize(("epoch", "quiet_s"), [(0, 0.0), (1, QUIET_S + 1), (7, QUIET_S + 1)])
async def test_after_another_leader_its_last_lift_is_waited_for_and_everything_listed_anew(
    monkeypatch: pytest.MonkeyPatch, epoch: int, quiet_s: float
) -> None:
    leading = Leading(monkeypatch, share("a").gated())
    leading.lists_within(1, monkeypatch)
    await leads_after(leading, Term(epoch, lambda: 0.0, 1.0), quiet_s)


BOUND = share("b").bound_to("m1")


@pytest.mark.parametrize(
    ("pod", "quiet_s"),
    [
        (share("b"), QUIET_S + 1),
        (BOUND, QUIET_S + 1),
        (BOUND.phase("Succeeded"), 0.0),
        (a_pod("b").bound_to("m1"), 0.0),
    ],
    ids=["lifted", "bound", "ended", "not ours"],
)
async def test_a_lease_without_a_past_is_not_believed_when_a_pod_has_been_let_in(
    monkeypatch: pytest.MonkeyPatch, pod: PodBuilder, quiet_s: float
) -> None:
    """It was deleted, and its holder may be granting binds at this moment."""
    leading = Leading(monkeypatch, share("a").gated(), pod)
    leading.lists_within(1, monkeypatch)
    await leads_after(leading, term(), quiet_s)


async def test_one_that_finds_no_lease_grants_nothing_while_the_holder_of_the_deleted_one_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It came after the deletion, and the holder does not hear of that: its requests about the Lease hang."""
    leading, store, former = Leading(monkeypatch, BOUND), Store(), Work()
    leading.lists_within(1, monkeypatch)
    cut_off = Network(store)
    async with background(elector(cut_off, "former").run(former)):
        renewals = len(cut_off.log)
        await until(lambda: former.leads and len(cut_off.log) > renewals + 3)
        await asyncio.sleep(0.2)
        cut_off.trouble = lambda: "hangs"
        store.delete()
        deleted = asyncio.get_running_loop().time()
        late = elector(Network(store), preceded=lambda: anything_let_in(leading.world.caches.ledger))
        async with background(late.run(leading.leader.lead)):
            await until(lambda: leading.world.hook.leading)
            assert not former.leads
            # As long as if the Lease had not been deleted.
            waited_s = asyncio.get_running_loop().time() - deleted
            assert waited_s == pytest.approx(Durations().lease_s + QUIET_S + 1, abs=0.5)


async def test_without_a_lease_nobody_is_waited_for_where_no_pod_was_ever_let_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leading, store = Leading(monkeypatch, share("a").gated()), Store()
    first = elector(Network(store), preceded=lambda: anything_let_in(leading.world.caches.ledger))
    async with background(first.run(leading.leader.lead)):
        await asyncio.sleep(0.5)
        assert leading.world.hook.leading


async def test_binds_of_the_holder_of_a_deleted_lease_are_held_against_others_from_its_end_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may grant them to the last."""
    leading, since = Leading(monkeypatch, BOUND), list[float]()
    leading.lists_within(1, monkeypatch)
    clock = asyncio.get_running_loop().time

    async def inherited(_term: Term, since_s: float) -> None:
        since.append(since_s)

    monkeypatch.setattr(leading.world.hook, "inherit", inherited)
    ends = clock() + 15.0
    async with background(leading.leader.lead(Term(0, clock, clock() + 100.0, alone_from=ends))):
        await asyncio.sleep(30.0)
    assert since == [pytest.approx(ends)]


async def test_a_leader_whose_list_never_ends_resigns_and_is_not_alive_until_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lease is free for others, and the probe names what is missing."""
    leading, store, health = Leading(monkeypatch, share("a")), Store(), Health()
    health.require_live("refresh", leading.leader.stuck)
    async with background(elector(Network(store)).run(leading.leader.lead)):
        await asyncio.sleep(QUIET_S + 59)
        assert store.holder == "a"
        assert health.live_failures() == {}
        await asyncio.sleep(2)
        assert store.holder == ""
        assert "namespaces" in health.live_failures()["refresh"]
        assert "pods" in health.ready_failures()["refresh"]
        for informer in leading.world.caches._informers():
            informer._on_listed()
        assert health.live_failures() == {}
        leading.lists_within(1, monkeypatch)
        await asyncio.sleep(30)
        assert leading.world.hook.leading
        assert store.holder == "a"


async def test_a_large_cluster_is_given_the_time_that_its_list_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit grows with the pods: one that is slow for everybody must not leave the cluster without a leader."""
    pods = [share(f"p{number}", core=1) for number in range(5_000)]
    leading = Leading(monkeypatch, *pods)
    leading.lists_within(64.5, monkeypatch)
    await leads_after(leading, term(), QUIET_S + 64.5)


async def test_a_leader_that_was_stopped_grants_and_writes_nothing_when_it_wakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its clock has gone on; whichever of its loops comes first finds the term over, before anybody tells it."""
    over = False
    leading = Leading(monkeypatch, share("a", core=10))
    leading.lists_within(1, monkeypatch)
    show(leading.world.caches.queues, "default", a_queue("default").view())
    task = asyncio.create_task(leading.leader.lead(Term(0, lambda: float(over), 1.0)))
    await asyncio.sleep(QUIET_S + 2)
    leading.world.show(share("b", core=10).gated())
    await asyncio.sleep(1)
    assert [write.name for write in leading.writer.writes] == ["b"]
    over = True
    refused = await leading.world.bind("a")
    assert refused.denial is not None
    assert refused.denial.violations[0].code == reasons.NO_LEADER
    leading.world.show(share("c", core=10).gated())
    await asyncio.sleep(10)
    assert [write.name for write in leading.writer.writes] == ["b"]
    task.cancel()
    await asyncio.wait({task})


def test_no_write_of_a_former_leader_is_stored_once_the_next_one_lists() -> None:
    """Sent at the last moment of its term, and seconds on its way: the API server gives it up as it was told to."""
    durations = Durations()
    last_sent_s, listed_s = durations.renew_deadline_s, durations.lease_s + QUIET_S
    for timeout_s in (flight.WRITE_TIMEOUT_S, repair.WRITE_TIMEOUT_S):
        assert listed_s - (last_sent_s + transport.AGAIN_WITHIN_S + timeout_s) >= 5
        assert timeout_s < QUIET_S, "a leader that gives the Lease back is followed at once"


async def test_a_leader_to_whom_nothing_happens_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more loop that looks again and again whether there is something to do is found by its timers."""
    waiting = a_pod("waiting").gpu(1).card("A").in_queue("q").gated()
    leading = Leading(monkeypatch, waiting)
    show(leading.world.caches.queues, "q", a_queue("q").cards({"A": 0}).view())
    loop, timers = asyncio.get_running_loop(), list[float]()
    call_at = loop.call_at

    def counted(when: float, *work: Any, **how: Any) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, *work, **how)

    async with background(leading.leader.lead(term())):
        await asyncio.sleep(SETTLED_S)
        with monkeypatch.context() as counting:
            counting.setattr(loop, "call_at", counted)
            await asyncio.sleep(IDLE_S)
    assert len(timers) <= OTHER_TIMERS + sum(IDLE_S / every_s for every_s in LOOKS_EVERY_S)
