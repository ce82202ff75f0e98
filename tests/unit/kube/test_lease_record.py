"""What is written into the Lease: who holds it since when, and what of others is kept."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kube.lease_record import held

FIRST, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
AT_FIRST, AT_LATER = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:05:00.000000Z"


def lease(before: dict[str, Any] | None, holder: str, now: datetime, **annotations: str) -> dict[str, Any]:
    return held(before, "cardquota", holder=holder, epoch=3, annotations=annotations, lease_s=14.2, now=now)


@pytest.mark.parametrize(
    ("next_holder", "acquired"), [("one", AT_FIRST), ("two", AT_LATER), ("", AT_FIRST)], ids=repr
)
def test_it_is_acquired_when_its_holder_changes_and_renewed_each_time(
    next_holder: str, acquired: str
) -> None:
    """Who gives it back does not acquire it."""
    spec = lease(lease(None, "one", FIRST), next_holder, LATER)["spec"]
    assert (spec["acquireTime"], spec["renewTime"]) == (acquired, AT_LATER)


def test_a_free_one_that_was_never_held_has_not_been_acquired() -> None:
    assert "acquireTime" not in lease(None, "", FIRST)["spec"]


def test_a_part_of_a_second_is_promised_as_a_whole_one() -> None:
    assert lease(None, "one", FIRST)["spec"]["leaseDurationSeconds"] == 15


def test_annotations_of_others_are_kept_and_our_own_are_those_that_are_given() -> None:
    before = lease(None, "one", FIRST, **{"cardquota.io/old": "1"})
    before["metadata"]["annotations"]["example.com/theirs"] = "2"
    before["metadata"] |= {"resourceVersion": "7", "managedFields": [{}]}
    metadata = lease(before, "one", LATER, **{"cardquota.io/new": "3"})["metadata"]
    assert metadata["annotations"] == {"example.com/theirs": "2", "cardquota.io/new": "3"}
    assert metadata["resourceVersion"] == "7"
    assert "managedFields" not in metadata
