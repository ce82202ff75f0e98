"""`mgpu.cardQuota`: mGPU shares count against the quota of the card that their node names, by hundredths."""

import json

import pytest

from core import names, reasons
from core.answers.shortage import figures_for
from core.display.figures import figures_of
from core.display.status import published
from core.objects import Pod
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.audit import audit
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import NodeBuilder, QueueBuilder
from tests.builders.pods import PodBuilder

ON = Settings.model_validate({"mgpu": {"cardQuota": True}})
OFF = Settings()
SHORT = reasons.INSUFFICIENT_SCALAR_QUOTA


def host(name: str, product: str = "", cards: int = 4) -> NodeBuilder:
    node = a_node(name).mgpu(cards, memory=16384).label(names.HOSTNAME_LABEL, name)
    node = node.allocatable("cpu", 64).allocatable("pods", 100)
    return node.product(product) if product else node


def share(name: str, core: int = 50, *, second: int = 0, queue: str = "q") -> PodBuilder:
    pod = a_pod(name).mgpu(core=core, memory=2048).in_queue(queue).gated()
    return pod.created(f"2024-01-01T00:00:{second:02}Z")


def books(*parts: NodeBuilder | QueueBuilder, settings: Settings = ON) -> Ledger:
    ledger = Ledger(settings)
    for part in parts:
        if isinstance(part, NodeBuilder):
            ledger.put_node(part.view())
        else:
            ledger.put_queue(part.view())
    return ledger


def decide(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> dict[str, str]:
    """The record of the card of each pod that is lifted, the reason of one that is held."""
    for pod in pods:
        ledger.put_pod(pod.view())
    return {
        one.pod.name: one.why.code if isinstance(one, Hold) else card_of(one)
        for one in Planner(ledger).decide(queue)
    }


def card_of(lift: Lift | Hold) -> str:
    assert isinstance(lift, Lift)
    return lift.records.get(names.SHARE_CARD_ANNOTATION, "")


def why(ledger: Ledger, name: str, queue: str = "q") -> str:
    (found,) = (one for one in Planner(ledger).decide(queue) if one.pod.name == name)
    assert isinstance(found, Hold)
    return found.why.message


def used(ledger: Ledger, card: str = "A10", queue: str = "q") -> int:
    return ledger.used(queue, card)


class TestLift:
    def test_quota_0_closes_the_shares_of_a_card(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 0, "H20": 8}))
        assert decide(ledger, share("p")) == {"p": SHORT}
        assert why(ledger, "p").startswith(
            "Queue <q> has insufficient <A10> quota: requested <500>, total would be <500>, but capability is <0>"
        )

    def test_a_card_that_the_queue_does_not_list_is_closed_as_it_is_for_whole_cards(self) -> None:
        assert decide(books(host("m0", "A10"), a_queue("q").cards({"H20": 8})), share("p")) == {"p": SHORT}
        assert decide(books(host("m0", "A10"), a_queue("q")), share("p")) == {
            "p": reasons.EMPTY_QUEUE_CAPABILITY
        }

    def test_quota_1_lets_in_a_hundred_hundredths_in_all(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 1}))
        found = decide(ledger, *(share(f"p{n}", 30, second=n) for n in range(4)), share("last", 10, second=9))
        assert found == {
            "p0": '{"A10":30}', "p1": '{"A10":30}', "p2": '{"A10":30}', "p3": SHORT, "last": '{"A10":10}'
        }  # fmt: skip
        assert used(ledger) == 1000

    def test_without_the_setting_the_label_says_nothing(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 0}), settings=OFF)
        assert decide(ledger, share("p")) == {"p": ""}
        assert used(ledger) == 0

    def test_whole_cards_and_shares_use_one_quota(self) -> None:
        ledger = books(host("m0", "A10"), a_node("w0").card("A10", 8), a_queue("q").cards({"A10": 2}))
        whole = a_pod("w").gpu(1).card("A10").in_queue("q").gated().created("2024-01-01T00:00:00Z")
        found = decide(ledger, whole, share("a", 60, second=1), share("b", 60, second=2))
        assert found == {"w": "", "a": '{"A10":60}', "b": SHORT}
        assert used(ledger) == 1600

    def test_it_goes_to_a_node_of_which_the_queue_has_quota(self) -> None:
        ledger = books(host("m0", "A10"), host("m1", "L20"), a_queue("q").cards({"A10": 1, "L20": 1}))
        found = decide(ledger, *(share(f"p{n}", 60, second=n) for n in range(3)))
        assert found == {"p0": '{"A10":60}', "p1": '{"L20":60}', "p2": SHORT}

    def test_a_node_without_a_product_costs_no_card(self) -> None:
        ledger = books(host("m0", "A10"), host("m1"), a_queue("q").cards({"A10": 0}))
        assert decide(ledger, share("p")) == {"p": ""}

    def test_no_room_is_told_as_such_where_quota_would_not_help(self) -> None:
        ledger = books(host("m0", "A10", cards=1), a_queue("q").cards({"A10": 0}))
        found = decide(ledger, share("p").cards_per_container(2))
        assert found == {"p": reasons.NO_FREE_CARD}

    def test_shares_of_several_cards_are_charged_with_all_of_them(self) -> None:
        ledger = books(
            host("m0", "A10").label(names.MGPU_POLICY_KEY, "native-burst-share"),
            a_queue("q").cards({"A10": 1}),
        )
        assert decide(ledger, share("p", 80).cards_per_container(2).mgpu_policy("native-burst-share")) == {
            "p": '{"A10":80}'
        }
        assert used(ledger) == 800

    def test_room_on_a_node_of_another_card_wakes_who_had_too_little_quota(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 0, "L20": 1}))
        assert decide(ledger, share("p")) == {"p": SHORT}
        ledger.wakeups.take_queues()
        ledger.put_node(host("m1", "L20").view())
        assert "q" in ledger.wakeups.take_queues()
        assert decide(ledger) == {"p": '{"L20":50}'}


