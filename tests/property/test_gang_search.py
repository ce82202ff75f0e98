"""The gang search finds a choice exactly when there is one."""

from collections import Counter
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from core.plan.gang import Member, assign

CARDS = ("A", "B", "C")
CHOICES = tuple(tuple(choice) for size in (1, 2, 3) for choice in combinations(CARDS, size))


class Stock:
    """Cards left, one per member."""

    def __init__(self, free: Counter[str]) -> None:
        self.free = Counter(free)
        self.taken: list[str] = []

    def take(self, _member: Member, card: str) -> bool:
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
    return [Member(f"u{i}", task, choice, (choice, task)) for i, (choice, task) in enumerate(gang)]


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
    outcome = assign(members, wanted, tasks, trial)
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
    members = [Member("flexible", "", ("A", "B"), 1), Member("single", "", ("A",), 2)]
    outcome = assign(members, 2, {}, Stock(Counter(A=1, B=1)))
    assert {each.member.uid: each.card for each in outcome.chosen} == {"flexible": "B", "single": "A"}


def test_earlier_members_come_first_and_one_that_cannot_be_placed_is_passed_over() -> None:
    members = [Member(f"u{i}", "", ("A",) if i != 1 else ("Z",), i != 1) for i in range(5)]
    outcome = assign(members, 3, {}, Stock(Counter(A=3)))
    assert [each.member.uid for each in outcome.chosen] == ["u0", "u2", "u3"]


def test_a_large_gang_of_like_pods_that_lacks_one_card_is_settled_at_once() -> None:
    members = [Member(f"u{i:02}", "", ("A", "B"), 0) for i in range(64)]
    outcome = assign(members, 64, {}, Stock(Counter(A=32, B=31)))
    assert outcome.chosen == ()
    assert not outcome.exhausted


def test_a_search_that_runs_out_of_budget_says_so_and_books_nothing() -> None:
    members = [Member(f"u{i:02}", "", ("A", "B", "C"), i) for i in range(20)]
    trial = Stock(Counter(A=7, B=6, C=6))
    outcome = assign(members, 20, {}, trial, budget=500)
    assert (outcome.chosen, outcome.exhausted) == ((), True)
    assert trial.free == Counter(A=7, B=6, C=6)
