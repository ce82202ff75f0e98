"""Whom a change in the book of devices wakes, and what is shown of it."""

import pytest

from core import reasons
from core.dra.book import DeviceBook
from core.dra.booking import NO_EFFECT, Effect
from core.objects import DeviceClass
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim
from tests.fakes.counted import calls_of
from tests.unit.core.dra.device_books import (
    ALLOCATED,
    RESERVED,
    TEMPLATE,
    WAITING,
    a_book,
    asked,
    gpus,
    holding,
    limited,
    why,
)

# -- what wakes whom -----------------------------------------------------------------------------------------


@pytest.fixture
def book() -> DeviceBook:
    """Two queues below `team`, which limits; in each of them and in one elsewhere a pod waits."""
    book = a_book(
        limited("team", 2).view(),
        a_queue("left").child_of("team").view(),
        a_queue("right").child_of("team").view(),
        limited("else", 1).view(),
        *(gpus(name).view() for name in ("c", "w1", "w2", "w3")),
        a_claim("nic").exactly("r", "nic").view(),
    )
    for queue, claim in (("left", "w1"), ("right", "w2"), ("else", "w3")):
        book.put_pod(holding(f"waits-{queue}", claim).view(), WAITING, queue)
    return book


def test_a_new_waiting_pod_makes_its_queue_dirty(book: DeviceBook) -> None:
    effect = book.put_pod(holding("p", "c").view(), WAITING, "left")
    assert effect == Effect(touched=frozenset({"left", "team", "root"}), dirty=frozenset({"left"}))
    assert book.put_pod(holding("p", "c").view(), WAITING, "left") == NO_EFFECT


def test_devices_that_come_back_wake_all_below_the_queue_that_limits_them(book: DeviceBook) -> None:
    book.put_pod(holding("p", "c").view(), ALLOCATED, "left")
    assert book.drop_pod("uid-ml-p").dirty == {"left", "right"}
    book.put_pod(holding("n", "nic").view(), ALLOCATED, "left")
    assert book.drop_pod("uid-ml-n").dirty == frozenset()


def test_a_claim_that_another_pod_holds_now_costs_a_waiting_one_less(book: DeviceBook) -> None:
    assert book.put_pod(asked("p", "w2").view(), RESERVED, "left").dirty == {"right"}


def test_a_claim_that_is_asked_for_at_the_bind_of_its_holder_costs_a_waiting_one_less(
    book: DeviceBook,
) -> None:
    book.put_pod(holding("p", "w2").view(), RESERVED, "left")
    assert book.put_pod(asked("p", "w2").bound_to("n").view(), ALLOCATED, "left").dirty == {"right"}


def test_a_claim_that_its_holder_takes_to_another_queue_costs_less_there(book: DeviceBook) -> None:
    """The queue as a whole is no emptier for it, so nothing else would tell."""
    holder = asked("p", "w3").bound_to("n").view()
    book.put_pod(holder, ALLOCATED, "left")
    book.put_pod(holding("full", "c").view(), ALLOCATED, "else")
    assert why(book, holding("waits-else", "w3"), "else")[0] == reasons.INSUFFICIENT_DEVICE_QUOTA
    assert "else" in book.put_pod(holder, ALLOCATED, "else").dirty
    assert why(book, holding("waits-else", "w3"), "else") == ("", "")


def test_a_claim_that_comes_below_a_queue_with_its_holder_costs_less_there(book: DeviceBook) -> None:
    book.put_pod(asked("p", "w2").bound_to("n").view(), ALLOCATED, "else")
    book.put_pod(holding("a", "c").view(), ALLOCATED, "left")
    book.put_pod(holding("b", "w1").view(), ALLOCATED, "left")
    assert why(book, holding("waits-right", "w2"), "right")[0] == reasons.INSUFFICIENT_DEVICE_QUOTA
    assert "right" in book.put_queue(limited("else", 1).child_of("team").view()).dirty
    assert why(book, holding("waits-right", "w2"), "right") == ("", "")


def test_a_limit_that_changes_wakes_all_below(book: DeviceBook) -> None:
    assert book.put_queue(limited("team", 3).view()).dirty == {"left", "right"}
    assert book.put_queue(limited("team", 3).priority(4).view()) == NO_EFFECT
    assert book.put_queue(limited("root", 9).view()).dirty == {"left", "right", "else"}
    assert book.drop_queue("root").dirty == {"left", "right", "else"}


