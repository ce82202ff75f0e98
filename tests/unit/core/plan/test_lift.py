"""Who is lifted, in which order, and what is said to those who wait."""

from dataclasses import replace

import pytest

from core import catalogue, names, reasons
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.settings import CardSettings, GateSettings, Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import PodBuilder, QueueBuilder
from tests.unit.core.plan.lifting import MPS_NODE, books, decide, held, lifted, one


def test_pods_are_lifted_up_to_the_quota_and_no_further() -> None:
    ledger = books(a_queue("q").cards({"H200": 3}))
    decisions = decide(ledger, *(one(f"p{i}", second=i) for i in range(5)))
    assert lifted(decisions) == ["p0", "p1", "p2"]
    hold = held(decisions["p3"])
    assert (hold.why.code, hold.announced) == (reasons.INSUFFICIENT_SCALAR_QUOTA, True)
    assert "requested <1000>, total would be <4000>, but capability is <3000>" in hold.why.message
    assert lifted({d.pod.name: d for d in Planner(ledger).decide("q")}) == [], "a second pass changes nothing"


def test_pods_that_ask_for_the_same_are_told_the_same_until_one_is_lifted() -> None:
    pods = [one("a", count=4, second=1), one("b", count=4, second=2), one("c", second=3)]
    decisions = decide(books(a_queue("q").cards({"H200": 3})), *pods, one("d", count=4, second=4))
    first, second, last = (held(decisions[name]) for name in "abd")
    assert (first.pod.name, second.pod.name) == ("a", "b")
    assert "total would be <4000>" in first.why.message
    assert second.why.message == first.why.message
    assert "total would be <5000>" in last.why.message, "c is lifted meanwhile"


@pytest.mark.parametrize(
    ("card", "resource"), [("Named", "nvidia.com/gpu"), ("Q/mig-1g.10gb-mixed", "nvidia.com/mig-1g.10gb")]
)
def test_a_card_that_no_node_carries_is_held_however_well_its_resource_is_known(
    card: str, resource: str
) -> None:
    """Nothing would keep the pod away from the nodes of other cards; it goes as soon as there is one of its own."""
    settings = Settings(cards=CardSettings(resources={"Named": "nvidia.com/gpu"}))
    ledger = books(a_queue("q").cards({card: 8}), settings=settings)
    pod = a_pod("p").limit(resource, 1).card(card).in_queue("q").gated()
    hold = held(decide(ledger, pod)["p"])
    assert hold.why.code == reasons.NO_FREE_CARD
    assert hold.why.message == f"Queue <q> has quota, but no node carries <{card}>"
    ledger.wakeups.take_queues()
    ledger.put_node(a_node("new").card("Named", 1).view())
    ledger.put_node(a_node("cut").card("Q", 1).mig("1g.10gb", 1).view())
    assert ledger.wakeups.take_queues() == ["q"]
    (lift,) = Planner(ledger).decide("q")
    assert isinstance(lift, Lift)
    assert "nodeSelectorTerms" in str(lift.patch)


def test_what_one_pod_s_own_rules_exclude_is_not_told_to_another() -> None:
    ledger = books(a_queue("q").cards({"H200": 8, "H100": 8}))
    picky = one("picky", "H200|H100", second=1).needs_node("zone", "nowhere")
    decisions = decide(ledger, picky, one("easy", "H200|H100", second=2))
    assert held(decisions["picky"]).why.code == reasons.AFFINITY_EXCLUDES_CARDS
    assert lifted(decisions) == ["easy"]


def test_the_order_is_priority_then_age_then_name() -> None:
    pods = [
        one("late", second=9),
        one("b", second=1),
        one("a", second=1),
        one("urgent", second=30).priority(10),
    ]
    decisions = decide(books(a_queue("q").cards({"H200": 8})), *pods)
    assert list(decisions) == ["urgent", "a", "b", "late"]


@pytest.mark.parametrize(("fifo", "expected"), [(False, ["small"]), (True, [])])
def test_a_head_that_does_not_fit_blocks_only_a_fifo_queue(fifo: bool, expected: list[str]) -> None:
    queue = a_queue("q").cards({"H200": 3})
    decisions = decide(
        books(queue.fifo() if fifo else queue), one("big", count=4, second=1), one("small", second=2)
    )
    assert lifted(decisions) == expected
    if fifo:
        behind = held(decisions["small"])
        assert "behind ml/big" in behind.why.message
        assert not behind.announced


