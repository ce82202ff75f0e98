"""An election from claim to end: who leads, what the Lease says, and what a successor finds."""

import asyncio
import os
import time
from datetime import datetime, timedelta, timezone

import pytest
from prometheus_client import CollectorRegistry

from kube.lease import Durations, Term
from kube.metrics import Metrics
from tests.fakes.apiserver import background
from tests.unit.kube.leases import Json, Network, Store, Work, elector, until


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
    store, works = Store(), {name: Work(leaving={"cardquota.io/left": name}) for name in "abc"}
    electors = {name: elector(Network(store), name) for name in "abc"}
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
async def test_who_stops_before_it_leads_again_says_nothing_of_what_it_left_in_a_former_term() -> None:
    """Somebody else has led in between and died: what that one has left is unknown."""
    store, works = Store(), {name: Work(leaving={"cardquota.io/left": name}) for name in "abc"}
    cut_off = asyncio.Event()
    network = Network(store, trouble=lambda: "refused" if cut_off.is_set() else None)
    first = asyncio.create_task(elector(network, "a").run(works["a"]))
    await asyncio.sleep(5)
    cut_off.set()
    second = asyncio.create_task(elector(Network(store), "b").run(works["b"]))
    await until(lambda: works["b"].leads)
    lease, version = store.lease, store.version
    second.cancel()
    await asyncio.wait({second})
    store.lease, store.version = lease, version
    cut_off.clear()
    await until(lambda: store.holder == "a")
    first.cancel()
    await asyncio.wait({first})
    assert len(works["a"].terms) == 1, "its claim was under way"
    async with background(elector(Network(store), "c").run(works["c"])):
        await asyncio.sleep(20)
    assert works["c"].terms[0].left == {}


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