class TestRecord:
    def lifted(self, *, record: str = '{"A10":50}') -> PodBuilder:
        pod = a_pod("p").mgpu(core=50, memory=2048).charged("q").led_to("m0")
        return pod.annotation(names.SHARE_CARD_ANNOTATION, record)

    @pytest.mark.parametrize("product", ["A10", "L20", ""])
    def test_it_decides_whatever_the_node_says_later(self, product: str) -> None:
        ledger = books(host("m0", product), a_queue("q").cards({"A10": 1}))
        ledger.put_pod(self.lifted().view())
        assert used(ledger) == 500
        ledger.put_pod(self.lifted().bound_to("m0").view())
        assert (used(ledger), used(ledger, "L20")) == (500, 0)

    def test_a_waiting_pod_has_none(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 0}))
        ledger.put_pod(self.lifted().in_queue("q").gated().view())
        assert figures_of(ledger, "q").waiting == {names.MGPU_CORE: 50_000, names.MGPU_MEMORY: 2_048_000}

    def test_without_one_a_bound_pod_is_charged_by_its_node(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 1}))
        ledger.put_pod(a_pod("p").mgpu(core=50, memory=2048).charged("q").bound_to("m0").view())
        assert used(ledger) == 500
        ledger.put_node(host("m0", "L20").view())
        for _ in ledger.settle():
            pass
        assert (used(ledger), used(ledger, "L20")) == (0, 500)

    def test_that_of_no_card_stays_when_the_node_names_one(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 1}))
        ledger.put_pod(self.lifted(record="{}").bound_to("m0").view())
        assert used(ledger) == 0

    def test_status_shows_hundredths_in_the_key_of_whole_cards(self) -> None:
        ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 1}))
        ledger.put_pod(self.lifted().bound_to("m0").view())
        assert published(ledger.sums("q").allocated) == {"A10": "500m"}


def affinity_of(lift: Lift) -> str:
    return json.dumps([operation for operation in lift.patch if "ffinity" in operation["path"]])


def test_who_is_led_to_no_node_is_narrowed_to_the_card() -> None:
    settings = Settings.model_validate({"mgpu": {"cardQuota": True, "leadTo": "kind"}})
    ledger = books(host("m0", "A10"), host("m1", "L20"), a_queue("q").cards({"L20": 1}), settings=settings)
    ledger.put_pod(share("p").view())
    (lift,) = Planner(ledger).decide("q")
    assert isinstance(lift, Lift)
    assert card_of(lift) == '{"L20":50}'
    assert '"key": "nvidia.com/gpu.product", "operator": "In", "values": ["L20"]' in affinity_of(lift)
    assert isinstance(lift.lifted, Pod)


