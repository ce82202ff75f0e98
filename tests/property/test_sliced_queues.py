"""A pass over several queues in slices is an uninterrupted one; queues that are woken in between have their turn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.objects import Pod
from core.plan import effort, rotation
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.property.sliced import books_of, one_by_one
from tests.property.test_controller_invariants import CHOICES

QUEUES = ("red", "blue", "green")
MOST_PAUSES = 2_000
"""A pass over the few pods here has some hundreds, however much happens meanwhile."""
pods = st.tuples(
    st.sampled_from(QUEUES),
    st.sampled_from((*CHOICES, "", "C|A")),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(("", "zone-1", "zone-2")),
)
gangs = st.tuples(st.sampled_from(QUEUES), st.integers(0, 4), st.lists(pods, min_size=1, max_size=5))
quotas = st.tuples(
    st.dictionaries(st.sampled_from("AB"), st.integers(0, 6)),
    st.none() | st.integers(0, 8),
    st.booleans(),
    st.integers(0, 2),
)


Wish = tuple[str, str, int, int, int, str]
Gang = tuple[str, int, list[Wish]]
Quota = tuple[dict[str, int], int | None, bool, int]


def a_view(name: str, wish: Wish, group: str = "") -> Pod:
    queue, choice, count, cpu, priority, zone = wish
    pod = a_pod(name).request("cpu", cpu).priority(priority).gated()
    pod = pod.gpu(count).card(choice) if choice else pod.mgpu(core=30 * count, memory=512)
    pod = pod.selects("zone", zone) if zone else pod
    return (pod.in_group(group) if group else pod.in_queue(queue)).view()


def listed(
    alone: list[Wish], together: list[Gang], quotas: dict[str, Quota], *, uniform: bool = False
) -> Ledger:
    way = "uniform" if uniform else "spread"
    ledger = Ledger(Settings.model_validate({"cards": {"multiCardJob": way}}))
    ledger.put_node(a_node("a1").card("A", 3).label("zone", "zone-1").allocatable("cpu", 9).view())
    ledger.put_node(a_node("a2").card("A", 2).label("zone", "zone-2").view())
    ledger.put_node(a_node("b1").card("B", 4).label("zone", "zone-1").view())
    ledger.put_node(a_node("m1").mgpu(2, memory=4096).label("zone", "zone-2").view())
    for queue, (cards, cpu, fifo, priority) in quotas.items():
        built = a_queue(queue).cards(cards).priority(priority)
        built = built if cpu is None else built.capability(cpu=cpu)
        ledger.put_queue((built.fifo() if fifo else built).view())
    for number, (queue, minimum, members) in enumerate(together):
        ledger.put_group(a_group(f"g{number}").in_queue(queue).min_member(minimum).view())
        for place, wish in enumerate(members):
            ledger.put_pod(a_view(f"g{number}-{place}", wish, f"g{number}"))
    for number, wish in enumerate(alone):
        ledger.put_pod(a_view(f"p{number}", wish))
    return ledger


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses come often."""
    one_by_one(monkeypatch)


@given(
    alone=st.lists(pods, max_size=12),
    together=st.lists(gangs, max_size=4),
    quotas=st.fixed_dictionaries(dict.fromkeys(QUEUES, quotas)),
    uniform=st.booleans(),
)
def test_without_events_a_pass_in_slices_is_one_uninterrupted_pass(
    alone: list[Wish], together: list[Gang], quotas: dict[str, Quota], uniform: bool
) -> None:
    whole, sliced = (listed(alone, together, quotas, uniform=uniform) for _ in range(2))
    planner = Planner(whole)
    expected = [decision for queue in planner.order(QUEUES) for decision in planner.decide(queue)]
    found = [decision for decision in Planner(sliced).run(QUEUES) if decision is not None]
    assert lifts(found) == lifts(expected)
    assert holds(found) == holds(expected)
    assert set(books_of(sliced)) == {d.pod.uid for d in found if isinstance(d, Lift)}


@given(
    alone=st.lists(pods, max_size=12),
    together=st.lists(gangs, max_size=3),
    quotas=st.fixed_dictionaries(dict.fromkeys(QUEUES, quotas)),
    pauses=st.lists(st.integers(0, 30), min_size=2, max_size=2),
)
def test_where_the_effort_suffices_queues_that_are_woken_between_slices_are_served_after_the_pass(
    alone: list[Wish], together: list[Gang], quotas: dict[str, Quota], pauses: list[int]
) -> None:
    whole, sliced = (listed(alone, together, quotas) for _ in range(2))
    planner = Planner(whole)
    expected = planner.decide("red")
    expected += [decision for queue in planner.order(["blue", "green"]) for decision in planner.decide(queue)]
    with pytest.MonkeyPatch.context() as patch:
        # What a search costs is not known beforehand.
        patch.setattr(rotation, "BEFORE_OTHERS", 1_000_000)
        found = passes(
            sliced, dict(zip(["blue", "green"], sorted(pauses), strict=True)), together_at_last=True
        )
    assert lifts(found) == lifts(expected)
    assert holds(found) == holds(expected)


