"""What a bind of a pod is granted that held nothing before: somebody else's scheduler, or shares and claims past the gate."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.objects import DeviceClass
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import PodBuilder, QueueBuilder

QUEUE = a_queue("q").cards({"A": 1}).shares(core=50).devices({"capability": {"gpu": {"count": 1}}})
CARD = a_pod("card").gpu(1).card("A").in_queue("q")
SHARE = a_pod("share").mgpu("c", core=30, memory=1024).in_queue("q")
CLAIM = a_pod("claim").claim("dev", template="each").in_queue("q")
OLD = '{"dev":{"uid":"old","deviceclass/gpu":"1"}}'
KINDS = pytest.mark.parametrize("pod", [CARD, SHARE, CLAIM], ids=["card", "share", "claim"])


def books(*pods: PodBuilder, queue: QueueBuilder | None = QUEUE) -> Ledger:
    """A queue with room for one pod of each kind, and a node with cards and shares."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).mgpu(8, memory=16384).view())
    if queue is not None:
        ledger.put_queue(queue.view())
    ledger.devices.put_template(a_template("each").exactly("r", "gpu").view())
    ledger.devices.put_claim(a_claim("shared").exactly("r", "gpu").view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def binder(ledger: Ledger) -> Binder:
    return Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)


def decided(pod: PodBuilder, *others: PodBuilder) -> Mapping[str, str] | Refusal:
    return binder(books(pod, *others)).decide(pod.view(), "n")


def another(pod: PodBuilder, name: str = "other") -> PodBuilder:
    return pod.put("metadata", "name", value=name).uid(name)


def charged(answer: Mapping[str, str] | Refusal) -> str:
    assert not isinstance(answer, Refusal), answer
    return answer[names.CHARGED_QUEUE_ANNOTATION]


def reason(answer: Mapping[str, str] | Refusal) -> str:
    assert isinstance(answer, Refusal), answer
    return answer.code


def claims_in(answer: Mapping[str, str] | Refusal) -> Any:
    assert not isinstance(answer, Refusal), answer
    return json.loads(answer[names.CLAIMS_ANNOTATION])


@KINDS
@pytest.mark.parametrize("scheduler", ["volcano", "nobody"])
def test_with_room_in_its_queue_it_is_let_in_and_put_on_record(pod: PodBuilder, scheduler: str) -> None:
    assert charged(decided(pod.scheduler(scheduler))) == "q"


@KINDS
@pytest.mark.parametrize("scheduler", ["volcano", "nobody"])
@pytest.mark.parametrize("lifted", [True, False], ids=["lifted", "bound"])
def test_without_room_it_is_refused(pod: PodBuilder, scheduler: str, *, lifted: bool) -> None:
    """Whatever the scheduler's name: what held nothing has to ask now, and what was let in before comes first."""
    other = another(pod)
    other = other.charged("q").assigned({"A": 1}) if lifted else other.bound_to("n")
    expected = reasons.INSUFFICIENT_DEVICE_QUOTA if pod is CLAIM else reasons.INSUFFICIENT_SCALAR_QUOTA
    assert reason(decided(pod.scheduler(scheduler), other)) == expected


@KINDS
def test_others_that_were_never_let_in_do_not_stand_in_its_way(pod: PodBuilder) -> None:
    """Else two of them would keep each other out for ever."""
    others = [another(pod), another(pod, "foreign").scheduler("nobody")]
    assert charged(decided(pod, *others)) == "q"


@KINDS
def test_of_two_the_first_one_gets_what_is_left(pod: PodBuilder) -> None:
    first, second = pod.scheduler("nobody"), another(pod).scheduler("nobody")
    ledger = books(first, second)
    binds = binder(ledger)
    answer = binds.decide(first.view(), "n")
    assert not isinstance(answer, Refusal)
    binds.book(first.view(), "n", answer)
    assert reason(binds.decide(second.view(), "n")) in {
        reasons.INSUFFICIENT_DEVICE_QUOTA,
        reasons.INSUFFICIENT_SCALAR_QUOTA,
    }
    binds.take_back(first.view().uid)
    assert charged(binds.decide(second.view(), "n")) == "q"


@KINDS
def test_what_was_let_in_is_not_asked_again(pod: PodBuilder) -> None:
    """Its quota may have been cut since; for shares a place on the node is still to be found."""
    lifted = pod.charged("q").assigned({"A": 1})
    assert charged(decided(lifted, another(pod).bound_to("n"))) == "q"
    assert binder(books()).passes_unasked(lifted.view(), "n") is (pod is not SHARE)
    assert not binder(books()).passes_unasked(pod.view(), "n")


