"""A sharded dictionary is a dictionary, without order where it is large, and none of its parts ever is."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import sharded
from core.sharded import SHARDS, WHOLE, Sharded, in_parts, pieces, without_values

KEYS = st.sampled_from([f"k{number}" for number in range(30)])


def filled(count: int) -> tuple[Sharded[int], dict[str, int]]:
    found, model = Sharded[int](), {f"uid-{number}": number for number in range(count)}
    for key, value in model.items():
        found.add(key, value)
    return found, model


def alike(found: Sharded[int], model: dict[str, int]) -> bool:
    return (
        found == model
        and model == found
        and not (found != model or model != found)
        and (len(found), bool(found)) == (len(model), bool(model))
        and sorted(found) == sorted(found.keys()) == sorted(model)
        and sorted(found.values()) == sorted(model.values())
        and sorted(found.items()) == sorted(model.items())
        and dict(found) == {**found} == model
        and all(found[key] == found.get(key, -1) == model[key] for key in model)
    )


@given(st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 3)))), st.integers(0, 10))
def test_it_has_what_a_dictionary_has(changes: list[tuple[str, int | None]], whole: int) -> None:
    """None takes out. Whether it has been dealt out yet makes no difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharded, "WHOLE", whole)
        found, model = Sharded[int](), dict[str, int]()
        for key, value in changes:
            if value is None:
                assert found.pop(key, -1) == model.pop(key, -1)
            else:
                found.add(key, value)
                model[key] = value
            assert (key in found, found.get(key)) == (key in model, model.get(key))
            assert alike(found, model)


@pytest.mark.parametrize("keys", [0, 1, WHOLE, WHOLE + 1, 64_000])
def test_no_part_has_many_more_than_its_part(keys: int) -> None:
    found, model = filled(keys)
    assert alike(found, model)
    if keys <= WHOLE:
        assert list(found) == list(model), "as a small one it keeps its order"
        assert dict.__len__(found) == keys
    else:
        assert dict.__len__(found) == 0
        assert max(map(len, found._shards)) < 2 * keys / SHARDS + 20


@pytest.mark.parametrize("keys", [0, 10, WHOLE, WHOLE + 1])
@pytest.mark.parametrize("come", [0, 1, 100])
def test_many_come_as_if_one_by_one(keys: int, come: int) -> None:
    found, model = filled(keys)
    more = {f"uid-{number}": -number for number in range(keys - 5, keys + come)}
    found.add_all(more)
    assert alike(found, model | more)
    assert (dict.__len__(found) == 0) == (len(model | more) > WHOLE or not model | more)


@pytest.mark.parametrize("keys", [3, WHOLE + 1])
def test_each_method_does_what_that_of_a_dictionary_does(keys: int) -> None:
    found, model = filled(keys)
    for each in (found, model):
        each["uid-0"] = 7
        del each["uid-1"]
        each.update({"uid-2": 8}, new=9)
        assert (each.setdefault("uid-0", 1), each.setdefault("newer", 2)) == (7, 2)
        with pytest.raises(KeyError):
            each["gone"]
        with pytest.raises(KeyError):
            each.pop("gone")
        with pytest.raises(KeyError):
            del each["gone"]
    assert alike(found, model)
    assert type(found.copy()) is dict
    assert found.copy() == model
    keys_alone = without_values(found)
    assert keys_alone == dict.fromkeys(model)
    keys_alone["another"] = None
    assert alike(found, model)
    assert eval(repr(found)) == model
    key, value = found.popitem()
    assert model.pop(key) == value
    assert alike(found, model)
    found.clear()
    assert alike(found, {})
    found.add("uid-0", 1)
    assert alike(found, {"uid-0": 1})
    with pytest.raises(KeyError):
        filled(0)[0].popitem()


@pytest.mark.parametrize("keys", [2, WHOLE, WHOLE + 1])
def test_what_is_not_there_is_made_once(keys: int) -> None:
    found, model = filled(keys)
    made = list[int]()

    def make() -> int:
        made.append(-1)
        return -1

    assert [found.opened(key, make) for key in ("uid-0", "uid-1", "new", "new")] == [0, 1, -1, -1]
    assert made == [-1]
    assert alike(found, {**model, "new": -1})
    assert (dict.__len__(found) == 0) == (keys + 1 > WHOLE)


@pytest.mark.parametrize("keys", [0, WHOLE, WHOLE + 1, WHOLE + 500])
def test_a_dictionary_of_ones_own_is_dealt_out_when_it_is_too_large(keys: int) -> None:
    found, model = dict[str, int](), {f"uid-{number}": number for number in range(keys)}
    for key, value in model.items():
        found[key] = value
        found = in_parts(found)
    assert found == model
    assert (type(found) is dict) == (keys <= WHOLE)
    assert dict.__len__(found) == (keys if keys <= WHOLE else 0)


def test_a_large_one_has_nothing_of_the_dictionary_that_it_was() -> None:
    """It is an empty one: what it inherited would find nothing."""
    found, _ = filled(WHOLE + 1)
    harmless = {
        "__class__",
        "__new__",
        "__init__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__doc__",
    }
    harmless |= {
        "__sizeof__",
        "__class_getitem__",
        "fromkeys",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
    }
    own: Mapping[str, Any] = vars(type(found))
    assert {name for name in vars(dict) if name not in own} <= harmless
    for name in ("__or__", "__ror__", "__ior__"):
        assert own[name] is None, "nobody needs it"
    with pytest.raises(TypeError):
        found | {}
    with pytest.raises(TypeError):
        reversed(found)
    with pytest.raises(TypeError):
        hash(found)


@pytest.mark.parametrize("keys", [0, 1, WHOLE, WHOLE + 1, 3 * WHOLE])
def test_its_keys_come_in_pieces_each_once_whatever_comes_and_goes_meanwhile(keys: int) -> None:
    found, model = filled(keys)
    seen: list[str] = []
    for number, piece in enumerate(pieces(found)):
        assert len(piece) <= WHOLE
        seen += piece
        found.add(f"new-{number}", 0)
        if piece:
            del found[piece[0]]
    assert len(seen) == len(set(seen))
    assert set(seen) >= model.keys()