@given(
    alone=st.lists(pods, max_size=12),
    together=st.lists(gangs, max_size=3),
    quotas=st.fixed_dictionaries(dict.fromkeys(QUEUES, quotas)),
    pauses=st.lists(st.integers(0, 30), min_size=2, max_size=2),
    effort_of_a_pass=st.integers(1, 8),
)
def test_queues_that_come_in_between_have_nobody_forgotten_and_nobody_held_who_fits(
    alone: list[Wish],
    together: list[Gang],
    quotas: dict[str, Quota],
    pauses: list[int],
    effort_of_a_pass: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effort, "OF_A_PASS", effort_of_a_pass)
        patch.setattr(effort, "OF_A_UNIT", 1)
        patch.setattr(rotation, "BEFORE_OTHERS", 0)
        ledger = listed(alone, together, quotas)
        found = passes(ledger, dict(zip(["blue", "green"], pauses, strict=True)))
    lifted = [decision.pod.uid for decision in lifts(found)]
    assert len(lifted) == len(set(lifted))
    assert {decision.pod.uid for decision in found} == {entry.pod.uid for entry in ledger.entries()}
    assert set(lifted) == books_of(ledger)
    planner = Planner(ledger)
    assert [lift for queue in QUEUES for lift in lifts(planner.decide(queue))] == []


@given(
    alone=st.lists(pods, min_size=1, max_size=8),
    together=st.lists(gangs, max_size=4),
    quotas=st.fixed_dictionaries(dict.fromkeys(QUEUES, quotas)),
    begun=st.sets(st.sampled_from(QUEUES), min_size=1),
    effort_of_a_pass=st.integers(1, 4),
    before_others=st.integers(0, 2),
    every=st.integers(1, 3),
)
def test_a_pass_ends_whatever_changes_at_its_pauses(
    alone: list[Wish],
    together: list[Gang],
    quotas: dict[str, Quota],
    begun: set[str],
    effort_of_a_pass: int,
    before_others: int,
    every: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effort, "OF_A_PASS", effort_of_a_pass)
        patch.setattr(effort, "OF_A_UNIT", 1)
        patch.setattr(rotation, "BEFORE_OTHERS", before_others)
        for cost in ("_LIFT", "_HOLD", "_REST"):
            # So that few pods are as long a course as very many are.
            patch.setattr(rotation, cost, rotation._STEP)
        ledger = listed(alone, together, quotas)
        ledger.wakeups.take_queues()
        gated = [entry.pod for entry in ledger.entries()]
        for pauses, _ in enumerate(Planner(ledger).run(sorted(begun))):
            assert pauses < MOST_PAUSES, "a pass without end"
            if pauses % every == 0:
                changed = gated[pauses // every % len(gated)]
                version = str(pauses)
                ledger.put_pod(
                    replace(
                        changed, requests={**changed.requests, "memory": pauses}, resource_version=version
                    )
                )
                ledger.wakeups.help(*QUEUES)


def passes(ledger: Ledger, woken: dict[str, int], *, together_at_last: bool = False) -> list[Decision]:
    """The decisions of a pass over `red` and of all that follow; other queues are woken after so many pauses."""
    ledger.wakeups.take_queues()
    planner, found, due, steps, rounds = Planner(ledger), list[Decision](), dict(woken), 0, 0
    queues = ["red"]
    while queues:
        rounds += 1
        assert rounds < 300, "passes without end"
        for decision in planner.run(queues):
            found += [decision] if decision is not None else []
            steps += 1
            for queue in [queue for queue, after in due.items() if after < steps]:
                del due[queue]
                ledger.wakeups.look_at(queue)
        if due and (together_at_last or not ledger.wakeups.pending):
            ledger.wakeups.look_at(*due)
            due.clear()
        queues = ledger.wakeups.take_queues()
    return found


def lifts(decisions: list[Decision]) -> list[Lift]:
    return [decision for decision in decisions if isinstance(decision, Lift)]


def holds(decisions: list[Decision]) -> set[tuple[str, str]]:
    """Who is held and why; not in which words, for the numbers in them are those at one's own turn or those at its end."""
    return {(each.pod.uid, each.why.code) for each in decisions if isinstance(each, Hold)}
