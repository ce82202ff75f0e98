"""Quota for all who wait, at once: who they are, and what is reported."""

import pytest

from core import names
from hack.bench import lifts
from hack.bench.__main__ import BENCHMARKS
from hack.bench.lifts import Seen


def test_as_many_have_a_gate_of_somebody_else_as_wait_for_quota() -> None:
    pods = [pod.build() for pod in lifts.made(20)]
    gates = [[gate["name"] for gate in pod["spec"]["schedulingGates"]] for pod in pods]
    assert len({pod["metadata"]["name"] for pod in pods}) == 40
    assert gates[:20] == [[names.GATE]] * 20
    assert all(names.GATE not in each for each in gates[20:])
    assert len({pod["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION] for pod in pods[:20]}) == 10


@pytest.mark.parametrize(("lifted_s", "reached"), [(20.0, True), (20.1, False)])
def test_a_hundred_and_fifty_each_second_have_to_be_reached(lifted_s: float, *, reached: bool) -> None:
    seen = Seen(pods=3000, lifted_s=lifted_s, bare_s=10.0, cpu_s=6.0)
    rate, effort = lifts.rows(seen, 1.0)
    assert rate.reached is reached
    assert rate.floor == pytest.approx(300.0)
    assert effort.figure == pytest.approx(2.0)
    assert [row.reached for row in lifts.rows(seen, 0.1)] == [None, None]


def test_it_is_part_of_everything() -> None:
    assert "lifts" in BENCHMARKS
