"""A claim that very many running or admitted pods share changes in the middle of a pass: nobody is let in beyond the quota for that."""

import json
from collections.abc import Callable

import pytest

from core import names
from core.objects import Claim
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues import backlog
from core.queues.backlog import AT_ONCE
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_pod, a_queue
from tests.builders.claims import ClaimBuilder, a_claim, a_template
from tests.builders.pods import PodBuilder

MANY = AT_ONCE + 6
GROUP_API = "scheduling.k8s.io/v1alpha1"


@pytest.fixture(autouse=True, params=["in steps", "at once"])
def booked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the pods come to the change."""
    if request.param == "at once":
        monkeypatch.setattr(backlog, "AT_ONCE", 10**6)


def holding(number: int) -> PodBuilder:
    return a_pod(f"p{number}").claim("dev", name="c").in_queue("q")


def on_record(pod: PodBuilder, **uid: str) -> PodBuilder:
    """Let in for one device."""
    entry = {"dev": {**uid, "deviceclass/gpu": "1"}}
    return pod.charged("q").annotation(names.CLAIMS_ANNOTATION, json.dumps(entry))


def member(number: int) -> PodBuilder:
    made = a_pod(f"p{number}").claim("dev", template="t").generated_claim("dev", "c").in_queue("q")
    return on_record(made.in_scheduling_group("g")).bound_to("n")


def gpus(count: int) -> ClaimBuilder:
    return a_claim("c").exactly("r", "gpu", count=count)


def before_records(number: int) -> PodBuilder:
    return holding(number).charged("q")


def past_the_gate(number: int) -> PodBuilder:
    return holding(number).bound_to("n")


def bound_with_another(number: int) -> PodBuilder:
    return on_record(holding(number), uid="another").bound_to("n")


CASES = {
    "bound before the claim comes": (past_the_gate, [], gpus(3), 3),
    "let in before there were records": (before_records, [], gpus(3), 3),
    "bound with another, and this one gets devices": (
        bound_with_another,
        [gpus(3)],
        gpus(3).allocated("r", "r", "r"),
        4,
    ),
    "made for all members, more than each was asked": (
        member,
        [],
        gpus(MANY + 1).owned_by("PodGroup", "g", api_version=GROUP_API, uid="ug"),
        MANY + 1,
    ),
}


@pytest.mark.parametrize(("made", "before", "then", "used"), CASES.values(), ids=CASES.keys())
def test_who_comes_after_the_change_waits(
    made: Callable[[int], PodBuilder], before: list[ClaimBuilder], then: ClaimBuilder, used: int
) -> None:
    ledger = books(used, [made(number) for number in range(MANY)], [claim.view() for claim in before])
    lifted = list[str]()
    for step in Planner(ledger).run(["first", "q"]):
        if isinstance(step, Lift):
            lifted.append(step.pod.name)
            ledger.devices.put_claim(then.view())
    finish(ledger.settle())
    found = (ledger.devices.reserved("q"), ledger.devices.allocated("q"))
    assert (lifted, sum(each.get("deviceclass/gpu", 0) for each in found)) == (["early"], used * 1000)


def books(quota: int, holders: list[PodBuilder], claims: list[Claim]) -> Ledger:
    """Two queues: in the first one there is room for `early`, in the other for `late` as long as less than the quota is used."""
    ledger = Ledger(Settings())
    for name, count in (("first", 1), ("q", quota)):
        ledger.put_queue(a_queue(name).devices({"capability": {"gpu": {"count": count}}}).view())
    ledger.devices.put_template(a_template("one").exactly("r", "gpu").view())
    waiting = [
        a_pod(name).claim("dev", template="one").in_queue(queue).gated()
        for name, queue in (("early", "first"), ("late", "q"))
    ]
    for pod in (*holders, *waiting):
        ledger.put_pod(pod.view())
    for claim in claims:
        ledger.devices.put_claim(claim)
    finish(ledger.settle())
    return ledger
