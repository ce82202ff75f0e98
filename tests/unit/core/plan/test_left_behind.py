"""Thousands of pods at the gate that are moved from queue to queue all the time keep nobody else waiting."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues import backlog
from core.queues.backlog import AT_ONCE, SIFTED_AT_ONCE
from core.queues.ledger import Ledger
from core.settings import Settings
from core.stage import Stage
from core.steps import finish
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.property.pieces import pieces

MANY = 4 * AT_ONCE
JOB = "batch.volcano.sh/v1alpha1"


@pytest.fixture(params=[SIFTED_AT_ONCE, 0], ids=["sifted at once", "sifted in steps"], autouse=True)
def sifted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", request.param)


def books(minimum: int) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 2 * MANY).view())
    for name in "qrs":
        ledger.put_queue(a_queue(name).cards({"A": 2 * MANY if name == "s" else 3}).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
    pod = a_pod("p").gpu(1).card("A").in_group("g").gated().view()
    for number in range(MANY):
        ledger.put_pod(replace(pod, name=f"p{number:03}", uid=f"uid-{number:03}"))
    ledger.put_pod(a_pod("other").gpu(1).card("A").in_queue("s").gated().view())
    finish(ledger.settle())
    return ledger


@pytest.mark.parametrize("minimum", [1, MANY])
def test_others_are_let_in_by_the_first_pass(minimum: int) -> None:
    ledger, flips, pauses = books(minimum), 0, 0
    ledger.wakeups.look_at(*ledger.queues)
    lifted = set()
    for decision in Planner(ledger).run(ledger.wakeups.take_queues()):
        if isinstance(decision, Lift):
            lifted.add(decision.pod.name)
        pauses += decision is None
        assert pauses < 2000, "the pass comes to its end"
        if decision is None:
            flips += 1
            ledger.put_group(a_group("g").in_queue("qr"[flips % 2]).min_member(minimum).view())
    assert "other" in lifted
    assert flips > 0
    for name in "qr":
        assert ledger.used(name, "A") <= 3000, "no quota is exceeded meanwhile"


@pytest.mark.parametrize("size", [1, 4])
def test_who_has_a_choice_is_decided_on_while_somebody_else_is_left_behind_at_each_pause(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone or in a gang: the search goes on once it is known that whoever was left behind holds nothing."""
    for module, name in pieces():
        if module is not backlog:
            monkeypatch.setattr(module, name, 1)
    ledger, pauses, lifted = books(1), 0, []
    for number in range(10):
        ledger.put_node(a_node(f"n{number}").card("AB"[number % 2], 4).label("zone", "z1").view())
    ledger.put_queue(a_queue("choosing").cards({"A": 2, "B": 2}).view())
    ledger.put_group(a_group("gang").in_queue("choosing").min_member(size).view())
    for number in range(size):
        member = (
            a_pod(f"m{number}")
            .gpu(1)
            .card("A|B")
            .request("cpu", f"{1 + number}")
            .selects("zone", "z1")
            .gated()
        )
        ledger.put_pod((member.in_group("gang") if size > 1 else member.in_queue("choosing")).view())
    for number in range(MANY):
        ledger.put_pod(a_pod(f"one{number}").gpu(1).card("A").in_group(f"g{number}").gated().view())
    for decision in Planner(ledger).run(["choosing"]):
        if isinstance(decision, Lift) and decision.queue == "choosing":
            lifted.append(decision.pod.name)
            if len(lifted) == size:
                break
        # After the first, the crowd, everybody is one too many for the event.
        ledger.put_group(a_group(f"g{pauses or ''}").in_queue("r").min_member(1).view())
        pauses += 1
    assert sorted(lifted) == [f"m{number}" for number in range(size)]
    assert 1 < pauses < MANY


