"""Claims and templates that change while a pass decides on their pods: it goes by what they are then, at whatever pause that comes."""

from collections.abc import Callable, Iterator

import pytest

from core import names
from core.objects import Claim
from core.plan.decision import Lift
from core.queues import backlog
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.pods import PodBuilder
from tests.property.pieces import pieces
from tests.unit.core.plan.stepping import all_passes

LIMIT = 2

Change = Callable[[Ledger], None]


@pytest.fixture(autouse=True, scope="module")
def finely() -> Iterator[None]:
    """Every pause that there may be."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in pieces():
            patch.setattr(module, name, 1)
        yield


@pytest.fixture(autouse=True, params=[backlog.AT_ONCE, 0], ids=["at once", "in steps"])
def booked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pods of a claim or template that changes, as few are and as very many are."""
    monkeypatch.setattr(backlog, "AT_ONCE", request.param)


def the_claim(uid: str, count: int = 1) -> Claim:
    return a_claim("c").exactly("r", "gpu", count=count).uid(uid).view()


def books(*pods: PodBuilder, limit: int = LIMIT) -> Ledger:
    """With a claim and a template of one device each."""
    ledger = Ledger(Settings())
    for number in range(20):
        ledger.put_node(a_node(f"n{number}").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 8}).devices({"capability": {"gpu": {"count": limit}}}).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(2).view())
    ledger.devices.put_claim(the_claim("first"))
    ledger.devices.put_template(a_template("t").exactly("r", "gpu").view())
    for pod in pods:
        ledger.put_pod(pod.gated().view())
    return ledger


def decided(begin: Callable[[], Ledger], change: Change) -> Iterator[dict[str, str]]:
    """Who is lifted, and the record of the claims, with the change at each pause before that is said."""
    last = next(number for number, told in enumerate(all_passes(begin())) if told is not None)
    assert last > 3, "it is decided on in some steps"
    for pause in range(last):
        ledger, lifts = begin(), dict[str, str]()
        for number, told in enumerate(all_passes(ledger)):
            if number == pause:
                change(ledger)
            if isinstance(told, Lift):
                lifts[told.pod.name] = told.records[names.CLAIMS_ANNOTATION]
        yield lifts


def alone(name: str) -> PodBuilder:
    return a_pod(name).gpu(1).card("A").in_queue("q")


def member(name: str) -> PodBuilder:
    return a_pod(name).gpu(1).card("A").in_group("g")


def both(record: str) -> dict[str, str]:
    """Both pods are lifted with this record. When everything was found out before the change, that goes by what was there then."""
    return {"a": record, "b": record}


FIRST = '{"dev":{"uid":"first","deviceclass/gpu":"1"}}'

KINDS = pytest.mark.parametrize("made", [alone, member])


@KINDS
def test_pods_whose_claim_is_made_anew_beyond_the_quota_wait(made: Callable[[str], PodBuilder]) -> None:
    def begin() -> Ledger:
        return books(*(made(name).claim("dev", name="c") for name in "ab"))

    def change(ledger: Ledger) -> None:
        ledger.devices.drop_claim("ml/c")
        ledger.devices.put_claim(the_claim("second", LIMIT + 1))

    for lifts in decided(begin, change):
        assert lifts in ({}, both(FIRST))


@KINDS
def test_pods_whose_template_goes_wait(made: Callable[[str], PodBuilder]) -> None:
    def begin() -> Ledger:
        return books(*(made(name).claim("dev", template="t") for name in "ab"))

    for lifts in decided(begin, lambda ledger: ledger.devices.drop_template("ml/t")):
        assert lifts in ({}, both('{"dev":{"deviceclass/gpu":"1"}}'))


def test_a_gang_whose_claim_is_made_anew_alike_is_let_in_with_one_of_them() -> None:
    """Also where a part of it was tried with the claim that was there before: two claims would be beyond the quota."""

    def begin() -> Ledger:
        return books(*(member(name).claim("dev", name="c") for name in "ab"), limit=1)

    for lifts in decided(begin, lambda ledger: ledger.devices.put_claim(the_claim("second"))):
        assert lifts in (both(FIRST), both(FIRST.replace("first", "second")))


def test_a_claim_that_nobody_refers_to_begins_no_decision_anew() -> None:
    ledger = books(alone("a").claim("dev", name="c"))
    before = ledger.changes
    ledger.devices.put_claim(a_claim("other").exactly("r", "gpu").view())
    ledger.devices.put_claim(the_claim("first"))
    ledger.devices.drop_claim("ml/other")
    ledger.devices.drop_template("ml/t")
    assert ledger.changes == before
