"""The binding hook on card pods: lifted ones pass anywhere, all others by the leader's books, and what it grants is booked."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from core import names, reasons
from core.admission.request import AdmissionRequest, Decision
from core.binding.review import leaderless
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder, QueueBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import SETTLED_S, binding, code, records

NODES = {"a1": "A", "a2": "A", "b1": "B"}
QUEUE = a_queue("q").cards({"A": 2, "B": 1})
ONE_A = {names.CHARGED_QUEUE_ANNOTATION: "q", names.ASSIGNED_ANNOTATION: '{"A":1}'}
ONE_B = {names.CHARGED_QUEUE_ANNOTATION: "q", names.ASSIGNED_ANNOTATION: '{"B":1}'}


def card_pod(name: str, card: str = "A", count: int = 1) -> PodBuilder:
    """A pod that nobody lifted and no gate holds."""
    return a_pod(name).gpu(count).card(card).in_queue("q")


def lifted(name: str, card: str = "A", for_: str = "A") -> PodBuilder:
    return card_pod(name, card).assigned({for_: 1})


class World:
    """A leading hook over two nodes of A and one of B, and a queue of two A and one B."""

    def __init__(self, *pods: PodBuilder) -> None:
        nodes = [a_node(name).card(card, 8).view() for name, card in NODES.items()]
        self.caches = caches(nodes, [pod.view() for pod in pods])
        self.put_queue(QUEUE)
        self.reader = Pods(*(pod.build() for pod in pods))
        self.asked: list[str] = []
        self.metrics = Metrics(CollectorRegistry())
        self.hook = BindingHook(self.reader, self.caches, Settings(), self.metrics, self.ask_leader)
        self.hook.start(term())

    async def ask_leader(self, request: AdmissionRequest) -> Decision:
        self.asked.append(request.name)
        return leaderless("nobody leads")

    def put_queue(self, queue: QueueBuilder) -> None:
        show(self.caches.queues, "q", queue.view())

    def show(self, name: str, pod: PodBuilder | None) -> None:
        show(self.caches.pods, f"ml/{name}", None if pod is None else pod.view())

    async def bind(self, name: str, node: str = "a1", *, dry_run: bool = False) -> Decision:
        return await self.hook.review(binding(name, node=node, dry_run=dry_run))

    def used(self, card: str) -> int:
        """Allocated and reserved, in cards."""
        return self.caches.ledger.used("q", card) // 1000


@pytest.mark.parametrize("pod", [lifted("p"), lifted("p", "A|B"), lifted("p", "B|A")])
@pytest.mark.parametrize("leading", [True, False])
async def test_a_lifted_pod_is_bound_whatever_became_of_its_queue(pod: PodBuilder, *, leading: bool) -> None:
    """Nobody is asked, leader or API server: its own record and the node's labels are enough."""
    world = World(pod, lifted("other"), lifted("third"))
    if not leading:
        world.hook.stop()
    world.put_queue(a_queue("q").cards({"A": 0}).state("Closed"))
    assert await world.bind("p") == Decision()
    assert (world.asked, world.reader.reads) == ([], 0)
    forged = await world.hook.review(binding("p", node="a1", annotations=ONE_B))
    assert records(forged) == {}


async def test_a_standby_leaves_every_decision_to_the_leader() -> None:
    world = World(card_pod("never"), lifted("moved", "A|B"), lifted("both").mgpu(core=30, memory=1024))
    world.hook.stop()
    for name, node in (("never", "a1"), ("moved", "b1"), ("both", "a1")):
        assert code(await world.bind(name, node)) == reasons.NO_LEADER
    assert world.asked == ["never", "moved", "both"]
    assert world.used("B") == 0


async def test_a_pod_that_was_never_lifted_gets_its_record_while_there_is_quota() -> None:
    world = World(card_pod("p"), card_pod("q"), lifted("lifted"))
    assert records(await world.bind("p")) == ONE_A
    denied = await world.bind("q")
    assert code(denied) == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert denied.denial is not None
    assert (denied.denial.status, denied.denial.reason) == (409, "Conflict")
    assert denied.denial.message.endswith(
        "Queue <q> has insufficient <A> quota: requested <1000>, total would be <3000>, but capability is <2000>. "
        "In cards: asks for 1, 2 of 2 are in use; wait for cards to come back, or raise the quota."
    )


async def test_fifty_races_for_the_last_cards_grant_no_more_than_there_are() -> None:
    world = World(*(card_pod(f"p{i}") for i in range(50)))
    answers = await asyncio.gather(*(world.bind(f"p{i}", f"a{i % 2 + 1}") for i in range(50)))
    assert [answer.allowed for answer in answers] == [True] * 2 + [False] * 48


async def test_quota_that_comes_back_lets_the_next_one_in() -> None:
    running = card_pod("running", count=2).bound_to("a1")
    world = World(running, card_pod("p"))
    assert code(await world.bind("p")) == reasons.INSUFFICIENT_SCALAR_QUOTA
    world.show("running", running.terminating())
    assert records(await world.bind("p")) == ONE_A


async def test_asked_again_it_answers_the_same_although_the_quota_is_gone_meanwhile() -> None:
    world = World(card_pod("p"))
    first = await world.bind("p")
    world.put_queue(a_queue("q").cards({"A": 0}).state("Closed"))
    assert await world.bind("p") == first
    assert world.used("A") == 1


