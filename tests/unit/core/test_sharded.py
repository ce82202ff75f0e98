"""A sharded dictionary is a dictionary without order, and none of its parts is ever large."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import sharded
from core.sharded import SHARDS, WHOLE, Sharded

KEYS = st.sampled_from([f"k{number}" for number in range(30)])


@given(st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 3)))), st.integers(0, 10))
def test_it_has_what_a_dictionary_has(changes: list[tuple[str, int | None]], whole: int) -> None:
    """None takes out. Whether it has been dealt out yet makes no difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharded, "WHOLE", whole)
        found, model = Sharded[int](), dict[str, int]()
        for key, value in changes:
            if value is None:
                assert found.pop(key) == model.pop(key, None)
            else:
                found[key] = model[key] = value
            assert len(found) == len(model)
            assert (key in found, found.get(key)) == (key in model, model.get(key))
        assert {key: found[key] for key in model} == model


@pytest.mark.parametrize("keys", [0, 1, WHOLE, WHOLE + 1, 64_000])
def test_no_shard_has_many_more_than_its_part(keys: int) -> None:
    found = Sharded[int]()
    for number in range(keys):
        found[f"uid-{number}"] = number
    most = max(map(len, found._shards))
    assert most == keys if keys <= WHOLE else most < 2 * keys / SHARDS + 20
    assert [found[f"uid-{number}"] for number in range(keys)] == [*range(keys)]
