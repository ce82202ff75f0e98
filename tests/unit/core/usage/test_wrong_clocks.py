"""A leader whose clock is ahead or behind: the sums come right by themselves, and days are told apart again from the next one on."""

import pytest

from core.usage.checkpoint import Checkpoint, Listed, Scribe, decode
from core.usage.report import of_checkpoint
from core.usage.sums import DAY_S, Series, What
from core.usage.tally import KEPT_DAYS, Tally

NOW = 20_770 * DAY_S
YEAR = 365
CARD = Series("q", "A", "team", "online")
QUOTA = Series("q", "A", "", "")
NOBODY = Listed(b"", b"", b"", partial=False)


def at(day: float) -> int:
    return NOW + round(day * DAY_S)


def written(tally: Tally, scribe: Scribe | None = None) -> Checkpoint:
    data = (scribe or Scribe()).write(tally, NOBODY)
    found = decode(data.data, data.binary)
    assert found is not None
    return found


def taken_over(tally: Tally, cards: int = 1) -> Tally:
    """By the next leader, which sees the same pod."""
    found = written(tally).tally()
    found.go_on(CARD, What.USED, 1000, found.through)
    found.go_on(QUOTA, What.QUOTA, 1000 * cards, found.through)
    return found


def a_month(cards: int = 1) -> Tally:
    """A card in use for thirty days."""
    tally = Tally.new(NOW)
    tally.go_on(CARD, What.USED, 1000, NOW)
    tally.go_on(QUOTA, What.QUOTA, 1000 * cards, NOW)
    tally.cut(at(30))
    return tally


def days_of(checkpoint: Checkpoint, days: float, what: What = What.USED) -> float:
    """Card-days, as a report has them."""
    account = of_checkpoint(checkpoint, round(days * DAY_S))
    return sum(amounts[what] for amounts in account.sums.values()) / 1000 / DAY_S


@pytest.mark.parametrize("ahead", [1, 20, YEAR, 7000 * YEAR])
def test_a_clock_that_was_ahead_for_one_write_does_not_spoil_the_days_that_follow(ahead: int) -> None:
    tally = taken_over(a_month())
    tally.cut(at(30 + ahead))
    tally = taken_over(tally)
    for hour in range(1, 24 * 10 + 1):
        tally.cut(at(30 + hour / 24))
    found = written(tally)
    assert days_of(found, 100) == 40
    assert days_of(found, 2) == 2
    assert days_of(found, 9) == 9
    assert len(found.sums.days) <= KEPT_DAYS + 1


def test_until_the_next_day_all_there_is_is_reported() -> None:
    """From when it began: no more is known of these days, and it is not said to be."""
    tally = taken_over(a_month())
    tally.cut(at(30 + YEAR))
    tally = taken_over(tally)
    tally.cut(at(30.25))
    account = of_checkpoint(written(tally), 3_600)
    assert (account.start, account.end) == (NOW, at(30.25))
    assert days_of(written(tally), 0) == 30.25


def test_a_clock_that_is_put_right_while_its_process_leads() -> None:
    """It writes what another one would write, whatever it had written of the days to come."""
    tally, scribe = a_month(), Scribe()
    written(tally, scribe)
    tally.cut(at(30 + YEAR))
    written(tally, scribe)
    for day in (30.5, 31, 33):
        tally.cut(at(day))
        data = scribe.write(tally, NOBODY).data
        assert {key: len(text) for key, text in data.items()} == {
            key: len(text) for key, text in Scribe().write(tally, NOBODY).data.items()
        }
    assert days_of(written(tally, scribe), 1.5) == 2
    assert days_of(written(tally, scribe), 99) == 33


def test_quota_that_was_changed_meanwhile_does_not_stay_in_later_days() -> None:
    """It counts as if it had been changed at the last write, which was in a year."""
    tally = taken_over(a_month(cards=8), cards=8)
    tally.cut(at(30 + YEAR))
    tally = taken_over(tally, cards=2)
    tally.cut(at(30.5))
    tally.cut(at(35))
    assert days_of(written(tally), 2, What.QUOTA) == 2 * 2


@pytest.mark.parametrize("behind", [1, 20, YEAR])
def test_a_clock_that_was_behind_for_one_write_costs_no_day(behind: int) -> None:
    tally = taken_over(a_month())
    tally.cut(at(30 - behind))
    tally = taken_over(tally)
    tally.cut(at(31))
    found = written(tally)
    assert [days_of(found, days) for days in (1, 12, 30, 99)] == [1, 12, 30, 31]