async def test_a_dry_run_answers_and_books_nothing() -> None:
    world = World(card_pod("p", count=2), card_pod("q", count=2))
    assert (await world.bind("p", dry_run=True)).allowed
    assert (await world.bind("q")).allowed
    assert not (await world.bind("p", dry_run=True)).allowed


async def test_a_choice_on_a_node_of_the_other_card_takes_that_ones_quota() -> None:
    world = World(lifted("p", "A|B"), lifted("q", "A|B"))
    assert records(await world.bind("p", "b1")) == ONE_B
    assert await world.bind("p", "b1") == await world.bind("p", "b1", dry_run=True)
    denied = await world.bind("q", "b1")
    assert code(denied) == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert denied.denial is not None
    assert "the pod was lifted for <A>, and node b1 carries <B>" in denied.denial.message
    assert await world.bind("q", "a1") == Decision()


async def test_a_choice_that_moved_may_still_go_to_the_card_it_was_lifted_for() -> None:
    """Whichever of the two binds is stored: both cards are held until then."""
    world = World(lifted("p", "A|B"))
    await world.bind("p", "b1")
    assert (world.used("A"), world.used("B")) == (1, 1)
    assert await world.bind("p", "a1") == Decision()
    world.show("p", lifted("p", "A|B").bound_to("a1", phase="Pending"))
    assert (world.used("A"), world.used("B")) == (1, 0)


async def test_another_node_of_the_same_card_is_as_good_and_one_of_another_is_not_yet() -> None:
    """Either bind may be stored; the charge must be right for both."""
    world = World(card_pod("p", "A|B"))
    assert records(await world.bind("p", "a1")) == ONE_A
    assert records(await world.bind("p", "a2")) == ONE_A
    assert [pod.name for pod in world.caches.ledger.pods_on("a2")] == ["p"]
    assert code(await world.bind("p", "b1")) == reasons.POD_ALREADY_BOUND
    assert (world.used("A"), world.used("B")) == (1, 0)


async def test_a_pod_that_the_watch_shows_bound_stays_booked_where_it_is() -> None:
    """The read that makes good for a lagging cache may itself be overtaken by the watch."""
    world = World(card_pod("p"))
    await world.bind("p", "a1")
    world.show("p", card_pod("p").gated())
    bound = card_pod("p").assigned({"A": 1}).bound_to("a1", phase="Pending")
    world.reader.meanwhile = lambda: world.show("p", bound)
    assert code(await world.bind("p", "a2")) == reasons.POD_ALREADY_BOUND
    assert [pod.name for pod in world.caches.ledger.pods_on("a1")] == ["p"]


async def test_the_cache_lagging_behind_a_lift_is_made_good_by_a_read() -> None:
    world = World(card_pod("p").gated())
    world.hook.stop()
    world.reader.stored["ml/p"] = lifted("p").build()
    assert await world.bind("p") == Decision()
    assert world.reader.reads == 1


async def test_a_pod_not_seen_yet_is_judged_by_a_read_as_well() -> None:
    world = World(lifted("other"))
    for name in ("new", "newer"):
        world.reader.stored[f"ml/{name}"] = card_pod(name).build()
    assert records(await world.bind("new")) == ONE_A
    assert code(await world.bind("newer")) == reasons.INSUFFICIENT_SCALAR_QUOTA


@pytest.mark.looptime
@pytest.mark.parametrize(("pod", "node"), [(card_pod("p"), "a1"), (lifted("p", "A|B"), "b1")])
async def test_a_grant_whose_bind_was_never_stored_is_taken_back_once_it_cannot_be_any_more(
    pod: PodBuilder, node: str
) -> None:
    world = World(pod)
    async with background(world.hook.run()):
        await world.bind("p", node)
        await asyncio.sleep(SETTLED_S / 2)
        await world.bind("p", node)
        await asyncio.sleep(SETTLED_S * 3 / 4)
        assert len(world.caches.ledger.pods_on(node)) == 1
        await asyncio.sleep(SETTLED_S / 2)
    assert world.caches.ledger.pods_on(node) == []
    assert (world.used("A"), world.used("B")) == (1, 0)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("found", "used"),
    [
        (lifted("p", "A|B", for_="B").bound_to("b1", phase="Pending"), (0, 1)),
        (lifted("p", "A|B").bound_to("a2", phase="Pending"), (1, 0)),
        (lifted("p", "A|B", for_="B").bound_to("b1").terminating(), (0, 0)),
    ],
)
async def test_a_choice_that_moved_is_charged_with_what_is_stored_although_the_watch_is_silent(
    found: PodBuilder, used: tuple[int, int]
) -> None:
    """With both cards until it is known, then with the one of its record."""
    world = World(lifted("p", "A|B"))
    async with background(world.hook.run()):
        await world.bind("p", "b1")
        assert (world.used("A"), world.used("B")) == (1, 1)
        world.reader.stored["ml/p"] = found.build()
        await asyncio.sleep(SETTLED_S + 1)
    assert (world.used("A"), world.used("B")) == used
    assert [pod.name for pod in world.caches.ledger.pods_on(found.view().node_name)] == ["p"]


async def test_passed_granted_and_denied_binds_are_counted() -> None:
    world = World(lifted("lifted"), card_pod("p"), card_pod("q"))
    for name in ("lifted", "p", "q"):
        await world.bind(name)
    counted = {
        tuple(sample.labels.values()): sample.value
        for family in world.metrics.binds.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    assert counted == {
        ("passed", ""): 1,
        ("granted", ""): 1,
        ("denied", reasons.INSUFFICIENT_SCALAR_QUOTA): 1,
    }
