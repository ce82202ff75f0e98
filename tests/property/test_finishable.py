"""An unfinished gang is never said to be unable to get there that gets there; and where all ask for as much it is said of no other.

With each way of dealing out cards, whatever its members have already, ask for and accept, and whichever tasks they are of.
"""

from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from core.plan.decision import Lift
from core.plan.finishable import may_finish
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder

KEY = "ml/g"
CARDS = "AB"
SPREAD: dict[str, str] = {}
SETTINGS = (SPREAD, {"multiCardJob": "uniform"}, {"multiCardTask": "single"})


class Member(NamedTuple):
    """One who has got a card is in; of somebody who does not accept that card nothing is on record."""

    task: str
    choice: str
    size: int
    got: str


class Gang(NamedTuple):
    of: list[Member]
    minimum: int


def is_in(member: Member) -> bool:
    return bool(member.got) and (not member.choice or member.got in member.choice.split("|"))


@st.composite
def gangs(draw: st.DrawFn, sizes: st.SearchStrategy[int], tasks: str) -> Gang:
    """Somebody is in, somebody waits, and it takes more than are in to start."""
    task, card = st.sampled_from(tasks), draw(st.sampled_from(CARDS))
    choices = st.sampled_from(("A", "B", "A|B", "A|B", "B|A", ""))
    accepting = st.sampled_from((card, "A|B", "B|A", ""))
    one = st.builds(Member, task, choices, sizes, st.sampled_from(("", "", "A", "B")))
    first = draw(st.builds(Member, task, accepting, sizes, st.just(card)))
    last = draw(st.builds(Member, task, choices, sizes, st.just("")))
    of = draw(st.permutations([first, *draw(st.lists(one, max_size=4)), last]))
    return Gang(of, draw(st.integers(sum(map(is_in, of)) + 1, len(of))))


quotas = st.fixed_dictionaries({card: st.integers(0, 9) for card in CARDS})


def pod(number: int, member: Member, together: int) -> PodBuilder:
    built = a_pod(f"m{number}").in_group("g").task(member.task)
    built = built.gpu(member.size).card(member.choice) if member.choice else built.mgpu(core=1)
    if not is_in(member):
        return built.gated()
    built = built.assigned({member.got: member.size}) if member.choice else built
    return built.charged("q").together(together)


def books(settings: dict[str, str], quota: dict[str, int], gang: Gang, tasks: dict[str, int]) -> Ledger:
    """The gang alone, with nodes for all of it."""
    ledger = Ledger(Settings.model_validate({"cards": settings}))
    for card in CARDS:
        ledger.put_node(a_node(card.lower()).card(card, 64).view())
    ledger.put_node(a_node("shared").mgpu(64, memory=64).view())
    ledger.put_queue(a_queue("q").cards(quota).view())
    group = a_group("g").in_queue("q").min_member(gang.minimum)
    for task, count in tasks.items():
        group = group.min_task(task, count)
    ledger.put_group(group.view())
    for number, member in enumerate(gang.of):
        ledger.put_pod(pod(number, member, gang.minimum).view())
    return ledger


def gets_there(ledger: Ledger) -> bool:
    """Whether it is lifted so far that it can start."""
    assume(KEY in ledger.groups.unfinished)
    lifts = [each for each in Planner(ledger).decide("q") if isinstance(each, Lift)]
    return bool(lifts) and KEY not in ledger.groups.unfinished


@given(
    st.sampled_from(SETTINGS),
    quotas,
    gangs(st.integers(1, 4), "vw"),
    st.dictionaries(st.sampled_from("vw"), st.integers(1, 2)),
)
def test_no_gang_that_gets_there_is_said_to_be_unable_to(
    settings: dict[str, str], quota: dict[str, int], gang: Gang, tasks: dict[str, int]
) -> None:
    ledger = books(settings, quota, gang, tasks)
    possible = finish(may_finish(ledger, KEY))
    assert possible or not gets_there(ledger)


@given(
    st.sampled_from(SETTINGS[:2]),
    quotas,
    st.integers(1, 3).flatmap(lambda size: gangs(st.just(size), "v")),
)
def test_where_all_ask_for_as_much_it_is_said_of_every_gang_that_does_not_get_there(
    settings: dict[str, str], quota: dict[str, int], gang: Gang
) -> None:
    ledger = books(settings, quota, gang, {})
    possible = finish(may_finish(ledger, KEY))
    assert possible == gets_there(ledger)
