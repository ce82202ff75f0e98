"""A change of a claim, a template or a class that thousands of pods depend on comes to them in steps."""

from collections.abc import Callable

import pytest

from core.objects import DeviceClass
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues import backlog
from core.queues.audit import audit
from core.queues.backlog import AT_ONCE, SIFTED_AT_ONCE
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.pods import PodBuilder

MANY = AT_ONCE + 6
EXTENDED = "example.com/gpu"


@pytest.fixture(params=[SIFTED_AT_ONCE, 0], ids=["begin at once", "begin in steps"], autouse=True)
def begun(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", request.param)


def gpus(ledger: Ledger, count: int) -> None:
    """The claim `c` and the template `c` ask for so many devices."""
    ledger.devices.put_claim(a_claim("c").exactly("r", "gpu", count=count).view())
    ledger.devices.put_template(a_template("c").exactly("r", "gpu", count=count).view())


def pod(number: int, shared: str = "name") -> PodBuilder:
    return a_pod(f"p{number}").claim("dev", **{shared: "c"}).in_queue("q")


def books(quota: int, *pods: PodBuilder) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("q").devices({"capability": {"gpu": {"count": quota}}}).view())
    gpus(ledger, 1)
    for each in pods:
        ledger.put_pod(each.view())
    return ledger


def waiting(shared: str) -> list[PodBuilder]:
    return [pod(number, shared).gated() for number in range(MANY)]


