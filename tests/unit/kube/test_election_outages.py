"""Candidates without network: nobody works beyond his time, no two at once, and afterwards one leads."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from random import Random

import looptime
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fakes.apiserver import background
from tests.unit.kube.leases import Network, Store, Trouble, Work, elector


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
