"""Whether what a Volcano Job declares fits its queue as a whole."""

from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.queues.group_request import GroupBalance, GroupRequest, declared_request
from core.queues.limits import limits_of
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_group, a_queue
from tests.builders.objects import GroupBuilder, QueueBuilder

MI = 1000 * 2**20
KNOWN = frozenset({"nvidia.com/gpu"})
UNLIMITED = Settings.model_validate({"cards": {"unlimitedCpuMemory": True}})


def shortfall(
    queue: QueueBuilder | Mapping[str, int],
    used: Mapping[str, int],
    cards: Mapping[str, int],
    *,
    cpu_memory: Mapping[str, int] | None = None,
    limits: Mapping[str, int] | None = None,
    uniform: bool = False,
) -> Refusal | None:
    """`queue` may be its quota, `used` and `cards` are in whole cards; CPU and memory in thousandths."""
    builder = queue if isinstance(queue, QueueBuilder) else a_queue("q").cards(queue)
    in_use = {key: amount * 1000 for key, amount in used.items() if key not in {"cpu", "memory"}}
    balance = GroupBalance(
        "q", limits_of(builder.view()), limits or {}, in_use, lambda key: used.get(key, 0), uniform
    )
    return balance.shortfall(
        GroupRequest({card: count * 1000 for card, count in cards.items()}, cpu_memory or {})
    )


def of_a_job(group: GroupBuilder) -> GroupBuilder:
    return group.owned_by("Job", "train", api_version="batch.volcano.sh/v1alpha1")


@pytest.mark.parametrize(
    ("quota", "used", "asked", "fits"),
    [
        pytest.param({"A100": 5}, {}, {"A100": 4}, True, id="4 of 5"),
        pytest.param({"A100": 5}, {"A100": 4}, {"A100": 2}, False, id="4 used, 2 more are 6 of 5"),
        pytest.param({"A100": 5}, {"A100": 4}, {"A100": 1}, True, id="4 used, 1 more reaches 5"),
        pytest.param({"A100": 5}, {}, {"A100|H100": 4}, True, id="a card without entry counts as 0"),
        pytest.param({"A100": 5}, {"A100": 2}, {"A100|H100": 4}, False, id="and gives no room"),
        pytest.param({"A100": 5}, {}, {"H100": 1}, False, id="a card without entry alone"),
        pytest.param({"A100": 5, "H100": 3}, {"A100": 2, "H100": 1}, {"A100|H100": 4}, True, id="7 of 8"),
        pytest.param({"A100": 5, "H100": 3}, {"A100": 2, "H100": 1}, {"A100|H100": 5}, True, id="8 of 8"),
        pytest.param({"A100": 5, "H100": 3}, {"A100": 2, "H100": 1}, {"A100|H100": 6}, False, id="9 of 8"),
        pytest.param({"A100": 4, "H100": 4}, {}, {"A100|H100": 6}, True, id="more than either alone has"),
        pytest.param({"A100": 3, "H100": 3}, {}, {"A100|H100": 8}, False, id="8 of 3 and 3"),
        pytest.param({"A100": 3, "H100": 3}, {}, {"A100|H100": 6}, True, id="6 of 3 and 3"),
        pytest.param({"4090D": 7, "H200": 8}, {"4090D": 5, "H200": 8}, {"4090D|H200": 2}, True, id="15/15"),
        pytest.param({"4090D": 6, "H200": 8}, {"4090D": 5, "H200": 8}, {"4090D|H200": 2}, False, id="15/14"),
        pytest.param({"4090": 10, "H200": 8}, {"4090": 9, "H200": 3}, {"4090|H200": 2}, True, id="14/18"),
        pytest.param({"4090": 10, "H200": 8}, {"4090": 9, "H200": 7}, {"4090|H200": 2}, True, id="18/18"),
        pytest.param({"4090": 10, "H200": 8}, {"4090": 9, "H200": 8}, {"4090|H200": 2}, False, id="19/18"),
        pytest.param({"K80": 2}, {"K80": 2}, {"K80": 1}, False, id="a third job of one card in a queue of 2"),
        pytest.param({"K80": 8, "4090": 8, "H800": 8}, {}, {"K80": 8, "4090": 8}, True, id="two kinds"),
        pytest.param(
            {"K80": 8, "4090": 8}, {"K80": 8, "4090": 8}, {"K80": 1}, False, id="and nothing is left"
        ),
        pytest.param({"K80": 2}, {"K80": 9}, {"K80": 0}, True, id="asking for nothing always fits"),
        pytest.param({"K80": 2}, {"K80": 9}, {}, True, id="so does an empty declaration"),
        pytest.param({"A": 4, "B": 2}, {}, {"A": 4, "A|B": 2}, True, id="a name and a choice, just enough"),
        pytest.param({"A": 4, "B": 2}, {}, {"A": 4, "A|B": 3}, False, id="a name and a choice, one too many"),
        pytest.param({"A": 2}, {}, {"A|A": 2}, True, id="a repeated alternative is one alternative"),
        pytest.param({"A": 2}, {}, {"A|A": 3}, False, id="and brings no quota"),
        pytest.param({"A": 2}, {}, {"A|A": 2, "A": 1}, False, id="nor is it counted apart"),
    ],
)
def test_what_is_declared_fits_up_to_the_sum_of_its_alternatives(
    quota: Mapping[str, int], used: Mapping[str, int], asked: Mapping[str, int], fits: bool
) -> None:
    assert (shortfall(quota, used, asked) is None) is fits


