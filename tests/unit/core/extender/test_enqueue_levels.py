"""Volcano's questions about jobs and queues where card quotas hold through the tree."""

import pytest

from core import reasons
from core.extender.enqueue import PERMIT, PROMISED_FOR_S, REJECT, Promises, Vote, overused_answer, vote
from core.queues.ledger import Ledger
from core.steps import finish
from tests.unit.core.extender.test_enqueue_votes import a_job, asked
from tests.unit.core.plan.levels import TEAMS, books, org, running, team


def ask(name: str, queue: str, count: int, ledger: Ledger, promises: Promises | None = None) -> Vote:
    return finish(vote(asked(a_job(name, {"A": count}, queue)), ledger, promises or Promises(), 0.0))


@pytest.mark.parametrize(("count", "status"), [(2, PERMIT), (3, REJECT)])
def test_a_job_has_to_fit_in_every_queue_above_its_own(count: int, status: int) -> None:
    found = ask("j", "blue", count, books(org(A=4), *TEAMS, running("r", "red", 2)))
    assert found.status == status
    if found.why is not None:
        assert "Queue <org> has insufficient <A> quota" in found.why.message
        assert "queue blue is below it" in found.why.message


def test_a_card_that_the_queue_above_does_not_list_is_not_limited_there() -> None:
    assert ask("j", "blue", 3, books(org(B=0), *TEAMS)).status == PERMIT


def test_what_was_promised_below_counts_above() -> None:
    """Red's job has no pods yet; until they come what it was promised is not promised again."""
    ledger, promises = books(org(A=4), *TEAMS), Promises()
    assert ask("first", "red", 3, ledger, promises).status == PERMIT
    assert ask("second", "blue", 2, ledger, promises).status == REJECT
    assert ask("third", "blue", 1, ledger, promises).status == PERMIT
    late = finish(vote(asked(a_job("fourth", {"A": 2}, "blue")), ledger, promises, PROMISED_FOR_S + 1))
    assert late.status == PERMIT


def test_below_a_broken_chain_no_job_starts() -> None:
    found = ask("j", "blue", 1, books(team("blue", "gone")))
    assert found.status == REJECT
    assert found.why is not None
    assert found.why.code == reasons.QUEUE_HIERARCHY_BROKEN


@pytest.mark.parametrize(
    ("quota", "overused"), [({"A": 2}, False), ({"A": 1}, True), ({"B": 0}, False), ({}, False)]
)
def test_a_queue_is_overused_with_one_above_it(quota: dict[str, int], overused: bool) -> None:
    ledger = books(org(**quota), *TEAMS, running("r", "red", 2))
    assert overused_answer({"queue": {"Name": "red"}}, ledger) == {"overused": overused}