def figures(ledger: Ledger) -> tuple[int, int]:
    """Devices that are held, and waited for."""
    found = (ledger.devices.reserved("q"), ledger.devices.waiting("q"))
    held, wanted = (each.get("deviceclass/gpu", 0) // 1000 for each in found)
    return held, wanted


def lifted(ledger: Ledger) -> list[str]:
    steps = Planner(ledger).run(["q"])
    return [step.pod.name for step in steps if isinstance(step, Lift)]


@pytest.mark.parametrize(("shared", "each"), [("template", MANY), ("name", 1)])
def test_of_many_that_wait_none_is_booked_in_the_event_and_all_are_when_the_books_are_settled(
    shared: str, each: int
) -> None:
    ledger = books(2, *waiting(shared))
    before = ledger.devices.book.bookings()
    assert figures(ledger) == (0, each)
    gpus(ledger, 2)
    assert ledger.devices.book.bookings() == before
    finish(ledger.sift())
    assert (ledger.settled, ledger.sums_settled) == (False, True), "no limit depends on those who wait"
    assert len(list(ledger.settle())) > 1
    assert (ledger.settled, ledger.sums_settled) == (True, True)
    assert figures(ledger) == (0, 2 * each)


def test_a_few_are_booked_in_the_event() -> None:
    ledger = books(2, *waiting("template")[:AT_ONCE])
    gpus(ledger, 2)
    assert ledger.settled
    assert figures(ledger) == (0, 2 * AT_ONCE)


def test_a_template_that_is_what_it_was_concerns_nobody() -> None:
    ledger = books(2, *waiting("template"))
    gpus(ledger, 1)
    assert ledger.settled


def test_nothing_is_decided_on_who_is_left_behind_and_what_is_asked_about_him_is_right() -> None:
    ledger = books(2, *waiting("template"))
    before = ledger.touched.changes
    gpus(ledger, 3)
    entry = ledger.entry("uid-ml-p0")
    assert entry is not None
    assert ledger.current(entry) is None
    assert set(ledger.touched.since(before) or ()) == {f"uid-ml-p{number}" for number in range(MANY)}
    short = ledger.devices.excess(entry.pod, "q")
    assert short is not None
    assert "requested 3" in short.message
    assert lifted(ledger) == []
    gpus(ledger, 1)
    assert len(lifted(ledger)) == 2


def test_nobody_is_let_in_before_those_are_booked_anew_who_hold_a_claim() -> None:
    """It has grown, and what was left beside it is taken."""
    holders = [pod(number).charged("q") for number in range(MANY)]
    late = a_pod("late").claim("dev", template="one").in_queue("q").gated()
    ledger = books(3, *holders, late)
    ledger.devices.put_template(a_template("one").exactly("r", "gpu").view())
    assert figures(ledger) == (1, 1)
    gpus(ledger, 3)
    assert not ledger.sums_settled
    assert lifted(ledger) == []
    assert figures(ledger) == (3, 1)


def test_whose_claims_are_made_does_not_depend_on_the_template_any_more() -> None:
    made = [a_claim(f"made{number}").exactly("r", "gpu").made_for(f"p{number}") for number in range(MANY)]
    ledger = books(
        2,
        *(pod(number, "template").gated().generated_claim("dev", f"made{number}") for number in range(MANY)),
    )
    for claim in made:
        ledger.devices.put_claim(claim.view())
    gpus(ledger, 2)
    assert ledger.settled
    assert figures(ledger) == (0, MANY)
    ledger.devices.drop_claim("ml/made0")
    assert figures(ledger) == (0, MANY + 1), "it would be made by the template as it is now"


def test_whoever_was_told_something_while_left_behind_is_looked_at_once_more() -> None:
    """The template was away for a moment, and is what it was."""
    ledger = books(2, *waiting("template"))
    ledger.devices.drop_template("ml/c")
    ledger.wakeups.take_queues()
    gpus(ledger, 1)
    finish(ledger.settle())
    assert ledger.wakeups.take_queues() == ["q"]


def test_the_audit_finds_nothing_wrong_while_some_holders_of_a_claim_are_left_behind() -> None:
    ledger = books(9, *(pod(number).charged("q") for number in range(MANY)))
    gpus(ledger, 2)
    pods = [each for number in range(MANY) if (each := ledger.pod(f"uid-ml-p{number}")) is not None]
    steps = ledger.settle()
    next(steps)
    assert not ledger.settled
    assert finish(audit(ledger, {pod.key: pod for pod in pods})) == []
    ledger.drop_pod("uid-ml-p0")
    assert finish(audit(ledger, {pod.key: pod for pod in pods[1:]})) == []
    finish(steps)
    assert figures(ledger) == (2, 0)


def test_of_those_who_are_gone_before_they_are_booked_anew_nothing_is_kept() -> None:
    ledger = books(9, *waiting("template"))
    gpus(ledger, 2)
    for number in range(MANY):
        ledger.drop_pod(f"uid-ml-p{number}")
    finish(ledger.settle())
    assert not ledger.devices.book.behind._uids
    assert figures(ledger) == (0, 0)


def test_whoever_follows_the_books_is_told_of_each_when_he_is_booked_anew() -> None:
    ledger = books(2, *waiting("template"))
    told: list[str] = []
    ledger.follow(told.append)
    gpus(ledger, 2)
    assert told == []
    finish(ledger.settle())
    assert set(told) == {f"uid-ml-p{number}" for number in range(MANY)}


def moved(ledger: Ledger) -> None:
    ledger.put_queue(a_queue("org").view())
    ledger.put_queue(a_queue("q").child_of("org").view())


def served(ledger: Ledger) -> None:
    ledger.put_class(DeviceClass("gpu", extended=EXTENDED))


@pytest.mark.parametrize(
    ("change", "waits"),
    [(moved, pod), (served, lambda number: a_pod(f"p{number}").limit(EXTENDED, 1).in_queue("q"))],
    ids=["a parent", "a class"],
)
def test_what_administrators_change_comes_to_many_in_steps_as_well(
    change: Callable[[Ledger], None], waits: Callable[[int], PodBuilder]
) -> None:
    ledger, few = books(9), books(9)
    for number in range(MANY):
        ledger.put_pod(waits(number).gated().view())
    change(ledger)
    assert not ledger.settled
    finish(ledger.settle())
    change(few)
    for number in range(MANY):
        few.put_pod(waits(number).gated().view())
    assert ledger.devices.book.accounts.sums() == few.devices.book.accounts.sums()
    assert {each.chain for each in ledger.devices.book.bookings()} == {
        each.chain for each in few.devices.book.bookings()
    }
