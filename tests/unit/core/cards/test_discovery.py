"""Which cards a node carries, row by row of the tables of labels and resources."""

import pytest

from core.cards.discovery import CardStock, discover
from tests.builders import a_node
from tests.builders.objects import NodeBuilder

GPU = "nvidia.com/gpu"


def cards(node: NodeBuilder, overrides: dict[str, str] | None = None) -> dict[str, tuple[str, int]]:
    """Card -> (resource, whole cards)."""
    found = discover(node.view(), overrides or {}).cards
    assert all(stock.milli % 1000 == 0 for stock in found.values())
    return {card: (stock.resource, stock.milli // 1000) for card, stock in found.items()}


def notes(node: NodeBuilder) -> str:
    return "\n".join(discover(node.view(), {}).notes)


class TestLabels:
    def test_product_count_and_memory(self) -> None:
        node = a_node().card("NVIDIA-H200", 8)
        assert cards(node) == {"NVIDIA-H200": (GPU, 8)}
        assert notes(node) == ""

    def test_count_is_not_needed(self) -> None:
        node = a_node().product("A").allocatable(GPU, 2)
        assert cards(node) == {"A": (GPU, 2)}

    @pytest.mark.parametrize("count", ["", "eight"])
    def test_count_never_matters(self, count: str) -> None:
        assert cards(a_node().product("A", count=count).allocatable(GPU, 2)) == {"A": (GPU, 2)}

    def test_labels_never_give_amounts(self) -> None:
        assert cards(a_node().product("A", count=8).allocatable(GPU, 7)) == {"A": (GPU, 7)}

    def test_without_memory_a_product_is_not_recognised(self) -> None:
        node = a_node().label("nvidia.com/gpu.product", "A").allocatable(GPU, 2)
        assert cards(node) == {}
        assert "memory is missing" in notes(node)
        assert cards(node.label("nvidia.com/gpu.memory", "")) == {}

    def test_memory_that_is_no_number_costs_only_the_mps_shares(self) -> None:
        node = a_node().product("A", memory="80GB").allocatable(GPU, 1).mig("1g.5gb", 2).mps(8, replicas=8)
        assert cards(node) == {"A": (GPU, 1), "A/mig-1g.5gb-mixed": ("nvidia.com/mig-1g.5gb", 2)}
        assert "memory is no number" in notes(node)
        assert "nvidia.com/gpu.shared is passed over" in notes(node)

    def test_an_empty_product_is_not_recognised(self) -> None:
        assert cards(a_node().product("").allocatable(GPU, 1)) == {}

    def test_a_product_that_cannot_be_a_card_name_is_not_recognised(self) -> None:
        node = a_node().product("A|B").allocatable(GPU, 1)
        assert cards(node) == {}
        assert "cannot be a card name" in notes(node)

    @pytest.mark.parametrize(
        ("prefix", "recognised"),
        [
            ("huawei.com/Ascend910", True),
            ("huawei.com/ascend-910", False),
            ("nvidia.com/mig-1g.5gb", False),
            ("nvidia.com/gpu.x", False),
            ("gpu", False),
        ],
    )
    def test_only_plain_resource_names_stand_before_the_product(
        self, prefix: str, *, recognised: bool
    ) -> None:
        assert bool(cards(a_node().card("A", 1, prefix=prefix))) is recognised

    @pytest.mark.parametrize(
        ("present", "product"),
        [
            ({"a.com/x": 1}, "AX"),
            ({"b.com/y": 1}, "BY"),
            ({"b.com/z": 1}, "BY"),
            ({"b.com/y": 1, "a.com/z": 1}, "BY"),
        ],
    )
    def test_of_several_products_the_one_whose_resource_is_there_counts(
        self, present: dict[str, int], product: str
    ) -> None:
        node = a_node().product("AX", prefix="a.com/x").product("BY", prefix="b.com/y")
        for resource, amount in present.items():
            node = node.allocatable(resource, amount)
        assert list(cards(node)) == [product]
        assert "several product labels" in notes(node)

    def test_among_equals_the_smallest_label_counts(self) -> None:
        node = a_node().product("BY", prefix="b.com/y").product("AX", prefix="a.com/x")
        node = node.allocatable("a.com/x", 1).allocatable("b.com/y", 2)
        assert cards(node) == {"AX": ("a.com/x", 1)}


class TestWholeCards:
    def test_the_label_s_own_resource_wins(self) -> None:
        node = a_node().card("A", 4).allocatable("nvidia.com/a", 9).allocatable("nvidia.com/hostdev", 2)
        assert cards(node) == {"A": (GPU, 4)}

    def test_else_the_only_other_resource_of_the_vendor(self) -> None:
        node = a_node().product("Ascend910B", prefix="huawei.com/npu").allocatable("huawei.com/Ascend910", 8)
        assert cards(node) == {"Ascend910B": ("huawei.com/Ascend910", 8)}

    def test_else_the_smallest_name_with_a_remark(self) -> None:
        node = a_node().product("N", prefix="h.com/npu").allocatable("h.com/b", 2).allocatable("h.com/a", 1)
        assert cards(node) == {"N": ("h.com/a", 1)}
        assert "could be any of h.com/a, h.com/b" in notes(node)

    def test_one_of_amount_0_does_not_take_the_cards_of_its_sibling(self) -> None:
        node = a_node().product("N", prefix="h.com/npu").allocatable("h.com/a", 0).allocatable("h.com/b", 2)
        assert cards(node) == {"N": ("h.com/b", 2)}
        assert "could be any" not in notes(node)

    def test_the_vendor_s_own_of_amount_0_does_not_either(self) -> None:
        node = a_node().label("gpu.intel.com/product", "Max_1550")
        node = node.allocatable("gpu.intel.com/i915", 0).allocatable("gpu.intel.com/xe", 2)
        assert cards(node) == {"Max_1550": ("gpu.intel.com/xe", 2)}

    def test_a_vendor_is_a_whole_domain(self) -> None:
        node = a_node().product("A").allocatable("nvidia.community/x", 1)
        assert cards(node) == {}
        assert "no resource" in notes(node)

    @pytest.mark.parametrize("amount", [0, -1])
    def test_amounts_of_zero_or_less_are_no_cards(self, amount: int) -> None:
        assert cards(a_node().product("A").allocatable(GPU, amount)) == {}

    def test_when_all_cards_are_cut_nothing_else_passes_for_a_whole_one(self) -> None:
        node = a_node().product("A").allocatable(GPU, 0).mig("1g.5gb", 56).allocatable("nvidia.com/rdma", 4)
        assert cards(node) == {"A/mig-1g.5gb-mixed": ("nvidia.com/mig-1g.5gb", 56)}

    def test_everything_else_is_no_card(self) -> None:
        node = (
            a_node().card("A", 1).allocatable("rdma/hca", 8).allocatable("cpu", 64).allocatable("pods", 110)
        )
        assert cards(node) == {"A": (GPU, 1)}

    def test_capacity_is_never_read(self) -> None:
        assert cards(a_node().product("A").put("status", "capacity", value={GPU: "8"})) == {}

    def test_neither_readiness_nor_cordons_matter(self) -> None:
        assert cards(a_node().card("A", 1).not_ready().cordoned()) == {"A": (GPU, 1)}

    def test_an_override_decides_alone(self) -> None:
        node = a_node().card("A", 4).allocatable("x.com/a", 3)
        assert cards(node, {"A": "x.com/a"}) == {"A": ("x.com/a", 3)}
        assert cards(a_node().card("A", 4), {"A": "x.com/a"}) == {}
        assert cards(node, {"B": "x.com/a"}) == {"A": (GPU, 4)}


class TestShares:
    @pytest.mark.parametrize(
        ("memory", "gib"),
        [
            (81920, 80),
            (81559, 80),
            (97871, 96),
            (32768, 32),
            (40960, 40),
            (24564, 24),
            (22882, 22),
            (11441, 11),
            (2560, 3),
            (1536, 2),
            (512, 1),
            (511, 0),
        ],
    )
    def test_gibibytes_are_rounded_half_away_from_zero(self, memory: int, gib: int) -> None:
        assert list(cards(a_node().product("A", memory=memory).mps(8, replicas=8))) == [f"A/mps-{gib}g*1/8"]

    def test_mps_counts_what_is_allocatable(self) -> None:
        node = a_node().product("NVIDIA-A100-80GB", count=4).allocatable(GPU, 0).mps(32, replicas=8)
        assert cards(node) == {"NVIDIA-A100-80GB/mps-80g*1/8": ("nvidia.com/gpu.shared", 32)}

    @pytest.mark.parametrize("replicas", ["a", "", "0", "-1", "1.5", "1_0", "٣"])
    def test_without_a_number_of_replicas_mps_is_ignored_entirely(self, replicas: str) -> None:
        assert cards(a_node().product("A").mps(8, replicas=replicas)) == {}
        assert cards(a_node().product("A").allocatable("nvidia.com/gpu.shared", 8)) == {}

    def test_a_mixed_node_carries_whole_cards_and_slices(self) -> None:
        node = a_node().card("NVIDIA-H200", 7, memory=143771).mig("3g.71gb", 1).mig("1g.18gb", 3)
        assert cards(node) == {
            "NVIDIA-H200": (GPU, 7),
            "NVIDIA-H200/mig-3g.71gb-mixed": ("nvidia.com/mig-3g.71gb", 1),
            "NVIDIA-H200/mig-1g.18gb-mixed": ("nvidia.com/mig-1g.18gb", 3),
        }

    def test_shares_without_a_product_are_passed_over(self) -> None:
        node = a_node().mig("1g.5gb", 2).mps(8, replicas=8)
        assert cards(node) == {}
        assert notes(node).count("no product label") == 2

    def test_a_slice_without_a_proper_profile_is_passed_over(self) -> None:
        assert cards(a_node().product("A").mig("", 2)) == {}

    def test_the_product_is_copied_as_it_stands(self) -> None:
        assert list(cards(a_node().product("NIVIDIA-H20").mig("1g", 1))) == ["NIVIDIA-H20/mig-1g-mixed"]


def test_stock_is_in_thousandths() -> None:
    assert discover(a_node().card("A", 2).view(), {}).cards == {"A": CardStock(GPU, 2000)}
