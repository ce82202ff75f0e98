"""What the members of a gang say, with the least and the largest at hand."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from core.queues.gang_book import Said


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=200))
def test_the_least_and_the_largest_are_those_of_all_that_is_said(steps: list[tuple[int, bool]]) -> None:
    said, told = Said(), Counter[int]()
    for value, goes in steps:
        sign = -1 if goes and told[value] else 1
        told[value] += sign
        said.count(value, sign)
        left = +told
        if left:
            assert (said.least, said.most) == (min(left), max(left))
        assert said.counted == left


class Compared(int):
    """A number that counts how often it is compared."""

    times = 0

    def __lt__(self, other: int) -> bool:
        Compared.times += 1
        return super().__lt__(other)

    def __gt__(self, other: int) -> bool:
        Compared.times += 1
        return super().__gt__(other)

    def __neg__(self) -> "Compared":
        return Compared(super().__neg__())


def test_a_gang_of_a_thousand_sizes_costs_no_more_than_the_logarithm_when_the_largest_goes() -> None:
    """Each member said another size; looking through all that are left took half a million comparisons."""
    said = Said()
    for value in range(1000):
        said.count(Compared(value), 1)
    Compared.times = 0
    for value in reversed(range(1, 1000)):
        said.count(Compared(value), -1)
        assert (said.least, said.most) == (0, value - 1)
    assert Compared.times < 1000 * 30


def test_one_that_comes_and_goes_for_ever_leaves_nothing_behind() -> None:
    said = Said()
    said.count(1, 1)
    said.count(9, 1)
    for _ in range(10_000):
        said.count(5, 1)
        said.count(5, -1)
        assert (said.least, said.most) == (1, 9)
    assert len(said._least) + len(said._most) < 100
