"""The queue series: in cards, of the leader only, and none that keeps its last value."""

from prometheus_client import CollectorRegistry

from controller.metrics import QueueSeries
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue


def values(registry: CollectorRegistry, queue: str, card: str) -> list[float | None]:
    labels = {"queue_name": queue, "card": card}
    series = ("capacity", "deserved", "allocated", "request")
    return [registry.get_sample_value(f"volcano_queue_card_{name}", labels) for name in series]


def test_series_are_in_cards_and_go_with_their_queue() -> None:
    ledger, registry = Ledger(Settings()), CollectorRegistry()
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 4, "B": 1}).view())
    ledger.put_pod(a_pod("a").gpu(2).card("A").in_queue("q").bound_to("n").view())
    ledger.put_pod(a_pod("b").gpu(1).card("A").in_queue("q").view())
    ledger.put_pod(a_pod("c").gpu(3).card("A").in_queue("q").gated().view())
    series = QueueSeries(ledger)
    registry.register(series)
    assert values(registry, "q", "A") == [None] * 4
    series.leading = True
    assert values(registry, "q", "A") == [4, 4, 2, 6]
    assert values(registry, "q", "B") == [1, 1, 0, 0]
    labels = {"queue_name": "q", "card": "A"}
    assert registry.get_sample_value("cardquota_queue_card_reserved", labels) == 1
    ledger.put_queue(a_queue("q").cards({"A": 4}).view())
    assert values(registry, "q", "B")[0] == 0
    assert values(registry, "q", "B")[0] is None
    ledger.drop_queue("q")
    assert values(registry, "q", "A") == [None] * 4
