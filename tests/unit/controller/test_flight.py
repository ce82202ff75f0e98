"""For how long a lift is tried."""

from controller.flight import PATIENCE_S, RETRY_MAX_S, Flight
from core.affinity import NodeRequirement
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from kube import errors
from tests.unit.controller.lift_world import pod

CUT = errors.ConnectionFailed("cut")


def test_a_question_that_fails_for_ever_after_the_first_try_has_an_end() -> None:
    """The time counts from the first try that failed, and nothing that fails after it begins it anew."""
    view, ledger = pod("a").view(), Ledger(Settings())
    flight = Flight(Lift(view, "q", {}, {}, NodeRequirement(), view), tries=1)
    begun = now = 1000.0
    while not flight.given_up:
        now += flight.failed(CUT, now, ledger)
        assert now <= begun + PATIENCE_S + 2 * RETRY_MAX_S
    assert now >= begun + PATIENCE_S
