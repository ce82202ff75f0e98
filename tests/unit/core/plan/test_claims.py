"""Pods with claims pass the same gate as pods with cards: one order, gangs whole, every queue above asked."""

import json
from typing import Any

import pytest

from core import names, reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template, a_way
from tests.builders.objects import QueueBuilder
from tests.builders.pods import PodBuilder


def limited(name: str, count: int, *, parent: str = "") -> QueueBuilder:
    return a_queue(name).devices({"capability": {"gpu": {"count": count}}}).child_of(parent)


def books(*queues: QueueBuilder) -> Ledger:
    """With the claims `one` and `two` of so many devices, and a template `each` of one."""
    ledger = Ledger(Settings())
    for queue in queues:
        ledger.put_queue(queue.view())
    ledger.devices.put_claim(a_claim("one").exactly("r", "gpu").view())
    ledger.devices.put_claim(a_claim("two").exactly("r", "gpu", count=2).view())
    ledger.devices.put_template(a_template("each").exactly("r", "gpu").view())
    return ledger


def pod(name: str, claim: str = "", *, queue: str = "q", second: int = 0) -> PodBuilder:
    """A waiting pod with a claim by name, or one from the template."""
    made = a_pod(name).claim("dev", name=claim) if claim else a_pod(name).claim("dev", template="each")
    return made.in_queue(queue).gated().created(f"2024-01-01T00:00:{second:02}Z")


def decide(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> dict[str, Lift | Hold]:
    for each in pods:
        ledger.put_pod(each.view())
    return {decision.pod.name: decision for decision in Planner(ledger).decide(queue)}


def told(decisions: dict[str, Lift | Hold]) -> dict[str, str]:
    """The reason of each pod that is held, empty for one that is lifted."""
    return {name: one.why.code if isinstance(one, Hold) else "" for name, one in decisions.items()}


SHORT = reasons.INSUFFICIENT_DEVICE_QUOTA


def test_pods_are_lifted_up_to_the_quota_and_the_rest_is_told_the_numbers() -> None:
    decisions = decide(books(limited("q", 2)), *(pod(f"p{number}", second=number) for number in range(4)))
    assert told(decisions) == {"p0": "", "p1": "", "p2": SHORT, "p3": SHORT}
    hold = decisions["p2"]
    assert isinstance(hold, Hold)
    assert hold.why.message == "queue q: DeviceClass gpu quota exceeded: requested 1, used 2, limit 2"


def test_a_shared_claim_lets_in_all_that_share_it() -> None:
    decisions = decide(books(limited("q", 1)), pod("a", "one"), pod("b", "one"), pod("c", second=9))
    assert told(decisions) == {"a": "", "b": "", "c": SHORT}


@pytest.mark.parametrize("bound", [True, False])
def test_a_claim_that_came_past_the_gate_pays_for_nobody_who_shares_it(*, bound: bool) -> None:
    """Else whoever makes a pod with a node, or takes a gate away, has any number of devices."""
    past = a_pod("past").claim("dev", name="two").in_queue("q")
    ledger = books(limited("q", 1))
    ledger.put_pod((past.bound_to("n") if bound else past).view())
    decisions = decide(ledger, pod("p", "two"))
    assert told(decisions) == {"p": SHORT}
    hold = decisions["p"]
    assert isinstance(hold, Hold)
    assert "requested 2, used 0, limit 1, more than the whole quota" in hold.why.message
    ledger.put_queue(limited("q", 2).view())
    assert told(decide(ledger, pod("q", "two", second=1))) == {"p": "", "q": ""}


def test_the_smaller_limit_above_holds_and_is_named() -> None:
    ledger = books(limited("q", 8, parent="org"), limited("org", 1))
    decisions = decide(ledger, pod("a", second=1), pod("b", second=2))
    assert told(decisions) == {"a": "", "b": SHORT}
    hold = decisions["b"]
    assert isinstance(hold, Hold)
    assert hold.why.message.startswith("queue org: DeviceClass gpu")
    assert "queue q is below it" in hold.why.message


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        (pod("p", "gone"), reasons.CLAIM_NOT_FOUND),
        (a_pod("p").claim("dev", template="gone").in_queue("q").gated(), reasons.CLAIM_NOT_FOUND),
        (pod("p", "odd"), reasons.CLAIM_NOT_COMPUTABLE),
    ],
)
def test_what_cannot_be_counted_is_never_taken_for_nothing(built: PodBuilder, reason: str) -> None:
    """Not even in a queue without any limit."""
    ledger = books(a_queue("q"))
    ledger.devices.put_claim(a_claim("odd").exactly("r", "gpu", mode="Some").view())
    assert told(decide(ledger, built)) == {"p": reason}


