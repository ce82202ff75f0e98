from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kube.backoff import Backoff


@given(seed=st.integers(), count=st.integers(1, 40))
def test_delays_stay_within_their_bounds_and_start_over(seed: int, count: int) -> None:
    """Never below the base, never above the cap, near the base again after a reset."""
    backoff = Backoff(Random(seed), base_s=0.8, cap_s=30.0)
    delays = [backoff.next_delay() for _ in range(count)]
    assert all(0.8 <= delay <= 30.0 for delay in delays)
    assert all(delay >= 15.0 for delay in delays[6:])
    backoff.reset()
    assert backoff.next_delay() <= 1.6
