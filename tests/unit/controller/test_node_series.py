"""What nodes are used for beyond the quotas, and how full mGPU cards are, as a scraper reads it."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.node_series import NodeSeries
from core import names
from core.display.node_use import FILLS
from core.objects.device_class import DeviceClass
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod

GPU = "nvidia.com/gpu"


class Scraped:
    """A node with eight cards, and one with two mGPU cards of 80,000 MiB."""

    def __init__(self) -> None:
        self.ledger, self.registry, self.leading = Ledger(Settings()), CollectorRegistry(), True
        self.ledger.put_node(a_node("n").card("A", 8).view())
        self.ledger.put_node(a_node("m").mgpu(2, memory=80_000).view())
        self.series = NodeSeries(self.ledger, lambda: self.leading)
        self.registry.register(self.series)

    def put(self, pod: Any, node: str) -> None:
        self.ledger.put_pod(pod.bound_to(node).view())

    def shares(self, name: str, card: int, *, core: int, memory: int | None = None) -> None:
        self.put(
            a_pod(name).mgpu(core=core, memory=memory).recorded({f"{names.GPU_INDEX_PREFIX}main": str(card)}),
            "m",
        )

    def page(self, family: str) -> dict[str, float]:
        found = {}
        for line in generate_latest(self.registry).decode().splitlines():
            if line.startswith(f"{family}{{"):
                found[line.split('"')[1]] = float(line.rpartition(" ")[2])
        return found

    def unaccounted(self) -> dict[str, float]:
        return self.page("cardquota_cards_unaccounted")

    def fills(self) -> dict[str, float]:
        return {fill: number for fill, number in self.page("cardquota_mgpu_cards").items() if number}


def test_cards_are_told_that_no_queue_is_charged_with() -> None:
    """Until their pods end; those of pods that name the card, or ask for none, are not."""
    scraped = Scraped()
    assert scraped.unaccounted() == {"A": 0}
    scraped.put(a_pod("bare").gpu(3), "n")
    scraped.put(a_pod("named").gpu(2).card("A").assigned({"A": 2}), "n")
    scraped.put(a_pod("cpu"), "n")
    scraped.ledger.put_pod(a_pod("nowhere").gpu(1).view())
    assert scraped.unaccounted() == {"A": 3}
    scraped.ledger.put_pod(a_pod("bare").gpu(3).bound_to("n").phase("Succeeded").view())
    assert scraped.unaccounted() == {"A": 0}


def test_the_second_card_of_a_pod_that_names_one_is_told_as_well() -> None:
    scraped = Scraped()
    scraped.ledger.put_node(a_node("mixed").card("A", 4).mig("1g.10gb", 3).view())
    slices = next(card for card in scraped.ledger.inventory.on_node("mixed") if card != "A")
    resource = scraped.ledger.inventory.on_node("mixed")[slices].resource
    scraped.put(a_pod("both").gpu(2).limit(resource, 1).card("A").assigned({"A": 2}), "mixed")
    assert scraped.unaccounted() == {"A": 0, slices: 1}


def test_devices_that_a_class_serves_are_charged_as_those() -> None:
    scraped = Scraped()
    scraped.ledger.put_class(DeviceClass("gpu", extended=GPU))
    scraped.put(a_pod("bare").gpu(3), "n")
    assert scraped.unaccounted() == {"A": 3}, "it runs, and no claim was made for it"
    scraped.ledger.put_pod(a_pod("starts").gpu(2).bound_to("n", phase="Pending").view())
    assert scraped.unaccounted() == {"A": 3}, "a claim is made for it"


@pytest.mark.parametrize(
    ("core", "memory", "fill"),
    [
        (1, 10, "01-25"),
        (25, 20_000, "01-25"),
        (26, 10, "26-50"),
        (10, 40_001, "51-75"),
        (76, 10, "76-99"),
        (10, 79_999, "76-99"),
        (10, 80_000, "full"),
    ],
)
def test_a_card_is_as_full_as_its_core_or_its_memory(core: int, memory: int, fill: str) -> None:
    scraped = Scraped()
    assert scraped.fills() == {"00": 2}
    scraped.shares("p", 1, core=core, memory=memory)
    assert scraped.fills() == {"00": 1, fill: 1}
    scraped.ledger.drop_pod("uid-ml-p")
    assert scraped.fills() == {"00": 2}


def test_several_on_one_card_and_whole_cards() -> None:
    scraped = Scraped()
    scraped.shares("a", 0, core=40, memory=1_000)
    scraped.shares("b", 0, core=40, memory=1_000)
    scraped.shares("whole", 1, core=100)
    assert scraped.fills() == {"76-99": 1, "full": 1}
    assert {*scraped.page("cardquota_mgpu_cards")} == {*FILLS}


def test_nodes_come_and_go_and_only_the_leader_shows_anything() -> None:
    scraped = Scraped()
    scraped.put(a_pod("bare").gpu(3), "n")
    scraped.ledger.drop_node("m")
    assert scraped.page("cardquota_mgpu_cards") == {}
    scraped.ledger.drop_node("n")
    assert scraped.unaccounted() == {}
    scraped.ledger.put_node(a_node("n").card("A", 8).view())
    assert scraped.unaccounted() == {"A": 3}
    scraped.leading = False
    assert scraped.unaccounted() == {}


def test_whoever_stops_reading_half_way_loses_no_node() -> None:
    scraped = Scraped()
    for number in range(20):
        scraped.ledger.put_node(a_node(f"n{number}").card("A", 8).view())
        scraped.put(a_pod(f"p{number}").gpu(1), f"n{number}")
    reading = scraped.series.values("cardquota_cards_unaccounted")
    next(reading)
    reading.close()
    assert scraped.unaccounted() == {"A": 20}
