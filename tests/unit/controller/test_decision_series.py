"""What is decided on the pods of each queue, as a scraper reads it."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics

from controller.decision_series import DecisionSeries
from controller.metrics import Metrics
from kube.metrics import Page
from tests.builders import a_queue

A, B = (a_queue(name).view() for name in ("a", "b"))


class Scraped:
    """Two queues."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry)
        self.changed = self.metrics.by_queue.queue_changed
        self.changed(None, A)
        self.changed(None, B)
        self.registry.register(DecisionSeries(self.metrics.by_queue))

    def lines(self) -> list[str]:
        page = generate_latest(self.registry).decode()
        return [line for line in page.splitlines() if line.startswith("cardquota_queue_")]


def test_lifts_and_holds_are_counted_for_their_queue_and_for_all() -> None:
    scraped = Scraped()
    for queue, outcome in (("a", "done"), ("a", "done"), ("a", "refused"), ("b", "done")):
        scraped.metrics.lifted(queue, outcome)
    scraped.metrics.held("b", "CardQuotaExceeded")
    assert scraped.lines() == [
        'cardquota_queue_lifts_total{outcome="done",queue_name="a"} 2.0',
        'cardquota_queue_lifts_total{outcome="refused",queue_name="a"} 1.0',
        'cardquota_queue_lifts_total{outcome="done",queue_name="b"} 1.0',
        'cardquota_queue_holds_total{queue_name="b",reason="CardQuotaExceeded"} 1.0',
    ]
    value = scraped.registry.get_sample_value
    assert value("cardquota_lifts_total", {"outcome": "done"}) == 3
    assert value("cardquota_holds_total", {"reason": "CardQuotaExceeded"}) == 1


def test_a_queue_that_is_gone_is_forgotten_and_one_that_was_never_there_is_not_shown() -> None:
    scraped = Scraped()
    scraped.metrics.held("a", "CardQuotaExceeded")
    scraped.metrics.held("nowhere", "QueueNotFound")
    assert len(scraped.lines()) == 1
    scraped.changed(A, A)
    assert len(scraped.lines()) == 1
    scraped.changed(A, a_queue("a").uid("another").view())
    assert scraped.lines() == []
    scraped.metrics.held("a", "CardQuotaExceeded")
    assert len(scraped.lines()) == 1
    scraped.changed(A, None)
    scraped.metrics.held("a", "CardQuotaExceeded")
    assert scraped.lines() == []
    assert scraped.metrics.by_queue.holds.keys() == {"b"}


async def test_the_page_in_slices_is_that_in_one_go() -> None:
    scraped = Scraped()
    scraped.metrics.lifted("a", "done")
    scraped.metrics.held("b", "CardQuotaExceeded")
    for encode in (generate_latest, open_metrics):
        page = b"".join(await Page(scraped.registry).made(encode))
        assert page == encode(scraped.registry)
        assert b"# TYPE cardquota_queue_lifts" in page
