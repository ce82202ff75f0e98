"""What became of the binds that were let through: the watch says so, or the API server is asked, and nobody guesses."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import READ_TIMEOUT_S, BindingHook
from controller.grants import HOOK_TIMEOUT_S, REQUEST_LIMIT_S, settled_after
from controller.late_writes import STORED_LATE_S
from controller.metrics import Metrics
from core import names, reasons
from core.binding.binder import Binder
from core.objects import Pod
from core.refusal import Refusal
from core.settings import Settings
from kube import errors
from kube.client import Json
from kube.lease import Term
from kube.resources import Resource
from tests.builders import a_pod
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import INDEX, NODE, SETTLED_S, World, binding, code, records, share
from tests.unit.controller.test_binding import stored as bound

pytestmark = pytest.mark.looptime


class SlowPods(Pods):
    """Answers each read after a second; notes when it was asked, and how many wait at once."""

    def __init__(self, *pods: PodBuilder) -> None:
        super().__init__(*(pod.build() for pod in pods))
        self.times: list[float] = []
        self.waiting = self.most = 0

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        self.times.append(asyncio.get_running_loop().time())
        assert timeout_s == READ_TIMEOUT_S
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(1)
        self.waiting -= 1
        return await super().get(resource, name, namespace, timeout_s=timeout_s)


class SlowWorld(World):
    """The world of the hook's own tests, with reads that take a second."""

    def __init__(self, *pods: PodBuilder) -> None:
        super().__init__(*pods)
        self.slow = self.reader = SlowPods(*pods)
        self.hook = BindingHook(self.slow, self.caches, Settings(), Metrics(CollectorRegistry()))
        self.hook.start(term())

    def on_node(self) -> list[str]:
        return [pod.name for pod in self.caches.ledger.pods_on("m1")]


def whole(*names_: str) -> list[PodBuilder]:
    """Pods of which each wants one of the node's two cards for itself."""
    return [share(name, 100) for name in names_]


async def test_a_bind_that_is_stored_keeps_its_cards_although_the_watch_never_shows_it() -> None:
    """Neither after a minute nor after an hour is card 0 granted to a second pod."""
    pods = whole("a", "b", "c")
    world = SlowWorld(*pods)
    async with background(world.hook.run()):
        granted = await world.bind("a")
        assert records(granted)[INDEX] == "0"
        world.reader.stored["ml/a"] = bound(pods[0], granted).build()
        await asyncio.sleep(REQUEST_LIMIT_S + 1)
        second = await world.bind("b")
        assert records(second)[INDEX] == "1"
        world.reader.stored["ml/b"] = bound(pods[1], second).build()
        for _ in range(60):
            await asyncio.sleep(60)
            assert code(await world.bind("c")) == reasons.MGPU_NO_ROOM
    assert world.on_node() == ["a", "b"]


async def test_a_bind_that_was_refused_gives_its_cards_back_once_a_read_shows_the_pod_unbound() -> None:
    """The API server refused it for a reason of its own. Before its time is over that read would prove nothing."""
    world = SlowWorld(*whole("a", "b", "c"))
    ledger = world.caches.ledger
    entry, wakeups = ledger.entry("uid-ml-c"), ledger.wakeups
    assert entry is not None
    async with background(world.hook.run()):
        await world.bind("a")
        await world.bind("b")
        await asyncio.sleep(SETTLED_S - 1)
        assert code(await world.bind("c")) == reasons.MGPU_NO_ROOM
        wakeups.await_room("waits", entry.demand.cards)
        wakeups.take_figures()
        assert (world.slow.times, "waits" in wakeups.pending) == ([], False)
        await asyncio.sleep(3)
        assert wakeups.take_figures(), "and so is whoever publishes"
        assert "waits" in wakeups.pending, "who waits for room is looked at again"
        assert records(await world.bind("c"))[INDEX] == "0"


async def test_no_bind_can_be_stored_any_more_when_it_is_asked_after() -> None:
    """The request is older than the grant; what is stored at its very end is seen by a read that begins later."""
    assert settled_after(HOOK_TIMEOUT_S) > REQUEST_LIMIT_S
    world = SlowWorld(share("a"))
    world.hook = BindingHook(
        world.slow, world.caches, Settings(), Metrics(CollectorRegistry()), hook_timeout_s=25.0
    )
    world.hook.start(term())
    started = asyncio.get_running_loop().time()
    async with background(world.hook.run()):
        await world.bind("a")
        await asyncio.sleep(200)
    assert world.slow.times == [pytest.approx(started + REQUEST_LIMIT_S + 25.0)]