@KINDS
@pytest.mark.parametrize(
    ("queue", "expected"),
    [(None, reasons.QUEUE_NOT_FOUND), (QUEUE.state("Closed"), reasons.QUEUE_NOT_OPEN)],
)
def test_a_queue_that_takes_nobody_in_refuses(
    pod: PodBuilder, queue: QueueBuilder | None, expected: str
) -> None:
    assert reason(binder(books(pod, queue=queue)).decide(pod.view(), "n")) == expected


@pytest.mark.parametrize(
    "pod", [a_pod("p").mgpu("c", core=30, memory=1024), a_pod("p").claim("dev", template="each")]
)
def test_without_a_default_queue_what_names_none_is_bound_as_it_would_be_lifted(pod: PodBuilder) -> None:
    assert charged(binder(books(pod)).decide(pod.view(), "n")) == "default"


def test_with_cards_and_claims_it_needs_quota_for_both() -> None:
    pod = CARD.claim("dev", template="each")
    assert charged(decided(pod)) == "q"
    assert reason(decided(pod, another(CLAIM).bound_to("n"))) == reasons.INSUFFICIENT_DEVICE_QUOTA


def test_a_claim_that_others_hold_by_right_costs_nothing_more() -> None:
    pod = a_pod("p").claim("dev", name="shared").in_queue("q")
    assert charged(decided(pod, another(pod).bound_to("n"))) == "q"
    assert reason(decided(pod, another(CLAIM).bound_to("n"))) == reasons.INSUFFICIENT_DEVICE_QUOTA


class TestClaimsThatWereNotCounted:
    """A claim that is deleted and made anew under its name, larger, was never let in."""

    LIFTED = a_pod("p").claim("dev", name="mine").charged("q")

    def bind(self, record: str | None, count: int, *others: PodBuilder) -> Mapping[str, str] | Refusal | None:
        """What the bind is answered; None when nobody has to be asked."""
        pod = self.LIFTED if record is None else self.LIFTED.annotation(names.CLAIMS_ANNOTATION, record)
        ledger = books(pod, *others)
        ledger.devices.put_claim(a_claim("mine").uid("new").exactly("r", "gpu", count=count).view())
        bound = binder(ledger)
        return None if bound.certain(pod.view(), "n") else bound.decide(pod.view(), "n")

    def test_those_that_were_counted_are_not_asked_again(self) -> None:
        assert self.bind('{"dev":{"uid":"new","deviceclass/gpu":"1"}}', 5) is None

    @pytest.mark.parametrize("record", [OLD, '{"dev":{"deviceclass/gpu":"1"}}', "{}"])
    def test_others_are_asked_for_their_quota_and_go_on_record(self, record: str) -> None:
        refused, granted = self.bind(record, 2), self.bind(record, 1)
        assert refused is not None
        assert reason(refused) == reasons.INSUFFICIENT_DEVICE_QUOTA
        assert granted is not None
        assert charged(granted) == "q"
        assert claims_in(granted) == {"dev": {"uid": "new", "deviceclass/gpu": "1"}}

    def test_beside_what_others_hold(self) -> None:
        answer = self.bind(OLD, 1, another(CLAIM).charged("q"))
        assert answer is not None
        assert reason(answer) == reasons.INSUFFICIENT_DEVICE_QUOTA

    @pytest.mark.parametrize("record", [None, "new"], ids=["none", "unreadable"])
    def test_what_an_earlier_version_lifted_passes(self, record: str | None) -> None:
        """It left nothing that could be compared."""
        assert self.bind(record, 5) is None


class TestClaimsThatAreNotKnown:
    """Nobody can tell what a claim takes that is not in view: the scheduler, which saw it, tries again."""

    @pytest.mark.parametrize(
        "pod",
        [
            a_pod("p").claim("dev", name="mine"),
            a_pod("p").claim("dev", template="each"),
            a_pod("p").claim("dev", template="each").generated_claim("dev", "made"),
            a_pod("p").claim("first", name="shared").claim("dev", name="mine"),
        ],
        ids=["by name", "no name yet", "made", "beside one that is known"],
    )
    @pytest.mark.parametrize("uid", ['"uid":"old",', ""])
    def test_they_are_refused(self, pod: PodBuilder, uid: str) -> None:
        shared = a_claim("shared").view().uid
        record = f'{{"dev":{{{uid}"deviceclass/gpu":"1"}},"first":{{"uid":"{shared}"}}}}'
        lifted = pod.charged("q").annotation(names.CLAIMS_ANNOTATION, record)
        binds = binder(books(lifted))
        assert not binds.passes_unasked(lifted.view(), "n")
        answer = binds.decide(lifted.view(), "n")
        assert reason(answer) == reasons.CLAIM_NOT_FOUND
        assert isinstance(answer, Refusal)
        assert "is not known yet; the scheduler tries again" in answer.message

    def test_one_that_was_made_for_another_pod_is_refused(self) -> None:
        pod = a_pod("p").claim("dev", template="each").generated_claim("dev", "made").charged("q")
        pod = pod.annotation(names.CLAIMS_ANNOTATION, OLD)
        ledger = books(pod)
        ledger.devices.put_claim(a_claim("made").uid("new").exactly("r", "gpu").made_for("x").view())
        assert reason(binder(ledger).decide(pod.view(), "n")) == reasons.CLAIM_NOT_FOUND

    def test_where_none_is_needed_nobody_is_asked(self) -> None:
        pod = a_pod("p").claim("dev", template="each").charged("q")
        pod = pod.annotation(names.CLAIMS_ANNOTATION, OLD)
        none = pod.add("status", "resourceClaimStatuses", item={"name": "dev"})
        assert binder(books(none)).certain(none.view(), "n")