def test_a_shortage_of_one_card_has_the_same_words_as_that_of_a_pod() -> None:
    assert shortfall({"NVIDIA-H200": 3}, {}, {"NVIDIA-H200": 5}) == Refusal(
        "InsufficientScalarQuota",
        "Queue <q> has insufficient <NVIDIA-H200> quota: requested <5000>, total would be <5000>, "
        "but capability is <3000>. "
        "In cards: asks for 5, more than the whole quota (3); ask for fewer, or raise the quota.",
    )


def test_a_shortage_of_a_choice_names_the_whole_expression_and_the_sums() -> None:
    assert shortfall({"A100": 5, "H100": 3}, {"A100": 4, "H100": 1}, {"A100|H100": 4}) == Refusal(
        "InsufficientScalarQuota",
        "Queue <q> has insufficient <A100|H100> quota: requested <4000>, total would be <9000>, "
        "but capability is <8000>. "
        "In cards: asks for 4, 5 of 8 are in use; wait for cards to come back, or raise the quota.",
    )


def test_where_one_card_must_serve_all_the_figures_are_those_of_each() -> None:
    """As the last one alone has too little quota, somebody would be told wrongly that waiting does not help."""
    short = shortfall({"A100": 5, "H100": 3}, {"A100": 4}, {"A100|H100": 4}, uniform=True)
    assert short is not None
    assert short.message.endswith(
        "total would be <4000>, but capability is <3000>. In cards: asks for 4, 4 of 5 <A100>, 0 of 3 <H100> are in use; "
        "wait for cards to come back, or raise the quota."
    )


