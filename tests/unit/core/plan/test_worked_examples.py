"""Whole small clusters, planned to the end: jobs, quotas and cards that users of card quotas meet first.

Cards in these tests are counted in whole cards, as users count them.
"""

import pytest

from core import reasons
from tests.builders import a_pod, a_queue
from tests.unit.core.plan.examples import (
    decided,
    given,
    nodes,
    planned,
    pods,
    running,
    used,
    volcano_job,
)


class TestOneCard:
    """Two nodes of four A100, a quota of five, a job of four."""

    CLUSTER = (*nodes("A100", 4, 4), a_queue("q").cards({"A100": 5}))
    FOUR = pods("train", "A100", 4)

    def test_the_job_is_let_in_as_a_whole(self) -> None:
        job = volcano_job("train", self.FOUR, minimum=4, request={"A100": 4})
        result = planned(*self.CLUSTER, *job)
        assert decided(result, "lift") == ["train-0", "train-1", "train-2", "train-3"]
        assert given(result) == {"A100": 4}

    @pytest.mark.parametrize(("count", "decision"), [(1, "lift"), (2, "hold")])
    def test_beside_it_one_more_card_fits_and_two_do_not(self, count: int, decision: str) -> None:
        job = volcano_job("train", running(self.FOUR, "a100-0", "A100"), minimum=4, request={"A100": 4})
        result = planned(*self.CLUSTER, *job, *pods("more", "A100", 1, each=count))
        assert result.queues["q"].allocated == {"A100": 4000}
        more = result.pods["ml/more-0"]
        assert more.decision == decision
        if decision == "hold":
            assert more.why is not None
            assert more.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
            assert "requested <2000>, total would be <6000>, but capability is <5000>" in more.why.message
            assert "In cards: asks for 2, 4 of 5 are in use;" in more.why.message


class TestEitherCard:
    """Jobs that take an A100 or an H100."""

    CARDS = (*nodes("A100", 8), *nodes("H100", 8))

    def test_the_left_card_is_used_up_first(self) -> None:
        four = pods("train", "A100|H100", 4)
        job = volcano_job("train", four, minimum=1, request={"A100|H100": 4})
        result = planned(*self.CARDS, a_queue("q").cards({"A100": 3, "H100": 3}), *job)
        assert given(result) == {"A100": 3, "H100": 1}
        last = result.pods["ml/train-3"]
        assert last.assigned == {"H100": 1}

    def test_a_card_without_quota_counts_as_zero(self) -> None:
        six = pods("train", "A100|H100", 6)
        queue = a_queue("q").cards({"A100": 5})
        result = planned(*self.CARDS, queue, *six)
        assert given(result) == {"A100": 5}
        assert decided(result, "hold") == ["train-5"]
        declared = volcano_job("train", six, minimum=1, request={"A100|H100": 6})
        assert decided(planned(*self.CARDS, queue, *declared), "lift") == []

    def test_what_is_declared_goes_by_the_sum_of_both_quotas(self) -> None:
        """Three of eight are in use, and four more fit, although neither card alone has four left."""
        queue = a_queue("q").cards({"A100": 5, "H100": 3})
        before = [
            *running(pods("a", "A100", 2), "a100-0", "A100"),
            *running(pods("h", "H100", 1), "h100-0", "H100"),
        ]
        job = volcano_job("train", pods("train", "A100|H100", 4), minimum=4, request={"A100|H100": 4})
        result = planned(*self.CARDS, queue, *before, *job)
        assert given(result) == {"A100": 3, "H100": 1}
        assert (used(result, "A100"), used(result, "H100")) == (5, 2)

    @pytest.mark.parametrize(
        ("quota", "count", "expected"),
        [
            pytest.param(4, 6, {"A100": 4, "H100": 2}, id="6 of 4 and 4"),
            pytest.param(3, 6, {"A100": 3, "H100": 3}, id="6 of 3 and 3"),
            pytest.param(3, 8, {}, id="8 of 3 and 3: the job does not start at all"),
        ],
    )
    def test_a_job_declares_more_than_either_quota_but_never_more_than_both(
        self, quota: int, count: int, expected: dict[str, int]
    ) -> None:
        queue = a_queue("q").cards({"A100": quota, "H100": quota})
        tasks = pods("train", "A100|H100", count)
        result = planned(
            *self.CARDS, queue, *volcano_job("train", tasks, minimum=1, request={"A100|H100": count})
        )
        assert given(result) == expected

    def test_two_jobs_of_either_card_do_not_both_pass_by_the_sum(self) -> None:
        """What the first was given counts for the second, although it is booked under cards and not under a choice."""
        first = volcano_job("a", pods("a", "A100|H100", 4), minimum=1, request={"A100|H100": 4}, second=1)
        second = volcano_job("b", pods("b", "A100|H100", 4), minimum=1, request={"A100|H100": 4}, second=2)
        result = planned(*self.CARDS, a_queue("q").cards({"A100": 3, "H100": 3}), *first, *second)
        assert decided(result, "lift") == ["a-0", "a-1", "a-2", "a-3"]

    def test_a_job_that_declares_too_much_is_told_the_sums_on_its_podgroup(self) -> None:
        queue = a_queue("q").cards({"A100": 3, "H100": 3})
        tasks = pods("train", "A100|H100", 8)
        result = planned(
            *self.CARDS, queue, *volcano_job("train", tasks, minimum=1, request={"A100|H100": 8})
        )
        told = [event for event in result.events if event.object == "PodGroup ml/train"]
        assert [event.reason for event in told] == [reasons.INSUFFICIENT_SCALAR_QUOTA]
        assert "Queue <q> has insufficient <A100|H100> quota: requested <8000>" in told[0].message
        assert "total would be <8000>, but capability is <6000>" in told[0].message
        assert decided(result, "hold") == [f"train-{number}" for number in range(8)]


