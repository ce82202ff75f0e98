"""Volcano's questions about jobs and queues: whether a job may start, and whether a queue has more than it may."""

from typing import Any

import pytest

from core import reasons
from core.extender.enqueue import (
    ABSTAIN,
    PERMIT,
    PROMISED_FOR_S,
    REJECT,
    Promises,
    Vote,
    overused_answer,
    vote,
)
from core.extender.shapes import ShapeError
from core.objects import Group
from core.queues.ledger import Ledger
from core.settings import Settings, parse
from core.steps import Steps, finish
from tests.builders.objects import GroupBuilder, a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.fakes.counted import longest_step
from tests.unit.core.extender.asking import books, recorded

NODES = [a_node("n").card("A", 8).view()]


def a_job(name: str = "train", cards: Any = None, queue: str = "q") -> GroupBuilder:
    """The PodGroup of a Volcano Job."""
    group = a_group(name).in_queue(queue).owned_by("Job", name, api_version="batch.volcano.sh/v1alpha1")
    return group if cards is None else group.cards(cards)


def asked(group: GroupBuilder) -> dict[str, Any]:
    """The request; as recorded, the group's status is empty and there are no tasks yet."""
    raw = group.build()
    key = f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
    return {"job": {"UID": key, "Queue": raw["spec"]["queue"], "PodGroup": raw, "Tasks": {}}}


def ledger(quota: dict[str, int] | str, *pods: PodBuilder, state: str = "Open") -> Ledger:
    queue = a_queue("q").cards(quota).state(state).view()
    return books(NODES, [pod.view() for pod in pods], [queue], settings=Settings())


def ask(group: GroupBuilder, book: Ledger, promises: Promises | None = None, now_s: float = 0.0) -> Vote:
    return finish(vote(asked(group), book, promises or Promises(), now_s))


def running(name: str, cards: int) -> PodBuilder:
    return a_pod(name).gpu(cards).card("A").in_queue("q").bound_to("n")


@pytest.mark.parametrize(
    ("cards", "quota", "status"),
    [
        ({"A": 4}, {"A": 4}, PERMIT),
        ({"A": 5}, {"A": 4}, REJECT),
        ({"A": 1}, {}, REJECT),
        ({"A": 0}, {}, PERMIT),
        ({"A|B": 6}, {"A": 4, "B": 2}, PERMIT),
        ({"A|B": 7}, {"A": 4, "B": 2}, REJECT),
        (None, {"A": 4}, ABSTAIN),
        ("", {"A": 4}, ABSTAIN),
        ("{", {"A": 4}, REJECT),
    ],
)
def test_a_job_starts_while_its_queue_has_room_for_it_whole(
    cards: Any, quota: dict[str, int], status: int
) -> None:
    assert ask(a_job(cards=cards), ledger(quota)).status == status


def test_what_is_in_use_and_what_is_lifted_counts() -> None:
    lifted = a_pod("l").gpu(1).card("A").in_queue("q")
    book = ledger({"A": 4}, running("r", 2), lifted, a_pod("w").gpu(1).card("A").in_queue("q").gated())
    assert ask(a_job(cards={"A": 1}), book).status == PERMIT
    found = ask(a_job(cards={"A": 2}), book)
    assert found.status == REJECT
    assert found.why is not None
    assert found.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert "total would be <5000>, but capability is <4000>" in found.why.message


def test_jobs_that_were_let_in_a_moment_ago_count_until_their_pods_do() -> None:
    promises, book = Promises(), ledger({"A": 4})
    first, second = a_job("first", {"A": 3}), a_job("second", {"A": 2})
    assert ask(first, book, promises).status == PERMIT
    assert ask(first, book, promises).status == PERMIT
    assert ask(second, book, promises).status == REJECT
    book.put_pod(a_pod("p").gpu(1).card("A").in_group("first").gated().view())
    assert ask(second, book, promises).status == PERMIT


def test_a_job_whose_pods_never_come_is_forgotten() -> None:
    promises, book = Promises(), ledger({"A": 4})
    assert ask(a_job("first", {"A": 3}), book, promises, 0.0).status == PERMIT
    later = PROMISED_FOR_S
    assert ask(a_job("second", {"A": 2}), book, promises, later - 0.5).status == REJECT
    assert ask(a_job("second", {"A": 2}), book, promises, later).status == PERMIT


def test_other_queues_do_not_count() -> None:
    promises = Promises()
    queues = [a_queue(name).cards({"A": 4}).view() for name in ("q", "r")]
    book = books(NODES, queues=queues, settings=Settings())
    assert ask(a_job("first", {"A": 4}), book, promises).status == PERMIT
    assert ask(a_job("second", {"A": 4}, "r"), book, promises).status == PERMIT


def test_a_job_that_has_started_is_nobodys_question_any_more() -> None:
    book = ledger({"A": 1}, running("p", 1).in_group("train"))
    assert ask(a_job(cards={"A": 4}), book).status == ABSTAIN


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_a_queue_that_is_not_open_lets_nobody_in_and_nothing_is_said(state: str) -> None:
    found = ask(a_job(cards={"A": 1}), ledger({"A": 4}, state=state))
    assert (found.status, found.why) == (REJECT, None)


def test_a_queue_that_does_not_exist_is_named() -> None:
    found = ask(a_job(cards={"A": 1}, queue="none"), ledger({"A": 4}))
    assert found.status == REJECT
    assert found.why is not None
    assert (found.why.code, found.why.message) == (
        reasons.QUEUE_NOT_FOUND,
        "Queue <none> does not exist",
    )


