"""A queue that uses more than its quota: what of, by how much, and when there is something new to say about it."""

from collections.abc import Mapping

import pytest

from core import reasons
from core.display.notices import QueueNotice, queue_notices
from core.names import MGPU_CORE
from core.queues.account import Account
from core.queues.ledger import Ledger
from core.queues.limits import limits_of
from core.queues.overuse import Overuse, overuse
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import QueueBuilder

QUEUE = a_queue("q").cards({"A": 2, "B": 1})


def account(allocated: Mapping[str, int], reserved: Mapping[str, int]) -> Account:
    made = Account()
    made.allocated.update(allocated)
    made.reserved.update(reserved)
    return made


@pytest.mark.parametrize(
    ("queue", "allocated", "reserved", "expected"),
    [
        (QUEUE, {"A": 2000}, {"B": 1000}, []),
        (QUEUE, {"A": 2000}, {"A": 1000}, [Overuse("A", 3000, 2000)]),
        (QUEUE, {"B": 2000, "A": 3000}, {}, [Overuse("A", 3000, 2000), Overuse("B", 2000, 1000)]),
        (QUEUE, {"C": 1000}, {}, [Overuse("C", 1000, 0)]),
        (QUEUE, {}, {"A|B": 9000}, []),
        (QUEUE, {MGPU_CORE: 50_000}, {}, []),
        (QUEUE.shares(core=40), {MGPU_CORE: 50_000}, {}, [Overuse(MGPU_CORE, 50_000, 40_000)]),
    ],
    ids=[
        "up to the quota",
        "reserved counts",
        "by name",
        "not listed is nothing",
        "an open choice is no card",
        "a share without limit",
        "a share",
    ],
)
def test_what_is_used_beyond_the_quota(
    queue: QueueBuilder, allocated: Mapping[str, int], reserved: Mapping[str, int], expected: list[Overuse]
) -> None:
    assert list(overuse(limits_of(queue.view()), account(allocated, reserved))) == expected


def ledger_with(running: int, queue: QueueBuilder) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(queue.view())
    for number in range(running):
        ledger.put_pod(a_pod(f"p{number}").gpu(1).card("A").in_queue("q").bound_to("n").view())
    return ledger


def test_the_notice_names_card_use_and_quota() -> None:
    assert queue_notices(ledger_with(3, QUEUE), "q") == [
        QueueNotice(
            reasons.QUOTA_EXCEEDED,
            "Queue <q> uses more than its quota: <A> used <3000>, but capability is <2000>; "
            "nothing is evicted, nothing more is lifted",
            "A=2000",
        )
    ]


def test_it_is_news_when_the_quota_changes_and_not_when_a_pod_ends() -> None:
    ledger = ledger_with(6, QUEUE)
    (before,) = queue_notices(ledger, "q")
    ledger.drop_pod("uid-ml-p5")
    (fewer,) = queue_notices(ledger, "q")
    assert (fewer.news, fewer.message == before.message) == (before.news, False)
    ledger.put_queue(a_queue("q").cards({"A": 1}).view())
    (cut,) = queue_notices(ledger, "q")
    assert cut.news != before.news


def test_there_is_nothing_to_say_within_the_quota_and_about_a_queue_that_is_gone() -> None:
    ledger = ledger_with(2, QUEUE)
    assert queue_notices(ledger, "q") == []
    ledger.drop_queue("q")
    assert queue_notices(ledger, "q") == []


def test_of_a_quota_that_cannot_be_read_that_alone_is_said() -> None:
    (notice,) = queue_notices(ledger_with(3, QUEUE.cards("{")), "q")
    assert notice.reason == reasons.CARD_QUOTA_MALFORMED
    assert notice.message.startswith("card quota cannot be read, the queue has no cards: ")
