"""The books: what each pod is charged with, where, and what wakes whom."""

from collections.abc import Callable

import pytest

from core.names import MGPU_CORE, MGPU_MEMORY
from core.queues.account import NOTHING
from core.queues.ledger import Ledger
from core.settings import Settings
from core.stage import Stage
from core.steps import finish
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder

H200 = a_node("n1").card("H200", 8).view()
POD = a_pod("p").gpu(2).card("H200").in_queue("q")
WAITING = POD.uid("waiting").gated()
LIFTED = POD.uid("lifted").assigned({"H200": 2})


def later(pod: PodBuilder) -> PodBuilder:
    """The pod after a write that changed nothing of what we read."""
    return pod.put("metadata", "resourceVersion", value="9")


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(H200)
    ledger.put_queue(a_queue("q").cards({"H200": 8}).view())
    return ledger


Sums = tuple[dict[str, int], dict[str, int], dict[str, int]]


def sums(ledger: Ledger, queue: str = "q") -> Sums:
    account = ledger.accounts.get(queue, NOTHING)
    return account.waiting, account.reserved, account.allocated


TWO = {"H200": 2000}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (POD.gated(), (TWO, {}, {})),
        (POD, ({}, TWO, {})),
        (POD.bound_to("n1"), ({}, {}, TWO)),
        (POD.bound_to("n1", phase="Pending"), ({}, {}, TWO)),
        (POD.bound_to("n1", phase="Succeeded"), ({}, {}, {})),
        (POD.bound_to("n1", phase="Failed"), ({}, {}, {})),
        (POD.bound_to("n1", phase="Unknown"), ({}, {}, {})),
        (POD.bound_to("n1").terminating(), ({}, {}, {})),
        (POD.gated().terminating(), ({}, {}, {})),
        (a_pod("p").gpu(2).in_queue("q").bound_to("n1"), ({}, {}, {})),
        (a_pod("p").gpu(0).card("H200").in_queue("q"), ({}, {}, {})),
    ],
)
def test_a_pod_counts_by_its_stage(ledger: Ledger, pod: PodBuilder, expected: Sums) -> None:
    ledger.put_pod(pod.view())
    assert sums(ledger) == expected


def test_shares_are_charged_under_their_resource_names(ledger: Ledger) -> None:
    ledger.put_pod(
        a_pod("m").mgpu(core=30, memory=2048).mgpu("two", core=20, memory=1024).in_queue("q").view()
    )
    assert sums(ledger) == ({}, {MGPU_CORE: 50_000, MGPU_MEMORY: 3_072_000}, {})


def test_the_same_pod_twice_is_one_pod_and_a_second_uid_under_the_name_is_another(ledger: Ledger) -> None:
    ledger.put_pod(POD.view())
    ledger.put_pod(POD.view())
    assert sums(ledger)[1] == TWO
    ledger.put_pod(POD.uid("again").view())
    assert sums(ledger)[1] == {"H200": 4000}
    ledger.drop_pod("uid-ml-p")
    ledger.drop_pod("uid-ml-p")
    assert sums(ledger)[1] == TWO


def test_a_pod_without_anything_of_ours_is_not_kept(ledger: Ledger) -> None:
    ledger.put_pod(a_pod("cpu").limit("cpu", 4).in_queue("q").view())
    assert ledger.pod("uid-ml-cpu") is None


def test_a_bound_pod_stays_counted_when_its_card_leaves_the_cluster(ledger: Ledger) -> None:
    ledger.put_pod(POD.bound_to("n1").view())
    ledger.drop_node("n1")
    assert sums(ledger)[2] == TWO


def test_a_pod_of_an_unknown_card_waits_with_a_reason_until_a_node_brings_it() -> None:
    ledger = Ledger(Settings())
    ledger.put_pod(POD.gated().view())
    entry = ledger.entry("uid-ml-p")
    assert entry is not None
    assert (entry.stage, entry.charged, entry.demand.problem) == (
        Stage.WAITING,
        {},
        "no resource name found for card <H200>",
    )
    ledger.wakeups.take_queues()
    ledger.put_node(H200)
    entry = ledger.entry("uid-ml-p")
    assert entry is not None
    assert (entry.charged, entry.demand.problem, set(ledger.wakeups.pending)) == (TWO, "", {"q"})