def test_groups_of_other_owners_are_their_pods_business() -> None:
    deployment = a_group("web").in_queue("q").cards({"A": 9}).owned_by("ReplicaSet", "web")
    assert ask(deployment, ledger({"A": 4})).status == ABSTAIN


def test_a_feature_that_is_off_abstains() -> None:
    off = parse({"features": {"cards": False}})[0]
    book = books(NODES, queues=[a_queue("q").cards({"A": 1}).view()], settings=off)
    assert ask(a_job(cards={"A": 4}), book).status == ABSTAIN


@pytest.mark.parametrize(("quota", "status"), [(2, PERMIT), (1, REJECT)])
def test_the_recorded_request_is_answered(quota: int, status: int) -> None:
    """A job of two pods with one card each, before its pods exist."""
    queue = a_queue("research").cards({"NVIDIA-H20": quota}).view()
    book = books(queues=[queue], settings=Settings())
    assert finish(vote(recorded("volcano-jobEnqueueable"), book, Promises(), 0.0)).status == status


@pytest.mark.parametrize("body", [None, [], {}, {"job": None}, {"queue": {}}])
def test_what_is_no_request_is_refused(body: Any) -> None:
    with pytest.raises(ShapeError):
        finish(vote(body, ledger({}), Promises(), 0.0))
    if not isinstance(body, dict) or "queue" not in body:
        with pytest.raises(ShapeError):
            overused_answer(body, ledger({}))


@pytest.mark.parametrize("job", [{}, {"PodGroup": None}, {"PodGroup": {"metadata": None, "spec": None}}])
def test_a_job_without_anything_is_nobodys_question(job: dict[str, Any]) -> None:
    assert finish(vote({"job": job}, ledger({"A": 4}), Promises(), 0.0)).status == ABSTAIN


@pytest.mark.parametrize(
    ("quota", "pods", "overused"),
    [
        ({"A": 2}, [running("r", 2)], False),
        ({"A": 2}, [running("r", 3)], True),
        ({}, [running("r", 1)], True),
        ({"A": 2}, [running("r", 2), a_pod("l").gpu(2).card("A").in_queue("q")], False),
        ({"A": 2}, [], False),
    ],
    ids=["full", "after a cut", "no quota at all", "lifted pods have their quota", "nobody"],
)
def test_a_queue_is_overused_when_more_is_bound_than_its_quota(
    quota: dict[str, int], pods: list[PodBuilder], overused: bool
) -> None:
    assert overused_answer({"queue": {"Name": "q"}}, ledger(quota, *pods)) == {"overused": overused}


def test_queues_that_are_not_ours_are_not_overused() -> None:
    assert overused_answer({"queue": {"Name": "none"}}, ledger({})) == {"overused": False}
    assert overused_answer({"queue": {"Name": None}}, ledger({})) == {"overused": False}
    assert overused_answer(recorded("volcano-queueOverused"), ledger({})) == {"overused": False}


def test_however_many_members_a_job_has_no_step_of_the_vote_is_longer_for_it() -> None:
    """None of them has started, so that each is asked about."""

    def voting(members: int) -> Steps[Vote]:
        waiting = [
            a_pod(f"p{number}").gpu(1).card("A").in_group("train").gated() for number in range(members)
        ]
        book = ledger({"A": 4}, *waiting)
        return vote(asked(a_job(cards={"A": 5})), book, Promises(), 0.0)

    assert finish(voting(3)).status == REJECT
    few, many = (longest_step(voting(members)) for members in (500, 2000))
    assert many < 1.3 * few


def test_members_of_a_group_without_a_vote_are_not_looked_at() -> None:
    """Anybody may write a PodGroup that asks for cards; only a job's is voted on."""
    book = ledger({"A": 4}, *(a_pod(f"p{number}").in_group("train").gated() for number in range(300)))
    voting = vote(asked(a_group("train").in_queue("q").cards({"A": 4})), book, Promises(), 0.0)
    with pytest.raises(StopIteration) as end:
        next(voting)
    assert end.value.value.status == ABSTAIN


def test_a_job_that_changes_while_its_members_are_looked_at_is_voted_on_as_it_is_then() -> None:
    book = ledger({"A": 4}, *(a_pod(f"p{number}").in_group("train").gated() for number in range(300)))
    now: list[Group | None] = [a_job(cards={"A": 4}).view()]
    voting = vote(asked(a_job(cards={"A": 4})), book, promises := Promises(), 0.0, lambda _: now[0])
    next(voting)
    now[0] = a_job(cards={"A": 5}).view()
    assert finish(voting).status == REJECT
    voting = vote(asked(a_job(cards={"A": 4})), book, promises, 0.0, lambda _: now[0])
    next(voting)
    now[0] = None
    assert finish(voting).status == ABSTAIN
    assert promises.others(a_job("other").view(), "q", book, 0.0) == {}


def test_a_card_that_comes_while_members_are_looked_at_is_known_to_the_vote() -> None:
    """A job that declares no card needs no CPU quota once a node says that what it asks for is a card."""
    settings = Settings.model_validate({"cards": {"unlimited_cpu_memory": True}})
    book = books([], [], [a_queue("q").cards({"A": 4}).capability(cpu=1).view()], settings=settings)
    for number in range(300):
        book.put_pod(a_pod(f"p{number}").in_group("train").gated().view())
    job = a_job(cards="{}").put("spec", "minResources", value={"cpu": "10", "nvidia.com/gpu": "1"})
    assert finish(vote(asked(job), book, Promises(), 0.0)).status == REJECT
    voting = vote(asked(job), book, Promises(), 0.0)
    next(voting)
    book.put_node(NODES[0])
    assert finish(voting).status == PERMIT