def test_queues_are_served_by_priority_then_share_then_name() -> None:
    ledger = books(
        a_queue("idle").cards({"H200": 4}),
        a_queue("busy").cards({"H200": 4}),
        a_queue("also-idle").cards({"H200": 4}),
        a_queue("first").cards({"H200": 1}).priority(5),
    )
    ledger.put_pod(a_pod("x").gpu(2).card("H200").in_queue("busy").bound_to("h1").view())
    assert Planner(ledger).order(["idle", "busy", "also-idle", "first", "missing"]) == [
        "first",
        "also-idle",
        "idle",
        "missing",
        "busy",
    ]


def test_the_patch_lifts_narrows_and_records_in_one_write() -> None:
    decision = decide(books(a_queue("q").cards({"H200": 3})), one("p", count=2))["p"]
    assert isinstance(decision, Lift)
    assert decision.assigned == {"H200": 2}
    expression = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["H200"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    assert decision.patch == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-ml-p"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": names.GATE},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
        {
            "op": "add",
            "path": "/spec/affinity",
            "value": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        },
        {"op": "add", "path": "/metadata/annotations/cardquota.io~1queue", "value": "q"},
        {"op": "add", "path": "/metadata/annotations/cardquota.io~1assigned", "value": '{"H200":2}'},
    ]


def test_our_gate_is_found_behind_one_that_waits_for_it() -> None:
    pod = one("p").gated("other.io/gate")
    settings = Settings(gates=GateSettings(wait_for_us=("other.io/gate",)))
    decision = decide(books(a_queue("q").cards({"H200": 3}), settings=settings), pod)["p"]
    assert isinstance(decision, Lift)
    assert [op["path"] for op in decision.patch if op["op"] == "remove"] == ["/spec/schedulingGates/1"]


class TestGatesOfOthers:
    """A pod that could not start with its quota gets none, and takes none from anybody."""

    HELD = one("held", second=1).gated("example.com/licence")

    def test_the_pod_waits_with_the_gate_for_a_reason_and_is_not_charged(self) -> None:
        ledger = books(a_queue("q").cards({"H200": 1}))
        decisions = decide(ledger, self.HELD, one("free", second=2))
        hold = held(decisions["held"])
        assert (hold.why.code, hold.announced) == (reasons.OTHER_GATES, True)
        assert "Queue <q>" in hold.why.message
        assert "<example.com/licence>" in hold.why.message
        assert lifted(decisions) == ["free"], "what asks for the same without that gate is not told the same"

    def test_the_gate_is_the_reason_whatever_else_stands_in_the_way(self) -> None:
        """Told anything else first, people would mend that and wait on."""
        assert held(decide(books(), self.HELD)["held"]).why.code == reasons.OTHER_GATES

    def test_pods_with_different_gates_are_told_their_own(self) -> None:
        other = one("other", second=2).gated("example.com/other")
        decisions = decide(books(a_queue("q").cards({"H200": 1})), self.HELD, other)
        assert "<example.com/licence>" in held(decisions["held"]).why.message
        assert "<example.com/other>" in held(decisions["other"]).why.message

    def test_of_a_great_many_gates_some_are_named(self) -> None:
        pod = one("p").gated(*(f"example.com/{number}" for number in range(500)))
        message = held(decide(books(a_queue("q")), pod)["p"]).why.message
        assert "<example.com/2> and 497 more" in message

    def test_it_does_not_hold_up_a_fifo_queue(self) -> None:
        ledger = books(a_queue("q").cards({"H200": 1}).fifo())
        assert lifted(decide(ledger, self.HELD, one("free", second=2))) == ["free"]

    def test_it_is_looked_at_at_once_when_the_gate_goes(self) -> None:
        ledger = books(a_queue("q").cards({"H200": 1}))
        decide(ledger, self.HELD)
        ledger.wakeups.take_queues()
        decisions = decide(ledger, one("held", second=1).put("metadata", "resourceVersion", value="8"))
        assert ledger.wakeups.take_queues() == ["q"]
        assert lifted(decisions) == ["held"]

    def test_volcanos_gate_may_be_said_to_wait_for_ours_but_only_under_volcano(self) -> None:
        settings = Settings(gates=GateSettings(wait_for_us=(names.VOLCANO_GATE,)))
        ledger = books(a_queue("q").cards({"H200": 2}), settings=settings)
        pods = [
            one(name, second=1).gated(names.VOLCANO_GATE).scheduler(name) for name in ("volcano", "nobody")
        ]
        decisions = decide(ledger, *pods)
        assert lifted(decisions) == ["volcano"]
        assert held(decisions["nobody"]).why.code == reasons.OTHER_GATES
        assert ledger.used("q", "H200") == 1000, "what is lifted holds its quota at Volcano's gate"