def chained(quota: int, above: int) -> Ledger:
    """Queue `q` below `team`, with these quotas of A10."""
    settings = Settings.model_validate({"mgpu": {"cardQuota": True}, "cards": {"hierarchy": True}})
    parent, child = a_queue("team").cards({"A10": above}), a_queue("q").child_of("team").cards({"A10": quota})
    return books(host("m0", "A10"), parent, child, settings=settings)


def test_the_queues_above_count_the_same() -> None:
    ledger = chained(4, 1)
    found = decide(ledger, *(share(f"p{n}", 60, second=n) for n in range(2)))
    assert found == {"p0": '{"A10":60}', "p1": SHORT}
    assert "Queue <team> has insufficient <A10> quota" in why(ledger, "p1")
    assert figures_of(ledger, "team").reserved["A10"] == 600


def test_what_comes_free_in_a_queue_beside_wakes_who_waits_for_the_one_above() -> None:
    ledger = chained(4, 1)
    ledger.put_queue(a_queue("r").child_of("team").cards({"A10": 4}).view())
    assert decide(ledger, share("other", 60, queue="r"), queue="r") == {"other": '{"A10":60}'}
    assert decide(ledger, share("p", 60)) == {"p": SHORT}
    ledger.wakeups.take_queues()
    ledger.drop_pod(share("other", 60, queue="r").view().uid)
    assert "q" in ledger.wakeups.take_queues()
    assert decide(ledger) == {"p": '{"A10":60}'}


def test_a_gang_is_lifted_whole_or_not_at_all() -> None:
    ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 1}))
    members = [share(f"p{n}", 40).in_gang("g", 3, owner="o") for n in range(3)]
    assert set(decide(ledger, *members).values()) == {SHORT}
    ledger.put_queue(a_queue("q").cards({"A10": 2}).view())
    assert decide(ledger) == dict.fromkeys(("p0", "p1", "p2"), '{"A10":40}')
    assert used(ledger) == 1200


def test_with_equivalents_shares_and_claims_take_of_one_quota_of_the_card() -> None:
    settings = Settings.model_validate(
        {"mgpu": {"cardQuota": True}, "cards": {"equivalents": {"A10": ["a10.dev"]}}}
    )
    ledger = books(host("m0", "A10"), a_queue("q").cards({"A10": 2}), settings=settings)
    ledger.devices.put_template(a_template("each").exactly("r", "a10.dev").view())
    claim = a_pod("c").claim("dev", template="each").in_queue("q").gated().created("2024-01-01T00:00:00Z")
    found = decide(ledger, claim, share("a", 60, second=1), share("b", 60, second=2))
    assert found == {"c": "", "a": '{"A10":60}', "b": SHORT}
    assert used(ledger) == 1600
    assert figures_of(ledger, "q").reserved["A10"] == 1600
    assert figures_of(ledger, "q").reserved["deviceclass/a10.dev"] == 1000
    assert finish(audit(ledger, {entry.pod.key: entry.pod for entry in ledger.entries()})) == []


@pytest.mark.parametrize("named", [True, False])
def test_a_queue_that_does_not_exist_has_no_card(named: bool) -> None:
    pod = a_pod("p").mgpu(core=50, memory=2048).gated()
    ledger = books(host("m0", "A10"))
    found = decide(ledger, pod.in_queue("default") if named else pod, queue="default")
    assert found == {"p": reasons.QUEUE_NOT_FOUND}


def test_a_card_beside_the_shares_is_the_card_of_the_shares() -> None:
    both = host("m0", "A10").allocatable("nvidia.com/gpu", 2)
    pod = share("p").gpu(1).card("A10")
    assert decide(books(both, a_queue("q").cards({"A10": 1})), pod) == {"p": SHORT}
    ledger = books(both, a_queue("q").cards({"A10": 2}))
    assert decide(ledger, pod) == {"p": '{"A10":50}'}
    assert used(ledger) == 1500


def test_of_a_waiting_share_people_are_told_how_each_card_stands_that_would_do() -> None:
    ledger = books(host("m0", "A10"), host("m1", "L20"), a_queue("q").cards({"A10": 1}))
    assert decide(ledger, share("a", 60, second=1), share("b", 60, second=2))["b"] == SHORT
    entry = ledger.entry(share("b").view().uid)
    assert entry is not None
    told = {one.key: (one.asked, one.used, one.limit) for one in figures_for(ledger, [entry])}
    assert told["A10"] == (600, 600, 1000)
    assert told["L20"] == (600, 0, 0)
