"""What becomes of groups with choices under each of the settings, and of pods whose group is not known, as tables.

The clusters are those of the worked examples: a queue with quota of two cards, of which the nodes have plenty.
"""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from core import reasons
from core.objects import Pod
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

SETTINGS = {
    "spread": Settings(),
    "single": Settings.model_validate({"cards": {"multiCardTask": "single"}}),
    "uniform": Settings.model_validate({"cards": {"multiCardJob": "uniform"}}),
}
NO_QUOTA, MIXED = reasons.INSUFFICIENT_SCALAR_QUOTA, reasons.MIXED_CARDS


@dataclass(frozen=True)
class Case:
    """`pods` are `task:cards`, `*n` for n of them; `running` the same with the card that each has got.

    `expected` is by setting: how many get which card, and how many wait for which reason.
    """

    says: str
    quota: dict[str, int]
    minimum: int
    pods: str
    spread: dict[str, int]
    single: dict[str, int]
    uniform: dict[str, int]
    running: str = ""
    job: bool = True
    tasks: dict[str, int] = field(default_factory=dict)


CASES = [
    Case(
        "the leftmost card serves all",
        {"A": 4, "B": 4},
        4,
        "w:A|B*4",
        spread={"A": 4},
        single={"A": 4},
        uniform={"A": 4},
    ),
    Case(
        "only the right one serves all",
        {"A": 3, "B": 4},
        4,
        "w:A|B*4",
        spread={"B": 4},
        single={"B": 4},
        uniform={"B": 4},
    ),
    Case(
        "four fit by the sum, and neither card serves four",
        {"A": 3, "B": 2},
        4,
        "w:A|B*4",
        spread={"A": 3, "B": 1},
        single={MIXED: 4},
        uniform={NO_QUOTA: 4},
    ),
    Case(
        "not even the sum serves them",
        {"A": 2, "B": 1},
        4,
        "w:A|B*4",
        spread={NO_QUOTA: 4},
        single={NO_QUOTA: 4},
        uniform={NO_QUOTA: 4},
    ),
    Case(
        "six pods that start alone, three of each card",
        {"A": 3, "B": 3},
        1,
        "w:A|B*6",
        spread={"A": 3, "B": 3},
        single={"A": 3, MIXED: 3},
        uniform={"A": 3, NO_QUOTA: 3},
    ),
    Case(
        "an elastic job of two to four, two of each card",
        {"A": 2, "B": 2},
        2,
        "w:A|B*4",
        spread={"A": 2, "B": 2},
        single={"A": 2, MIXED: 2},
        uniform={"A": 2, NO_QUOTA: 2},
    ),
    Case(
        "an elastic job of three to five: the rest follows",
        {"A": 2, "B": 5},
        3,
        "w:A|B*5",
        spread={"B": 5},
        single={"B": 5},
        uniform={"B": 5},
    ),
    Case(
        "each task has a card of its own",
        {"A": 2, "B": 2},
        4,
        "ps:A|B*2 w:A|B*2",
        spread={"A": 2, "B": 2},
        single={"A": 2, "B": 2},
        uniform={NO_QUOTA: 4},
    ),
    Case(
        "tasks with minimums of their own",
        {"A": 1, "B": 2},
        3,
        "ps:A|B*1 w:A|B*3",
        tasks={"ps": 1, "w": 2},
        spread={"A": 1, "B": 2, NO_QUOTA: 1},
        single={"A": 1, "B": 2, NO_QUOTA: 1},
        uniform={NO_QUOTA: 4},
    ),
    Case(
        "a member of one card takes what the others may not have",
        {"A": 1, "B": 3},
        3,
        "w:A*1 w:A|B*2",
        spread={"A": 1, "B": 2},
        single={"A": 1, "B": 2},
        uniform={NO_QUOTA: 3},
    ),
    Case(
        "one comes back to a task that runs on the right card",
        {"A": 4, "B": 4},
        3,
        "w:A|B*1",
        running="w:B*2",
        spread={"B": 1},
        single={"B": 1},
        uniform={"B": 1},
    ),
    Case(
        "one comes back, and its card has run out",
        {"A": 4, "B": 2},
        3,
        "w:A|B*1",
        running="w:B*2",
        spread={"A": 1},
        single={MIXED: 1},
        uniform={NO_QUOTA: 1},
    ),
    Case(
        "a task of its own does not follow",
        {"A": 4, "B": 4},
        2,
        "ps:A|B*1",
        running="w:B*2",
        spread={"A": 1},
        single={"A": 1},
        uniform={"B": 1},
    ),
    Case(
        "a task that was spread before may have either of its cards",
        {"A": 2, "B": 4},
        3,
        "w:A|B*2",
        running="w:A*1 w:B*1",
        spread={"A": 1, "B": 1},
        single={"A": 1, "B": 1},
        uniform={"A": 1, "B": 1},
    ),
    Case(
        "replicas of a Deployment are not bound together",
        {"A": 1, "B": 3},
        1,
        ":A|B*3",
        job=False,
        spread={"A": 1, "B": 2},
        single={"A": 1, "B": 2},
        uniform={"A": 1, "B": 2},
    ),
]


