"""How many answers are kept."""

import pytest

from core.mgpu.kept import ABOUT_FEW, ABOUT_MANY, FEW_CONTAINERS, Kept


class Asked:
    """Answers about texts, whose letters are the containers."""

    def __init__(self) -> None:
        self.times = 0
        self.answers = Kept(self._answer, len)

    def _answer(self, text: str, number: int) -> str:
        self.times += 1
        return f"{text} {number}"


@pytest.mark.parametrize(
    ("containers", "kept"), [(FEW_CONTAINERS, ABOUT_FEW), (FEW_CONTAINERS + 1, ABOUT_MANY)]
)
def test_fewer_answers_are_kept_about_more_containers(containers: int, kept: int) -> None:
    asked, text = Asked(), "c" * containers
    for _ in range(2):
        assert asked.answers(text, 0) == f"{text} 0"
    assert asked.times == 1
    for number in range(1, kept):
        asked.answers(text, number)
    asked.answers(text, 0)
    assert asked.times == kept
    asked.answers(text, kept)
    asked.answers(text, 1)
    assert asked.times == kept + 2, "the one asked for longest ago gave way"


def test_answers_about_many_containers_do_not_push_out_those_about_few() -> None:
    asked = Asked()
    asked.answers("c", 0)
    for number in range(ABOUT_MANY + 1):
        asked.answers("c" * (FEW_CONTAINERS + 1), number)
    before = asked.times
    asked.answers("c", 0)
    assert asked.times == before


def test_all_are_forgotten_on_demand() -> None:
    asked = Asked()
    for text in ("c", "c" * (FEW_CONTAINERS + 1)) * 2:
        asked.answers(text, 0)
    assert asked.times == 2
    asked.answers.cache_clear()
    for text in ("c", "c" * (FEW_CONTAINERS + 1)):
        asked.answers(text, 0)
    assert asked.times == 4