def test_the_bind_of_what_was_never_lifted_puts_its_claims_on_record() -> None:
    """So that they stay charged, whatever becomes of them."""
    pod = a_pod("p").claim("dev", name="shared").in_queue("q")
    uid = a_claim("shared").view().uid
    for each in (pod, pod.gpu(1).card("A")):
        ledger = books(each)
        binds = binder(ledger)
        found = binds.decide(each.view(), "n")
        assert claims_in(found) == {"dev": {"uid": uid, "deviceclass/gpu": "1"}}
        assert not isinstance(found, Refusal)
        granted = binds.book(each.view(), "n", found)
        assert binds.records_of(granted) == found
        ledger.devices.drop_claim("ml/shared")
        assert ledger.devices.allocated("q") == {"deviceclass/gpu": 1000}


class TestExtendedResources:
    """A scheduler makes the claim with the bind; a pod that came before the DeviceClass has passed no gate."""

    POD = a_pod("p").limit("example.com/gpu", 1).in_queue("q")
    MADE = POD.put("status", "extendedResourceClaimStatus", value={"resourceClaimName": "made"})

    def books(self, *pods: PodBuilder, offered: int = 0) -> Ledger:
        ledger = books(CLAIM, *pods)
        ledger.put_pod(another(CLAIM).bound_to("n").view())
        ledger.devices.put_claim(a_claim("made").exactly("r", "gpu").view())
        ledger.devices.put_class(DeviceClass("gpu", extended="example.com/gpu"))
        ledger.put_node(a_node("n").allocatable("example.com/gpu", offered).view())
        return ledger

    @pytest.mark.parametrize("pod", [MADE, POD], ids=["claim in view", "claim not in view yet"])
    def test_the_claim_is_asked_for_like_any_other(self, pod: PodBuilder) -> None:
        ledger = self.books(pod)
        assert not binder(ledger).certain(pod.view(), "n")
        assert reason(binder(ledger).decide(pod.view(), "n")) == reasons.INSUFFICIENT_DEVICE_QUOTA

    def test_where_a_device_plugin_offers_the_resource_no_claim_is_made(self) -> None:
        assert charged(binder(self.books(self.POD, offered=1)).decide(self.POD.view(), "n")) == "q"

    def test_of_two_binds_the_first_one_gets_what_is_left(self) -> None:
        """Before either claim is in view, and before a status names one; until a device plugin turns out to serve the first."""
        first, second = self.POD, another(self.POD)
        ledger = books(first, second)
        ledger.devices.put_class(DeviceClass("gpu", extended="example.com/gpu"))
        binds = binder(ledger)
        answer = binds.decide(first.view(), "n")
        assert not isinstance(answer, Refusal)
        binds.book(first.view(), "n", answer)
        assert reason(binds.decide(second.view(), "n")) == reasons.INSUFFICIENT_DEVICE_QUOTA
        ledger.put_pod(first.recorded(answer).bound_to("n", phase="Pending").view())
        assert reason(binds.decide(second.view(), "n")) == reasons.INSUFFICIENT_DEVICE_QUOTA
        ledger.put_pod(first.recorded(answer).bound_to("n").view())
        assert charged(binds.decide(second.view(), "n")) == "q"

    def test_a_card_pod_needs_no_device_where_a_device_plugin_serves_it(self) -> None:
        ledger = books(CARD, another(CLAIM).bound_to("n"))
        ledger.devices.put_class(DeviceClass("gpu", extended="nvidia.com/gpu"))
        assert charged(binder(ledger).decide(CARD.view(), "n")) == "q"

    def test_what_was_let_in_is_not_asked_again(self) -> None:
        pod = self.MADE.charged("q")
        assert binder(self.books(pod)).certain(pod.view(), "n")


def test_another_node_will_do_for_what_names_no_card() -> None:
    ledger = books(CLAIM, SHARE)
    ledger.put_node(a_node("elsewhere").mgpu(2, memory=16384).view())
    for pod, may in ((CLAIM, True), (SHARE, False)):
        granted = pod.charged("q").bound_to("n", phase="Pending").view()
        answer = binder(ledger).decide_again(pod.view(), granted, "elsewhere")
        assert isinstance(answer, Refusal) is not may