def built(case: Case) -> list[PodBuilder]:
    found = []
    for text, runs in ((case.pods, False), (case.running, True)):
        for part in text.split():
            task, _, rest = part.partition(":")
            cards, _, count = rest.partition("*")
            for number in range(int(count)):
                pod = a_pod(f"{task}-{cards.replace('|', '-').lower()}-{number}{'r' * runs}").gpu(1)
                pod = pod.card("A|B" if runs else cards).in_group("g").task(task)
                found.append(
                    pod.assigned({cards: 1}).charged("q").bound_to(cards.lower()) if runs else pod.gated()
                )
    return found


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_what_the_members_of_a_group_get(case: Case, setting: str) -> None:
    ledger = Ledger(SETTINGS[setting])
    for card in ("A", "B"):
        ledger.put_node(a_node(card.lower()).card(card, 16).view())
    ledger.put_queue(a_queue("q").cards(case.quota).view())
    group = a_group("g").in_queue("q").min_member(case.minimum)
    for task, count in case.tasks.items():
        group = group.min_task(task, count)
    owner = ("Job", "j", "batch.volcano.sh/v1alpha1") if case.job else ("ReplicaSet", "rs", "apps/v1")
    ledger.put_group(group.owned_by(owner[0], owner[1], api_version=owner[2]).view())
    for pod in built(case):
        ledger.put_pod(pod.view())
    found = Counter[str]()
    for decision in Planner(ledger).decide("q"):
        found[decision.why.code if isinstance(decision, Hold) else next(iter(decision.assigned))] += 1
    assert found == getattr(case, setting)


MEMBER = a_pod("p").gpu(1).card("A").in_queue("q").gated()


@pytest.mark.parametrize("served", [True, False], ids=["PodGroups are served", "no PodGroups"])
@pytest.mark.parametrize(
    ("pod", "waits", "waits_unserved"),
    [
        pytest.param(MEMBER.in_group("gone"), True, True, id="names a group that is not there"),
        pytest.param(MEMBER.in_group("there"), False, False, id="names a group that is there"),
        pytest.param(MEMBER.scheduler("volcano"), True, False, id="of Volcano's scheduler, without a name"),
        pytest.param(MEMBER.scheduler("default-scheduler"), False, False, id="of the stock scheduler"),
        pytest.param(MEMBER, False, False, id="of no scheduler in particular"),
    ],
)
def test_a_pod_waits_for_the_podgroup_by_which_it_is_started(
    pod: PodBuilder, waits: bool, waits_unserved: bool, served: bool
) -> None:
    ledger = Ledger(Settings())
    ledger.serve_groups(served)
    ledger.put_node(a_node("a").card("A", 16).view())
    ledger.put_queue(a_queue("q").cards({"A": 16}).view())
    ledger.put_group(a_group("there").in_queue("q").min_member(1).view())
    view: Pod = pod.view()
    ledger.put_pod(view)
    (decision,) = Planner(ledger).decide("q")
    assert isinstance(decision, Hold if (waits if served else waits_unserved) else Lift)
    if isinstance(decision, Hold):
        assert decision.why.code == reasons.POD_GROUP_NOT_FOUND
