"""States of many counters are equal exactly when their fingerprints are."""

from hypothesis import given
from hypothesis import strategies as st

from core.plan.fingerprint import Fingerprint
from tests.fakes.counted import calls_of

PLACES = 5


@given(st.lists(st.tuples(st.integers(0, PLACES - 1), st.sampled_from([None, 1, 2])), max_size=40))
def test_states_are_equal_exactly_when_their_fingerprints_are(puts: list[tuple[int, int | None]]) -> None:
    fingerprint = Fingerprint(PLACES)
    state: list[int | None] = [None] * PLACES
    seen = {tuple(state): fingerprint.value}
    for place, what in puts:
        fingerprint.put(place, what)
        state[place] = what
        assert seen.setdefault(tuple(state), fingerprint.value) == fingerprint.value
    assert len(set(seen.values())) == len(seen)


def test_a_change_costs_the_logarithm_of_the_number_of_places() -> None:
    few, many = (Fingerprint(places) for places in (2**6, 2**12))
    assert calls_of(lambda: many.put(7, 1)) <= 2 * calls_of(lambda: few.put(7, 1))