def test_what_it_takes_to_look_through_a_crowd_is_nobodys_part_of_the_effort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the first of a fifo queue would be cut off, and all others with it, for what somebody else has changed."""
    for module, name in pieces():
        monkeypatch.setattr(module, name, 1)
    expected = [f"p{number:02}" for number in range(40)]
    for pause in range(0, 120, 3):
        ledger, lifted = books(1), []
        for number in range(10):
            ledger.put_node(a_node(f"n{number}").card("AB"[number % 2], 40).label("zone", "z1").view())
        ledger.put_queue(a_queue("choosing").fifo().cards({"A": 200, "B": 200}).view())
        for number, name in enumerate(expected, 1):
            pod = a_pod(name).gpu(1).card("A|B").request("cpu", f"{number}m").selects("zone", "z1").gated()
            ledger.put_pod(pod.in_queue("choosing").view())
        for number, decision in enumerate(Planner(ledger).run(["choosing"])):
            if isinstance(decision, Lift) and decision.queue == "choosing":
                lifted.append(decision.pod.name)
            if number == pause:
                assert not lifted, "the first one is not decided on yet"
                ledger.put_group(a_group("g").in_queue("r").min_member(1).view())
        assert lifted == expected


def test_of_a_crowd_that_comes_during_a_pass_the_oldest_are_let_in() -> None:
    ledger, lifted = books(1), []
    ledger.put_queue(a_queue("t").cards({"A": 3}).view())
    planner, moved = Planner(ledger), 0
    for decision in planner.run(["s", "t"]):
        if isinstance(decision, Lift) and decision.queue == "t":
            lifted.append(decision.pod.uid)
        if not moved:
            moved += 1
            ledger.put_group(a_group("g").in_queue("t").min_member(1).view())
            settling = ledger.settle()
            for _ in range(MANY // 2 // 8):
                next(settling)
    assert moved
    assert lifted == ["uid-000", "uid-001", "uid-002"]


def test_who_is_let_in_while_the_end_of_his_namespace_leaves_him_behind_is_waited_for() -> None:
    """The queue selects namespaces by their labels, and every one of the crowd may use it no longer."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 2 * MANY).view())
    ledger.put_namespace(a_namespace("ml").label("team", "a").view())
    ledger.put_queue(a_queue("q").used_by(selector="team=a").cards({"A": 2 * MANY}).view())
    pod = a_pod("p", namespace="ml").gpu(1).card("A").in_queue("q").gated().view()
    for number in range(MANY):
        ledger.put_pod(replace(pod, name=f"p{number:03}", uid=f"uid-{number:03}"))
    before = ledger.changes
    ledger.drop_namespace("ml")
    finish(ledger.sift())
    assert ledger.changes > before, "whoever decides on one of them looks again"
    settled = [ledger.left_behind("uid-000"), ledger.sums_settled]
    ledger.let_in(replace(pod, name="p000", uid="uid-000", gates=()))
    assert [*settled, ledger.sums_settled] == [True, True, False]


def test_on_a_pod_that_is_left_behind_nothing_is_decided() -> None:
    """It would be let in by the queue that it has left."""
    ledger = books(1)
    ledger.put_group(a_group("g").in_queue("r").min_member(1).view())
    assert ledger.left_behind("uid-000")
    finish(ledger.sift())
    assert ledger.sums_settled
    entry = ledger.entry("uid-000")
    assert entry is not None
    assert ledger.current(entry) is None
    finish(ledger.settle())
    assert ledger.settled
    now = ledger.entry("uid-000")
    assert now is not None
    assert now.queue == "r"


def test_once_it_is_over_they_are_decided_on_by_their_queue_of_then() -> None:
    ledger = books(1)
    ledger.wakeups.look_at(*ledger.queues)
    planner = Planner(ledger)
    ledger.put_group(a_group("g").in_queue("r").min_member(1).view())
    lifted = [one for one in planner.run(ledger.wakeups.take_queues()) if isinstance(one, Lift)]
    assert {(one.queue, one.pod.name == "other") for one in lifted} == {("r", False), ("s", True)}
    assert ledger.used("r", "A") == 3000


def on_record(pod: PodBuilder) -> PodBuilder:
    return pod.assigned({"A": 1}).charged("q")


def running(pod: PodBuilder) -> PodBuilder:
    return on_record(pod).bound_to("n")


def fixed(pod: PodBuilder) -> PodBuilder:
    """As an older version has let it in; whoever leads fixes the queue of such pods when it sees them first."""
    return pod.assigned({"A": 1})


def unlifted(pod: PodBuilder) -> PodBuilder:
    """Nobody's gate was ever on it, and nobody has granted it anything."""
    return pod


def in_group(pod: PodBuilder) -> PodBuilder:
    return pod.in_group("g")


def of_job(pod: PodBuilder) -> PodBuilder:
    return pod.owned_by("Job", "j", api_version=JOB)


def say(ledger: Ledger, queue: str) -> None:
    ledger.put_group(a_group("g").in_queue(queue).min_member(1).view())
    ledger.put_job(a_job("j").in_queue(queue).uid("uid-j").view())


@pytest.mark.parametrize("refers", [in_group, of_job])
@pytest.mark.parametrize("state", [on_record, running, fixed, unlifted])
def test_nobody_waits_for_members_past_the_gate_whose_group_is_changed_at_each_pause(
    state: Callable[[PodBuilder], PodBuilder], refers: Callable[[PodBuilder], PodBuilder]
) -> None:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 2 * MANY).view())
    for name in "qrs":
        ledger.put_queue(a_queue(name).cards({"A": 2 * MANY}).view())
    say(ledger, "q")
    pod = state(refers(a_pod("p").gpu(1).card("A"))).view()
    for number in range(MANY):
        member = replace(pod, name=f"p{number:03}", uid=f"uid-{number:03}")
        ledger.put_pod(member)
        if state is fixed:
            ledger.fix_queue(member)
    ledger.put_pod(a_pod("other").gpu(1).card("A").in_queue("s").gated().view())
    finish(ledger.settle())
    ledger.wakeups.look_at(*ledger.queues)
    lifted, pauses = set(), 0
    for decision in Planner(ledger).run(ledger.wakeups.take_queues()):
        if isinstance(decision, Lift):
            lifted.add(decision.pod.name)
        if decision is None:
            pauses += 1
            assert pauses < 200, "the pass comes to its end"
            say(ledger, "qr"[pauses % 2])
    assert lifted == {"other"}


