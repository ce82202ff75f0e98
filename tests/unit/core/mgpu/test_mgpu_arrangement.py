"""Cards for several pods at once, beginning with what is kept of a former answer."""

from core.mgpu.arrangement import arranged
from tests.unit.core.mgpu.cases import a_model, a_state, an_ask

MODEL = a_model(2)
IDLE = a_state((100, 10_000), (100, 10_000))
A, B, C = an_ask((1, 60, 1000)), an_ask((1, 40, 1000)), an_ask((1, 50, 1000))


def test_without_kept_places_one_is_placed_after_the_other() -> None:
    found = arranged({"a": A, "b": B}, MODEL, IDLE, cap=16, places={})
    assert found == {"a": {"c0": (0,)}, "b": {"c0": (0,)}}


def test_kept_places_are_taken_first_and_the_others_find_theirs_beside_them() -> None:
    found = arranged({"c": C, "a": A, "b": B}, MODEL, IDLE, cap=16, places={"a": {"c0": (1,)}})
    assert found == {"a": {"c0": (1,)}, "c": {"c0": (0,)}, "b": {"c0": (1,)}}


def test_a_kept_place_that_is_not_free_any_more_is_not_taken() -> None:
    for lost in ({"c0": (1,)}, {"c0": (7,)}, {"c0": ()}, {}):
        state = a_state((100, 10_000), (50, 9000))
        assert arranged({"a": A}, MODEL, state, cap=16, places={"a": lost}) == {"a": {"c0": (0,)}}
    whole = an_ask((1, 100, None))
    used = a_state((100, 10_000), (90, 9000))
    assert arranged({"w": whole}, MODEL, used, cap=16, places={"w": {"c0": (1,)}}) == {"w": {"c0": (0,)}}
    full = a_state((100, 10_000, 0), (90, 9000, 1))
    assert arranged({"a": B}, MODEL, full, cap=1, places={"a": {"c0": (1,)}}) == {"a": {"c0": (0,)}}


def test_all_are_arranged_anew_where_the_next_one_has_no_room_beside_them() -> None:
    asks = {"b": B, "c": C, "a": A, "d": C}
    found = arranged(asks, MODEL, IDLE, cap=16, places={})
    assert found is not None
    assert found["a"] == found["b"] != found["c"] == found["d"]
    assert arranged({**asks, "e": B}, MODEL, IDLE, cap=16, places={}) is None
