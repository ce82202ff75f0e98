import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from random import Random

import looptime
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kube.lease import Durations, Term
from kube.metrics import Metrics
from tests.fakes.apiserver import background
from tests.unit.kube.leases import Json, Network, Store, Trouble, Work, elector


@pytest.mark.looptime
async def test_the_first_candidate_leads_and_renews() -> None:
    """The Lease names it, its annotations and its times; the term stays valid as long as renewals work."""
    store, work = Store(), Work()
    candidate = elector(Network(store), annotations={"address": "1.2.3.4:9443"})
    async with background(candidate.run(work)):
        await asyncio.sleep(60)
        assert work.leads
        assert candidate.holder == ("a", {"address": "1.2.3.4:9443"})
        assert [term.epoch for term in work.terms] == [0]
        assert work.terms[0].valid()
        assert store.lease is not None
        spec = store.lease["spec"]
        assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
        assert store.lease["metadata"]["name"] == "cardquota"
        assert 25 <= store.writes <= 31
        candidate.annotations = {"address": "1.2.3.4:9444"}
        await asyncio.sleep(3)
        assert candidate.holder == ("a", {"address": "1.2.3.4:9444"})


@pytest.mark.looptime
async def test_a_standby_waits_sees_the_holder_and_follows_it_at_once_when_it_stops() -> None:
    """A holder that stops gives the lease back, so its successor need not wait for the end of it."""
    store, first, second = Store(), Work(), Work()
    leader, standby = elector(Network(store), annotations={"address": "x"}), elector(Network(store), "b")
    async with background(standby.run(second)):
        async with background(leader.run(first)):
            await asyncio.sleep(30)
            assert not second.terms or not first.terms
            holder = standby.holder or leader.holder
            assert holder is not None
            assert (first if first.terms else second).leads
        await asyncio.sleep(3)
        assert second.leads
        assert not first.terms or not first.terms[0].valid()


@pytest.mark.looptime
@pytest.mark.parametrize("dies", [False, True])
async def test_a_successor_hears_what_a_holder_has_left_that_gave_the_lease_back(*, dies: bool) -> None:
    """Of one that died it hears nothing, and what the one before has left says nothing about it."""
    store, works = Store(), {name: Work() for name in "abc"}
    electors = {name: elector(Network(store), name) for name in "abc"}
    electors["a"].leave = lambda: {"cardquota.io/left": "a"}
    electors["b"].leave = lambda: {"cardquota.io/left": "b"}
    async with background(electors["a"].run(works["a"])):
        await asyncio.sleep(5)
    second = asyncio.create_task(electors["b"].run(works["b"]))
    await asyncio.sleep(5)
    assert works["a"].terms[0].left is None
    assert works["b"].terms[0].left == {"cardquota.io/left": "a"}
    assert electors["b"].holder == ("b", {})
    lease, version = store.lease, store.version
    second.cancel()
    await asyncio.wait({second})
    if dies:
        store.lease, store.version = lease, version
    async with background(electors["c"].run(works["c"])):
        await asyncio.sleep(20)
    assert works["c"].terms[0].left == (None if dies else {"cardquota.io/left": "b"})


@pytest.mark.looptime
async def test_a_holder_that_died_is_followed_when_its_time_is_over() -> None:
    """Not before the lease's own length has passed since the last renewal was seen, and soon after."""
    store = Store()
    store.put(
        {
            "metadata": {"name": "cardquota", "annotations": {"note": "kept"}},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15, "leaseTransitions": 6},
        }
    )
    work, candidate = Work(), elector(Network(store))
    async with background(candidate.run(work)):
        await asyncio.sleep(14.9)
        assert not work.terms
        assert candidate.holder == ("dead", {"note": "kept"})
        await asyncio.sleep(3)
        assert work.terms[0].epoch == 7
        assert candidate.holder == ("a", {"note": "kept"})


