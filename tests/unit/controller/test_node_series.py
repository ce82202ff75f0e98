"""What nodes are used for beyond the quotas, and how full mGPU cards are, as a scraper reads it."""

import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.node_series import NodeSeries
from controller.series import BookSeries
from core import names
from core.crossquota.book import GuestBook
from core.display.fill import FILLS
from core.objects.device_class import DeviceClass
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Steps, finish
from kube.metrics import LongFamily, Page
from tests.builders import a_node, a_pod
from tests.fakes.ticking import Ticking
from tests.unit.core.crossquota.ruling import gpu_node, ruled

GPU = "nvidia.com/gpu"
RULED = ruled(quotaResources=["cpu"])
LABELS = re.compile(r'"([^"]*)"')


class Scraped:
    """A node with eight cards, and one with two mGPU cards of 80,000 MiB."""

    def __init__(self) -> None:
        self.ledger, self.registry, self.leading = Ledger(Settings()), CollectorRegistry(), True
        self.guests = GuestBook(RULED)
        self.ledger.put_node(a_node("n").card("A", 8).view())
        self.ledger.put_node(a_node("m").mgpu(2, memory=80_000).view())
        self.series = NodeSeries(self.ledger, self.guests, lambda: self.leading)
        self.registry.register(self.series)

    def guest(self, name: str, cpu: str, node: str) -> None:
        """A pod without GPU that runs there."""
        self.guests.put_pod(a_pod(name).request("cpu", cpu).bound_to(node).view())

    def by(self, *families: str) -> list[dict[tuple[str, ...], float]]:
        """What families of nodes show on one page: by the other label and the node, in the order of these."""
        page = generate_latest(self.registry).decode().splitlines()
        return [
            {
                tuple(LABELS.findall(line)): float(line.rpartition(" ")[2])
                for line in page
                if line.startswith(f"{family}{{")
            }
            for family in families
        ]

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
    unaccounted = next(scraped.series.collect())
    assert isinstance(unaccounted, LongFamily)
    reading = unaccounted.lines()
    next(reading)
    reading.close()
    assert scraped.unaccounted() == {"A": 20}


def crowded(pods: int) -> Scraped:
    """As many pods on one node, each with a card that it does not name; a node's kubelet need not have taken them in."""
    scraped = Scraped()
    for number in range(pods):
        scraped.put(a_pod(f"p{number}").gpu(1), "n")
    return scraped


def unaccounted_lines(scraped: Scraped) -> Steps[list[str]]:
    family = next(scraped.series.collect())
    assert isinstance(family, LongFamily)
    return family.lines()


@pytest.mark.parametrize(("pods", "pauses"), [(0, 0), (100, 0), (101, 1), (10_000, 99)])
def test_however_many_pods_are_on_one_node_they_are_summed_100_at_a_time(pods: int, pauses: int) -> None:
    scraped = crowded(pods)
    scraped.ledger.drop_node("m")
    reading = unaccounted_lines(scraped)
    assert sum(1 for _ in reading) == pauses
    assert scraped.unaccounted() == {"A": pods}


def test_a_pod_that_comes_while_those_of_its_node_are_summed_is_on_the_next_page() -> None:
    scraped = crowded(1_000)
    reading = unaccounted_lines(scraped)
    next(reading)
    scraped.put(a_pod("late").gpu(1), "n")
    assert finish(reading) == ['cardquota_cards_unaccounted{card="A"} 1000.0\n']
    assert scraped.unaccounted() == {"A": 1_001}


def test_a_slow_page_that_began_before_a_change_does_not_undo_what_a_later_one_shows() -> None:
    scraped = crowded(1_000)
    slow = unaccounted_lines(scraped)
    next(slow)
    scraped.put(a_pod("late").gpu(1), "n")
    assert scraped.unaccounted() == {"A": 1_001}
    finish(slow)
    assert scraped.unaccounted() == {"A": 1_001}


CARDS = ("cardquota_node_cards", "cardquota_node_cards_used")
CROSS = ("cardquota_node_cross_quota", "cardquota_node_cross_used")
TAKEN = "cardquota_node_mgpu_card_taken"


