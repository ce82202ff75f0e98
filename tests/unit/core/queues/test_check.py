"""Whether a demand fits a queue, and the exact words when it does not."""

from collections.abc import Mapping

import pytest

from core import reasons
from core.cards.ask import CardAsk
from core.names import MGPU_CORE, MGPU_MEMORY
from core.queues.check import Balance
from core.queues.limits import limits_of
from tests.builders import a_queue
from tests.builders.objects import QueueBuilder


def balance(queue: QueueBuilder, used: Mapping[str, int]) -> Balance:
    return Balance(queue.raw["metadata"]["name"], limits_of(queue.view()), lambda key: used.get(key, 0))


def choice(expression: str, milli: int) -> CardAsk:
    return CardAsk(expression, tuple(expression.split("|")), expression, "nvidia.com/gpu", milli)


@pytest.mark.parametrize(
    ("quota", "used", "asked", "fits"),
    [
        (3, 0, 3000, True),
        (3, 2000, 1000, True),
        (3, 2000, 2000, False),
        (3, 3000, 0, True),
        (3, 9000, 0, True),
        (3, 9000, 1000, False),
        (0, 0, 1000, False),
        (0, 0, 0, True),
        (1_000_000_000, 999_999_999_000, 1000, True),
        (1_000_000_000, 999_999_999_000, 2000, False),
    ],
)
def test_reaching_the_quota_fits_and_passing_it_does_not(
    quota: int, used: int, asked: int, fits: bool
) -> None:
    shortfall = balance(a_queue().cards({"A": quota}), {"A": used}).card_shortfall("A", asked)
    assert (shortfall is None) is fits


def test_the_shortage_is_said_in_thousandths_with_literal_angle_brackets() -> None:
    shortfall = balance(a_queue("cr-queue1").cards({"NVIDIA-H200": 3}), {}).card_shortfall(
        "NVIDIA-H200", 5000
    )
    assert shortfall is not None
    assert shortfall.code == "InsufficientScalarQuota"
    assert shortfall.message == (
        "Queue <cr-queue1> has insufficient <NVIDIA-H200> quota: requested <5000>, total would be <5000>, "
        "but capability is <3000>. "
        "In cards: asks for 5, more than the whole quota (3); ask for fewer, or raise the quota."
    )


def test_a_card_that_is_not_listed_has_capability_zero() -> None:
    shortfall = balance(a_queue().capability(cpu=4), {}).card_shortfall("A", 1000)
    assert shortfall is not None
    assert (shortfall.code, "capability is <0>" in shortfall.message) == ("InsufficientScalarQuota", True)


def test_a_queue_without_quota_and_capability_is_called_empty() -> None:
    shortfall = balance(a_queue("q"), {}).card_shortfall("A", 1000)
    assert shortfall is not None
    assert shortfall.code == "EmptyQueueCapability"
    assert shortfall.message == (
        "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to allocate: requested <1000> of <A>. "
        "The queue has no card quota: set volcano.sh/card.quota on it."
    )


@pytest.mark.parametrize("text", ["{", "[]", '{"A": "2"}', '{"A": 1.5}', "  "])
def test_a_quota_that_cannot_be_read_gives_no_cards_and_says_so(text: str) -> None:
    shortfall = balance(a_queue().cards(text), {}).card_shortfall("A", 1000)
    assert shortfall is not None
    assert shortfall.code == reasons.CARD_QUOTA_MALFORMED


@pytest.mark.parametrize(
    ("used", "fits"),
    [
        ({"4090": 9000, "H200": 3000}, True),
        ({"4090": 3000, "H200": 8000}, True),
        ({"4090": 9000, "H200": 7000}, False),
    ],
)
def test_a_choice_fits_when_one_alternative_does(used: dict[str, int], fits: bool) -> None:
    queue = a_queue().cards({"4090": 10, "H200": 8})
    assert (balance(queue, used).choice_shortfall(choice("4090|H200", 2000)) is None) is fits


def test_a_failing_choice_names_the_expression_with_the_numbers_of_the_last_alternative() -> None:
    queue = a_queue("q").cards({"4090": 10, "H200": 8})
    shortfall = balance(queue, {"4090": 9000, "H200": 7000}).choice_shortfall(choice("4090|H200", 2000))
    assert shortfall is not None
    assert shortfall.message == (
        "Queue <q> has insufficient <4090|H200> quota: requested <2000>, total would be <9000>, but capability is <8000>. "
        "In cards: asks for 2, 9 of 10 <4090>, 7 of 8 <H200> are in use; "
        "wait for cards to come back, or raise the quota."
    )


@pytest.mark.parametrize(
    ("queue", "used", "short_of"),
    [
        (a_queue(), {MGPU_CORE: 10**9}, None),
        (a_queue().shares(core=100), {MGPU_CORE: 70_000}, None),
        (a_queue().shares(core=100), {MGPU_CORE: 71_000}, MGPU_CORE),
        (a_queue().shares(memory=4096), {MGPU_MEMORY: 2_048_000}, None),
        (a_queue().shares(core=200, memory=4096), {MGPU_MEMORY: 2_049_000}, MGPU_MEMORY),
        (a_queue().shares(core=0), {}, MGPU_CORE),
    ],
)
def test_shares_are_limited_only_by_the_keys_that_the_queue_lists(
    queue: QueueBuilder, used: dict[str, int], short_of: str | None
) -> None:
    shortfall = balance(queue, used).share_shortfall({MGPU_CORE: 30_000, MGPU_MEMORY: 2_048_000})
    assert (shortfall.message.split("<")[2].split(">")[0] if shortfall else None) == short_of