def test_cpu_comes_first_then_memory_then_cards_and_only_the_first_is_told() -> None:
    wanted = {"memory": 2048 * MI, "cpu": 2000}
    told = [
        shortfall({}, {"cpu": 500}, {"A": 1}, cpu_memory=wanted, limits=limits)
        for limits in (
            {"cpu": 1000, "memory": MI},
            {"cpu": 2500, "memory": 3 * MI // 2},
            {"cpu": 2500, "memory": 2048 * MI},
        )
    ]
    assert [short and short.message.split(": ")[0] for short in told] == [
        "Queue <q> has insufficient CPU quota",
        "Queue <q> has insufficient memory quota",
        "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to enqueue",
    ]
    assert [short and short.message.split("requested ")[1].split(". In ")[0] for short in told[:2]] == [
        "<2000>, total would be <2500>, but capability is <1000>",
        "<2048 Mi>, total would be <2048 Mi>, but capability is <1.5 Mi>",
    ]


def test_no_cpu_and_memory_asked_for_means_none_looked_at() -> None:
    assert shortfall({"A": 1}, {"cpu": 9000}, {"A": 1}, limits={"cpu": 0, "memory": 0}) is None


def test_an_empty_queue_says_so_and_one_with_capability_says_zero() -> None:
    empty = shortfall(a_queue("q"), {}, {"A": 1})
    assert empty is not None
    assert empty.code == "EmptyQueueCapability"
    assert empty.message == (
        "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to enqueue: requested <1000> of <A>. "
        "The queue has no card quota: set volcano.sh/card.quota on it."
    )
    other = shortfall(a_queue("q").capability(cpu=4), {}, {"A": 1})
    assert other is not None
    assert other.code == "InsufficientScalarQuota"
    assert other.message.endswith(
        "but capability is <0>. In cards: asks for 1, more than the whole quota (0); raise the quota."
    )


def test_a_quota_that_cannot_be_read_is_told_as_such() -> None:
    short = shortfall(a_queue("q").cards('{"A": 1.5}'), {}, {"A": 1})
    assert short is not None
    assert short.code == "CardQuotaMalformed"


# -- faults that the check must not have ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("booked", "asked"),
    [
        pytest.param("A|B", "A|B", id="the same choice"),
        pytest.param("B|A", "A|B", id="the same choice in another order"),
        pytest.param("A|B", "A", id="a card that it may land on"),
        pytest.param("A|B|C", "B|D", id="a choice with a card in common"),
    ],
)
def test_what_is_booked_with_its_choice_open_takes_the_last_slot(booked: str, asked: str) -> None:
    assert shortfall({"A": 1, "B": 0}, {}, {asked: 1} if "A" in asked else {"A|B": 1}) is None
    assert shortfall({"A": 1, "B": 0}, {booked: 1}, {asked: 1}) is not None


def test_an_open_booking_on_other_cards_takes_nothing() -> None:
    assert shortfall({"A": 1, "B": 0}, {"C|D": 9}, {"A|B": 1}) is None


def test_an_open_booking_counts_once_however_many_cards_it_shares() -> None:
    assert shortfall({"A": 2, "B": 2}, {"A|B": 2}, {"A|B": 2}) is None


def test_several_jobs_of_one_choice_do_not_pass_together() -> None:
    used: dict[str, int] = {}
    passed = 0
    for _ in range(3):
        if shortfall({"A": 2, "B": 2}, used, {"A|B": 2}) is None:
            passed += 1
            used["A|B"] = used.get("A|B", 0) + 2
    assert passed == 2


def test_one_choice_spelt_in_two_orders_is_one_choice() -> None:
    assert shortfall({"A": 2, "B": 2}, {}, {"A|B": 2, "B|A": 2}) is None
    short = shortfall({"A": 2, "B": 2}, {}, {"A|B": 3, "B|A": 2})
    assert short is not None
    assert "<A|B> quota: requested <3000>, total would be <5000>, but capability is <4000>" in short.message


def test_the_card_that_is_told_does_not_depend_on_the_order_of_the_declaration() -> None:
    asked = [("H200", 2), ("A100", 2), ("A100|H200", 9), ("V100", 0)]
    told = {str(shortfall({"V100": 9}, {}, dict(order))) for order in permutations(asked)}
    assert len(told) == 1
    assert "insufficient <A100>" in told.pop()


# -- what is declared ----------------------------------------------------------------------------------------------


def test_a_jobs_group_declares_its_cards_and_its_minimum() -> None:
    group = of_a_job(a_group()).cards({"A|B": 4, "C": 0}).min_resources(cpu=4, memory="1Mi", pods=4)
    assert declared_request(group.view(), "q", KNOWN, Settings()) == GroupRequest(
        {"A|B": 4000, "C": 0}, {"cpu": 4000, "memory": MI}
    )


