"""The gang search finds a choice exactly when there is one."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from core.plan.decision import Lift
from core.plan.gang import assign
from core.plan.lift import Planner
from core.plan.lineup import Member
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Steps, finish
from tests.builders import a_group, a_node, a_pod, a_queue

CARDS = ("A", "B", "C")
CHOICES = tuple(tuple(choice) for size in (1, 2, 3) for choice in combinations(CARDS, size))


class Stock:
    """Cards left, one per member."""

    def __init__(self, free: Counter[str]) -> None:
        self.free = Counter(free)
        self.taken: list[str] = []

    def take(self, _member: Member, card: str) -> Steps[bool]:
        yield
        if self.free[card] < 1:
            return False
        self.free[card] -= 1
        self.taken.append(card)
        return True

    def give_back(self) -> None:
        self.free[self.taken.pop()] += 1


gangs = st.lists(st.tuples(st.sampled_from(CHOICES), st.sampled_from(("w", "ps"))), max_size=6)
stocks = st.fixed_dictionaries({card: st.integers(0, 3) for card in CARDS})


def build(gang: list[tuple[tuple[str, ...], str]]) -> list[Member]:
    return [Member(f"u{i}", task, choice, (choice, task), "one") for i, (choice, task) in enumerate(gang)]


def possible(members: list[Member], wanted: int, tasks: dict[str, int], free: Counter[str]) -> bool:
    """By trying everything."""
    for size in range(wanted, len(members) + 1):
        for group in combinations(members, size):
            counts = Counter(member.task for member in group)
            if any(counts[task] < count for task, count in tasks.items()):
                continue
            for cards in product(*(member.alternatives for member in group)):
                used = Counter(cards)
                if all(used[card] <= free[card] for card in used):
                    return True
    return False


@given(
    gang=gangs,
    wanted=st.integers(0, 6),
    tasks=st.dictionaries(st.sampled_from(("w", "ps")), st.integers(0, 3)),
    stock=stocks,
)
def test_a_choice_is_found_exactly_when_there_is_one(
    gang: list[tuple[tuple[str, ...], str]], wanted: int, tasks: dict[str, int], stock: dict[str, int]
) -> None:
    members, free = build(gang), Counter(stock)
    wanted = max(wanted, sum(tasks.values()))
    trial = Stock(free)
    outcome = finish(assign(members, wanted, tasks, trial))
    assert not outcome.exhausted
    found = bool(outcome.chosen) or (wanted == 0)
    assert found == possible(members, wanted, tasks, free)
    if outcome.chosen:
        assert len(outcome.chosen) == len({each.member.uid for each in outcome.chosen}) == wanted
        counts = Counter(each.member.task for each in outcome.chosen)
        assert all(counts[task] >= count for task, count in tasks.items())
        assert Counter(trial.taken) == Counter(each.card for each in outcome.chosen)
        assert all(each.card in each.member.alternatives for each in outcome.chosen)
    else:
        assert trial.free == free, "without a choice nothing stays booked"


def test_a_flexible_pod_that_comes_first_leaves_the_card_to_one_that_has_no_choice() -> None:
    members = [Member("flexible", "", ("A", "B"), 1, "one"), Member("single", "", ("A",), 2, "one")]
    outcome = finish(assign(members, 2, {}, Stock(Counter(A=1, B=1))))
    assert {each.member.uid: each.card for each in outcome.chosen} == {"flexible": "B", "single": "A"}


def test_earlier_members_come_first_and_one_that_cannot_be_placed_is_passed_over() -> None:
    members = [Member(f"u{i}", "", ("A",) if i != 1 else ("Z",), i != 1, "one") for i in range(5)]
    outcome = finish(assign(members, 3, {}, Stock(Counter(A=3))))
    assert [each.member.uid for each in outcome.chosen] == ["u0", "u2", "u3"]


def test_a_large_gang_of_like_pods_that_lacks_one_card_is_settled_at_once() -> None:
    members = [Member(f"u{i:02}", "", ("A", "B"), 0, "one") for i in range(64)]
    outcome = finish(assign(members, 64, {}, Stock(Counter(A=32, B=31))))
    assert outcome.chosen == ()
    assert not outcome.exhausted


def test_a_search_that_runs_out_of_budget_says_so_and_books_nothing() -> None:
    members = [Member(f"u{i:02}", "", ("A", "B", "C"), i, i) for i in range(20)]
    trial = Stock(Counter(A=7, B=6, C=6))
    outcome = finish(assign(members, 20, {}, trial, budget=500))
    assert (outcome.chosen, outcome.exhausted) == ((), True)
    assert trial.free == Counter(A=7, B=6, C=6)


def test_pods_that_take_the_same_of_the_same_cards_are_not_tried_in_every_order() -> None:
    """Each has its own task; of twenty on nineteen cards there are millions of orders, and some hundred outcomes."""
    members = [Member(f"u{i:02}", f"t{i}", ("A", "B", "C"), i, "one") for i in range(20)]
    outcome = finish(assign(members, 20, {}, Stock(Counter(A=7, B=6, C=6))))
    assert (outcome.chosen, outcome.exhausted) == ((), False)


def test_a_gang_of_thousands_is_no_matter_of_depth() -> None:
    members = [Member(f"u{i}", "", ("A", "B"), "like", "one") for i in range(3000)]
    assert len(finish(assign(members, 3000, {}, Stock(Counter(A=1500, B=1500)))).chosen) == 3000


@given(gang=gangs, wanted=st.integers(0, 6), stock=stocks)
def test_members_of_one_bond_get_one_card_exactly_when_there_is_a_way(
    gang: list[tuple[tuple[str, ...], str]], wanted: int, stock: dict[str, int]
) -> None:
    """A bond is a task and what its pods accept; by trying everything."""
    members = [replace(member, bond=(member.task, member.alternatives)) for member in build(gang)]
    free = Counter(stock)
    outcome = finish(assign(members, wanted, {}, Stock(free)))
    assert not outcome.exhausted
    got: dict[Hashable, set[str]] = {}
    for each in outcome.chosen:
        got.setdefault(each.member.bond, set()).add(each.card)
    assert all(len(cards) == 1 for cards in got.values())
    bonds = sorted({(member.task, member.alternatives) for member in members})
    possible = any(
        sum(
            min(count, free[card])
            for card, count in Counter(
                dict(zip(bonds, cards, strict=True))[m.task, m.alternatives] for m in members
            ).items()
        )
        >= wanted
        for cards in product(*(bond[1] for bond in bonds))
    )
    assert bool(outcome.chosen) == (possible and wanted > 0)


def test_a_large_gang_of_one_bond_that_lacks_one_card_is_settled_at_once() -> None:
    members = [Member(f"u{i}", "w", ("A", "B"), "like", "one", "w") for i in range(1000)]
    short = finish(assign(members, 1000, {}, Stock(Counter(A=999, B=999))))
    assert (short.chosen, short.exhausted) == ((), False)
    assert len(finish(assign(members, 1000, {}, Stock(Counter(A=999, B=1000)))).chosen) == 1000


def test_tasks_after_one_another_are_tried_with_each_card_and_not_in_every_combination() -> None:
    """Of twenty tasks with two pods each, ten could have one card and nine the other one."""
    members = [Member(f"u{i:02}", f"t{i // 2}", ("A", "B"), i // 2, "one", i // 2) for i in range(40)]
    outcome = finish(assign(members, 40, {}, Stock(Counter(A=21, B=19))))
    assert (outcome.chosen, outcome.exhausted) == ((), False)


wants = st.tuples(st.sampled_from(("A", "A|B", "B|A")), st.integers(1, 2), st.integers(0, 3))


@given(
    gang=st.lists(wants, min_size=2, max_size=5),
    minimum=st.integers(2, 3),
    quota=st.fixed_dictionaries({card: st.integers(1, 4) for card in "AB"}),
    cpu=st.integers(1, 4),
)
def test_on_the_books_a_gang_is_lifted_exactly_when_some_of_its_members_fit(
    gang: list[tuple[str, int, int]], minimum: int, quota: dict[str, int], cpu: int
) -> None:
    """Each member asks for cards and CPU of its own; by trying everything."""
    ledger = Ledger(Settings())
    for card in quota:
        ledger.put_node(a_node(card.lower()).card(card, 8).view())
    ledger.put_queue(a_queue("q").cards(quota).capability(cpu=cpu).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
    for number, (cards, count, cores) in enumerate(gang):
        pod = a_pod(f"m{number}").gpu(count).card(cards).request("cpu", cores).in_group("g").gated()
        ledger.put_pod(pod.view())
    lifted = [decision for decision in Planner(ledger).decide("q") if isinstance(decision, Lift)]
    assert bool(lifted) == any(
        fits(members, cards, quota, cpu)
        for members in combinations(gang, minimum)
        for cards in product(*(expression.split("|") for expression, _, _ in members))
    )
    assert not lifted or len(lifted) >= minimum


def fits(
    members: Iterable[tuple[str, int, int]], cards: Iterable[str], quota: dict[str, int], cpu: int
) -> bool:
    used: Counter[str] = Counter()
    cores = 0
    for (_, count, more), card in zip(members, cards, strict=True):
        used[card] += count
        cores += more
    return cores <= cpu and all(used[card] <= quota[card] for card in quota)
