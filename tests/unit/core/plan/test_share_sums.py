"""Schedulers compare the sums of what is requested of mGPU, whatever cards the records name: both have to have room."""

import pytest

from core import names
from tests.builders import a_pod
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.core.plan.stuck_now import place_gone, room_gone, takes_now
from tests.unit.core.plan.test_led import RECORD, Books, bound, host, share

CORE_TAKEN = f"not enough {names.MGPU_CORE} left by the sum of its pods' requests that schedulers go by"


def whole(name: str, core: int) -> PodBuilder:
    return a_pod(name).mgpu(core=core)


def on_cards_that_go() -> PodBuilder:
    """Of four cards it has the last two; of three the scheduler still subtracts both, and one is on record."""
    return whole("x", 200).bound_to("m1").annotation(RECORD, "2,3")


def a_card_is_gone(*others: NodeBuilder) -> Books:
    books = Books(host("m1", 4), *others)
    books.ledger.put_pod(on_cards_that_go().view())
    books.ledger.put_node(host("m1", 3).view())
    return books


def test_a_node_that_lost_a_card_is_room_for_what_is_left_of_the_sum() -> None:
    books = a_card_is_gone(host("m2"))
    assert books.run(whole("p", 200).gated()) == {"p": ("m2",)}
    assert books.run(whole("q", 100).gated()) == {"q": ("m1",)}
    assert books.run(share("r", 1)) == {"r": None}, "who is on the way is in the sum too"


def test_the_wait_names_the_sum() -> None:
    books = a_card_is_gone()
    assert books.run(whole("p", 200).gated()) == {"p": None}
    assert f"node m1 has room on its cards, but it has {CORE_TAKEN}" in books.holds["p"].why.message


@pytest.mark.parametrize("order", [("m1", "m2"), ("m2", "m1")])
def test_of_nodes_that_lack_it_the_first_name_is_told_whichever_was_looked_at_first(
    order: tuple[str, str],
) -> None:
    books = Books()
    for name in order:
        books.ledger.put_node(host(name, 1).view())
        books.ledger.put_pod(bound(f"x-{name}", name, 7, 60).view())
    assert books.run(share("p", 60)) == {"p": None}
    assert f"node m1 has room on its cards, but it has {CORE_TAKEN}" in books.holds["p"].why.message


def test_a_pod_on_no_card_that_is_known_is_in_the_sum() -> None:
    """It started past the binds, and no card has room to be held for it."""
    books = Books(host("m1"), host("m2"))
    books.show(bound(f"s{card}", "m1", card, 30).view() for card in (0, 1))
    books.ledger.put_pod(whole("x", 100).bound_to("m1").view())
    assert books.run(share("p", 60), share("q", 40, second=1)) == {"p": ("m2",), "q": ("m1",)}


def test_memory_is_summed_as_well() -> None:
    books = Books(host("m1"), host("m2"))
    books.show(bound(f"s{card}", "m1", card, 10).view() for card in (0, 1))
    wide = a_pod("x").mgpu(core=10, memory=16384).bound_to("m1").annotation(RECORD, "7")
    books.ledger.put_pod(wide.view())
    assert books.run(a_pod("p").mgpu(core=10, memory=14000).gated()) == {"p": ("m2",)}


def test_a_pod_that_was_led_is_told_that_the_sum_is_taken() -> None:
    books = a_card_is_gone()
    led, nominated = whole("p", 200).led_to("m1").view(), whole("n", 200).nominated_for("m1").view()
    assert room_gone(books.ledger, led) == f"node m1 has {CORE_TAKEN}"
    assert place_gone(books.ledger, nominated)
    assert not takes_now(books.ledger, whole("f", 200).view(), "m1")
    assert takes_now(books.ledger, whole("f", 100).view(), "m1")


def test_what_its_scheduler_may_displace_is_not_in_the_way_of_a_led_pod() -> None:
    books = a_card_is_gone()
    high = whole("p", 200).priority(1)
    assert room_gone(books.ledger, high.led_to("m1").view()) == ""
    assert books.run(high.gated()) == {"p": ("m1",)}, "no other node has room"
    better = a_card_is_gone(host("m2", 8))
    assert better.run(high.gated()) == {"p": ("m2",)}


def test_promises_that_the_node_cannot_keep_any_more_are_no_part_of_the_sum() -> None:
    """Whom it does not serve since its label was changed nobody binds there."""
    books = Books(host("m1"))
    books.ledger.put_pod(share("old", 60).mgpu_policy("other").led_to("m1").view())
    assert takes_now(books.ledger, whole("p", 200).view(), "m1")
    books.ledger.put_pod(a_pod("served").mgpu(core=60, memory=2048).led_to("m1").view())
    assert not takes_now(books.ledger, whole("p", 200).view(), "m1")
    assert takes_now(books.ledger, whole("p", 100).view(), "m1")


@pytest.mark.parametrize("asked", [whole("p", 200), a_pod("p").mgpu(core=100)])
def test_a_node_that_shows_cores_alone_has_room_for_whole_cards(asked: PodBuilder) -> None:
    node = host("m1")
    del node.raw["status"]["allocatable"][names.MGPU_MEMORY]
    assert Books(node).run(asked.gated()) == {"p": ("m1",)}
