"""What is written down of usage over time: it fits, and what cannot be read is told."""

import json

import pytest

from core.steps import finish
from core.usage import checkpoint, courses
from core.usage import tally as tally_module
from core.usage.checkpoint import (
    Checkpoint,
    CheckpointError,
    Listed,
    Scribe,
    UnknownVersionError,
    Written,
    decode,
)
from core.usage.course import Sight
from core.usage.courses import Courses
from core.usage.sums import DAY_S, Series, What
from core.usage.tally import KEPT_DAYS, OTHER, SERIES_MOST, Tally

NOW = 20_770 * DAY_S
MIB = 1 << 20
NOBODY = Listed(b"", b"", b"", partial=False)


def series(number: int) -> Series:
    return Series(
        f"queue-of-a-team-{number:05}", "NVIDIA-H200-141GB", f"namespace-of-a-team-{number:05}", "online"
    )


def test_the_largest_that_there_can_be_fits_into_a_config_map() -> None:
    """Every series of every day, and as many pods as are named: old days lose themselves, totals do not."""
    tally = Tally.new(NOW)
    for number in range(SERIES_MOST):
        tally.go_on(series(number), What.USED, 8000, NOW)
        tally.go_on(series(number), What.WAITED, 8000, NOW)
    tally.cut(NOW + 2 * KEPT_DAYS * DAY_S)
    digests = bytes(checkpoint.DIGEST_BYTES * courses.LISTED_MOST)
    written = Scribe().write(tally, Listed(b"", digests, b"", partial=True))
    size = sum(len(text.encode()) for text in written.data.values()) + len(digests)
    assert 0.9 * written.size < size <= written.size + 1000 < MIB
    read = decode(written.data, written.binary)
    assert read is not None
    assert read.sums.total == tally.sums.total
    assert 1 <= len(read.sums.days) < KEPT_DAYS


def test_the_longest_names_that_there_can_be_fit_as_well() -> None:
    """Beyond what fits they are counted with others. Whoever creates pods may choose them."""
    tally = Tally.new(NOW)
    for number in range(SERIES_MOST):
        made_up = Series(f"{number:05}" + "卡" * 248, f"{number:05}" + '"' * 248, "n" * 253, "offline")
        tally.go_on(tally.admitted(made_up), What.WAITED, 10**9, NOW)
    tally.cut(NOW + 2 * KEPT_DAYS * DAY_S)
    written = Scribe().write(tally, NOBODY)
    assert sum(len(text.encode()) for text in written.data.values()) < checkpoint.SUMS_MOST
    read = decode(written.data, written.binary)
    assert read is not None
    assert len(read.sums.days) == KEPT_DAYS - 1, "the last one has just begun"
    others = Series(OTHER, OTHER, OTHER, "offline")
    assert 100 < len(read.sums.total) < SERIES_MOST
    assert sum(total[What.WAITED] for total in read.sums.total.values()) == (
        SERIES_MOST * 10**9 * 2 * KEPT_DAYS * DAY_S
    )
    assert read.sums.total[others][What.WAITED] > 0
    assert read.sums.names_size == tally.sums.names_size


