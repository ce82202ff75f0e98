"""The queue series as a scraper reads them: in cards, of the leader only, and none that keeps its last value."""

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller import waiting_names
from controller.metrics import QueueSeries
from core.cards.expression import expression_errors
from core.names import DRA_QUOTA_ANNOTATION, MGPU_CORE
from core.objects import Pod
from core.queues.ledger import Ledger
from core.settings import Settings
from core.usage.tally import OTHER
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import QueueBuilder

QUEUE = a_queue("q").cards({"A": 4, "B": 1})
POD = a_pod("p").card("A").in_queue("q")


class Scraped:
    """A ledger behind a metrics page. The queue has 4 A and 1 B; 2 A are bound, 1 is reserved and 3 wait."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.ledger, self.registry = Ledger(settings or Settings()), CollectorRegistry()
        self.late: list[Pod] = []
        self.ledger.put_node(a_node("n").card("A", 8).view())
        self.ledger.put_queue(QUEUE.view())
        self.ledger.put_pod(POD.uid("bound").gpu(2).bound_to("n").view())
        self.ledger.put_pod(POD.uid("reserved").gpu(1).view())
        self.ledger.put_pod(POD.uid("waiting").gpu(3).gated().view())
        self.series = QueueSeries(self.ledger, lambda: self.late)
        self.registry.register(self.series)
        self.series.leading = True

    def page(self) -> list[str]:
        """The page, without help and types."""
        text = generate_latest(self.registry).decode()
        return [line for line in text.splitlines() if not line.startswith("#")]

    def of_card(self, queue: str, card: str) -> dict[str, float]:
        """The samples of a queue and card on one page, by the last word of their name."""
        labels = f'{{card="{card}",queue_name="{queue}"}} '
        found = [line.partition(labels) for line in self.page()]
        return {name.rpartition("_")[2]: float(value) for name, middle, value in found if middle}


def all_of(deserved: int, allocated: int, request: int, reserved: int, overused: int) -> dict[str, float]:
    return {
        "deserved": deserved,
        "capacity": deserved,
        "allocated": allocated,
        "request": request,
        "reserved": reserved,
        "overused": overused,
    }


def test_the_page_of_a_small_queue() -> None:
    """What dashboards and alerts rely on, word for word."""
    scraped = Scraped()
    scraped.ledger.put_queue(a_queue("q").cards({"A": 4}).view())
    assert generate_latest(scraped.registry).decode() == (
        "# HELP volcano_queue_card_deserved Cards that the queue should have: what it is guaranteed, which is its quota; "
        "in cards.\n"
        "# TYPE volcano_queue_card_deserved gauge\n"
        'volcano_queue_card_deserved{card="A",queue_name="q"} 4.0\n'
        "# HELP volcano_queue_card_allocated Cards of bound pods, in cards.\n"
        "# TYPE volcano_queue_card_allocated gauge\n"
        'volcano_queue_card_allocated{card="A",queue_name="q"} 2.0\n'
        "# HELP volcano_queue_card_request Cards of bound, reserved and waiting pods, in cards.\n"
        "# TYPE volcano_queue_card_request gauge\n"
        'volcano_queue_card_request{card="A",queue_name="q"} 6.0\n'
        "# HELP volcano_queue_card_capacity Card quota of the queue, in cards.\n"
        "# TYPE volcano_queue_card_capacity gauge\n"
        'volcano_queue_card_capacity{card="A",queue_name="q"} 4.0\n'
        "# HELP cardquota_queue_card_reserved Cards of pods whose gate is lifted but that have no node yet, in cards.\n"
        "# TYPE cardquota_queue_card_reserved gauge\n"
        'cardquota_queue_card_reserved{card="A",queue_name="q"} 1.0\n'
        "# HELP cardquota_queue_card_overused Cards allocated and reserved beyond the quota of the queue, in cards.\n"
        "# TYPE cardquota_queue_card_overused gauge\n"
        'cardquota_queue_card_overused{card="A",queue_name="q"} 0.0\n'
        "# HELP cardquota_reserved_too_long Pods that have held quota without a node for longer than "
        "reservation.warnAfter.\n"
        "# TYPE cardquota_reserved_too_long gauge\n"
        'cardquota_reserved_too_long{queue_name="q"} 0.0\n'
        "# HELP cardquota_gangs_unfinished Gangs of which fewer members are in than have to start together, so that they "
        "cannot.\n"
        "# TYPE cardquota_gangs_unfinished gauge\n"
        'cardquota_gangs_unfinished{queue_name="q"} 0.0\n'
        "# HELP cardquota_queue_quota_unreadable 1 for a queue that has no cards, or no devices, because its quota of them cannot be "
        "read.\n"
        "# TYPE cardquota_queue_quota_unreadable gauge\n"
        'cardquota_queue_quota_unreadable{queue_name="q"} 0.0\n'
    )


@pytest.mark.parametrize(
    "queue",
    [
        pytest.param(a_queue("q").cards('{"A": '), id="cards"),
        pytest.param(a_queue("q").cards({"A": 1}).annotation(DRA_QUOTA_ANNOTATION, "[1"), id="devices"),
    ],
)
def test_a_quota_that_cannot_be_read_is_shown_until_it_is_mended(queue: QueueBuilder) -> None:
    scraped = Scraped()
    line = 'cardquota_queue_quota_unreadable{queue_name="q"}'
    scraped.ledger.put_queue(queue.view())
    scraped.ledger.put_queue(a_queue("other").cards({"A": 1}).view())
    assert f"{line} 1.0" in scraped.page()
    assert 'cardquota_queue_quota_unreadable{queue_name="other"} 0.0' in scraped.page()
    scraped.ledger.put_queue(QUEUE.view())
    assert f"{line} 0.0" in scraped.page()


def test_a_card_is_counted_by_stage() -> None:
    scraped = Scraped()
    assert scraped.of_card("q", "A") == all_of(4, 2, 6, 1, 0)
    assert scraped.of_card("q", "B") == all_of(1, 0, 0, 0, 0)


@pytest.mark.parametrize("nodes", [0, 1, 9])
def test_what_is_deserved_is_the_quota_however_few_cards_the_cluster_has(nodes: int) -> None:
    """It is guaranteed, and the guarantee is the floor; quotas may add up to more than there is."""
    scraped = Scraped()
    scraped.ledger.drop_node("n")
    for number in range(nodes):
        scraped.ledger.put_node(a_node(f"n{number}").card("A", 1).view())
    scraped.ledger.put_queue(a_queue("greedy").cards({"A": 100}).view())
    assert scraped.of_card("q", "A")["deserved"] == 4
    assert scraped.of_card("greedy", "A")["deserved"] == 100


def test_a_cut_below_what_is_used_shows_by_how_much() -> None:
    scraped = Scraped()
    scraped.ledger.put_queue(a_queue("q").cards({"A": 1}).view())
    assert scraped.of_card("q", "A") == all_of(1, 2, 6, 1, 2)
    scraped.ledger.put_queue(a_queue("q").view())
    assert scraped.of_card("q", "A")["overused"] == 3


def test_an_open_choice_is_requested_under_its_expression_and_nobody_can_deserve_it() -> None:
    scraped = Scraped()
    scraped.ledger.put_pod(POD.uid("open").gpu(1).card("A|B").gated().view())
    assert scraped.of_card("q", "A|B") == {"request": 1, "reserved": 0}


def test_shares_are_left_to_the_series_of_the_scheduler() -> None:
    scraped = Scraped()
    scraped.ledger.put_pod(a_pod("s").mgpu(core=30).in_queue("q").view())
    assert not [line for line in scraped.page() if MGPU_CORE in line]


def test_a_card_that_goes_is_shown_once_more_with_nothing() -> None:
    scraped = Scraped()
    assert scraped.of_card("q", "B")
    scraped.ledger.put_queue(a_queue("q").cards({"A": 4}).view())
    assert scraped.of_card("q", "B") == all_of(0, 0, 0, 0, 0)
    assert scraped.of_card("q", "B") == {}
    assert scraped.of_card("q", "A")


def test_a_card_in_use_is_shown_though_no_quota_lists_it() -> None:
    scraped = Scraped()
    scraped.ledger.put_queue(a_queue("q").view())
    assert scraped.of_card("q", "A") == all_of(0, 2, 6, 1, 3)


def test_nothing_of_a_deleted_queue_is_shown_again() -> None:
    scraped = Scraped()
    assert scraped.page()
    scraped.ledger.drop_queue("q")
    assert scraped.page() == []


def test_only_the_leader_shows_anything() -> None:
    scraped = Scraped()
    scraped.series.leading = False
    assert scraped.page() == []
    scraped.series.leading = True
    assert scraped.of_card("q", "A")
    scraped.series.leading = False
    assert scraped.of_card("q", "A") == all_of(0, 0, 0, 0, 0)
    assert scraped.page() == []


def test_pods_that_are_late_for_their_node_are_counted_by_queue() -> None:
    scraped = Scraped()
    scraped.late = [POD.view(), POD.view(), POD.in_queue("gone").view()]
    late = [line for line in scraped.page() if line.startswith("cardquota_reserved_too_long")]
    assert late == [
        'cardquota_reserved_too_long{queue_name="gone"} 1.0',
        'cardquota_reserved_too_long{queue_name="q"} 2.0',
    ]


def test_gangs_that_were_cut_short_are_counted_by_queue() -> None:
    scraped = Scraped()
    scraped.ledger.put_group(a_group("cut").in_queue("q").min_member(3).view())
    member = a_pod("m0").gpu(1).card("A").in_group("cut").assigned({"A": 1}).charged("q").together(3)
    scraped.ledger.put_pod(member.view())
    line = 'cardquota_gangs_unfinished{queue_name="q"}'
    assert f"{line} 1.0" in scraped.page()
    for name in ("m1", "m2"):
        scraped.ledger.put_pod(member.put("metadata", "name", value=name).uid(name).view())
    assert f"{line} 0.0" in scraped.page()


def test_where_quotas_hold_through_the_tree_each_pod_is_counted_once_and_the_overuse_of_all_below() -> None:
    scraped = Scraped(Settings.model_validate({"cards": {"hierarchy": True}}))
    scraped.ledger.put_queue(a_queue("org").cards({"A": 1}).view())
    scraped.ledger.put_queue(a_queue("q").cards({"A": 4}).child_of("org").view())
    assert scraped.of_card("q", "A") == all_of(4, 2, 6, 1, 0)
    assert scraped.of_card("org", "A") == all_of(1, 0, 0, 0, 2)


def longest(number: int) -> str:
    return "|".join(["A", *(f"x{number:04}{other:02}/" + "c" * 240 for other in range(15))])


@pytest.mark.parametrize("expression_of", [lambda number: f"A|u{number:04}", longest])
def test_the_page_does_not_grow_with_names_that_pods_make_up(expression_of: Callable[[int], str]) -> None:
    """What waits for cards that neither nodes nor settings nor the queue's quota know is counted together."""
    scraped = Scraped()
    before = scraped.page()
    for number in range(300):
        expression = expression_of(number)
        assert not expression_errors(expression)
        scraped.ledger.put_pod(POD.uid(f"u{number}").gpu(2).card(expression).gated().view())
    page = scraped.page()
    assert len(page) == len(before) + 2
    assert scraped.of_card("q", OTHER) == {"request": 600, "reserved": 0}
    assert scraped.of_card("q", "A")["request"] == 6


def test_so_many_choices_of_known_cards_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have been waited for longest."""
    monkeypatch.setattr(waiting_names, "CHOICES_MOST", 2)
    scraped = Scraped()
    scraped.ledger.put_node(a_node("c").card("C", 1).view())
    for expression in ("C|B", "A|B", "A|C", "B|C", "C"):
        scraped.ledger.put_pod(POD.uid(expression).gpu(1).card(expression).gated().view())
    assert {
        name: scraped.of_card("q", name).get("request") for name in ("C|B", "A|B", "A|C", OTHER, "C")
    } == {
        "C|B": 1,
        "A|B": 1,
        "A|C": None,
        OTHER: 2,
        "C": 1,
    }


def test_a_choice_has_its_name_once_a_node_shows_its_cards() -> None:
    scraped = Scraped()
    scraped.ledger.put_pod(POD.uid("new").gpu(2).card("A|new").gated().view())
    assert scraped.of_card("q", OTHER)["request"] == 2
    scraped.ledger.put_node(a_node("m").card("new", 8).view())
    assert scraped.of_card("q", "A|new")["request"] == 2