def test_a_broken_chain_holds_only_its_own_pods_and_only_those_with_claims() -> None:
    ledger = books(limited("q", 8, parent="nowhere").cards({"A": 1}), limited("fine", 8))
    ledger.put_node(a_node("n").card("A", 1).view())
    card = a_pod("card").gpu(1).card("A").in_queue("q").gated()
    assert told(decide(ledger, pod("p"), card)) == {"p": reasons.QUEUE_HIERARCHY_BROKEN, "card": ""}
    assert told(decide(ledger, pod("f", queue="fine"), queue="fine")) == {"f": ""}


def test_a_pod_with_cards_and_claims_needs_both() -> None:
    ledger = books(limited("q", 1).cards({"A": 2}))
    ledger.put_node(a_node("n").card("A", 8).view())
    both = [pod(f"p{i}", second=i).gpu(1).card("A") for i in range(3)]
    more = pod("q", "two", second=9).gpu(1).card("A")
    bare = a_pod("bare").gpu(1).card("A").in_queue("q").gated()
    decisions = decide(ledger, *both, more, bare)
    assert told(decisions) == {
        "bare": "",
        "p0": "",
        "p1": reasons.INSUFFICIENT_SCALAR_QUOTA,
        "p2": reasons.INSUFFICIENT_SCALAR_QUOTA,
        "q": reasons.INSUFFICIENT_SCALAR_QUOTA,
    }
    ledger.put_queue(limited("q", 1).cards({"A": 8}).view())
    assert set(told(decide(ledger)).values()) == {SHORT}


def test_a_pod_that_is_held_for_its_claim_says_nothing_about_a_pod_without() -> None:
    """Pods that want the same cards are held for the same reason only where their claims do not differ."""
    ledger = books(limited("q", 0).cards({"A": 2}))
    ledger.put_node(a_node("n").card("A", 8).view())
    bare = a_pod("z").gpu(1).card("A").in_queue("q").gated()
    assert told(decide(ledger, pod("a").gpu(1).card("A"), bare)) == {"a": SHORT, "z": ""}


class TestGangs:
    """The members of a PodGroup."""

    def gang(self, ledger: Ledger, minimum: int, *pods: PodBuilder) -> dict[str, str]:
        ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
        return told(decide(ledger, *(each.in_group("g") for each in pods)))

    @pytest.mark.parametrize(("quota", "lifted"), [(2, 0), (3, 3), (4, 3)])
    def test_are_lifted_whole_or_not_at_all(self, quota: int, lifted: int) -> None:
        found = self.gang(books(limited("q", quota)), 3, pod("a"), pod("b"), pod("c"))
        assert list(found.values()).count("") == lifted

    def test_that_share_one_claim_need_one_device(self) -> None:
        found = self.gang(books(limited("q", 1)), 3, *(pod(name, "one") for name in "abc"))
        assert found == dict.fromkeys("abc", "")

    def test_are_chosen_so_that_they_fit(self) -> None:
        """The first two members do not fit together, the second and third do: members differ by their claims."""
        ledger = books(limited("q", 2))
        found = self.gang(ledger, 2, pod("a", "two"), pod("b", second=1), pod("c", second=2))
        assert found == {"a": SHORT, "b": "", "c": ""}

    def test_without_the_one_whose_claim_is_missing(self) -> None:
        found = self.gang(books(limited("q", 9)), 2, pod("a", "gone"), pod("b"), pod("c"))
        assert found == {"a": reasons.CLAIM_NOT_FOUND, "b": "", "c": ""}

    def test_leave_no_trace_of_a_trial_that_failed(self) -> None:
        ledger = books(limited("q", 2, parent="org"), limited("org", 9))
        self.gang(ledger, 3, pod("a"), pod("b"), pod("c"))
        assert (ledger.devices.reserved("q"), ledger.devices.reserved("org")) == ({}, {})
        assert ledger.devices.waiting("org") == {"deviceclass/gpu": 3000}

    def test_that_hold_a_shared_claim_now_wake_the_pods_that_share_it_elsewhere(self) -> None:
        """The queue above both has it charged already; nobody else would tell the other queue."""
        ledger = books(limited("q", 9, parent="org"), limited("r", 9, parent="org"), limited("org", 2))
        other = pod("x", "two", queue="r")
        ledger.put_pod(pod("y", "one", queue="r").bound_to("n").view())
        assert told(decide(ledger, other, queue="r")) == {"x": SHORT}
        ledger.drop_pod("uid-ml-y")
        ledger.wakeups.take_queues()
        self.gang(ledger, 2, pod("a", "two"), pod("b", "two"))
        assert "r" in ledger.wakeups.take_queues()
        assert told(decide(ledger, queue="r")) == {"x": ""}