@pytest.mark.parametrize(
    ("pod", "used"),
    [
        (one("p").put("spec", "schedulingGates", value=[]), 1000),
        (one("p").put("spec", "schedulingGates", value=[]).scheduler("nobody"), 0),
        (one("p").put("spec", "schedulingGates", value=[{"name": "x"}]), 0),
        (one("p").put("spec", "schedulingGates", value=[{"name": "x"}]).assigned({"H200": 1}), 1000),
        (one("p").put("spec", "schedulingGates", value=[]).scheduler("nobody").charged("q"), 1000),
        (one("p").scheduler("nobody").bound_to("h1"), 1000),
        (one("p").bound_to("h1").terminating(grace_s=300), 0),
        (one("p").bound_to("h1").terminating(grace_s=301), 1000),
    ],
)
def test_no_scheduler_gate_or_grace_keeps_quota_from_others(pod: PodBuilder, used: int) -> None:
    ledger = books(a_queue("q").cards({"H200": 1}))
    assert lifted(decide(ledger, pod, one("next"))) == ([] if used else ["next"])
    assert ledger.used("q", "H200") == 1000


def test_an_mps_share_is_narrowed_to_slices_of_its_size() -> None:
    share = "A100/mps-80g*1/8"
    ledger = books(a_queue("q").cards({share: 2}), nodes=(MPS_NODE,))
    pod = a_pod("p").limit("nvidia.com/gpu.shared", 1).card(share).in_queue("q").gated()
    decision = decide(ledger, pod)["p"]
    assert isinstance(decision, Lift)
    (narrowing,) = [op for op in decision.patch if op["path"] == "/spec/affinity"]
    (term,) = narrowing["value"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert {each["key"]: each["values"] for each in term["matchExpressions"]} == {
        "nvidia.com/gpu.product": ["A100"],
        "nvidia.com/gpu.replicas": ["8"],
        "nvidia.com/gpu.memory": ["81920"],
    }


@pytest.mark.parametrize(
    ("queue", "pod", "reason"),
    [
        (a_queue("other"), one("p"), reasons.QUEUE_NOT_FOUND),
        (a_queue("q").cards({"H200": 3}).state("Closed"), one("p"), reasons.QUEUE_NOT_OPEN),
        (a_queue("q").cards({"H200": 3}).state("Closing"), one("p"), reasons.QUEUE_NOT_OPEN),
        (a_queue("q").cards({"H200": 3}).state("Unknown"), one("p"), reasons.QUEUE_NOT_OPEN),
        (a_queue("q").cards({"GB300": 3}), one("p", "GB300"), reasons.GET_TASK_REQUEST_RESOURCE_FAILED),
        (a_queue("q"), one("p"), reasons.EMPTY_QUEUE_CAPABILITY),
        (a_queue("q").cards("{"), one("p"), reasons.CARD_QUOTA_MALFORMED),
        (a_queue("q").cards({"H200": 0}), one("p"), reasons.INSUFFICIENT_SCALAR_QUOTA),
    ],
)
def test_every_obstacle_has_its_reason(queue: QueueBuilder, pod: PodBuilder, reason: str) -> None:
    hold = held(decide(books(queue), pod)["p"])
    assert hold.why.code == reason
    assert hold.why.code in catalogue.CATALOGUE
    assert "q" in hold.why.message
    assert hold.announced is (reason != reasons.QUEUE_NOT_OPEN)


@pytest.mark.parametrize("state", ["", "Open"])
def test_a_queue_without_a_state_is_open(state: str) -> None:
    assert lifted(decide(books(a_queue("q").cards({"H200": 1}).state(state)), one("p"))) == ["p"]


def test_a_pod_that_nobody_sent_to_the_missing_default_queue_and_that_needs_no_cards_is_lifted() -> None:
    ledger = books(nodes=(a_node("m").mgpu(1, memory=16384),))
    pod = a_pod("p").mgpu(core=30, memory=2048).gated()
    assert lifted(decide(ledger, pod, queue="default")) == ["p"]
    card = a_pod("card").gpu(1).card("H200").gated()
    assert held(decide(ledger, card, queue="default")["card"]).why.code in {
        reasons.QUEUE_NOT_FOUND,
        reasons.GET_TASK_REQUEST_RESOURCE_FAILED,
    }


def test_a_pod_that_carries_the_gate_and_asks_for_nothing_is_let_go() -> None:
    ledger = books(a_queue("q").cards({"H200": 3}).state("Closed"))
    assert lifted(decide(ledger, a_pod("bare").in_queue("q").gated())) == ["bare"]
    assert lifted(decide(ledger, a_pod("lost").in_queue("ghost").gated(), queue="ghost")) == ["lost"]


def test_a_pod_with_claims_alone_passes_the_gate_without_a_limit() -> None:
    pod, template = a_pod("claims").claim("dev", template="gpu").gated(), a_template("gpu").view()
    in_queue, in_default = books(a_queue("q")), books()
    in_queue.devices.put_template(template)
    in_default.devices.put_template(template)
    assert lifted(decide(in_queue, pod.in_queue("q"))) == ["claims"]
    assert lifted(decide(in_default, pod, queue="default")) == ["claims"]
    assert (
        held(decide(books(), pod.in_queue("ghost"), queue="ghost")["claims"]).why.code
        == reasons.QUEUE_NOT_FOUND
    )


def test_the_root_queue_takes_in_no_pod_with_cards_whatever_quota_is_written_on_it() -> None:
    ledger = books(a_queue("root").cards({"H200": 8}))
    hold = held(decide(ledger, one("p").in_queue("root"), queue="root")["p"])
    assert (hold.why.code, hold.announced) == (reasons.QUEUE_NOT_OPEN, True)


class Endless(str):
    """An expression of a quarter of a megabyte that nobody may take apart."""

    __slots__ = ()

    def split(self, *_: object) -> list[str]:
        raise AssertionError


def endless(built: PodBuilder) -> Pod:
    view = built.view()
    card = Endless("|".join(f"H{number}" for number in range(37_000)))
    return replace(view, annotations={**view.annotations, names.CARD_NAME_ANNOTATION: card})


def test_a_card_name_without_end_is_held_and_never_taken_apart_by_any_event() -> None:
    ledger = books(a_queue("q").cards({"H200": 8}))
    ledger.put_pod(endless(one("waiting", second=1)))
    ledger.put_pod(endless(one("lifted").put("spec", "schedulingGates", value=[]).assigned({"H200": 2})))
    ledger.put_pod(endless(one("bound").assigned({"H200": 3}).bound_to("h1")))
    ledger.put_pod(endless(one("lost").bound_to("h1")))
    for _ in range(2):
        decisions = decide(ledger, one("small", count=1))
        hold = held(decisions["waiting"])
        assert (hold.why.code, hold.announced) == (reasons.GET_TASK_REQUEST_RESOURCE_FAILED, True)
        assert "names more than 16 cards" in hold.why.message
        assert len(hold.why.message) < 300
        account = ledger.accounts["q"]
        assert (account.reserved["H200"], account.allocated["H200"]) == (2000 + 1000, 3000)
        assert [entry.pod.name for entry in account.uncounted_pods.values()] == ["lost"]
        ledger.put_node(a_node("h1").card("H200", 4).view())
        ledger.put_pod(endless(one("waiting", second=1).label("seen", "again")))
        ledger.forget("uid-ml-small")