class TestOneAfterTheOther:
    """A pod of two cards whose first choice is nearly used up."""

    @pytest.mark.parametrize(
        ("quota", "expected"),
        [
            pytest.param({"4090D": 7, "H200": 9}, {"4090D": 2}, id="seven of the first are allowed"),
            pytest.param({"4090D": 6, "H200": 10}, {"H200": 2}, id="ten of the second are allowed"),
            pytest.param({"4090D": 6, "H200": 9}, None, id="neither"),
        ],
    )
    def test_each_card_is_tried_with_what_is_in_use_of_it(
        self, quota: dict[str, int], expected: dict[str, int] | None
    ) -> None:
        """Five of one and eight of the other are in use."""
        result = planned(
            *nodes("4090D", 16),
            *nodes("H200", 16),
            a_queue("q").cards(quota),
            *running(pods("a", "4090D", 5), "4090d-0", "4090D"),
            *running(pods("b", "H200", 8), "h200-0", "H200"),
            *pods("p", "4090D|H200", 1, each=2),
        )
        pod = result.pods["ml/p-0"]
        assert pod.assigned == expected
        if expected is None:
            assert pod.why is not None
            assert pod.why.message.startswith(
                "Queue <q> has insufficient <4090D|H200> quota: requested <2000>, "
                "total would be <10000>, but capability is <9000>. In cards: asks for 2, "
            )

    @pytest.mark.parametrize(
        ("in_use", "expected"),
        [
            pytest.param((9, 3), {"H200": 2}, id="nine and three: five of eight H200"),
            pytest.param((9, 7), None, id="nine and seven: neither"),
            pytest.param((3, 3), {"4090": 2}, id="three and three: five of ten 4090"),
        ],
    )
    def test_a_quota_of_ten_and_eight(self, in_use: tuple[int, int], expected: dict[str, int] | None) -> None:
        first, second = in_use
        result = planned(
            *nodes("4090", 16),
            *nodes("H200", 16),
            a_queue("q").cards({"4090": 10, "H200": 8}),
            *running(pods("a", "4090", first), "4090-0", "4090"),
            *running(pods("b", "H200", second), "h200-0", "H200"),
            *pods("p", "4090|H200", 1, each=2),
        )
        assert result.pods["ml/p-0"].assigned == expected


def test_a_running_pod_whose_cards_cannot_be_counted_uses_none_and_is_told() -> None:
    """Its card is on no node any more, it has no record, and it asks for two devices: any of them might be the card."""
    lost = a_pod("lost").card("GONE").gpu(2).limit("rdma/hca", 1).in_queue("q").bound_to("a100-0")
    result = planned(*nodes("A100", 4), a_queue("q").cards({"GONE": 2}), lost)
    assert result.pods["ml/lost"].decision == "allocated"
    assert result.queues["q"].allocated == {}
    assert [(event.object, event.reason) for event in result.events] == [
        ("Pod ml/lost", reasons.GET_TASK_REQUEST_RESOURCE_FAILED)
    ]