def test_what_a_group_says_of_anything_but_its_queue_leaves_nobody_behind() -> None:
    """Its controller writes its status each second."""
    ledger = books(1)
    before = ledger.entry("uid-000")
    ledger.put_group(a_group("g").in_queue("q").min_member(2).view())
    assert ledger.settled
    assert ledger.entry("uid-000") is before


def says_nothing_new(ledger: Ledger, turn: int) -> None:
    """The Job names the queue, or leaves it to its pods, which name the same one."""
    ledger.put_job(a_job("j").in_queue(("q", "")[turn % 2]).uid("uid-j").view())


def fifo_books() -> Ledger:
    """A crowd with the first in line is about to be left behind: they are too many to be booked anew at once."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 2 * MANY).view())
    ledger.put_queue(a_queue("q").cards({"A": 1}).fifo().view())
    says_nothing_new(ledger, 0)
    pod = a_pod("first").gpu(1).card("A").in_queue("q").gated()
    ledger.put_pod(of_job(pod.created("2026-01-01T00:00:00Z")).view())
    second = a_pod("second").gpu(1).card("A").in_queue("q").gated().created("2026-01-02T00:00:00Z")
    ledger.put_pod(second.view())
    crowd = of_job(a_pod("p").gpu(1).card("A").in_queue("q").gated().created("2026-01-03T00:00:00Z")).view()
    for number in range(MANY):
        ledger.put_pod(replace(crowd, name=f"p{number:03}", uid=f"uid-{number:03}"))
    finish(ledger.settle())
    return ledger


@pytest.mark.parametrize("grouped", [False, True])
def test_nobody_passes_the_first_of_a_fifo_queue_who_is_left_behind(grouped: bool) -> None:
    ledger = fifo_books()
    if grouped:
        alone = a_group("alone").in_queue("q").min_member(1).created("2026-02-01T00:00:00Z")
        ledger.put_group(alone.view())
        late = a_pod("late").in_group("alone").gpu(1).card("A").gated().created("2026-02-01T00:00:00Z")
        ledger.put_pod(late.view())
    says_nothing_new(ledger, 1)
    ledger.wakeups.look_at("q")
    planner = Planner(ledger)
    for turn, decision in enumerate(planner.run(ledger.wakeups.take_queues())):
        assert decision is None
        says_nothing_new(ledger, turn)
    assert "q" in ledger.wakeups.pending, "it is looked at again"
    decided = planner.run(ledger.wakeups.take_queues())
    assert [one.pod.name for one in decided if isinstance(one, Lift)] == ["first"]


def test_a_bind_of_one_who_is_left_behind_is_booked_where_its_record_says() -> None:
    """The bind has asked for the queue of now; the books still have the pod in the one before."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 2 * MANY).view())
    for name in "qr":
        ledger.put_queue(a_queue(name).cards({"A": 2 * MANY}).view())
    say(ledger, "q")
    pod = in_group(a_pod("p").gpu(1).card("A")).view()
    for number in range(MANY):
        ledger.put_pod(replace(pod, name=f"p{number:03}", uid=f"uid-{number:03}"))
    say(ledger, "r")
    assert ledger.left_behind("uid-000")
    bound = running(in_group(a_pod("p000").uid("uid-000").gpu(1).card("A"))).charged("r").view()
    ledger.assume(bound)
    entry = ledger.entry("uid-000")
    assert entry is not None
    assert (entry.queue, entry.stage, entry.unlifted) == ("r", Stage.ALLOCATED, False)
    finish(ledger.settle())
    assert ledger.used("r", "A") == 1000 * MANY
    assert ledger.used("q", "A") == 0


@pytest.mark.parametrize("refers", [in_group, of_job])
def test_a_pass_pauses_while_it_goes_past_thousands_who_are_left_behind(
    refers: Callable[[PodBuilder], PodBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else that runs beside it comes to its turn before a pause."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 3000).view())
    for name in "qr":
        ledger.put_queue(a_queue(name).cards({"A": 3000}).view())
    say(ledger, "q")
    pod = refers(a_pod("p").gpu(1).card("A").gated()).view()
    for number in range(3000):
        ledger.put_pod(replace(pod, name=f"p{number:04}", uid=f"uid-{number:04}"))
    finish(ledger.settle())
    passed: list[str] = []
    asked = ledger.left_behind

    def noted(uid: str) -> bool:
        passed.append(uid)
        return asked(uid)

    monkeypatch.setattr(ledger, "left_behind", noted)
    ledger.wakeups.look_at("q")
    lifted, between = 0, []
    for decision in Planner(ledger).run(["q"]):
        between.append(len(passed))
        passed.clear()
        if isinstance(decision, Lift) and not lifted:
            lifted += 1
            say(ledger, "r")
    assert lifted
    assert sum(between) > 2000, "the others are left behind"
    assert max(between) < 600
