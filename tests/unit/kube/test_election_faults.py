"""Bad days of an election: a slow API server, a Lease that others write or delete, a process that was stopped."""

import asyncio
import time
from itertools import pairwise
from random import Random

import pytest

from kube.election import Elector
from kube.lease import Durations, Resigned, Term
from tests.fakes.apiserver import background
from tests.unit.kube.leases import Network, Store, Work, elector, until

THIEF = "thief"


def led_s(works: list[Work], begin: float, end: float) -> float:
    """For how much of this time anybody worked."""
    spans = [(span[0], span[1] if len(span) > 1 else end) for work in works for span in work.spans]
    return sum(max(0.0, min(last, end) - max(first, begin)) for first, last in spans)


def assert_no_overlap(works: list[Work]) -> None:
    """Nobody works before the former has ended, and epochs only grow."""
    spans = sorted(span for work in works for span in work.spans)
    for earlier, later in pairwise(spans):
        assert earlier[1] <= later[0]


@pytest.mark.looptime
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("slow_from_s", "least_s", "most_s"), [(20, 1.1, 2.2), (0, 2.8, 3.2)])
async def test_somebody_leads_although_every_request_takes_seconds(
    seed: int, slow_from_s: float, least_s: float, most_s: float
) -> None:
    """Read and write together take longer than the pause between renewals, or even than a single request may."""
    loop, rng, store = asyncio.get_running_loop(), Random(seed), Store()
    begin = loop.time()
    # A Lease that was given back: that there is none would be answered in half the time.
    store.put({"metadata": {"name": "cardquota"}, "spec": {"holderIdentity": ""}})

    def latency_s() -> float:
        at = loop.time() - begin
        if at < slow_from_s:
            return 0.05
        return 3.0 if at < slow_from_s + 3 else rng.uniform(least_s, most_s)

    works = {name: Work(cleanup_s=1.0) for name in "abc"}
    candidates = [elector(Network(store, latency_s), name) for name in works]
    tasks = [asyncio.create_task(one.run(works[one.identity])) for one in candidates]
    await asyncio.sleep(320)
    assert led_s([*works.values()], begin + 20, begin + 320) > 295
    assert sum(len(work.terms) for work in works.values()) == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert_no_overlap([*works.values()])


@pytest.mark.looptime
async def test_a_renewal_that_has_to_read_first_has_the_time_of_a_read_and_of_a_write() -> None:
    """After a write that was refused, from when on each takes 2.8 s: together longer than a single request may."""
    store, work = Store(), Work()
    network = Network(store)
    async with background(elector(network).run(work)):
        await asyncio.sleep(10)
        network.trouble = lambda: "refused"
        renewals = len(network.log)
        await until(lambda: len(network.log) > renewals)
        network.trouble, network.latency = lambda: None, lambda: 2.8
        await asyncio.sleep(60)
        assert network.log[renewals + 1 : renewals + 3] == ["get", "replace"]
        assert len(work.terms) == 1
        assert work.terms[0].valid()


