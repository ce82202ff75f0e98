"""The metrics page of a large cluster: made in slices, word for word what prometheus_client makes of it in one go."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from controller.device_series import DeviceSeries
from controller.metrics import QueueSeries
from controller.series import BookSeries
from core.objects import Pod
from core.queues.ledger import Ledger
from core.settings import Settings
from kube import metrics
from kube.metrics import Encoder, Page
from kube.serving import application
from tests.builders import a_node, a_pod, a_queue
from tests.fakes.ticking import Ticking

CARDS = {f"CARD-{number}": 8 for number in range(4)}
DEVICES = {"capability": {"gpu": {"count": 4, "capacity": {"memory": "2500m"}}}}
ACCEPTED = {
    "text": "text/plain",
    "text 1.0": "text/plain;version=1.0.0;escaping=allow-utf-8",
    "OpenMetrics 0.0.1": "application/openmetrics-text;version=0.0.1",
    "OpenMetrics": "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8,text/plain;q=0.5",
}
COUNTED = Counter("things", "Things.", ("of",), registry=None)
COUNTED.labels("a").inc(3)
TIMED = Histogram("times", "Times.", registry=None)
TIMED.observe(0.2)


class Shown:
    """Books behind a registry, with the page of it in slices."""

    def __init__(self, queues: int = 0) -> None:
        self.ledger, self.registry, self.clock = Ledger(Settings()), CollectorRegistry(), Ticking()
        self.late: list[Pod] = []
        self.registry.register(COUNTED)
        self.registry.register(TIMED)
        self.series = QueueSeries(self.ledger, lambda: self.late)
        self.registry.register(self.series)
        self.registry.register(DeviceSeries(self.ledger.devices, lambda: self.series.leading))
        self.series.leading = True
        self.ledger.put_node(a_node("n").card("CARD-1", 8).view())
        for number in range(queues):
            self.ledger.put_queue(a_queue(f"q{number}").cards(CARDS).view())
        self.pages = Page(self.registry, self.clock.turns)

    async def page(self, encode: Encoder = generate_latest) -> str:
        return b"".join(await self.pages.made(encode)).decode()

    def card_lines(self, page: str) -> int:
        return sum("queue_card" in line and not line.startswith("#") for line in page.splitlines())


def fill(ledger: Ledger, late: list[Pod]) -> None:
    """Queues and pods in every state, among them names that have to be escaped."""
    ledger.put_queue(a_queue("q").cards({"A": 4, 'B "b"': 1, "C\\\n": 2}).devices(DEVICES).view())
    ledger.put_queue(a_queue("other").cards({"A": 3_000_000}).view())
    pod = a_pod("p").card("A").in_queue("q")
    ledger.put_pod(pod.uid("bound").gpu(2).bound_to("n").view())
    ledger.put_pod(pod.uid("reserved").gpu(3).view())
    ledger.put_pod(pod.uid("waiting").gpu(3).gated().view())
    ledger.put_pod(pod.uid("open").gpu(1).card("A|C").gated().view())
    late.append(pod.uid("reserved").view())


def cut(ledger: Ledger, late: list[Pod]) -> None:
    """Series end: of one card of a queue, of all of another, and of a queue that is deleted."""
    ledger.put_queue(a_queue("q").cards({"A": 1}).view())
    ledger.put_queue(a_queue("other").view())
    late.clear()


def drop(ledger: Ledger, _: list[Pod]) -> None:
    ledger.drop_queue("q")
    ledger.drop_pod("bound")


class Collected(Collector):
    """Counts how often the registry is looked through."""

    def __init__(self) -> None:
        self.times = 0

    def collect(self) -> Iterator[Metric]:
        self.times += 1
        yield Metric("pages", "Pages.", "gauge")


async def test_however_many_ask_each_waits_for_two_pages_and_sees_what_had_happened_when_it_asked() -> None:
    """Whoever asks without end makes no scraper wait for a page for each of his questions."""
    shown, collected = Shown(queues=200), Collected()
    shown.registry.register(collected)
    collected.times = 0
    first = asyncio.create_task(shown.page())
    await asyncio.sleep(0)
    assert not first.done(), "it is under way"
    shown.ledger.put_queue(a_queue("later").cards({"A": 4}).view())
    pages = await asyncio.gather(*(shown.page() for _ in range(50)))
    assert all('queue_name="later"' in page for page in pages)
    assert collected.times == 2
    await first
    shown.ledger.put_queue(a_queue("last").cards({"A": 4}).view())
    assert 'queue_name="last"' in await shown.page()
    assert collected.times == 3


@pytest.mark.parametrize("accepted", ACCEPTED.values(), ids=ACCEPTED)
async def test_the_page_in_slices_is_that_in_one_go(accepted: str) -> None:
    encode = choose_encoder(accepted)[0]
    sliced, whole = Shown(queues=5), Shown(queues=5)

    async def same() -> str:
        page = await sliced.page(encode)
        assert page == encode(whole.registry).decode()
        return page

    await same()
    changes: tuple[Callable[[Ledger, list[Pod]], None], ...] = (fill, cut, drop)
    for change in changes:
        for shown in (sliced, whole):
            change(shown.ledger, shown.late)
        assert 'queue_name="q"' in await same() or change is drop
        await same()
    for leading in (False, True):
        for shown in (sliced, whole):
            shown.series.leading = leading
        await same()
        await same()


async def test_others_are_served_while_two_thousand_queues_are_shown() -> None:
    shown = Shown(queues=2000)
    async with shown.clock.beside():
        page = await shown.page()
    assert shown.card_lines(page) == 2000 * 4 * 6
    assert shown.clock.readings > 2000
    assert shown.clock.longest <= 7, "steps between two moments at which others were served"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queue of each line of a card that is written."""
    lines, write = list[str](), BookSeries.line

    def noted(gauges: BookSeries[Any], name: str, labels: tuple[str, ...], value: float) -> str:
        if len(labels) > 1:
            lines.append(labels[0])
        return write(gauges, name, labels, value)

    monkeypatch.setattr(BookSeries, "line", noted)
    return lines


