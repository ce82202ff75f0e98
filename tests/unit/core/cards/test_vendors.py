"""Nodes as each vendor's own software makes them: their cards, and the pods that get them by quota, lift and bind."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.cards.alarms import UNLABELLED
from core.cards.inventory import Inventory
from core.cards.vendor import Example, Vendor
from core.cards.vendors import VENDORS
from core.crossquota.book import guest_book
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder

EXAMPLES = [(vendor, example) for vendor in VENDORS for example in vendor.examples]
CARDS = [(example, card) for _, example in EXAMPLES for card in example.cards]


def made(example: Example, name: str = "n") -> NodeBuilder:
    """The node of an example, among those that every kubelet makes."""
    node = a_node(name).allocatable("cpu", 64).allocatable("memory", "512Gi").allocatable("pods", 110)
    for key, value in example.labels.items():
        node = node.label(key, value)
    for resource, number in example.allocatable.items():
        node = node.allocatable(resource, number)
    return node


def asking(name: str, card: str, resource: str, second: int = 0) -> PodBuilder:
    pod = a_pod(name).limit(resource, 1).card(card).in_queue("q").gated()
    return pod.created(f"2024-01-01T00:00:{second:02}Z").put("metadata", "resourceVersion", value="7")


@pytest.mark.parametrize(("vendor", "example"), EXAMPLES, ids=lambda each: getattr(each, "name", ""))
def test_a_node_shows_the_cards_of_its_row(vendor: Vendor, example: Example) -> None:
    inventory = Inventory({})
    inventory.put(made(example).view())
    found = {card: (stock.resource, stock.milli // 1000) for card, stock in inventory.on_node("n").items()}
    assert found == example.cards
    assert inventory.notes("n") == ()
    assert inventory.alarms("n") == (), vendor.name
    for card, (resource, _) in example.cards.items():
        assert inventory.resources_of(card) == {resource}


@pytest.mark.parametrize(("example", "card"), CARDS, ids=lambda each: each if isinstance(each, str) else "")
def test_its_cards_go_through_quota_lift_and_bind(example: Example, card: str) -> None:
    """Beside a node of the same software with another product, to which no such pod is led."""
    resource, _ = example.cards[card]
    ledger = Ledger(Settings())
    ledger.put_node(made(example, "right").view())
    ledger.put_node(made(another_product(example), "wrong").view())
    ledger.put_queue(a_queue("q").cards({card: 1}).view())
    pods = [asking("first", card, resource), asking("second", card, resource, 1)]
    for pod in pods:
        ledger.put_pod(pod.view())
    first, second = Planner(ledger).decide("q")
    assert isinstance(first, Lift)
    assert first.assigned == {card: 1}
    assert isinstance(second, Hold)
    assert second.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert admitted(first, ledger) == ["right"]
    binder = Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)
    lifted = pods[0].view()
    lifted = replace(
        lifted,
        gates=(),
        annotations={**lifted.annotations, names.ASSIGNED_ANNOTATION: json.dumps({card: 1})},
    )
    assert binder.passes_unasked(lifted, "right")
    assert not binder.passes_unasked(lifted, "wrong")


def another_product(example: Example) -> Example:
    product = next(vendor.products for vendor, each in EXAMPLES if each is example)
    labels = {key: value if key not in product else f"OTHER{value}" for key, value in example.labels.items()}
    return replace(example, labels=labels)


def admitted(lift: Lift, ledger: Ledger) -> list[str]:
    """The nodes on which the patch leaves the pod a place."""
    (terms,) = (each["value"] for each in lift.patch if "affinity" in each["path"])
    return [
        name
        for name, node in ledger.nodes.items()
        if any(_holds(term, node.labels) for term in _terms(terms))
    ]


def _terms(value: object) -> Iterator[list[dict[str, object]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "matchExpressions":
                yield inner
            else:
                yield from _terms(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _terms(inner)


def _holds(expressions: list[dict[str, object]], labels: object) -> bool:
    assert hasattr(labels, "get")
    for each in expressions:
        value, wanted = labels.get(each["key"]), each.get("values")
        if each["operator"] == "DoesNotExist" and value is not None:
            return False
        if each["operator"] == "In" and (not isinstance(wanted, list) or value not in wanted):
            return False
    return True


def test_a_row_of_the_settings_comes_before_the_table() -> None:
    settings = Settings.model_validate(
        {
            "discovery": [
                {"vendor": "Example", "product": "example.com/npu.model", "resources": ["example.com/npu"]},
                {"vendor": "AMD", "product": "amd.com/gpu.product-name", "resources": ["amd.com/own"]},
            ]
        }
    )
    inventory = Inventory.of(settings)
    inventory.put(a_node("n").label("example.com/npu.model", "X200").allocatable("example.com/npu", 8).view())
    amd = a_node("m").label("amd.com/gpu.product-name", "MI300X")
    inventory.put(amd.allocatable("amd.com/own", 2).allocatable("amd.com/gpu", 4).view())
    assert inventory.totals() == {"X200": 8000, "MI300X": 2000}
    (note,) = inventory.notes("m")
    assert "amd.com/gpu is offered and gives no card" in note, "one row for one label"
    assert inventory.notes("n") == ()
    assert inventory.resource_of("X200") == "example.com/npu"


@pytest.mark.parametrize(
    ("resource", "word"),
    [
        *((resource, resource) for resource, _ in UNLABELLED.values()),
        ("example.com/v-npu", "example.com/npu"),
        ("huawei.com/ascend-1980", "huawei.com/npu"),
    ],
)
def test_a_node_labelled_by_hand_as_the_page_says_shows_its_cards(resource: str, word: str) -> None:
    inventory = Inventory({})
    inventory.put(made(Example({}, {resource: 8}, {})).view())
    assert [alarm.reason for alarm in inventory.alarms("n")] == [reasons.ACCELERATOR_WITHOUT_CARD]
    labels = {f"{word}.product": "X200", f"{word}.memory": "65536"}
    inventory.put(made(Example(labels, {resource: 8}, {})).view())
    assert inventory.totals() == {"X200": 8000}
    assert inventory.resources_of("X200") == {resource}
    assert inventory.alarms("n") == ()


@pytest.mark.parametrize(
    ("labels", "allocatable", "card"),
    [
        ({"nvidia.com/gpu.product": "H200-SHARED", "nvidia.com/gpu.replicas": "4"}, 32, "H200/ts-140g*1/4"),
        (
            {
                "nvidia.com/gpu.product": "H200-SHARED",
                "nvidia.com/gpu.replicas": "2",
                "nvidia.com/gpu.sharing-strategy": "mps",
            },
            16,
            "H200/mps-140g*1/2",
        ),
        ({"nvidia.com/gpu.product": "H200", "nvidia.com/gpu.replicas": "1"}, 8, "H200"),
    ],
)
def test_replicas_under_the_name_of_whole_cards_never_count_as_whole_ones(
    labels: dict[str, str], allocatable: int, card: str
) -> None:
    example = Example({**labels, "nvidia.com/gpu.memory": "143771"}, {"nvidia.com/gpu": allocatable}, {})
    inventory = Inventory({})
    inventory.put(made(example).view())
    assert inventory.totals() == {card: allocatable * 1000}


@pytest.mark.parametrize(
    ("labels", "allocatable", "reason", "words"),
    [
        (
            {},
            {"amd.com/gpu": 8},
            reasons.ACCELERATOR_WITHOUT_CARD,
            "amd.com/gpu is offered and gives no card",
        ),
        ({}, {"cambricon.com/mlu370": 8}, reasons.ACCELERATOR_WITHOUT_CARD, "cambricon.com/mlu370"),
        ({}, {"some.vendor/v-gpu": 8}, reasons.ACCELERATOR_WITHOUT_CARD, "some.vendor/v-gpu"),
        (
            {"hygon.com/dcu.name": "K100_AI"},
            {"hygon.com/dcu": 4, "hygon.com/dcu-share-30c-16g": 8},
            reasons.ACCELERATOR_WITHOUT_CARD,
            "hygon.com/dcu-share-30c-16g is offered and gives no card",
        ),
        (
            {"node.kubernetes.io/npu.chip.name": "910B3"},
            {"huawei.com/Ascend910": 4, "huawei.com/Ascend310P": 2},
            reasons.ACCELERATOR_WITHOUT_CARD,
            "huawei.com/Ascend910 is offered and gives no card",
        ),
        (
            {"amd.com/gpu.product-name": "MI300X", "amd.com/gpu.compute-memory-partition": "odd"},
            {"amd.com/gpu": 8},
            reasons.ACCELERATOR_WITHOUT_CARD,
            "odd is no partition",
        ),
        (
            {"amd.com/gpu.product-name": "MI300X"},
            {"amd.com/gpu": 0},
            reasons.CARD_LABELS_CONTRADICT,
            "MI300X has a label, but no resource",
        ),
        (
            {"nvidia.com/gpu.product": "A", "nvidia.com/gpu.memory": "1", "nvidia.com/gpu.count": "4"},
            {"nvidia.com/gpu": 32},
            reasons.CARD_LABELS_CONTRADICT,
            "nvidia.com/gpu.count says 4, and 32 nvidia.com/gpu are offered",
        ),
        (
            {
                "iluvatar.com/gpu.product": "BI-V150S",
                "iluvatar.com/gpu.memory": "32768",
                "iluvatar.com/gpu.count": "2",
            },
            {"iluvatar.com/gpu": 8},
            reasons.CARD_LABELS_CONTRADICT,
            "iluvatar.com/gpu.count says 2, and 8 iluvatar.com/gpu are offered",
        ),
        (
            {"gpu.intel.com/product": "Max_1550", "gpu.intel.com/device.count": "2"},
            {"gpu.intel.com/xe": 20},
            reasons.CARD_LABELS_CONTRADICT,
            "gpu.intel.com/device.count says 2, and 20 gpu.intel.com/xe are offered",
        ),
        (
            {"example.com/npu.product": "X", "example.com/npu.memory": "1", "example.com/npu.count": "4"},
            {"example.com/npu": 8},
            reasons.CARD_LABELS_CONTRADICT,
            "example.com/npu.count says 4, and 8 example.com/npu are offered",
        ),
        (
            {
                "nvidia.com/gpu.product": "A",
                "nvidia.com/gpu.memory": "1",
                "nvidia.com/mig.strategy": "single",
            },
            {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 7},
            reasons.CARD_LABELS_CONTRADICT,
            "nvidia.com/mig.strategy says single, and nvidia.com/mig-1g.5gb is offered",
        ),
    ],
)
def test_what_costs_somebody_cards_is_an_alarm(
    labels: dict[str, str], allocatable: dict[str, int], reason: str, words: str
) -> None:
    inventory = Inventory({})
    inventory.put(made(Example(labels, allocatable, {})).view())
    (alarm,) = inventory.alarms("n")
    assert alarm.reason == reason
    assert words in alarm.message
    assert alarm.message in inventory.notes("n")


def test_what_a_vendor_offers_beside_its_cards_is_none() -> None:
    labels = {"gpu.intel.com/product": "Max_1550"}
    offered = {"gpu.intel.com/i915": 2, "gpu.intel.com/tiles": 4, "gpu.intel.com/i915_monitoring": 1}
    inventory = Inventory({})
    inventory.put(made(Example(labels, offered, {})).view())
    assert inventory.alarms("n") == ()


@pytest.mark.parametrize(
    "allocatable",
    [
        {"rdma/hca": 8},
        {"example.com/licence": 3},
        {"nvidia.com/gpumem": 100},
        {"gpu.intel.com/i915_monitoring": 1},
        {names.MGPU_CORE: 800, names.MGPU_MEMORY: 8},
        {"amd.com/gpu": 0},
        {"hugepages-1Gi": 4},
    ],
)
def test_what_is_no_accelerator_is_none(allocatable: dict[str, int]) -> None:
    inventory = Inventory({})
    inventory.put(made(Example({}, allocatable, {})).view())
    assert inventory.alarms("n") == ()