def test_the_booking_moves_when_the_pods_queue_changes(ledger: Ledger) -> None:
    pod = POD.in_group("g").owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
    ledger.put_pod(pod.view())
    assert sums(ledger)[1] == TWO
    ledger.put_job(a_job("j").uid("uid-j").in_queue("jobs").view())
    assert (sums(ledger)[1], sums(ledger, "jobs")[1]) == ({}, TWO)
    ledger.put_group(a_group("g").in_queue("groups").view())
    assert (sums(ledger, "jobs")[1], sums(ledger, "groups")[1]) == ({}, TWO)
    ledger.drop_group("ml/g")
    ledger.drop_job("ml/j")
    assert sums(ledger)[1] == TWO


def test_a_job_of_the_same_name_but_another_uid_is_not_the_pods(ledger: Ledger) -> None:
    ledger.put_pod(POD.owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1", uid="old").view())
    ledger.put_job(a_job("j").uid("new").in_queue("jobs").view())
    assert sums(ledger)[1] == TWO


def test_a_namespace_names_the_queue_of_its_pods(ledger: Ledger) -> None:
    ledger.put_pod(a_pod("p").gpu(2).card("H200").view())
    assert sums(ledger, "default")[1] == TWO
    ledger.put_namespace(a_namespace("ml").in_queue("q").view())
    assert (sums(ledger)[1], sums(ledger, "default")[1]) == (TWO, {})


def test_what_is_assumed_counts_until_the_watch_shows_it(ledger: Ledger) -> None:
    gated, free = POD.gated().view(), POD.view()
    ledger.put_pod(gated)
    ledger.assume(free)
    ledger.put_pod(gated)
    assert sums(ledger) == ({}, TWO, {}), "an older state of the watch must not bring the pod back"
    ledger.put_pod(free)
    ledger.forget(free.uid)
    assert sums(ledger) == ({}, TWO, {}), "once the watch shows it, nothing is left to take back"


def test_what_is_forgotten_waits_again_and_is_looked_at_again(ledger: Ledger) -> None:
    ledger.put_pod(POD.gated().view())
    ledger.assume(POD.view())
    ledger.wakeups.take_queues()
    ledger.forget("uid-ml-p")
    assert (sums(ledger), set(ledger.wakeups.pending)) == ((TWO, {}, {}), {"q"})
    ledger.forget("uid-ml-p")
    ledger.forget("unknown")


def test_an_assumed_bind_stands_while_the_watch_shows_the_pod_unbound(ledger: Ledger) -> None:
    ledger.put_pod(POD.view())
    ledger.assume(POD.bound_to("n1", phase="Pending").view())
    ledger.put_pod(POD.view())
    assert [pod.name for pod in ledger.pods_on("n1")] == ["p"]
    ledger.forget_all()
    assert (ledger.pods_on("n1"), sums(ledger)) == ([], ({}, TWO, {}))


def test_what_is_assumed_of_a_pod_that_the_watch_has_not_shown_can_be_taken_back(ledger: Ledger) -> None:
    ledger.assume(POD.bound_to("n1").view())
    assert sums(ledger)[2] == TWO
    ledger.forget("uid-ml-p")
    assert (sums(ledger), ledger.pods_on("n1")) == (({}, {}, {}), [])


def test_so_can_it_with_everything_else_at_the_end_of_a_time_of_leading(ledger: Ledger) -> None:
    for number in range(100):
        ledger.assume(a_pod(f"p{number}").gpu(1).card("A").in_queue("q").bound_to("n1").view())
    ledger.forget_all()
    assert not ledger.settled, "so many are taken out in steps"
    finish(ledger.settle())
    assert (sums(ledger), ledger.pods_on("n1"), list(ledger.entries())) == (({}, {}, {}), [], [])


@pytest.mark.parametrize(
    "end", [POD.gated().terminating(), POD.bound_to("n1", phase="Failed"), POD.bound_to("n2")]
)
def test_the_pods_end_or_another_bind_overtakes_what_was_assumed(ledger: Ledger, end: PodBuilder) -> None:
    ledger.put_pod(POD.gated().view())
    ledger.assume(POD.view())
    ledger.put_pod(end.view())
    assert sums(ledger)[1] == {}


def test_a_terminating_pod_gives_its_quota_back_but_still_occupies_its_node(ledger: Ledger) -> None:
    ledger.put_pod(POD.bound_to("n1").terminating().view())
    assert (sums(ledger)[2], [pod.name for pod in ledger.pods_on("n1")]) == ({}, ["p"])
    ledger.put_pod(POD.bound_to("n1", phase="Succeeded").terminating().view())
    assert ledger.pods_on("n1") == []


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(lambda books: books.drop_pod("uid-ml-p"), id="a pod goes"),
        pytest.param(
            lambda books: books.put_pod(POD.bound_to("n1").terminating().view()), id="a pod terminates"
        ),
        pytest.param(
            lambda books: books.put_queue(a_queue("q").cards({"H200": 9}).view()), id="the quota grows"
        ),
        pytest.param(
            lambda books: books.put_queue(a_queue("q").cards({"H200": 8}).state("Closed").view()), id="state"
        ),
        pytest.param(lambda books: books.drop_queue("q"), id="the queue goes"),
        pytest.param(lambda books: books.put_pod(POD.uid("x").gated().view()), id="a pod comes"),
    ],
)
def test_what_may_let_a_pod_in_wakes_its_queue(ledger: Ledger, event: Callable[[Ledger], None]) -> None:
    ledger.put_pod(POD.bound_to("n1").view())
    ledger.put_pod(POD.uid("waiting").gated().view())
    ledger.wakeups.take_queues()
    event(ledger)
    assert set(ledger.wakeups.pending) == {"q"}


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(lambda books: books.put_pod(POD.bound_to("n1").view()), id="nothing new"),
        pytest.param(lambda books: books.put_pod(POD.uid("x").bound_to("n1").view()), id="another pod binds"),
        pytest.param(
            lambda books: books.put_pod(later(POD.bound_to("n1")).view()), id="a running pod's status"
        ),
        pytest.param(
            lambda books: books.put_pod(later(WAITING).view()), id="what a scheduler notes on a waiting pod"
        ),
        pytest.param(lambda books: books.put_pod(LIFTED.bound_to("n1").view()), id="a lifted pod binds"),
        pytest.param(
            lambda books: books.put_queue(a_queue("q").cards({"H200": 8}).allocated({"H200": "2"}).view()),
            id="its own status",
        ),
        pytest.param(lambda books: books.put_queue(a_queue("other").view()), id="another queue"),
    ],
)
def test_what_cannot_help_wakes_nobody_of_the_queue(ledger: Ledger, event: Callable[[Ledger], None]) -> None:
    for pod in (POD.bound_to("n1"), LIFTED, WAITING):
        ledger.put_pod(pod.view())
    ledger.wakeups.take_queues()
    event(ledger)
    assert "q" not in set(ledger.wakeups.pending)