@pytest.mark.looptime
async def test_a_lease_is_taken_over_through_a_slow_api_server() -> None:
    """The candidate's read and write take more than four seconds together; the dead holder's time has to pass first."""
    store, work = Store(), Work()
    store.put(
        {"metadata": {"name": "cardquota"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}
    )
    async with background(elector(Network(store, lambda: 2.2)).run(work)):
        await asyncio.sleep(30)
        assert len(work.terms) == 1
        assert work.terms[0].valid()


@pytest.mark.looptime
async def test_a_request_that_hangs_leaves_time_for_another() -> None:
    """One renewal out of three is never answered: the term goes on."""
    store, work = Store(), Work()
    network = Network(store)
    async with background(elector(network).run(work)):
        await asyncio.sleep(10)
        network.trouble = lambda: "hangs" if len(network.log) % 3 == 0 else None
        await asyncio.sleep(200)
        assert len(work.terms) == 1
        assert work.terms[0].valid()


@pytest.mark.looptime
@pytest.mark.parametrize("lost", ["taken", "deleted"])
async def test_a_lease_that_was_lost_is_noticed_by_the_first_renewal(lost: str) -> None:
    """Not one more write of the leader: the term is over before its work, which takes its time to end, hears of it."""
    loop, store, work = asyncio.get_running_loop(), Store(), Work(cleanup_s=3.0)
    network = Network(store)
    async with background(elector(network).run(work)):
        await asyncio.sleep(10)
        (term,) = work.terms
        if lost == "taken":
            assert store.lease is not None
            store.put(store.lease | {"spec": store.lease["spec"] | {"holderIdentity": THIEF}})
        else:
            store.delete()
        renewals = len(network.log)
        await until(lambda: len(network.log) > renewals)
        renewed_at = loop.time()
        await until(lambda: not term.valid())
        # A write that is refused and a read, each a tenth of a second.
        assert loop.time() - renewed_at <= 0.25
        assert len(work.spans[0]) == 1, "the work is still ending"
        await asyncio.sleep(3.1)
        assert len(work.spans[0]) == 2


@pytest.mark.looptime
@pytest.mark.parametrize("deleted_at", [30.0, 30.7, 31.3, 31.9])
async def test_a_deleted_lease_makes_no_second_leader(deleted_at: float) -> None:
    """The standbys give its holder the time that it may need to notice; the holder itself begins a new term at once."""
    store, works = Store(), [Work(cleanup_s=1.0) for _ in range(3)]
    tasks = [
        asyncio.create_task(elector(Network(store), name).run(work))
        for name, work in zip("abc", works, strict=True)
    ]
    await asyncio.sleep(deleted_at)
    store.delete()
    await asyncio.sleep(10)
    (leader,) = (work for work in works if work.terms)
    assert [term.epoch for term in leader.terms] == [0, 1]
    assert leader.terms[1].valid()
    assert store.lease is not None
    assert store.lease["spec"]["leaseTransitions"] == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert_no_overlap(works)


@pytest.mark.looptime
async def test_a_lease_deleted_under_a_holder_that_is_dead_is_taken_when_its_time_is_over() -> None:
    """Nobody can tell a dead holder from one that has not noticed yet."""
    store, work = Store(), Work()
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 15, "leaseTransitions": 6}
    store.put({"metadata": {"name": "cardquota"}, "spec": spec})
    async with background(elector(Network(store)).run(work)):
        await asyncio.sleep(5)
        store.delete()
        await asyncio.sleep(14)
        assert not work.terms
        await asyncio.sleep(6)
        assert [term.epoch for term in work.terms] == [7]


@pytest.mark.looptime
@pytest.mark.parametrize(("preceded", "shared_s"), [(True, Durations().lease_s), (False, 0.0)])
async def test_who_finds_no_lease_may_share_the_time_with_a_former_leader_if_there_was_one(
    preceded: bool, shared_s: float
) -> None:
    """It has not seen the Lease that was deleted, and so cannot tell when its holder has to end."""
    work = Work()
    async with background(elector(Network(Store()), preceded=lambda: preceded).run(work)):
        await until(lambda: bool(work.terms))
        assert work.terms[0].shared_s() == pytest.approx(shared_s, abs=0.2)
        await asyncio.sleep(shared_s)
        assert work.terms[0].shared_s() == 0.0


@pytest.mark.looptime
@pytest.mark.parametrize(("stopped_after", "heir_waits"), [(3.0, True), (20.0, False)])
async def test_a_lease_is_not_given_back_while_a_former_leader_may_go_on(
    stopped_after: float, heir_waits: bool
) -> None:
    """Whoever comes next finds a Lease, and nothing on it of the one that was deleted."""
    store, heir = Store(), Work()
    async with background(elector(Network(store), preceded=lambda: True).run(Work())):
        await asyncio.sleep(stopped_after)
    async with background(elector(Network(store), "b", preceded=lambda: True).run(heir)):
        await asyncio.sleep(Durations().lease_s - 1.0)
        assert (not heir.terms) == heir_waits
        await asyncio.sleep(5.0)
        assert heir.leads
        assert heir.terms[0].shared_s() == 0.0