def test_each_node_tells_what_it_carries_and_what_its_pods_use_by_name_or_without() -> None:
    """And nodes without cards tell nothing: there may be thousands of them."""
    scraped = Scraped()
    scraped.ledger.put_node(a_node("cpu").allocatable("cpu", "64").view())
    scraped.put(a_pod("bare").gpu(3), "n")
    scraped.put(a_pod("named").gpu(2).card("A").assigned({"A": 2}), "n")
    scraped.put(a_pod("only-cpu").request("cpu", "1"), "cpu")
    assert scraped.by(*CARDS) == [{("A", "n"): 8}, {("A", "n"): 5}]
    scraped.ledger.put_node(a_node("n").card("B", 4).view())
    shown = [{("A", "n"): 0, ("B", "n"): 4}, {("A", "n"): 0, ("B", "n"): 4 + 1}]
    assert scraped.by(*CARDS) == shown, "what is gone is shown as 0 once"
    assert scraped.by(CARDS[0]) == [{("B", "n"): 4}]
    scraped.ledger.drop_node("n")
    assert scraped.by(*CARDS) == [{}, {}]


def test_each_mgpu_card_tells_which_part_of_it_is_taken() -> None:
    scraped = Scraped()
    assert scraped.by(TAKEN) == [{("0", "m"): 0, ("1", "m"): 0}]
    scraped.shares("a", 0, core=40, memory=8_000)
    scraped.shares("b", 0, core=15, memory=8_000)
    scraped.shares("c", 1, core=10, memory=20_000)
    assert scraped.by(TAKEN) == [{("0", "m"): 0.55, ("1", "m"): 0.25}]
    scraped.ledger.drop_node("m")
    assert scraped.by(TAKEN) == [{}]


def test_each_node_with_gpus_tells_what_pods_without_may_use_and_do() -> None:
    """Also where the pods were there before the node was; and where none has such a limit nothing is told."""
    scraped = Scraped()
    scraped.guest("early", "3", "gpu")
    assert scraped.by(*CROSS) == [{}, {}]
    scraped.guests.put_node(gpu_node(cpu="64").view())
    scraped.guest("late", "1500m", "gpu")
    assert scraped.by(*CROSS) == [{("gpu", "cpu"): 64}, {("gpu", "cpu"): 4.5}]
    scraped.guests.drop_node("gpu")
    assert scraped.by(*CROSS) == [{}, {}]


def test_a_standby_tells_nothing_of_any_node() -> None:
    scraped = Scraped()
    scraped.guests.put_node(gpu_node().view())
    scraped.leading = False
    assert scraped.by(*CARDS, *CROSS, TAKEN) == [{}] * 5


async def test_others_are_served_while_a_thousand_nodes_are_shown_and_then_nothing_is_written_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scraped, clock = Scraped(), Ticking()
    for number in range(1_000):
        scraped.ledger.put_node(a_node(f"m{number}").card("A", 8).mgpu(2, memory=80_000).view())
        scraped.guests.put_node(gpu_node(f"m{number}").view())
    for number in range(5_000):
        scraped.guest(str(number), "1m", "m7")
    pages = Page(scraped.registry, clock.turns)
    async with clock.beside():
        page = b"".join(await pages.made(generate_latest)).decode()
    assert page.count("\ncardquota_node_") == 2 * 1_001 + 2 * 1_001 + 2 * 1_000
    assert 'cardquota_node_cross_used{node="m7",resource="cpu"} 5.0\n' in page
    assert clock.readings > 3_000
    assert clock.longest <= 7, "steps between two moments at which others were served"
    monkeypatch.setattr(BookSeries, "_block", None)
    assert b"".join(await pages.made(generate_latest)).decode() == page


def test_a_node_that_comes_while_a_page_is_made_is_shown_on_the_next_one() -> None:
    scraped = Scraped()
    scraped.guest("early", "3", "gpu")
    scraped.guests.put_node(gpu_node().view())
    (cross,) = [family for family in scraped.series.collect() if family.name == CROSS[1]]
    assert isinstance(cross, LongFamily)
    reading = cross.lines()
    next(reading)
    scraped.guests.put_node(gpu_node("late").view())
    assert finish(reading) == ['cardquota_node_cross_used{node="gpu",resource="cpu"} 3.0\n']
    assert scraped.by(CROSS[1]) == [{("gpu", "cpu"): 3, ("late", "cpu"): 0}]
