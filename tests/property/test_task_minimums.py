"""A gang whose tasks have minimums that change while some of it is in: what it lacks comes as a whole or not at all."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue

TASKS = "vw"
members = st.fixed_dictionaries({task: st.integers(0, 3) for task in TASKS}).map(Counter)


@given(
    let_in=members,
    waiting=members,
    lost=st.integers(0, 2),
    minimum=st.integers(1, 8),
    of_tasks=st.dictionaries(st.sampled_from(TASKS), st.integers(1, 4)),
    free=st.integers(0, 6),
)
def test_what_a_gang_lacks_comes_as_a_whole(
    let_in: Counter[str],
    waiting: Counter[str],
    lost: int,
    minimum: int,
    of_tasks: dict[str, int],
    free: int,
) -> None:
    """`lost` members are gone of those that were let in together; the minimums are those of now."""
    quota, together = let_in.total() + free, let_in.total() + lost
    ledger = Ledger(Settings())
    ledger.put_node(a_node("a").card("A", 16).view())
    ledger.put_queue(a_queue("q").cards({"A": quota}).view())
    group = a_group("g").in_queue("q").min_member(minimum)
    for task, count in of_tasks.items():
        group = group.min_task(task, count)
    ledger.put_group(group.view())
    for counted, gated in ((let_in, False), (waiting, True)):
        for number, task in enumerate(counted.elements()):
            pod = a_pod(f"{task}{number}-{gated}").gpu(1).card("A").in_group("g").task(task)
            had = pod.assigned({"A": 1}).charged("q").together(together).bound_to("a")
            ledger.put_pod((pod.gated() if gated else had).view())

    lifts = [decision for decision in Planner(ledger).decide("q") if isinstance(decision, Lift)]

    now = let_in + Counter(lift.pod.task for lift in lifts)
    tasks = Counter(of_tasks if sum(of_tasks.values()) <= minimum else {})
    starts = now.total() >= minimum and tasks <= now
    assert now.total() <= quota
    lacking = max(minimum - let_in.total(), (tasks - let_in).total())
    if lacking <= free and tasks - let_in <= waiting and lacking <= waiting.total():
        assert starts, "there is quota for all that it lacks"
        assert len(lifts) == min(free, waiting.total()), "whoever is beyond that follows"
    elif lifts:
        assert tasks <= now, "no member is let in without those that its gang does not start without"
        assert now.total() in {let_in.total(), min(together, minimum)} or starts, (
            "as many as were together, or all"
        )
