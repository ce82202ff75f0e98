"""mGPU shares of node pools that may have no nodes: let in by quota alone where no node has room, and led to the pool."""

from collections.abc import Mapping
from typing import Any

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.core.plan.lifting import held, lifted

LABELS = {"example.com/pool": "a10", names.MGPU_NODE_TYPE_LABEL: "mgpu"}


def settings(*, card_quota: bool = False, labels: Mapping[str, str] | None = None) -> Settings:
    pool = {"labels": dict(labels or LABELS), "resource": names.MGPU_CORE}
    return Settings.model_validate({"cards": {"pools": {"A10": pool}}, "mgpu": {"cardQuota": card_quota}})


def node(name: str, cards: int = 1) -> NodeBuilder:
    return a_node(name).mgpu(cards, memory=16384).label(names.HOSTNAME_LABEL, name)


def share(name: str, core: int = 50, *, second: int = 0) -> PodBuilder:
    pod = a_pod(name).mgpu(core=core, memory=2048).in_queue("q").gated()
    return pod.created(f"2024-01-01T00:00:{second:02}Z")


WHOLE = a_pod("p").mgpu(core=100).in_queue("q").gated()


def books(
    found: Settings, *nodes: NodeBuilder, core: int = 100, cards: Mapping[str, int] | None = None
) -> Ledger:
    ledger = Ledger(found)
    for one in nodes:
        ledger.put_node(one.view())
    queue = (
        a_queue("q").cards(dict(cards or {})).put("spec", "capability", value={names.MGPU_CORE: str(core)})
    )
    ledger.put_queue(queue.view())
    return ledger


def decide(ledger: Ledger, *pods: PodBuilder) -> dict[str, Lift | Hold]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return {decision.pod.name: decision for decision in Planner(ledger).decide("q")}


def asked_of_nodes(decision: Lift | Hold) -> list[dict[str, tuple[str, ...]]]:
    assert isinstance(decision, Lift)
    return [{each.key: each.values for each in way} for way in decision.requirement.alternatives]


def test_without_any_node_shares_are_lifted_up_to_the_quota_and_led_to_the_pool() -> None:
    decisions = decide(books(settings()), *(share(f"p{i}", second=i) for i in range(3)))
    assert lifted(decisions) == ["p0", "p1"]
    for way in asked_of_nodes(decisions["p0"]):
        assert way["example.com/pool"] == ("a10",)
    lift = decisions["p0"]
    assert isinstance(lift, Lift)
    assert names.NODE_ANNOTATION not in lift.records
    assert names.NOMINATED_ANNOTATION not in lift.records
    assert held(decisions["p2"]).why.code == reasons.INSUFFICIENT_SCALAR_QUOTA


def test_a_node_that_has_room_comes_before_the_pool() -> None:
    decisions = decide(books(settings(), node("m1")), share("p0", 80), share("p1", 20, second=1))
    for name in ("p0", "p1"):
        lift = decisions[name]
        assert isinstance(lift, Lift)
        assert lift.records[names.NODE_ANNOTATION] == "m1"
    more = decide(books(settings(), node("m1"), core=200), share("p0", 80), share("p1", 80, second=1))
    first, second = more["p0"], more["p1"]
    assert isinstance(first, Lift)
    assert isinstance(second, Lift)
    assert (names.NODE_ANNOTATION in first.records, names.NODE_ANNOTATION in second.records) == (True, False)


@pytest.mark.parametrize(
    ("pod", "labels", "lifts"),
    [
        (share("p"), LABELS, True),
        (share("p").mgpu_policy("native-burst-share"), LABELS, False),
        (
            share("p").mgpu_policy("native-burst-share"),
            {**LABELS, names.MGPU_POLICY_KEY: "native-burst-share"},
            True,
        ),
        (share("p"), {**LABELS, names.MGPU_POLICY_KEY: "native-burst-share"}, False),
        (WHOLE, {**LABELS, names.MGPU_POLICY_KEY: "native-burst-share"}, True),
        (share("p").put("spec", "nodeSelector", value={"example.com/pool": "other"}), LABELS, False),
        (share("p").put("spec", "nodeSelector", value={"zone": "z"}), LABELS, True),
    ],
    ids=["plain", "other policy", "its policy", "default policy", "whole cards", "other pool", "any zone"],
)
def test_the_pool_has_to_be_of_its_policy_and_its_rules_have_to_admit_it(
    pod: PodBuilder, labels: dict[str, str], *, lifts: bool
) -> None:
    decision = decide(books(settings(labels=labels)), pod)["p"]
    assert isinstance(decision, Lift) is lifts
    if not lifts:
        assert held(decision).why.code == reasons.NO_FREE_CARD


def test_the_name_of_such_a_pool_is_no_whole_card() -> None:
    ledger = books(settings(), cards={"A10": 8})
    whole = a_pod("p").gpu(1).card("A10").in_queue("q").gated()
    assert held(decide(ledger, whole)["p"]).why.code == reasons.GET_TASK_REQUEST_RESOURCE_FAILED
    assert ledger.inventory.cards() == ()


@pytest.mark.parametrize(("cards", "names_lifted"), [({"A10": 1}, ["p0", "p1"]), ({"A10": 0}, []), ({}, [])])
def test_with_mgpu_card_quota_shares_of_the_pool_count_against_its_card(
    cards: dict[str, int], names_lifted: list[str]
) -> None:
    ledger = books(settings(card_quota=True), core=1000, cards=cards)
    decisions = decide(ledger, *(share(f"p{i}", second=i) for i in range(3)))
    assert lifted(decisions) == names_lifted
    if names_lifted:
        lift = decisions["p0"]
        assert isinstance(lift, Lift)
        assert lift.records[names.SHARE_CARD_ANNOTATION] == '{"A10":50}'
        assert ledger.used("q", "A10") == 1000


def test_a_gang_is_let_in_whole_or_not_at_all() -> None:
    def gang(core: int) -> list[str]:
        ledger = books(settings(), core=core)
        ledger.put_group(a_group("g").in_queue("q").min_member(3).view())
        return lifted(decide(ledger, *(share(f"m{i}", second=i).in_group("g") for i in range(3))))

    assert gang(149) == []
    assert gang(150) == ["m0", "m1", "m2"]


def test_the_new_node_is_bound_with_cards_and_one_of_another_kind_is_not() -> None:
    found = settings()
    ledger = books(found)
    lift = decide(ledger, share("p"))["p"]
    assert isinstance(lift, Lift)
    ledger.put_node(node("fresh").label("example.com/pool", "a10").view())
    ledger.put_node(a_node("plain").view())
    binder = Binder(ledger, guest_book(tuple(ledger.nodes.values()), (), found), found, lambda: None)
    records: Any = binder.decide(lift.lifted, "fresh")
    assert records[f"{names.GPU_INDEX_PREFIX}main"] == "0"
    assert isinstance(binder.decide(lift.lifted, "plain"), Refusal)