@pytest.mark.parametrize("late", [True, False])
async def test_a_bind_that_was_held_to_the_end_of_its_request_may_still_be_stored_by_the_database(
    late: bool,
) -> None:
    """Somebody's webhook had it for half a minute: the database has as long for it as for a lift."""
    world, limit_s = SlowWorld(*whole("a", "b", "c")), REQUEST_LIMIT_S + STORED_LATE_S
    async with background(world.hook.run()):
        granted = await world.bind("a")
        assert (await world.bind("b")).allowed
        await asyncio.sleep(limit_s)
        assert (world.slow.times, world.on_node()) == ([], ["a", "b"])
        assert code(await world.bind("c")) == reasons.MGPU_NO_ROOM
        if late:
            world.reader.stored["ml/a"] = bound(share("a", 100), granted).build()
        await asyncio.sleep(1.1)
        assert world.slow.times == [pytest.approx(limit_s, abs=0.01)] * 2
        assert world.on_node() == (["a"] if late else [])


@pytest.mark.parametrize("left", [None, share("a").put("metadata", "uid", value="another")])
async def test_a_pod_that_is_gone_or_another_one_gives_its_cards_back(left: PodBuilder | None) -> None:
    world = SlowWorld(share("a"))
    async with background(world.hook.run()):
        await world.bind("a")
        if left is None:
            del world.reader.stored["ml/a"]
        else:
            world.reader.stored["ml/a"] = left.bound_to("m1").build()
        await asyncio.sleep(SETTLED_S - 1)
        assert world.on_node() == ["a"]
        await asyncio.sleep(3)
        assert world.on_node() == []


async def test_a_pod_that_was_found_bound_is_looked_for_until_it_is_gone() -> None:
    """The watch may never have shown it at all, so nothing else would take it out of the books."""
    unseen = share("a")
    world = SlowWorld()
    world.reader.stored["ml/a"] = unseen.build()
    async with background(world.hook.run()):
        granted = await world.bind("a")
        world.reader.stored["ml/a"] = bound(unseen, granted).build()
        await asyncio.sleep(600)
        assert world.on_node() == ["a"]
        del world.reader.stored["ml/a"]
        await asyncio.sleep(60)
        assert world.on_node() == []
        reads = world.reader.reads
        await asyncio.sleep(600)
        assert world.reader.reads == reads


async def test_what_was_found_bound_is_not_moved_by_a_bind_to_another_node() -> None:
    """Only a bind that may still be lost can be followed by another one, to whatever node."""
    world = SlowWorld(share("a"))
    async with background(world.hook.run()):
        granted = await world.bind("a")
        world.reader.stored["ml/a"] = bound(share("a"), granted).build()
        await asyncio.sleep(SETTLED_S + 5)
        assert code(await world.bind("a")) == reasons.POD_ALREADY_BOUND
        assert code(await world.bind("a", node="m2")) == reasons.POD_ALREADY_BOUND
    assert world.on_node() == ["a"]


@pytest.mark.parametrize(
    "failure",
    [
        errors.ConnectionFailed("away"),
        errors.ServerError(503),
        errors.Forbidden(403),
        errors.Throttled(429, retry_after=25.0),
    ],
)
async def test_what_cannot_be_read_is_kept_and_asked_again_ever_more_rarely(
    failure: errors.KubeError, caplog: pytest.LogCaptureFixture
) -> None:
    world = SlowWorld(share("a"))
    async with background(world.hook.run()):
        await world.bind("a")
        world.reader.fails = failure
        await asyncio.sleep(SETTLED_S + 600)
        assert world.on_node() == ["a"]
        pauses = [later - earlier for earlier, later in pairwise(world.slow.times)]
        assert min(pauses) >= (25.9 if isinstance(failure, errors.Throttled) else 1.8)
        assert 16.0 <= min(pauses[-3:]) <= max(pauses) <= 31.0
        assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
            "what became of a bind cannot be read"
        ]
        world.reader.fails = None
        await asyncio.sleep(40)
        assert world.on_node() == []


async def test_an_answer_that_is_no_pod_tells_nothing_and_ends_nothing() -> None:
    world = SlowWorld(share("a"))

    def garbage() -> None:
        raise ValueError("not a timestamp")

    async with background(world.hook.run()):
        await world.bind("a")
        world.reader.meanwhile = garbage
        await asyncio.sleep(SETTLED_S + 60)
        assert world.on_node() == ["a"]
        world.reader.meanwhile = lambda: None
        await asyncio.sleep(60)
        assert world.on_node() == []


async def test_a_hundred_at_once_are_asked_after_a_few_at_a_time() -> None:
    world = SlowWorld(*(a_pod(f"p{number}").mgpu(core=1, memory=512) for number in range(100)))
    async with background(world.hook.run()):
        for number in range(100):
            await world.bind(f"p{number}")
        granted = len(world.on_node())
        await asyncio.sleep(SETTLED_S + granted)
    # A read takes a second, and has a slot for half of it.
    assert (granted, world.slow.most, world.on_node()) == (32, 2 * 8, [])


