"""A sharded dictionary is a dictionary without order, and none of its parts is ever large."""

from hypothesis import given
from hypothesis import strategies as st

from core.sharded import SHARDS, Sharded

KEYS = st.sampled_from([f"k{number}" for number in range(30)])


@given(st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 3)))))
def test_it_has_what_a_dictionary_has(changes: list[tuple[str, int | None]]) -> None:
    """None takes out."""
    found, model = Sharded[int](), dict[str, int]()
    for key, value in changes:
        if value is None:
            assert found.pop(key) == model.pop(key, None)
        else:
            found[key] = model[key] = value
        assert len(found) == len(model)
        assert (key in found, found.get(key), found.shard(key).get(key)) == (
            key in model,
            model.get(key),
            model.get(key),
        )
    assert {key: found[key] for key in model} == model


def test_no_shard_has_many_more_than_its_part() -> None:
    found = Sharded[int]()
    for number in range(64_000):
        found[f"uid-{number}"] = number
    assert max(len(found.shard(f"uid-{number}")) for number in range(64_000)) < 2 * 64_000 / SHARDS