@pytest.mark.looptime
async def test_two_that_claim_at_once_know_at_once_who_won() -> None:
    """The loser has read the winner's name and address by the end of its attempt, for the binds that come to it."""
    store, works = Store(), {name: Work() for name in "ab"}
    candidates = [elector(Network(store), name, annotations={"address": name}) for name in works]
    tasks = [asyncio.create_task(one.run(works[one.identity])) for one in candidates]
    await asyncio.sleep(0.5)
    winner = store.holder
    assert [one.holder for one in candidates] == [(winner, {"address": winner})] * 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.looptime
async def test_a_leader_that_resigns_lets_others_lead_and_campaigns_on() -> None:
    """Its lease is given back; it comes again when the others have had their time, and leads where there is nobody."""
    store, terms, heir = Store(), [], Work()

    async def resign(term: Term) -> None:
        terms.append(term)
        await asyncio.sleep(5)
        raise Resigned("the list never ends")

    async with background(elector(Network(store)).run(resign)):
        await asyncio.sleep(6)
        assert store.holder == ""
        assert not terms[0].valid()
        async with background(elector(Network(store), "b").run(heir)):
            await asyncio.sleep(60)
            assert len(terms) == 1
            assert heir.terms[0].valid()
        await asyncio.sleep(5)
        assert [term.epoch for term in terms] == [0, 2]


class Stopped:
    """A process that is stopped for a while: its event loop does nothing, and the clock goes on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._missed_s = 0.0

    def clock(self) -> float:
        return self._loop.time() + self._missed_s

    def stop(self, seconds: float) -> None:
        self._missed_s += seconds


def leader_of(store: Store, process: Stopped, work: Work) -> tuple[Network, Elector]:
    network = Network(store)
    return network, elector(network, clock=process.clock)


@pytest.mark.looptime
@pytest.mark.parametrize("stopped_s", [10.0, 60.0])
async def test_a_process_that_was_stopped_finds_its_term_over_when_it_wakes(stopped_s: float) -> None:
    """In the very first step after that, whoever takes it; and a renewal that was under way does not bring it back."""
    process, store, work = Stopped(), Store(), Work()
    network, candidate = leader_of(store, process, work)
    async with background(candidate.run(work)):
        await asyncio.sleep(10)
        renewals = len(network.log)
        await until(lambda: len(network.log) > renewals)
        process.stop(stopped_s)
        assert not work.terms[0].valid()
        assert not work.leads
        await asyncio.sleep(0.2)
        assert not work.terms[0].valid()
        assert len(work.spans[0]) == 2
        await asyncio.sleep(5)
        assert work.terms[1].valid()


@pytest.mark.looptime
async def test_a_term_that_was_over_for_a_moment_is_over() -> None:
    """Its renewal was stored in time and could prolong it; but who saw it over has given up what it was doing."""
    process, store, work = Stopped(), Store(), Work()
    network, candidate = leader_of(store, process, work)
    async with background(candidate.run(work)):
        await asyncio.sleep(10)
        renewals = len(network.log)
        await until(lambda: len(network.log) > renewals)
        process.stop(8.0)  # two seconds passed before that renewal began
        assert not work.terms[0].valid()
        await asyncio.sleep(0.2)
        assert not work.terms[0].valid()
        await asyncio.sleep(1)
        assert [term.epoch for term in work.terms] == [0, 1]


def test_the_event_loops_clock_does_not_stand_still_while_a_callback_runs() -> None:
    """Else a term would look valid to all that runs right after a long pause."""

    async def block() -> bool:
        clock = asyncio.get_running_loop().time
        term = Term(0, clock, clock() + 0.02)
        assert term.valid()
        time.sleep(0.05)  # noqa: ASYNC251 - the pause
        return term.valid()

    with asyncio.Runner() as runner:
        assert not runner.run(block())