def test_the_status_of_a_running_pod_wakes_nobody_who_waits_for_room(ledger: Ledger) -> None:
    ledger.put_pod(POD.bound_to("n1", phase="Pending").view())
    ledger.wakeups.await_room("elsewhere", {"H200"})
    ledger.wakeups.take_queues()
    ledger.put_pod(later(POD.bound_to("n1")).view())
    assert (set(ledger.wakeups.pending), ledger.wakeups.room_awaited) == (set(), True)
    ledger.put_pod(later(POD.bound_to("n1").terminating()).view())
    assert set(ledger.wakeups.pending) == {"elsewhere"}


SHARES = a_node("n1").card("H200", 8).mgpu(4, memory=8192)
LEAVERS: dict[str, Callable[[Ledger], None]] = {
    "a pod that names no card ends": lambda books: books.drop_pod("uid-ml-nameless"),
    "a lifted pod is deleted": lambda books: books.put_pod(LIFTED.terminating().view()),
}


@pytest.mark.parametrize("leaves", LEAVERS)
@pytest.mark.parametrize(("wanted", "woken"), [({"H200"}, True), ({"H100", "H200"}, True), ({"H100"}, False)])
def test_room_for_a_card_wakes_only_the_queues_that_wait_for_that_card(
    ledger: Ledger, leaves: str, wanted: set[str], woken: bool
) -> None:
    ledger.put_pod(a_pod("nameless").gpu(1).bound_to("n1").view())
    ledger.put_pod(LIFTED.view())
    ledger.wakeups.await_room("elsewhere", wanted)
    ledger.wakeups.take_queues()
    LEAVERS[leaves](ledger)
    assert ("elsewhere" in set(ledger.wakeups.pending)) is woken
    assert ledger.wakeups.room_awaited is not woken


