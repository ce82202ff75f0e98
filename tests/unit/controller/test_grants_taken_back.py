"""The end of a term in which thousands of binds were granted: what is taken back at once, and what in slices.

Counted in calls, see test_slices_of_a_leader.
"""

import asyncio
from dataclasses import replace

import pytest

from controller.grants import Grants
from core import names
from core.binding.binder import Binder
from core.objects import Pod
from core.queues import backlog
from core.settings import Settings
from kube.lease import Term
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.fakes.counted import CountedLoop, run
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import share
from tests.unit.controller.test_leading import Leading
from tests.unit.core.crossquota.ruling import gpu_node, ruled

IN_ONE_GO = 15_000
"""Calls: a slice, a step that ends it late, and what the others do in the same round of the loop."""
A_PIECE = 8
"""Calls for each grant in one go: it is forgotten, and its pod noted."""
BESIDES = 100
"""Calls however many there are."""
GRANTS = 2_000

SHARES = a_pod("p").mgpu(core=1, memory=16)
LIFTED = a_pod("p").gpu(1).card("A|B").in_queue("q").assigned({"A": 1}).charged("q")
GUEST = a_pod("p").request("cpu", 1)
GUARDED = ruled(quota={"cpu": 9_999}, guardBind=True)


class Granted:
    """So many binds of such pods to one node, each of which is under way."""

    def __init__(self, pod: PodBuilder, count: int) -> None:
        settings = GUARDED if pod is GUEST else Settings()
        nodes = [gpu_node("n"), a_node("b").card("B", 8).mgpu(8, memory=100)]
        self.pods = [replace(pod.view(), name=f"p{each}", uid=f"u{each}") for each in range(count)]
        self.caches = caches([node.view() for node in nodes], self.pods, settings)
        show(self.caches.queues, "q", a_queue("q").view())
        binder = Binder(self.caches.ledger, self.caches.guests, settings, lambda: None)
        self.caches.pods.subscribe(binder.observe)
        self.grants = Grants(self._read, binder, settled_after_s=60.0)
        self.before = self.booked()
        other = {names.ASSIGNED_ANNOTATION: '{"B":1}'} if pod is LIFTED else {}
        for each in self.pods:
            self.grants.put(binder.book(each, "n" if pod is GUEST else "b", other))
        assert self.booked() != self.before

    async def _read(self, _: Pod) -> Pod | None:
        raise AssertionError("nobody is asked after")

    def booked(self) -> tuple[object, ...]:
        """What the books say."""
        ledger, guests = self.caches.ledger, self.caches.guests
        used = ledger.used("q", "A"), ledger.used("q", "B"), guests.used("n").get("cpu", 0)
        return used, ledger.pods_on("b"), [*guests.guests("n")], len([*ledger.entries()])


@pytest.mark.parametrize("pod", [SHARES, LIFTED, GUEST], ids=["shares", "cards", "guests"])
def test_thousands_of_grants_are_taken_back_in_slices(pod: PodBuilder) -> None:
    """Nothing is left of them at once but where their pods stand in the books; who has to know waits for that."""

    async def end(loop: CountedLoop) -> tuple[int, int]:
        granted = Granted(pod, GRANTS)
        await asyncio.sleep(0)
        loop.longest = 0
        made = loop.calls.made
        granted.grants.take_back_all()
        at_once = loop.calls.made - made
        assert (len(granted.grants), granted.grants.open) == (0, frozenset())
        assert granted.caches.ledger.sums_settled is (pod is GUEST)
        await granted.caches.sums_settled()
        assert granted.booked() == granted.before
        return at_once, loop.longest

    at_once, longest = run(end)
    assert at_once <= A_PIECE * GRANTS + BESIDES
    assert longest < IN_ONE_GO + A_PIECE * GRANTS


@pytest.mark.looptime
async def test_no_term_begins_before_what_was_granted_in_one_before_is_off_the_books(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two are many here, and nobody but the leader settles anything."""
    leading, found = Leading(monkeypatch, share("a", 100), share("b", 100)), list[list[str]]()
    leading.lists_within(1, monkeypatch)
    hook, ledger = leading.world.hook, leading.world.caches.ledger

    async def inherited(_term: Term, _since: float) -> None:
        found.append([pod.name for pod in ledger.pods_on("m1")])

    monkeypatch.setattr(hook, "inherit", inherited)
    async with background(leading.leader.lead(term())):
        await asyncio.sleep(10)
        for name in ("a", "b"):
            assert (await leading.world.bind(name)).allowed
        monkeypatch.setattr(backlog, "AT_ONCE", 0)
    assert (hook.leading, len(hook._grants), ledger.sums_settled) == (False, 0, False)
    async with background(leading.leader.lead(term())):
        await asyncio.sleep(10)
    assert found == [[], []]