async def test_only_what_has_changed_is_written_anew(written: list[str]) -> None:
    shown = Shown(queues=200)
    await shown.page()
    assert len(written) == 200 * 4 * 6
    written.clear()
    shown.ledger.put_pod(a_pod("p").card("CARD-1").in_queue("q7").gpu(2).bound_to("n").view())
    shown.ledger.put_queue(a_queue("q9").cards(CARDS).view())
    page = await shown.page()
    assert {*written} == {"q7"}
    assert 'volcano_queue_card_allocated{card="CARD-1",queue_name="q7"} 2.0\n' in page


async def test_books_that_change_between_two_slices_make_no_page_fail() -> None:
    shown = Shown(queues=300)
    making = asyncio.create_task(shown.page())
    number = 0
    while not making.done():
        shown.ledger.put_queue(a_queue(f"new-{number}").cards(CARDS).view())
        shown.ledger.drop_queue(f"q{299 - number}")
        pod = a_pod("p").uid(f"u{number}").card("CARD-1").gpu(1).in_queue(f"q{number}")
        shown.ledger.put_pod(pod.bound_to("n").view())
        number += 1
        await asyncio.sleep(0)
    assert number > 50
    assert shown.card_lines(await making) > 0
    settled = await shown.page()
    assert shown.card_lines(settled) > 0
    assert await shown.page() == generate_latest(shown.registry).decode()


async def test_of_two_scrapes_at_a_time_the_second_waits_and_has_nothing_left_to_write(
    written: list[str],
) -> None:
    shown = Shown(queues=100)
    first, second = await asyncio.gather(shown.page(), shown.page())
    assert first == second
    assert len(written) == 100 * 4 * 6


@asynccontextmanager
async def scraping(shown: Shown) -> AsyncIterator[TestClient]:  # type: ignore[type-arg]
    app = application()
    metrics.add_route(app, shown.registry)
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize("queues", [3, 600])
async def test_the_page_is_served_whole_and_with_its_length(queues: int) -> None:
    shown = Shown(queues)
    async with scraping(shown) as client:
        async with client.get("/metrics") as response:
            body = await response.read()
            assert response.content_length == len(body)
            assert response.headers["Content-Type"].startswith("text/plain")
        assert body == generate_latest(shown.registry)
        async with client.head("/metrics") as response:
            assert (response.status, response.content_length) == (200, len(body))


async def test_names_are_written_as_they_are_whatever_a_scraper_would_have_them_escaped_to() -> None:
    """None of them needs it."""
    shown = Shown(queues=1)
    accept = {"Accept": "application/openmetrics-text;version=1.0.0;escaping=dots"}
    async with scraping(shown) as client, client.get("/metrics", headers=accept) as response:
        assert response.headers["Content-Type"].endswith("escaping=underscores")
        assert 'volcano_queue_card_deserved{card="CARD-0",queue_name="q0"} 8.0' in await response.text()
