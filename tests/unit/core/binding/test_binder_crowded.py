"""Many pods at once on their way to one node: no bind is refused, even where a search for all of them runs out."""

from random import Random

import pytest

from core.mgpu.allocation import Policy
from tests.unit.core.binding.led_crowd import ANY, TENS, Crowd, Sizes


@pytest.mark.parametrize(
    ("seed", "cards", "sizes", "policy"),
    [(12, 8, ANY, "binpack"), (12, 16, TENS, "binpack"), (22, 16, TENS, "spread"), (0, 16, ANY, "binpack")],
)
def test_every_pod_that_was_led_gets_its_cards_in_whatever_order(
    seed: int, cards: int, sizes: Sizes, policy: Policy
) -> None:
    crowd = Crowd(cards, sizes, Random(seed), policy)
    crowd.come(8 * cards)
    assert crowd.bind(len(crowd.under_way)) == []
    assert not crowd.ledger.places


def test_whoever_is_let_in_meanwhile_gets_no_room_of_those_on_their_way() -> None:
    """After each bind the gate places them anew; where its search runs out it goes by what the bind has found."""
    crowd = Crowd(16, TENS, Random(2))
    crowd.come(128)
    while crowd.under_way:
        assert crowd.bind(4) == []
        crowd.come(2)


def test_where_they_have_room_goes_with_the_node() -> None:
    crowd = Crowd(2, TENS, Random(0))
    crowd.come(16)
    assert crowd.bind(1) == []
    assert crowd.ledger.places.keys() == {"n1"}
    crowd.ledger.drop_node("n1")
    assert not crowd.ledger.places
