"""Kueue's shape: which pods come when, the least that they can take, and what is reported."""

from pathlib import Path

import pytest

from hack.bench import arrivals, cohort, shape, unaided
from hack.bench.__main__ import BENCHMARKS, ON_DEMAND
from hack.bench.cohort import Seen, Spent
from hack.bench.shape import Birth
from hack.bench.unaided import Unaided

WITHOUT = Unaided(wall_s=70.0, cpu_s=2.0)


def test_the_shape_is_the_published_one() -> None:
    born = shape.births(1)
    assert len(born) == 6 * (350 + 100 + 50)
    assert born == sorted(born)
    assert len({birth.name for birth in born}) == len(born)
    assert max(birth.at_s for birth in born) == pytest.approx(49 * 1.2)
    assert sum(birth.kind.cards for birth in born) == 6 * (350 + 500 + 1000)
    assert [kind.priority for kind in shape.CLASSES] == [50, 100, 200]


def test_all_cohorts_are_the_same_pods_for_five_times_as_many_queues() -> None:
    born = shape.births(1, shape.COHORTS)
    assert len(born) == 15_000
    assert {birth.queue for birth in born} == set(range(30))
    (end_s, waits), (one_s, one_waits) = shape.ideal(born), shape.ideal(shape.births(1))
    assert end_s == pytest.approx(one_s)
    assert waits == pytest.approx(one_waits)


def test_all_cohorts_are_run_only_where_they_are_named() -> None:
    assert "cohorts" in ON_DEMAND
    assert "cohorts" not in BENCHMARKS


def test_the_time_of_all_cohorts_is_not_judged() -> None:
    waits = {"small": 0.0, "medium": 1.0, "large": 2.0}
    found = cohort.rows("cohorts", seen(0.6), (60.0, waits), WITHOUT, 1, wall=None)
    assert found[0].what == "100 pods: from the first to the end of the last"
    assert found[0].reached is None


def test_without_anything_in_the_way_only_quota_is_waited_for() -> None:
    """Two large pods take all quota of their queue one after the other; another queue does not wait."""
    end_s, waits = shape.ideal([Birth(0.0, 0, 2, 0), Birth(0.2, 0, 2, 1), Birth(0.2, 1, 0, 0)])
    assert end_s == pytest.approx(2.0)
    assert waits["large"] == pytest.approx(0.4)
    assert waits["small"] == 0


def test_the_least_that_the_shape_takes_is_its_load_over_its_quota() -> None:
    """Card-seconds over cards; nobody with a smaller ask keeps the first in line from its cards."""
    end_s, waits = shape.ideal(shape.births(1))
    assert end_s == pytest.approx((350 * 0.2 + 100 * 5 * 0.5 + 50 * 20 * 1.0) / 20, abs=0.5)
    assert waits["large"] < waits["medium"] < waits["small"]


def seen(cpu_s: float) -> Seen:
    waits = {"small": 1.0, "medium": 2.0, "large": 3.0}
    return Seen(
        pods=100,
        wall_s=79.0,
        leader=Spent(cpu_s, 100.0),
        webhook=Spent(0.1, 90.0),
        machine_cpu_s=3.0,
        programs_cpu_s={"etcd": 0.5},
        read_s=0.01,
        events=150,
        patches=100,
        requests={},
        admitted_s=waits,
    )


def test_what_the_leader_spends_on_each_pod_is_judged() -> None:
    waits = {"small": 0.0, "medium": 1.0, "large": 2.0}
    found = cohort.rows("cohort", seen(0.6), (60.0, waits), WITHOUT, 1)
    rows = {row.what.removeprefix("100 pods: "): row for row in found}
    assert rows["leader's processor time for each"].figure == pytest.approx(6)
    assert {what for what, row in rows.items() if row.reached is not None} == {
        "from the first to the end of the last",
        "leader's processor time for each",
        "patches of pods for each",
        "events for each",
    }
    assert [what for what, row in rows.items() if row.reached is False] == [
        "leader's processor time for each"
    ]
    assert rows["processor time of all programs of the machine for each"].figure == pytest.approx(30)
    assert rows["processor time of all programs of the machine for each"].floor == pytest.approx(7)
    assert rows["processor time of etcd for each"].figure == pytest.approx(5)
    smaller = cohort.rows("cohort", seen(0.6), (60.0, waits), WITHOUT, 0.1)
    assert all(row.reached is None for row in smaller)


def test_what_the_same_pods_take_without_us_stands_beside_time_and_processor_time() -> None:
    waits = {"small": 0.0, "medium": 1.0, "large": 2.0}
    found = {row.what: row for row in cohort.rows("cohort", seen(0.6), (60.0, waits), WITHOUT, 1)}
    time = found["100 pods: all that time, beside kube-scheduler alone"]
    assert (time.figure, time.floor) == (79.0, 70.0)
    effort = found["100 pods: processor time of the whole machine for each"]
    assert effort.figure == pytest.approx(30)
    assert effort.floor == pytest.approx(20)


def test_without_us_a_pod_asks_for_the_same_cards_on_the_node_of_its_queue() -> None:
    birth = Birth(0.0, 3, 1, 7)
    ours, theirs = arrivals.in_queue(birth), unaided.on_its_node(birth)
    assert theirs["spec"].pop("nodeSelector") == {"hack.cardquota.io/queue": "3"}
    assert theirs["spec"] == ours["spec"]
    assert set(theirs["metadata"]["annotations"]) < set(ours["metadata"]["annotations"])


def test_lifts_are_read_off_the_log(tmp_path: Path) -> None:
    log = tmp_path / "controller.log"
    log.write_text(
        '{"time":"2024-01-01T00:00:01.500Z","message":"lifted","pod":"cohort/small-0-1"}\n'
        '{"time":"2024-01-01T00:00:02.000Z","message":"deciding"}\n'
    )
    assert dict(cohort.lifts(log)) == {"small-0-1": 1704067201.5}