def test_larger_names_than_fit_are_read_and_only_new_ones_are_counted_with_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An earlier version has written them down."""
    before = Tally.new(NOW)
    for number in range(3):
        before.go_on(before.admitted(series(number)), What.USED, 1000, NOW)
    before.cut(NOW + 60)
    written = Scribe().write(before, NOBODY)
    monkeypatch.setattr(tally_module, "NAMES_MOST", 50)
    found = decode(written.data, written.binary)
    assert found is not None
    tally = found.tally()
    assert [tally.admitted(series(number)).queue for number in (0, 2, 3)] == [
        series(0).queue,
        series(2).queue,
        OTHER,
    ]


def test_whoever_comes_when_there_are_too_many_is_counted_with_others() -> None:
    tally = Tally.new(NOW)
    for number in range(SERIES_MOST):
        tally.go_on(tally.admitted(series(number)), What.USED, 1, NOW)
    assert tally.admitted(series(5)) == series(5)
    assert tally.admitted(series(SERIES_MOST)) == Series(OTHER, OTHER, OTHER, "online")
    assert tally.admitted(Series("q" * 300, "A", "", "")) == Series(OTHER, OTHER, "", "")


def test_a_series_without_any_day_makes_room() -> None:
    tally = Tally.new(NOW)
    tally.go_on(series(1), What.USED, 1000, NOW)
    tally.go_on(series(2), What.USED, 1000, NOW)
    tally.go_on(series(1), What.USED, -1000, NOW + 60)
    tally.cut(NOW + (KEPT_DAYS - 1) * DAY_S)
    assert set(tally.series()) == {series(1), series(2)}
    tally.cut(NOW + KEPT_DAYS * DAY_S)
    assert set(tally.series()) == {series(2)}
    assert tally.sums.names_size == len(series(2).written())


def test_only_days_that_changed_are_written_anew() -> None:
    """And what is taken over is what it was."""
    tally, scribe = Tally.new(NOW), Scribe()
    tally.go_on(series(1), What.USED, 1000, NOW)
    tally.cut(NOW + 2 * DAY_S + 5)
    first = scribe.write(tally, NOBODY)
    tally.cut(NOW + 2 * DAY_S + 9)
    assert tally.sums.touched == {NOW // DAY_S + 2}
    second = scribe.write(tally, NOBODY)
    assert second.data == Scribe().write(tally, NOBODY).data
    assert [key for key in first.data if first.data[key] != second.data[key]] == [
        "usage.json",
        "2026-11-15.json",
    ]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("usage.json", "{"),
        ("usage.json", "[]"),
        ("series.json", '[["q"]]'),
        ("before.json", '{"7": [1, 2, 3]}'),
        ("before.json", '{"0": [1, 2]}'),
        ("before.json", '{"0": [1, 2, true]}'),
        ("yesterday.json", "{}"),
        ("1999-01-01.json", "{}"),
    ],
)
def test_what_cannot_be_read_is_told(key: str, text: str) -> None:
    tally = Tally.new(NOW)
    tally.go_on(series(1), What.USED, 1000, NOW)
    written = Scribe().write(tally, NOBODY)
    with pytest.raises(CheckpointError, match=key):
        decode({**written.data, key: text}, written.binary)


def with_head(written: Written, **changed: int) -> Checkpoint | None:
    """As a hand has changed it."""
    head = json.loads(written.data["usage.json"]) | changed
    return decode({**written.data, "usage.json": json.dumps(head)}, written.binary)


@pytest.mark.parametrize("key", ["began", "through", "firstDay"])
@pytest.mark.parametrize("value", [-DAY_S, NOW * 1000, 10**40])
def test_a_moment_that_makes_no_sense_is_told(key: str, value: int) -> None:
    """In milliseconds for instance."""
    written = Scribe().write(Tally.new(NOW), NOBODY)
    with pytest.raises(CheckpointError, match=rf"usage.json: {key} {value} makes no sense"):
        with_head(written, **{key: value})


@pytest.mark.parametrize(
    "changed",
    [
        {"through": 0},
        {"through": 0, "firstDay": 0},
        {"firstDay": 0},
        {"through": 253_402_300_799},
    ],
)
def test_a_moment_that_is_far_away_takes_no_longer_than_another(changed: dict[str, int]) -> None:
    """Days are not gone through one by one until then, neither with the pods that go on nor with the next write."""
    replica = Courses()
    for number in range(3):
        replica.see(f"pod-{number}", Sight(((series(number), 1000),), NOW, NOW, None), NOW)
    finish(replica.begin(None, NOW))
    assert replica.tally is not None
    replica.tally.cut(NOW + DAY_S)
    found = with_head(Scribe().write(replica.tally, replica.listed(NOW + DAY_S)), **changed)
    replica.see("pod-3", Sight(((series(3), 1000),), NOW + 3, NOW + 3, None), NOW + 9)
    finish(replica.begin(found, NOW + DAY_S + 60))
    assert replica.tally is not None
    replica.tally.cut(NOW + DAY_S + 120)
    assert len(replica.tally.sums.days) <= 2 * KEPT_DAYS
    written = Scribe().write(replica.tally, NOBODY)
    assert decode(written.data, written.binary) is not None


def test_lists_that_cannot_be_read_and_versions_that_are_not_known() -> None:
    written = Scribe().write(Tally.new(NOW), NOBODY)
    for text in ("AAAA", "no base64"):
        with pytest.raises(CheckpointError, match="using"):
            decode(written.data, {"using": text})
    with pytest.raises(UnknownVersionError, match="version 2"):
        decode({**written.data, "usage.json": json.dumps({"version": 2})}, {})
    assert decode({}, {}) is None


def test_more_pods_than_are_named_are_counted_once_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that began first are not named, and taken for known."""
    monkeypatch.setattr(courses, "LISTED_MOST", 2)
    first, second = Courses(), Courses()
    finish(first.begin(None, NOW))
    for replica in (first, second):
        for number in range(6):
            replica.see(
                f"pod-{number}", Sight(((series(1), 1000),), NOW + number, NOW + number, None), NOW + 9
            )
    assert first.tally is not None
    first.tally.cut(NOW + 100)
    written = Scribe().write(first.tally, first.listed(NOW + 100))
    assert len(written.binary) == 1
    finish(second.begin(decode(written.data, written.binary), NOW + 200))
    assert second.tally is not None
    for replica in (first, second):
        assert replica.tally is not None
        assert replica.tally.now(series(1), What.USED, NOW + 300) == 1000 * sum(300 - n for n in range(6))