async def test_granted_again_while_it_is_asked_after_it_has_its_time_anew() -> None:
    """The read may be older than the bind that is under way now."""
    world = SlowWorld(share("a"))
    async with background(world.hook.run()):
        await world.bind("a")
        await asyncio.sleep(SETTLED_S + 0.5)
        assert world.slow.waiting == 1
        await world.bind("a")
        await asyncio.sleep(SETTLED_S - 1)
        assert (world.on_node(), world.reader.reads) == (["a"], 1)
        await asyncio.sleep(3)
        assert world.on_node() == []


async def test_a_read_that_fails_while_it_is_granted_again_brings_the_next_one_no_nearer() -> None:
    world = SlowWorld(share("a"))
    async with background(world.hook.run()):
        await world.bind("a")
        await asyncio.sleep(SETTLED_S + 0.5)
        world.reader.fails = errors.ConnectionFailed("away")
        await world.bind("a")
        await asyncio.sleep(SETTLED_S - 1)
        assert (world.on_node(), world.reader.reads) == (["a"], 1)


async def test_what_the_watch_shows_while_it_is_asked_after_counts() -> None:
    """The read was answered before; whoever is bound stays so."""
    world = SlowWorld(share("a"))
    async with background(world.hook.run()):
        granted = await world.bind("a")
        await asyncio.sleep(SETTLED_S + 0.5)
        show(world.caches.pods, "ml/a", bound(share("a"), granted).view())
        await asyncio.sleep(SETTLED_S * 3)
    assert (world.on_node(), world.reader.reads) == (["a"], 1)


async def test_as_a_rule_the_watch_shows_it_and_nobody_is_asked() -> None:
    world = SlowWorld(*whole("a", "b"))
    async with background(world.hook.run()):
        granted = await world.bind("a")
        await world.bind("b")
        world.show(bound(share("a", 100), granted))
        show(world.caches.pods, "ml/b", None)
        assert len(world.hook._grants) == 0
        await asyncio.sleep(3 * SETTLED_S)
    assert (world.on_node(), world.reader.reads) == (["a"], 0)


async def test_without_an_api_server_what_the_state_says_counts() -> None:
    """`cardquota serve --state`: nothing is ever stored there."""
    hook_caches = caches([NODE.view()], [share("a").view()])
    hook = BindingHook(None, hook_caches, Settings(), Metrics(CollectorRegistry()))
    hook.start(term())
    async with background(hook.run()):
        assert (await hook.review(binding("a"))).allowed
        assert len(hook_caches.ledger.pods_on("m1")) == 1
        await asyncio.sleep(SETTLED_S + 1)
    assert hook_caches.ledger.pods_on("m1") == []


async def test_a_leader_whose_lease_has_run_out_grants_nothing() -> None:
    """Nobody has told it yet: the process was stopped, or its loop was deaf."""
    world = SlowWorld(share("a"))
    now = [0.0]
    world.hook.start(Term(3, lambda: now[0], 10.0))
    before, now[0] = world.hook.leading, 10.0
    assert (before, world.hook.leading) == (True, False)
    assert code(await world.bind("a")) == reasons.NO_LEADER
    assert (world.on_node(), len(world.hook._grants)) == ([], 0)


async def test_the_term_is_asked_once_more_right_before_the_cards_are_booked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may run out while they are looked for."""
    world = SlowWorld(share("a"))
    now = [0.0]
    decide: Callable[[Binder, Pod, str], Mapping[str, str] | Refusal] = Binder.decide

    def slowly(binder: Binder, pod: Pod, node: str) -> Mapping[str, str] | Refusal:
        now[0] += 20.0
        return decide(binder, pod, node)

    monkeypatch.setattr(Binder, "decide", slowly)
    world.hook.start(Term(3, lambda: now[0], 10.0))
    assert code(await world.bind("a")) == reasons.NO_LEADER
    assert world.on_node() == []
    world.hook.start(Term(4, lambda: now[0], 100.0))
    assert names.ASSUMED_ANNOTATION in records(await world.bind("a"))


async def test_in_the_next_term_nothing_of_the_last_one_is_asked_after() -> None:
    world = SlowWorld(share("a"))
    async with background(world.hook.run()):
        await world.bind("a")
        world.hook.stop()
        assert (world.hook.leading, world.on_node()) == (False, [])
    world.hook.start(term())
    async with background(world.hook.run()):
        await asyncio.sleep(2 * SETTLED_S)
    assert world.reader.reads == 0
