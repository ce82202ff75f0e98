"""Who uses cards, who waits longest and how many cards there are, as a scraper reads it."""

from prometheus_client import CollectorRegistry, generate_latest

from controller.usage_series import UsageSeries
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue

VOLCANO = "batch.volcano.sh/v1alpha1"


class Scraped:
    """In the queue `q` a Volcano Job's pod uses two cards, another pod one; two wait."""

    def __init__(self) -> None:
        self.ledger, self.registry, self.leading = Ledger(Settings()), CollectorRegistry(), True
        self.ledger.put_node(a_node("n").card("A", 8).view())
        self.ledger.put_queue(a_queue("q").cards({"A": 5}).view())
        job = a_pod("job").gpu(2).card("A").in_queue("q").owned_by("Job", "j", api_version=VOLCANO)
        self.job = job.charged("q").assigned({"A": 2})
        self.ledger.put_pod(self.job.bound_to("n").view())
        batch = a_pod("batch").gpu(1).card("A").in_queue("q").owned_by("Job", "b", api_version="batch/v1")
        self.ledger.put_pod(batch.charged("q").assigned({"A": 1}).view())
        for name, created in (("young", "2026-01-01T00:00:30Z"), ("old", "2026-01-01T00:00:00Z")):
            waits = a_pod(name).gpu(4).card("A").in_queue("q").gated().created(created)
            self.ledger.put_pod(waits.view())
        self.registry.register(UsageSeries(self.ledger, lambda: self.leading))

    def page(self, family: str) -> list[str]:
        text = generate_latest(self.registry).decode()
        return sorted(line for line in text.splitlines() if line.startswith(f"{family}{{"))


def test_use_is_told_apart_by_kind_of_workload_bound_or_not() -> None:
    """A Job of Kubernetes itself is online; what waits is not used."""
    family = "cardquota_queue_card_used"
    assert Scraped().page(family) == [
        f'{family}{{card="A",kind="offline",queue_name="q"}} 2.0',
        f'{family}{{card="A",kind="online",queue_name="q"}} 1.0',
    ]


def test_use_follows_pods_that_end_and_ones_that_are_adopted() -> None:
    scraped, family = Scraped(), "cardquota_queue_card_used"
    scraped.page(family)
    scraped.ledger.put_pod(
        scraped.job.owned_by("ReplicaSet", "r", api_version="apps/v1").bound_to("n").view()
    )
    assert f'{family}{{card="A",kind="online",queue_name="q"}} 3.0' in scraped.page(family)
    for pod in ("job", "batch"):
        scraped.ledger.drop_pod(f"uid-ml-{pod}")
    assert {line.rpartition(" ")[2] for line in scraped.page(family)} == {"0.0"}
    assert scraped.page(family) == []


def test_the_oldest_who_waits_is_shown_and_nobody_when_nobody_does() -> None:
    scraped, family = Scraped(), "cardquota_queue_oldest_waiting_timestamp_seconds"
    assert scraped.page(family) == [f'{family}{{queue_name="q"}} 1.7672256e+09']
    scraped.ledger.drop_pod("uid-ml-old")
    assert scraped.page(family) == [f'{family}{{queue_name="q"}} 1.76722563e+09']
    scraped.ledger.drop_pod("uid-ml-young")
    assert scraped.page(family) == [f'{family}{{queue_name="q"}} 0.0']
    assert scraped.page(family) == []


def test_cards_are_those_that_nodes_show() -> None:
    scraped = Scraped()
    assert scraped.page("cardquota_cards") == ['cardquota_cards{card="A"} 8.0']
    scraped.ledger.drop_node("n")
    assert scraped.page("cardquota_cards") == []


def test_only_the_leader_shows_them() -> None:
    scraped = Scraped()
    scraped.leading = False
    assert scraped.page("cardquota") == []
