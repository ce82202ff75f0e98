"""A month whose truth is known: what a report says of it, by what was written down and by what was scraped."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from core.names import MGPU_CORE
from core.usage.checkpoint import decode
from core.usage.report import Account, Row, of_checkpoint, of_samples, rows
from core.usage.sums import DAY_S, Series, What
from tests.property.usage_world import Object, Replica, Store, World

BEGAN = 20_770 * DAY_S
DAYS = 30
CARDS = [Series(queue, "A", f"team-{queue}", kind) for queue in ("p", "q") for kind in ("offline", "online")]
DEVICES = "deviceclass/gpu"
BESIDE = [
    (),
    (),
    ((Series("p", MGPU_CORE, "team-p", "online"), 350),),
    ((Series("q", MGPU_CORE, "team-q", "offline"), 10), (Series("q", DEVICES, "team-q", "offline"), 3000)),
]
"""What some pods have of shares and of claims."""
SERIES = [*CARDS, *(series for charge in BESIDE for series, _ in charge)]
QUOTA = {"p": {"A": 4000, MGPU_CORE: 2500}, "q": {"A": 6000, DEVICES: 8000}}
STEP_S = 300


def overlap(start: int, end: int, since: int, until: int) -> int:
    return max(0, min(end, until) - max(start, since))


@dataclass
class Month:
    """Two replicas that lead in turns for thirty days; one of them dies every few days. Quota changes once."""

    world: World
    store: Store
    scraped: dict[What, dict[Series, list[tuple[float, float]]]]

    def truth(self, what: What, series: Series, since: int, until: int) -> int:
        """Thousandths of a card times seconds within a time."""
        total = 0
        for pod in self.world.all.values():
            milli = dict(pod.charge).get(series, 0)
            if milli:
                end = pod.end() if pod.ended or pod.deleted else until
                start, stop = (
                    (pod.scheduled, end) if what is What.USED else (pod.created, pod.scheduled or end)
                )
                total += milli * overlap(start, stop, since, until) if start else 0
        return total


def changed(pod: Object) -> bool:
    return not pod.ended and not pod.deleted


@pytest.fixture(scope="module")
def month() -> Month:
    rng, world, store = Random(17), World(now=BEGAN), Store()
    lived = Month(world, store, {What.USED: {}, What.WAITED: {}})
    leader, standby = Replica(world), Replica(world)
    for replica in (leader, standby):
        for queue, quota in QUOTA.items():
            replica.courses.set_quota(queue, quota, world.now)
    store.begin(leader)
    for step in range(1, DAYS * DAY_S // STEP_S + 1):
        world.now = BEGAN + step * STEP_S
        _live(rng, world)
        leader.hear()
        standby.hear()
        if step % 3 == 0:
            assert store.write(leader)
        if step % 997 == 0:
            # The old leader dies; the standby goes on, and another process takes its place.
            leader = Replica(world)
            for queue, quota in QUOTA.items():
                leader.courses.set_quota(queue, quota, world.now)
            leader, standby = standby, leader
            store.begin(leader)
        _scrape(lived, leader)
    assert store.write(leader)
    return lived


def _live(rng: Random, world: World) -> None:
    if rng.random() < 0.1:
        world.create(rng.choice(CARDS), rng.choice(BESIDE))
    for pod in [*world.objects.values()]:
        if not changed(pod):
            world.remove(pod)
        elif not pod.scheduled and rng.random() < 0.05:
            world.bind(pod)
        elif pod.scheduled and rng.random() < 0.005:
            world.delete(pod)


def _scrape(month: Month, leader: Replica) -> None:
    tally, now = leader.courses.tally, month.world.now
    assert tally is not None
    for what, lines in month.scraped.items():
        for series in tally.series():
            if value := tally.now(series, what, now):
                lines.setdefault(series, []).append((float(now), value / 1000))


def by_series(account: Account, what: What) -> dict[Series, int]:
    return {series: amounts[what] for series, amounts in account.sums.items() if amounts[what]}


@pytest.mark.parametrize("days", [1, 7, 29])
def test_what_is_written_down_is_the_truth_of_these_days(month: Month, days: int) -> None:
    """To the second: the report begins with the day in which the time began."""
    written = decode(month.store.written.data, month.store.written.binary)
    assert written is not None
    account = of_checkpoint(written, days * DAY_S)
    until = BEGAN + DAYS * DAY_S
    assert (account.start, account.end) == (until - days * DAY_S, until)
    for what in (What.USED, What.WAITED):
        expected = {series: month.truth(what, series, account.start, until) for series in SERIES}
        assert by_series(account, what) == expected
        assert min(expected.values()) > 0
    assert by_series(account, What.QUOTA) == {
        Series(queue, key, "", ""): amount * days * DAY_S
        for queue, quota in QUOTA.items()
        for key, amount in quota.items()
    }


def test_what_was_scraped_says_the_same_whoever_led(month: Month) -> None:
    """Counters go on from leader to leader; what a report makes of them differs by nothing that was counted."""
    until = BEGAN + DAYS * DAY_S
    since = until - 7 * DAY_S
    lines = {
        what: [
            (series, [point for point in points if point[0] >= since]) for series, points in scraped.items()
        ]
        for what, scraped in month.scraped.items()
    }
    account = of_samples(lines, since, until, STEP_S)
    for what in (What.USED, What.WAITED):
        assert by_series(account, what) == {s: month.truth(what, s, since, until) for s in SERIES}


def test_longer_than_it_was_kept_is_all_there_is(month: Month) -> None:
    written = decode(month.store.written.data, month.store.written.binary)
    assert written is not None
    account = of_checkpoint(written, 365 * DAY_S)
    assert account.start == BEGAN
    assert by_series(account, What.USED) == {
        series: month.truth(What.USED, series, 0, account.end) for series in SERIES
    }


def sums() -> Iterator[tuple[Series, list[int]]]:
    yield Series("q", "A", "n1", "online"), [3000, 500, 0]
    yield Series("q", "A", "n2", "offline"), [1000, 0, 0]
    yield Series("q", "B", "n2", "offline"), [100, 0, 0]
    yield Series("q", "A", "", ""), [0, 0, 8000]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("queue", [Row(("q", "A"), 4000, 500, 8000), Row(("q", "B"), 100, 0, 0)]),
        ("card", [Row(("A",), 4000, 500, 8000), Row(("B",), 100, 0, 0)]),
        (
            "namespace",
            [
                Row(("n1", "A"), 3000, 500, None),
                Row(("n2", "A"), 1000, 0, None),
                Row(("n2", "B"), 100, 0, None),
            ],
        ),
    ],
)
def test_rows(by: str, expected: list[Row]) -> None:
    found = rows(Account(0, 10, dict(sums())), by)
    assert found == expected
    assert [row.share for row in found] == [0.5 if row.quota else None for row in expected]


def test_a_counter_that_begins_anew_or_later_and_a_quota_that_stands() -> None:
    one, two, quota = (
        Series("q", "A", "n", "online"),
        Series("r", "A", "n", "online"),
        Series("q", "A", "", ""),
    )
    account = of_samples(
        {
            What.USED: [
                (one, [(0, 100.0), (60, 160.0), (120, 20.0)]),
                (two, [(60, 30.0), (120, 90.0)]),
            ],
            # The first that waits, when others ran already.
            What.WAITED: [(one, [(60, 5.0), (120, 6.0)])],
            # Nobody led between 120 and 600.
            What.QUOTA: [(quota, [(0, 2.0), (60, 2.0), (120, 4.0), (600, 4.0)])],
        },
        0,
        600,
        60,
    )
    assert account.sums == {one: [80_000, 6_000, 0], two: [90_000, 0, 0], quota: [0, 0, 480_000]}
