"""The gauges of device quota as a scraper reads them: of the leader only, and none that keeps its last value."""

from prometheus_client import CollectorRegistry, generate_latest

from controller.device_series import DeviceSeries
from core.dra.status import MOST_KEYS
from core.objects.device_class import DeviceClass
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim

QUEUE = a_queue("q").child_of("org")
QUOTA = {"capability": {"gpu": {"count": 4, "capacity": {"memory": "2500m"}}}}


class Scraped:
    """Books behind a metrics page. In a queue below `org` two devices with some memory are bound, and one is reserved."""

    def __init__(self) -> None:
        self.ledger, self.registry, self.leading = Ledger(Settings()), CollectorRegistry(), True
        self.ledger.put_queue(QUEUE.devices(QUOTA).view())
        self.ledger.put_queue(a_queue("org").view())
        self.ledger.devices.put_class(DeviceClass("gpu"))
        bound = a_claim("c").exactly("r", "gpu", count=2, capacity={"memory": "500m"})
        self.ledger.devices.put_claim(bound.view())
        self.ledger.devices.put_claim(a_claim("d").exactly("r", "gpu").view())
        self.ledger.put_pod(a_pod("a").claim("dev", name="c").in_queue("q").bound_to("n").view())
        self.ledger.put_pod(a_pod("b").claim("dev", name="d").in_queue("q").view())
        self.registry.register(DeviceSeries(self.ledger.devices, lambda: self.leading))

    def page(self) -> list[str]:
        """The page, sorted, without help and types."""
        text = generate_latest(self.registry).decode()
        found = (line.removeprefix("cardquota_queue_device_") for line in text.splitlines())
        return sorted(line for line in found if not line.startswith("#"))


def of(family: str, value: float, *queues: str, dimension: str = "") -> list[str]:
    """A line for each queue."""
    labels = f'device_class="gpu",dimension="{dimension}"'
    return [f'{family}{{{labels},queue_name="{queue}"}} {value}' for queue in queues]


ALL = ("q", "org", "root")


def test_limits_and_uses_by_queue_class_and_dimension() -> None:
    assert Scraped().page() == sorted(
        [
            *of("limit", 4.0, "q"),
            *of("limit", 2.5, "q", dimension="memory"),
            *of("allocated", 2.0, *ALL),
            *of("allocated", 1.0, *ALL, dimension="memory"),
            *of("reserved", 1.0, *ALL),
        ]
    )


def test_what_is_not_used_or_not_limited_any_more_is_shown_once_more_with_nothing() -> None:
    """In the root too, of which there is no object here."""
    scraped = Scraped()
    scraped.page()
    scraped.ledger.put_queue(QUEUE.devices({"capability": {"gpu": {"count": 4}}}).view())
    for pod in "ab":
        scraped.ledger.drop_pod(f"uid-ml-{pod}")
    assert scraped.page() == sorted(
        [
            *of("limit", 4.0, "q"),
            *of("limit", 0.0, "q", dimension="memory"),
            *of("allocated", 0.0, *ALL),
            *of("allocated", 0.0, *ALL, dimension="memory"),
            *of("reserved", 0.0, *ALL),
        ]
    )
    assert scraped.page() == of("limit", 4.0, "q")


def test_a_queue_that_does_not_exist_has_no_series() -> None:
    """As of cards: whoever may make pods names queues as he likes. What is used in one that was deleted is in those above it."""
    scraped = Scraped()
    scraped.ledger.put_pod(a_pod("p").claim("dev", name="c").in_queue("made-up").bound_to("n").view())
    assert {line for line in scraped.page() if "made-up" in line} == set()
    scraped.ledger.drop_queue("q")
    assert [line for line in scraped.page() if 'queue_name="q"' in line] == []
    assert {*of("allocated", 2.0, "root"), *of("reserved", 1.0, "root")} <= {*scraped.page()}


def test_a_class_that_a_claim_makes_up_has_series_only_where_a_queue_lists_it() -> None:
    """Whoever may make pods would make as many series as he likes: with its node given a pod is let in unasked."""
    scraped = Scraped()
    before = scraped.page()
    many = a_claim("many")
    for number in range(50):
        many = many.exactly(f"r{number}", f"made-up-{number}")
    scraped.ledger.devices.put_claim(many.view())
    for name, node in (("with-node", "n"), ("lost-its-gate", "")):
        pod = a_pod(name).claim("dev", name="many").in_queue("q")
        scraped.ledger.put_pod((pod.bound_to(node) if node else pod).view())
    assert scraped.page() == before
    scraped.ledger.put_queue(a_queue("org").devices({"capability": {"made-up-7": {"count": 1}}}).view())
    assert {line for line in scraped.page() if "made-up" in line and "limit" not in line} == {
        f'allocated{{device_class="made-up-7",dimension="",queue_name="{queue}"}} 1.0'
        for queue in ("q", "org")
    }


def test_of_capacities_that_a_claim_makes_up_no_more_have_series_than_the_status_shows() -> None:
    """What a queue lists comes first."""
    scraped = Scraped()
    many = {f"a{number}": "1" for number in range(2 * MOST_KEYS)}
    scraped.ledger.devices.put_claim(a_claim("many").exactly("r", "gpu", capacity=many).view())
    scraped.ledger.put_pod(a_pod("p").claim("dev", name="many").in_queue("q").bound_to("n").view())
    allocated = [line for line in scraped.page() if line.startswith("allocated") and 'name="q"' in line]
    assert len(allocated) == MOST_KEYS
    assert {*of("allocated", 3.0, "q"), *of("allocated", 1.0, "q", dimension="memory")} <= {*allocated}


def test_only_the_leader_shows_anything() -> None:
    scraped = Scraped()
    scraped.leading = False
    assert scraped.page() == []
    scraped.leading = True
    assert scraped.page()
    scraped.leading = False
    assert {line.rpartition(" ")[2] for line in scraped.page()} == {"0.0"}
    assert scraped.page() == []
