"""A lift that is not written yet stands while it would be decided on again as it was; no longer, and no shorter."""

from collections.abc import Callable

import pytest

from core import names
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_namespace, a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import QueueBuilder
from tests.builders.pods import PodBuilder

Change = Callable[[Ledger], None]


def full() -> QueueBuilder:
    devices = {"gpu": {"count": 1}, "nic": {"count": 0}}
    built = a_queue("q").cards({"A": 2}).capability(cpu=2).devices({"capability": devices})
    return built.shares(core=100)


def pod(name: str = "p") -> PodBuilder:
    return a_pod(name).in_queue("q").gated()


def decided(lifted: PodBuilder, *others: PodBuilder) -> tuple[Planner, Ledger, Lift]:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_node(a_node("m").mgpu(4, memory=8192).view())
    ledger.devices.put_claim(a_claim("one").exactly("r", "gpu").view())
    ledger.devices.put_claim(a_claim("nic").exactly("r", "nic").view())
    ledger.put_queue(full().view())
    for other in others:
        ledger.put_pod(other.view())
    ledger.put_pod(lifted.view())
    planner = Planner(ledger)
    (lift,) = [each for each in planner.decide("q") if isinstance(each, Lift)]
    return planner, ledger, lift


CARD = pod().gpu(1).card("A").request("cpu", 1)
SHARE = pod().mgpu(core=50, memory=1024)
CLAIM = pod().claim("dev", name="one")


def queue(built: QueueBuilder) -> Change:
    return lambda ledger: ledger.put_queue(built.view())


@pytest.mark.parametrize(
    ("lifted", "change"),
    [
        (CARD, queue(full().cards({"A": 0}))),
        (CARD, queue(full().cards({}))),
        (CARD, queue(full().state("Closed"))),
        (CARD, queue(full().capability(cpu="500m"))),
        (CARD, lambda ledger: ledger.drop_queue("q")),
        (SHARE, queue(full().shares(core=40))),
        (CLAIM, queue(full().devices({"capability": {"gpu": {"count": 0}}}))),
        (CARD, lambda ledger: ledger.drop_pod("uid-ml-p")),
        (CLAIM, lambda ledger: ledger.devices.drop_claim("ml/one")),
    ],
)
def test_what_is_taken_from_a_queue_takes_the_lift_with_it(lifted: PodBuilder, change: Change) -> None:
    planner, ledger, lift = decided(lifted)
    assert planner.stands(lift)
    change(ledger)
    assert not planner.stands(lift)


def test_a_lift_whose_pod_charges_another_queue_by_now_is_void() -> None:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    for name in ("q", "other"):
        ledger.put_queue(a_queue(name).cards({"A": 1}).view())
    ledger.put_namespace(a_namespace().in_queue("q").view())
    ledger.put_pod(a_pod("p").gpu(1).card("A").gated().view())
    planner = Planner(ledger)
    (lift,) = planner.decide("q")
    assert isinstance(lift, Lift)
    ledger.put_namespace(a_namespace().in_queue("other").view())
    assert not planner.stands(lift)


USES_ALL = a_pod("cpu").request("cpu", 9).in_queue("q").bound_to("n")
CARDS_OVER = a_pod("cards").gpu(5).card("A").in_queue("q").bound_to("n")
NIC_OVER = a_pod("nic").claim("dev", name="nic").in_queue("q").bound_to("n")
RECORD = '{"dev":{"uid":"uid-ml-one","deviceclass/gpu":"1"}}'
SHARED = a_pod("shares").claim("dev", name="one").charged("q").annotation(names.CLAIMS_ANNOTATION, RECORD)


@pytest.mark.parametrize(
    ("lifted", "others", "change"),
    [
        (pod().gpu(1).card("A"), [USES_ALL], None),
        (pod().gpu(1).card("A").request("cpu", 0), [USES_ALL], None),
        (pod().gpu(0).card("A"), [CARDS_OVER], None),
        (SHARE.request("cpu", 1), [USES_ALL], None),
        (CLAIM, [NIC_OVER], None),
        (CLAIM, [SHARED.bound_to("n")], queue(full().devices({"capability": {"gpu": {"count": 0}}}))),
        (pod(), [CARDS_OVER], queue(full().state("Closed"))),
    ],
    ids=["cpu", "no cpu", "no cards", "share", "another class", "a shared claim", "asks for nothing"],
)
def test_what_does_not_keep_a_pod_from_being_lifted_does_not_void_its_lift(
    lifted: PodBuilder, others: list[PodBuilder], change: Change | None
) -> None:
    """Else the same would be decided and taken back for ever."""
    planner, ledger, lift = decided(lifted, *others)
    if change is not None:
        change(ledger)
    assert planner.stands(lift)
    ledger.wakeups.take_figures()
    ledger.retract(lift.lifted)
    assert "q" in ledger.wakeups.take_figures(), "whoever publishes is told"
    assert any(isinstance(each, Lift) for each in planner.decide("q"))


@pytest.mark.parametrize(
    ("written", "claims", "stand"),
    [
        ((), ("one", "one"), [False, False]),
        (("a",), ("one", "one"), [True]),
        (("b",), ("one", "one"), [True]),
        ((), ("one", "two"), [False, True]),
    ],
    ids=["none is written", "the first is written", "the other is written", "of another class"],
)
def test_a_quota_that_was_cut_voids_the_lifts_of_all_that_share_a_claim(
    written: tuple[str, ...], claims: tuple[str, str], stand: list[bool]
) -> None:
    """As long as none of them is in; then the others take nothing more."""
    ledger = Ledger(Settings())
    ledger.put_queue(full().view())
    ledger.devices.put_claim(a_claim("one").exactly("r", "gpu").view())
    ledger.devices.put_claim(a_claim("two").exactly("r", "other").view())
    for name, claim in zip("ab", claims, strict=True):
        ledger.put_pod(pod(name).claim("dev", name=claim).view())
    planner = Planner(ledger)
    lifts = [each for each in planner.decide("q") if isinstance(each, Lift)]
    assert [planner.stands(lift) for lift in lifts] == [True, True]
    for lift in lifts:
        if lift.pod.name in written:
            ledger.put_pod(lift.lifted)
    ledger.put_queue(full().devices({"capability": {"gpu": {"count": 0}}}).view())
    assert [planner.stands(lift) for lift in lifts if lift.pod.name not in written] == stand