@pytest.mark.parametrize(("node", "woken"), [(SHARES, True), (a_node("n1").card("H200", 8), False)])
def test_mgpu_room_comes_free_on_nodes_that_have_any(ledger: Ledger, node: NodeBuilder, woken: bool) -> None:
    ledger.put_node(node.view())
    ledger.put_pod(a_pod("other").gpu(1).bound_to("n1").view())
    ledger.wakeups.await_room("elsewhere", {MGPU_CORE, MGPU_MEMORY})
    ledger.wakeups.take_queues()
    ledger.drop_pod("uid-ml-other")
    assert ("elsewhere" in set(ledger.wakeups.pending)) is woken


def test_what_a_queue_waits_for_adds_up(ledger: Ledger) -> None:
    ledger.wakeups.await_room("q", {"A"})
    ledger.wakeups.await_room("q", {"B"})
    ledger.wakeups.take_queues()
    ledger.wakeups.room_freed({"C"})
    assert not ledger.wakeups.pending
    ledger.wakeups.room_freed({"A"})
    assert set(ledger.wakeups.pending) == {"q"}


def test_a_waiting_pod_that_was_written_is_lifted_by_its_newest_state(ledger: Ledger) -> None:
    """Though nobody is woken for it: the patch of a lift names the resourceVersion."""
    ledger.put_pod(WAITING.view())
    ledger.put_pod(later(WAITING).view())
    assert [entry.pod.resource_version for entry in ledger.waiting("q")] == ["9"]


def test_a_waiting_pod_that_was_written_is_still_to_be_looked_at_where_its_queue_does_not_exist(
    ledger: Ledger,
) -> None:
    ledger.put_pod(WAITING.in_queue("ghost").view())
    ledger.put_pod(later(WAITING.in_queue("ghost")).view())
    assert "ghost" in ledger.wakeups.pending


def test_a_queue_of_nobody_leaves_no_account_behind(ledger: Ledger) -> None:
    ledger.put_pod(a_pod("p").gpu(1).card("H200").in_queue("ghost").view())
    assert "ghost" in ledger.accounts
    ledger.drop_pod("uid-ml-p")
    assert "ghost" not in ledger.accounts


def test_a_running_pod_whose_card_nobody_knows_any_more_counts_as_none_and_is_listed(ledger: Ledger) -> None:
    pod = a_pod("p").gpu(2).limit("rdma/hca", 1).card("H200").in_queue("q").bound_to("n1").view()
    ledger.put_pod(pod)
    assert not ledger.accounts["q"].uncounted_pods
    ledger.wakeups.take_figures()
    ledger.drop_node("n1")
    account = ledger.accounts["q"]
    assert (list(account.uncounted_pods), account.allocated) == ([pod.uid], {})
    assert ledger.wakeups.take_figures() == {"q"}
    ledger.put_node(H200)
    assert (list(account.uncounted_pods), account.allocated) == ([], TWO)


def test_a_waiting_pod_of_an_unknown_card_is_held_and_not_listed(ledger: Ledger) -> None:
    ledger.put_pod(a_pod("p").gpu(2).card("K80").in_queue("q").gated().view())
    assert not ledger.accounts["q"].uncounted_pods