@pytest.mark.looptime
@pytest.mark.parametrize("trouble", ["refused", "hangs", "answer lost"])
async def test_a_leader_without_network_stops_before_its_time_is_over(trouble: Trouble) -> None:
    """The work is cancelled and awaited within the lease, whatever the network does, and resumed afterwards."""
    store, work = Store(), Work(cleanup_s=3.0)
    network = Network(store)
    candidate = elector(network)
    loop = asyncio.get_running_loop()
    async with background(candidate.run(work)):
        await asyncio.sleep(20)
        cut = loop.time()
        if trouble == "answer lost":
            network.trouble = lambda: "refused" if loop.time() > cut + 2.5 else trouble
        else:
            network.trouble = lambda: trouble
        await asyncio.sleep(14)
        assert not any(term.valid() for term in work.terms)
        assert work.spans[0][1] - cut < 15.0
        network.trouble = lambda: None
        await asyncio.sleep(20)
        assert work.leads
        assert [term.epoch for term in work.terms][-1] > work.terms[0].epoch


@pytest.mark.looptime
async def test_a_short_outage_does_not_end_the_term() -> None:
    """Up to the renew deadline the leader keeps trying."""
    network, work = Network(Store()), Work()
    candidate = elector(network)
    async with background(candidate.run(work)):
        await asyncio.sleep(20)
        network.trouble = lambda: "answer lost"
        await asyncio.sleep(5)
        network.trouble = lambda: None
        await asyncio.sleep(30)
        assert len(work.terms) == 1
        assert work.terms[0].valid()


@pytest.mark.looptime
async def test_a_foreign_edit_of_the_lease_is_survived() -> None:
    """Somebody annotates it: one renewal conflicts, the next has read again."""
    store, work = Store(), Work()
    async with background(elector(Network(store)).run(work)):
        await asyncio.sleep(10)
        assert store.lease is not None
        edited = store.lease | {"metadata": store.lease["metadata"] | {"labels": {"edited": "yes"}}}
        store.put(edited)
        await asyncio.sleep(20)
        assert len(work.terms) == 1
        assert store.lease["metadata"]["labels"] == {"edited": "yes"}


def gauge(registry: CollectorRegistry) -> float | None:
    """Whether the process says that it leads."""
    return registry.get_sample_value("cardquota_leader", {"lease": "cardquota"})


@pytest.mark.looptime
async def test_a_lease_taken_away_ends_the_work_at_the_next_renewal() -> None:
    """Whoever writes another holder into it wins, and the work ends without waiting for a deadline."""
    store, work, registry = Store(), Work(), CollectorRegistry()
    candidate = elector(Network(store), metrics=Metrics(registry))
    assert gauge(registry) == 0
    async with background(candidate.run(work)):
        await asyncio.sleep(10)
        assert gauge(registry) == 1
        assert store.lease is not None
        store.put(store.lease | {"spec": store.lease["spec"] | {"holderIdentity": "thief"}})
        await asyncio.sleep(5)
        assert not work.leads
        assert len(work.spans[0]) == 2
        assert store.holder == "thief"
        assert gauge(registry) == 0


@pytest.mark.looptime
async def test_work_that_fails_ends_the_campaign_and_frees_the_lease() -> None:
    """The error is the caller's, and a successor can lead at once."""

    async def fail(_term: Term) -> None:
        await asyncio.sleep(5)
        raise ZeroDivisionError

    async def finish(_term: Term) -> None:
        await asyncio.sleep(5)

    store = Store()
    with pytest.raises(ZeroDivisionError):
        await elector(Network(store)).run(fail)
    assert store.holder == ""
    await elector(Network(store), "b").run(finish)
    assert store.holder == ""
    assert store.lease is not None
    assert store.lease["spec"]["leaseTransitions"] == 1


@pytest.mark.looptime
async def test_a_campaign_cancelled_twice_still_awaits_its_work() -> None:
    """An impatient second signal does not leave the work running behind a lease given back."""
    store, work = Store(), Work(cleanup_s=1.0)
    task = asyncio.create_task(elector(Network(store)).run(work))
    await asyncio.sleep(10)
    task.cancel()
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(work.spans[0]) == 2
    assert store.holder == ""


@pytest.mark.looptime
async def test_a_campaign_cancelled_while_its_claim_is_under_way_gives_it_back() -> None:
    """The write may have been stored although nobody saw the answer."""
    store = Store()
    task = asyncio.create_task(elector(Network(store)).run(Work()))
    await asyncio.sleep(0.17)
    assert store.holder == "a"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.holder == ""


