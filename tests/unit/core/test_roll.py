"""A roll is an ordered set, whatever comes and goes, and none of its pieces is ever large."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import roll
from core.roll import Roll

NAMES = [f"n{number}" for number in range(40)]


@given(st.lists(st.sampled_from(NAMES), max_size=200), st.integers(1, 5))
def test_a_roll_is_a_dictionary_without_values(named: list[str], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roll, "PIECE", piece)
        found, model = Roll(), dict[str, None]()
        for name in named:
            if name in model:
                del model[name]
                found.discard(name)
            else:
                model[name] = None
                found.add(name)
            assert [*found] == [*model]
            assert (len(found), bool(found)) == (len(model), bool(model))
            assert [name in found for name in NAMES] == [name in model for name in NAMES]


@pytest.mark.parametrize("had", [0, 2, 3, 4, 7])
@pytest.mark.parametrize("come", [0, 1, 3, 4, 9])
def test_many_come_as_if_one_by_one(monkeypatch: pytest.MonkeyPatch, had: int, come: int) -> None:
    monkeypatch.setattr(roll, "PIECE", 4)
    together, singly = Roll(), Roll()
    for name in NAMES[:had]:
        together.add(name)
    together.extend(NAMES[had : had + come])
    for name in NAMES[: had + come]:
        singly.add(name)
    assert together._pieces == singly._pieces


def test_one_who_is_not_there_is_taken_out_in_vain() -> None:
    found = Roll()
    found.add("a")
    found.discard("b")
    assert [*found] == ["a"]


@pytest.mark.parametrize("left", [0, 1, 100, 1000, 3000])
def test_no_piece_is_large_and_they_close_up_when_most_have_left(
    monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """Else one that lives long in each of them would make everybody's change slower, for ever."""
    monkeypatch.setattr(roll, "PIECE", 64)
    found, named = Roll(), [f"n{number}" for number in range(4000)]
    for name in named:
        found.add(name)
    Random(1).shuffle(named)
    for name in named[left:]:
        found.discard(name)
    assert len(found) == left
    assert max(len(piece) for piece in found._pieces) <= 64
    assert len(found._pieces) <= 1 + 4 * left / 64
