"""What nobody could read off the objects any more is remembered for an hour, bounded, and never claimed from before it was seen."""

from collections.abc import Mapping

import pytest

from core.objects import Pod
from core.page.witness import HOUR_US, PODS, QUOTAS, Witness
from tests.builders import a_pod, a_queue

MADE = 1_800_000_000_000_000


class Seen:
    """A witness, its clock, and the quotas of queues as they are booked."""

    def __init__(self) -> None:
        self.now, self.listed = MADE, True
        self.booked: dict[str, Mapping[str, int]] = {}
        self.witness = Witness(
            lambda: self.now, lambda name: self.booked.get(name, {}), lambda _: "q", lambda: self.listed
        )

    def deletes(self, pod: Pod) -> None:
        self.now += 1
        self.witness.see_pod(pod, None)

    def gone(self) -> list[str]:
        return [one.key for one in self.witness.pods.of_hour(self.now)]

    def has_quota(self, quota: Mapping[str, int], *, new: bool = False) -> None:
        self.now += 1
        self.booked["q"] = quota
        queue = a_queue("q").created("2030-01-01T00:00:00Z" if new else "2020-01-01T00:00:00Z").view()
        self.witness.see_queue(None if new else queue, queue)

    def quotas(self) -> list[tuple[tuple[str, int | None, int | None], ...]]:
        return [one.keys for one in self.witness.quotas.of_hour(self.now)]


def card(name: str) -> Pod:
    return a_pod(name).gpu(1).card("A").view()


def test_a_pod_that_is_deleted_is_remembered_for_an_hour() -> None:
    seen = Seen()
    seen.deletes(card("one"))
    seen.deletes(a_pod("cpu").view())
    assert seen.gone() == ["ml/one"]
    seen.now += HOUR_US - 10
    assert seen.gone() == ["ml/one"]
    seen.now += 20
    assert seen.gone() == []


def test_what_was_deleted_before_the_first_list_was_complete_is_not_known() -> None:
    seen = Seen()
    seen.listed = False
    seen.now += 5_000_000
    seen.witness.see_pod(None, card("one"))
    seen.listed = True
    seen.now += 5_000_000
    seen.witness.see_pod(None, card("two"))
    assert seen.witness.pods.since == MADE + 5_000_000


def test_of_more_than_fit_the_latest_are_kept_and_what_is_known_begins_later() -> None:
    seen = Seen()
    for number in range(PODS + 3):
        seen.deletes(card(f"p{number}"))
    assert seen.gone()[0] == "ml/p3"
    assert len(seen.gone()) == PODS
    assert seen.witness.pods.since == MADE + 4
    for number in range(1, QUOTAS + 10):
        seen.has_quota({"A": number * 1000})
    assert len(seen.quotas()) == QUOTAS
    assert seen.witness.quotas.since > MADE


def test_another_quota_is_told_with_what_it_was() -> None:
    seen = Seen()
    seen.has_quota({"A": 2000, "B": 1000})
    assert seen.quotas() == []
    seen.has_quota({"A": 2000, "B": 1000})
    assert seen.quotas() == []
    seen.has_quota({"A": 4000, "C": 500})
    assert seen.quotas() == [(("A", 2000, 4000), ("B", 1000, None), ("C", None, 500))]


def test_a_queue_that_is_made_or_deleted_gives_or_takes_its_quota() -> None:
    seen = Seen()
    seen.has_quota({"A": 2000}, new=True)
    seen.witness.see_queue(a_queue("q").view(), None)
    seen.witness.see_queue(a_queue("unknown").view(), None)
    assert seen.quotas() == [(("A", None, 2000),), (("A", 2000, None),)]


@pytest.mark.parametrize("listed", [True, False])
def test_queues_that_were_there_before_have_no_other_quota_by_being_listed(listed: bool) -> None:
    seen = Seen()
    seen.listed = listed
    seen.has_quota({"A": 2000})
    assert seen.quotas() == []