def test_a_write_to_a_queue_that_leaves_its_parent_alone_counts_no_pod_anew(
    book: DeviceBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schedulers write the status of the root about once a second, and every pod is below it."""

    def counted(*_: object) -> None:
        raise AssertionError("a pod is counted anew")

    monkeypatch.setattr("core.dra.links.wants_of", counted)
    assert book.put_queue(limited("team", 2).allocated({"cpu": "1"}).view()) == NO_EFFECT
    assert book.put_queue(limited("team", 1).view()).dirty == {"left", "right"}


def test_claims_and_templates_that_come_wake_the_pods_that_wait_for_them() -> None:
    book = a_book()
    book.put_pod(holding("p", "c").view(), WAITING, "q")
    book.put_pod(a_pod("t").claim("dev", template="t").view(), WAITING, "r")
    assert book.put_claim(gpus("c").view()).dirty == {"q"}
    assert book.put_claim(gpus("c").view()) == NO_EFFECT
    assert book.put_claim(gpus("c", 2).view()).dirty == {"q"}
    assert book.put_template(TEMPLATE).dirty == {"r"}
    assert book.put_template(TEMPLATE) == NO_EFFECT
    assert book.drop_template("ml/t").dirty == {"r"}
    assert book.put_claim(gpus("unused").view()) == NO_EFFECT


def test_who_shares_a_claim_that_came_past_the_gate_is_woken_once_another_was_asked_for_it() -> None:
    """And not for each of those after it: to whoever waits one more makes no difference."""
    book = a_book(limited("q", 2).view(), gpus("c", 2).view())
    book.put_pod(holding("decoy", "c").bound_to("n").view(), ALLOCATED, "q")
    book.put_pod(holding("w", "c").view(), WAITING, "q")
    assert book.put_pod(holding("a", "c").charged("q").view(), RESERVED, "q").dirty == {"q"}
    assert book.put_pod(holding("b", "c").charged("q").view(), RESERVED, "q").dirty == frozenset()


def test_what_a_holder_has_done_to_those_who_share_its_claim_costs_nothing_for_each_of_them() -> None:
    """A gang tells it again of each member that it lifts, and in its namespace thousands may refer to the same claim."""

    def telling(users: int) -> tuple[Effect, int]:
        book = a_book(gpus("c").view())
        book.put_pod(asked("holder", "c").view(), RESERVED, "q")
        for number in range(users):
            book.put_pod(holding(f"w{number}", "c").view(), WAITING, "r")
        return book.effect_of("uid-ml-holder"), calls_of(lambda: book.effect_of("uid-ml-holder"))

    few, many = telling(2), telling(500)
    assert few == many
    assert few[0].dirty == {"r"}


# -- what is shown -------------------------------------------------------------------------------------------


def test_what_a_queue_lists_is_shown_anew_of_the_queues_below(book: DeviceBook) -> None:
    """A class that does not exist is shown where a queue above lists it."""
    assert book.put_queue(limited("team", 2, "nic").view()).touched == {"team", "left", "right"}
    assert book.drop_queue("team").touched >= {"team", "left", "right"}


def test_a_class_that_comes_or_goes_is_shown_anew_where_its_devices_are_in_use(book: DeviceBook) -> None:
    book.put_pod(holding("p", "nic").view(), ALLOCATED, "left")
    nic = DeviceClass("nic")
    assert book.put_class(nic).touched == {"left", "team", "root"}
    assert book.put_class(nic) == NO_EFFECT
    assert book.put_class(DeviceClass("unused")) == NO_EFFECT
    assert book.drop_class("nic").touched == {"left", "team", "root"}
    assert book.drop_class("nic") == NO_EFFECT
    book.behind.defer = lambda _uids: True
    assert book.put_class(nic).touched == {"left", "team", "root"}


def test_the_share_is_that_of_the_fullest_limit() -> None:
    queue = a_queue("q").devices(
        {"capability": {"gpu": {"count": 4, "capacity": {"m": 4}}, "nic": {"count": 0}}}
    )
    book = a_book(queue.view(), a_claim("c").exactly("r", "gpu", capacity={"m": 3}).view())
    assert book.share("q") == 0
    book.put_pod(holding("a", "c").view(), RESERVED, "q")
    assert book.share("q") == 0.75
    assert book.share("unknown") == 0