class TestPatch:
    """What a pod was let in for is on record, whatever it asks for."""

    def added(self, built: PodBuilder, ledger: Ledger) -> list[Any]:
        decision = decide(ledger, built)["p"]
        assert isinstance(decision, Lift)
        return [op for op in decision.patch if op["op"] == "add"]

    def test_a_pod_with_claims_alone_gets_an_annotation(self) -> None:
        records = {op["path"]: op["value"] for op in self.added(pod("p"), books(a_queue("q")))}
        path = "/metadata/annotations/cardquota.io~1"
        assert records == {f"{path}queue": "q", f"{path}claims": '{"dev":{"deviceclass/gpu":"1"}}'}

    def test_the_claims_that_were_counted_are_named_by_their_uids_and_costs(self) -> None:
        ledger = books(a_queue("q"))
        for name in ("one", "another"):
            ledger.devices.put_claim(a_claim(name).uid(f"uid-of-{name}").exactly("r", "gpu").view())
        both = pod("p", "one").claim("more", name="another")
        records = {op["path"]: op["value"] for op in self.added(both, ledger)}
        assert json.loads(records["/metadata/annotations/cardquota.io~1claims"]) == {
            "dev": {"uid": "uid-of-one", "deviceclass/gpu": "1"},
            "more": {"uid": "uid-of-another", "deviceclass/gpu": "1"},
        }

    def test_where_it_has_none_at_all_they_come_with_it(self) -> None:
        bare = a_pod("p").claim("dev", template="each").gated()
        ledger = books(a_queue("default"))
        ledger.put_pod(bare.view())
        (lift,) = Planner(ledger).decide("default")
        assert isinstance(lift, Lift)
        counted = '{"dev":{"deviceclass/gpu":"1"}}'
        value = {names.CHARGED_QUEUE_ANNOTATION: "default", names.CLAIMS_ANNOTATION: counted}
        assert lift.patch[-1] == {"op": "add", "path": "/metadata/annotations", "value": value}

    def test_one_with_cards_has_its_record(self) -> None:
        ledger = books(a_queue("q").cards({"A": 1}))
        ledger.put_node(a_node("n").card("A", 1).view())
        paths = {op["path"] for op in self.added(pod("p").gpu(1).card("A"), ledger)}
        records = {f"/metadata/annotations/cardquota.io~1{name}" for name in ("assigned", "queue")}
        assert records <= paths


def test_a_plan_shows_devices_under_the_names_of_the_status() -> None:
    ledger = books(limited("q", 4, parent="org"), a_queue("org"))
    big = a_claim("big").exactly("r", "gpu", count=2, capacity={"memory": "8Gi"})
    ledger.devices.put_claim(big.view())
    pods = [pod("a", "big").bound_to("n").view(), pod("b").view(), pod("c", "gone").view()]
    for each in pods:
        ledger.put_pod(each)
    found = plan(ledger, pods)
    keys = {"deviceclass/gpu": 2000, "memory.deviceclass/gpu": 16 * 2**30 * 1000}
    assert (found.queues["q"].quota, found.queues["q"].share) == ({"deviceclass/gpu": 4000}, 0.75)
    for queue in ("q", "org"):
        assert found.queues[queue].allocated == keys
        assert found.queues[queue].reserved == {"deviceclass/gpu": 1000}
    assert found.pods["ml/b"].decision == "lift"
    assert found.pods["ml/b"].assigned is None
    why = found.pods["ml/c"].why
    assert why is not None
    assert why.code == reasons.CLAIM_NOT_FOUND


def test_an_open_choice_counts_as_the_worst_until_it_is_made() -> None:
    """Then what was chosen counts, and what it leaves lets the next one in."""
    choice = a_claim("any").first_available("r", a_way("gpu", name="two", count=2), a_way("gpu", name="one"))
    ledger = books(limited("q", 2))
    ledger.devices.put_claim(choice.view())
    assert told(decide(ledger, pod("a", "any"), pod("b", second=1))) == {"a": "", "b": SHORT}
    ledger.devices.put_claim(choice.allocated("r/one").view())
    assert "q" in ledger.wakeups.take_queues()
    assert told(decide(ledger)) == {"b": ""}