def test_with_cards_free_of_cpu_and_memory_only_the_cards_are_declared() -> None:
    group = of_a_job(a_group()).min_resources(cpu=4)
    with_cards, without = group.cards({"A": 4}), group.cards({})
    assert declared_request(with_cards.view(), "q", KNOWN, UNLIMITED) == GroupRequest({"A": 4000})
    assert declared_request(without.view(), "q", KNOWN, UNLIMITED) == GroupRequest({}, {"cpu": 4000})


def test_without_min_resources_only_the_cards_are_declared() -> None:
    group = of_a_job(a_group()).cards({"A": 4}).view()
    assert declared_request(group, "q", KNOWN, Settings()) == GroupRequest({"A": 4000})


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(of_a_job(a_group()), id="no declaration"),
        pytest.param(of_a_job(a_group()).cards(""), id="an empty one"),
        pytest.param(a_group().cards({"A": 4}), id="nobody's group"),
        pytest.param(a_group().cards({"A": 4}).owned_by("ReplicaSet", "web"), id="a Deployment's group"),
        pytest.param(
            a_group().cards("{").owned_by("Job", "j", api_version="batch/v1"),
            id="a plain Job's, unreadable too",
        ),
    ],
)
def test_no_other_group_declares_anything(group: GroupBuilder) -> None:
    assert declared_request(group.view(), "q", KNOWN, Settings()) is None


def test_a_declaration_with_a_key_of_too_many_cards_is_told() -> None:
    cards = "|".join(f"C{number}" for number in range(17))
    found = declared_request(of_a_job(a_group()).cards({"A": 1, cards: 4}).view(), "q", KNOWN, Settings())
    assert isinstance(found, Refusal)
    assert found.code == "GetTaskRequestResourceFailed"
    assert "more than 16 cards" in found.message


def test_with_the_feature_off_nothing_is_declared() -> None:
    off = Settings.model_validate({"features": {"cards": False}})
    assert declared_request(of_a_job(a_group()).cards({"A": 4}).view(), "q", KNOWN, off) is None


@pytest.mark.parametrize("text", ["{", "[]", " ", '{"A": -1}', '{"A": "2"}', '{"A": 1, "A": 2}', "null"])
def test_a_declaration_that_cannot_be_read_is_told(text: str) -> None:
    found = declared_request(of_a_job(a_group()).cards(text).view(), "q", KNOWN, Settings())
    assert isinstance(found, Refusal)
    assert found.code == "GetTaskRequestResourceFailed"
    assert found.message.startswith(
        "Get request resource failed, Queue <q>, error: volcano.sh/card.request: "
    )


# -- what always holds ---------------------------------------------------------------------------------------------

names = st.sampled_from(["A", "B", "C"])
choices = st.lists(names, min_size=1, max_size=3, unique=True).map("|".join)
counts = st.integers(0, 5)


@given(
    quota=st.dictionaries(names, counts),
    used=st.dictionaries(choices, counts),
    asked=st.dictionaries(choices, counts, max_size=3),
    more=choices,
)
def test_more_use_and_less_quota_never_let_a_group_in(
    quota: dict[str, int], used: dict[str, int], asked: dict[str, int], more: str
) -> None:
    queue = a_queue("q").cards(quota).capability(cpu=1)
    if shortfall(queue, used, asked) is not None:
        assert shortfall(queue, {**used, more: used.get(more, 0) + 1}, asked) is not None
        assert shortfall(queue, used, {**asked, more: asked.get(more, 0) + 1}) is not None
        less = {card: max(0, count - 1) for card, count in quota.items()}
        assert shortfall(a_queue("q").cards(less).capability(cpu=1), used, asked) is not None


@given(
    quota=st.dictionaries(names, counts),
    used=st.dictionaries(names, counts),
    choice=choices,
    count=st.integers(1, 9),
)
def test_one_choice_fits_exactly_when_the_sums_do(
    quota: dict[str, int], used: dict[str, int], choice: str, count: int
) -> None:
    total = sum(used.get(card, 0) for card in choice.split("|")) + count
    limit = sum(quota.get(card, 0) for card in choice.split("|"))
    assert (shortfall(quota, used, {choice: count}) is None) is (total <= limit)