@pytest.mark.looptime
async def test_a_standby_that_never_led_writes_nothing_when_it_stops() -> None:
    """Stopping a standby costs no request."""
    store = Store()
    store.put(
        {"metadata": {"name": "cardquota"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}
    )
    network = Network(store)
    async with background(elector(network).run(Work())):
        await asyncio.sleep(10)
    assert set(network.log) == {"get"}


@pytest.mark.looptime
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
async def test_times_are_written_in_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever TZ says, and however wrong the wall clock is: nothing is decided by it."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        east = timezone(timedelta(hours=8))
        store, work = Store(), Work()
        candidate = elector(Network(store), now=lambda: datetime(1999, 1, 1, 8, 30, 0, 5, tzinfo=east))
        async with background(candidate.run(work)):
            await asyncio.sleep(40)
            assert work.leads
            assert store.lease is not None
            assert store.lease["spec"]["renewTime"] == "1999-01-01T00:30:00.000005Z"
            assert store.lease["spec"]["acquireTime"] == "1999-01-01T00:30:00.000005Z"
    finally:
        os.environ.pop("TZ", None)
        time.tzset()


@pytest.mark.looptime
@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": None}, {"holderIdentity": ""}])
async def test_a_lease_that_nobody_holds_is_taken(spec: Json | None) -> None:
    """Pre-created empty, or given back."""
    store, work = Store(), Work()
    store.put({"metadata": {"name": "cardquota"}, "spec": spec})
    candidate = elector(Network(store))
    async with background(candidate.run(work)):
        await asyncio.sleep(1)
        assert work.leads


@pytest.mark.parametrize("values", [(10, 10, 2), (15, 2, 2), (15, 10, 0), (5, 10, 2)])
def test_durations_that_would_let_two_lead_are_refused(values: tuple[float, float, float]) -> None:
    """Each has to leave room for the next."""
    with pytest.raises(ValueError, match="deadline"):
        Durations(*values)


TROUBLES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.floats(0, 100),
        st.floats(0.1, 40),
        st.sampled_from(["refused", "hangs", "answer lost"]),
    ),
    max_size=8,
)


# Here a timer fires a hair before the clock shows its time: waiting for the rest of the term must not go on for ever.
ROUNDING = example(
    troubles=[
        ("a", 9.0, 39.0, "answer lost"),
        ("c", 19.0, 2.0, "hangs"),
        ("b", 40.0, 40.0, "hangs"),
        ("b", 39.0, 9.0, "answer lost"),
        ("c", 62.0, 20.0, "refused"),
        ("a", 54.0, 8.0, "hangs"),
        ("a", 2.0, 14.0, "answer lost"),
    ],
    cleanup_s=3.0,
    seed=2761654126,
)


@settings(max_examples=50)
@ROUNDING
@given(troubles=TROUBLES, cleanup_s=st.floats(0, 3), seed=st.integers(0, 2**32))
def test_no_two_leaders_work_at_the_same_time(
    troubles: list[tuple[str, float, float, Trouble]], cleanup_s: float, seed: int
) -> None:
    """Three candidates, any outages of each one's network; and when these are over, one of them leads."""

    async def campaign() -> None:
        loop = asyncio.get_running_loop()
        begin, store = loop.time(), Store()

        def trouble_of(name: str) -> Callable[[], Trouble | None]:
            def now() -> Trouble | None:
                at = loop.time() - begin
                hits = [
                    kind
                    for who, start, length, kind in troubles
                    if who == name and start <= at < start + length
                ]
                return hits[0] if hits else None

            return now

        works = {name: Work(cleanup_s) for name in "abc"}
        electors = [
            elector(Network(store, trouble=trouble_of(name)), name, rng=Random(f"{seed}{name}"))
            for name in "abc"
        ]
        runs: list[Awaitable[None]] = [asyncio.create_task(one.run(works[one.identity])) for one in electors]
        await asyncio.sleep(180)
        assert sum(one.leads for one in works.values()) == 1
        for run in runs:
            assert isinstance(run, asyncio.Task)
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        spans = sorted(span for work in works.values() for span in work.spans)
        for earlier, later in pairwise(spans):
            assert earlier[1] <= later[0]
        epochs = [term.epoch for work in works.values() for term in work.terms]
        assert len(set(epochs)) == len(epochs)

    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        runner.run(campaign())
