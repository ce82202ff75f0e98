"""The leader answers whom the API server knows, as far as it may see, and no more often than it can afford."""

import asyncio
from dataclasses import replace

import orjson
import pytest

from controller.answering import CALLERS, LEADER_PATH
from core.names import ANSWERS_ROOT, TOKEN_HEADER
from kube.callers import REMEMBERED_S, RIGHTS, TOKENS, Callers, Recent
from kube.errors import ServerError
from tests.fakes.apiserver import background
from tests.unit.controller.asking import MINE, OTHERS, Asked, Judge, NoLeader, asks_too_often

POD = f"pods/{MINE}/waits"
OWN = ("ann", "*", "pods", MINE, "*")
QUEUE = ("ann", "get", "queues", "", "q")
NODES = ("ann", "list", "nodes", "", "")
EVERYTHING = ("ann", "*", "*", "*", "*")


async def test_a_tenant_is_told_of_an_own_pod_and_of_nobody_else_by_name() -> None:
    asked = Asked()
    asked.judge.rights = {OWN, QUEUE}
    asked.decide()
    async with asked.port() as port:
        status, told = await port.get(POD)
    assert status == 200
    assert (told["decision"], told["queue"], told["reason"]) == ("hold", "q", "InsufficientScalarQuota")
    assert told["leader"] == "leader-1"
    assert told["quota"]["A"] == {"asked": "1", "limit": "2", "missing": "1", "used": "2"}
    assert told["position"] == {
        "number": 2,
        "of": 2,
        "fifo": False,
        "before": [{"object": "", "pods": 1, "asks": {"A": "1"}, "reason": "InsufficientScalarQuota"}],
    }
    assert [one["pod"] for one in told["heldBy"]] == [f"{MINE}/own"]
    assert told["heldByOthers"] == {"pods": 1, "amounts": {"A": "1"}}
    assert told["leftOut"] == ["nodes"]
    assert OTHERS not in str(told)
    assert "stock" not in told


async def test_an_administrator_is_told_everything() -> None:
    asked = Asked()
    asked.judge.rights = {EVERYTHING}
    asked.decide()
    async with asked.port() as port:
        _, told = await port.get(POD)
    assert [one["pod"] for one in told["heldBy"]] == [f"{MINE}/own", f"{OTHERS}/theirs"]
    assert told["position"]["before"][0]["object"] == f"Pod {OTHERS}/before"
    assert (told["stock"]["A"]["free"], told["leftOut"]) == ("6", [])
    assert "heldByOthers" not in told


async def test_without_a_right_to_the_queue_nothing_of_it_is_told() -> None:
    asked = Asked()
    asked.judge.rights = {OWN}
    asked.decide()
    async with asked.port() as port:
        _, told = await port.get(POD)
    assert told["leftOut"] == ["queue q", "nodes"]
    assert {"position", "quota", "heldBy", "heldByOthers"}.isdisjoint(told)
    assert told["reason"] == "InsufficientScalarQuota"


async def test_whether_a_pod_exists_is_not_told_to_whom_may_not_read_it() -> None:
    asked = Asked()
    asked.judge.rights = {OWN}
    async with asked.port() as port:
        there, not_there = await port.get(f"pods/{OTHERS}/theirs"), await port.get(f"pods/{OTHERS}/none")
        missing = await port.get(f"pods/{MINE}/none")
        ignored = await port.get(f"pods/{MINE}/cpu")
    assert there[0] == not_there[0] == 403
    assert there[1]["message"].replace("theirs", "none") == not_there[1]["message"]
    assert missing[0] == 404
    assert (ignored[0], ignored[1]["decision"]) == (200, "ignored")


async def test_the_books_are_for_whoever_may_list_queues() -> None:
    asked = Asked()
    async with asked.port() as port:
        refused, _ = await port.get("books")
    assert refused == 403
    asked = Asked()
    asked.judge.rights = {("ann", "list", "queues", "", "")}
    async with asked.port() as port:
        _, told = await port.get("books")
        asked.metrics.ledger_drift.labels("sum").set(2)
        _, later = await port.get("books")
    assert told["queues"]["q"] == {"allocated": {"A": "2"}, "reserved": {}, "waiting": {"A": "2"}}
    assert (told["drift"], later["drift"]) == (None, 2)


@pytest.mark.parametrize("token", ["", "bad"])
async def test_whoever_is_not_known_is_told_nothing(token: str) -> None:
    asked = Asked()
    asked.judge.rights = {EVERYTHING}
    async with asked.port() as port:
        status, told = await port.get(POD, token)
    assert (status, told["kind"], told["reason"]) == (401, "Status", "Unauthorized")


async def test_the_token_may_come_by_way_of_the_api_server_which_keeps_the_usual_header() -> None:
    asked = Asked()
    asked.judge.rights = {OWN}
    async with (
        asked.port() as port,
        port.session.get(ANSWERS_ROOT + POD, headers={TOKEN_HEADER: "good"}) as got,
    ):
        assert got.status == 200


@pytest.mark.parametrize(
    "question", ["", "pods", "pods/ml", "pods/ml/", "pods/a/b/c", "secrets/ml/x", "../x"]
)
async def test_any_other_question_has_no_answer(question: str) -> None:
    asked = Asked()
    asked.judge.rights = {EVERYTHING}
    async with (
        asked.port() as port,
        port.session.get(ANSWERS_ROOT + question, headers={"Authorization": "Bearer good"}) as response,
    ):
        assert response.status == 404


async def test_nothing_but_a_get_without_body_is_read() -> None:
    asked = Asked()
    async with asked.port() as port:
        for method in ("POST", "PUT", "DELETE", "HEAD"):
            async with port.session.request(method, ANSWERS_ROOT + POD) as response:
                assert response.status == 405
        status, _ = await port.get(POD, data=b"x" * 100)
    assert status == 400
    assert asked.judge.reviews == []


async def test_one_caller_who_asks_too_often_waits_and_others_do_not() -> None:
    asked = Asked()
    asked.judge.tokens["other"] = "bob"
    async with asked.port() as port:

        async def asks() -> int:
            status, _ = await port.get("books")
            return status

        await asks_too_often(asks, answered=403)
        other, _ = await port.get("books", "other")
    assert other == 403


async def test_the_api_server_is_asked_once_about_the_same_caller() -> None:
    asked = Asked()
    asked.judge.rights = {EVERYTHING}
    async with asked.port() as port:
        for _ in range(5):
            await port.get(POD)
    assert asked.judge.reviews.count("tokenreviews") == 1
    assert len(asked.judge.reviews) < 8


async def test_an_api_server_that_says_nothing_is_no_permission() -> None:
    asked = Asked()
    asked.judge.fails = ServerError(500, "InternalError", "etcd")
    async with asked.port() as port:
        status, told = await port.get(POD)
    assert status == 503
    assert "etcd" not in str(told)


async def test_a_standby_passes_on_who_asks_and_never_the_token() -> None:
    link = NoLeader((200, b'{"decision": "hold"}'))
    asked = Asked(leads=False, link=link)
    async with asked.port() as port:
        assert await port.get(POD) == (200, {"decision": "hold"})
    (body,) = link.passed
    told = orjson.loads(body)
    assert (told["caller"]["username"], told["caller"]["groups"]) == ("ann", ["g"])
    assert told["question"] == POD
    assert b"good" not in body


async def test_without_a_leader_that_is_said() -> None:
    asked = Asked(leads=False)
    async with asked.port() as port:
        status, told = await port.get(POD)
    assert (status, told["message"]) == (503, "no replica of the controller leads now")


async def test_the_leader_judges_whom_a_standby_names_and_refuses_garbage() -> None:
    asked = Asked()
    asked.judge.rights = {OWN}
    asked.decide()
    async with asked.port(asked.among_replicas) as port:
        body = {"caller": {"username": "ann"}, "question": POD}
        async with port.session.post(LEADER_PATH, json=body) as response:
            assert (response.status, (await response.json())["decision"]) == (200, "hold")
        async with port.session.post(LEADER_PATH, json=body | {"caller": {"username": "bob"}}) as response:
            assert response.status == 403
        for garbage in (b"", b"[]", b"{}", b'{"caller": 1, "question": 2}'):
            async with port.session.post(LEADER_PATH, data=garbage) as response:
                assert response.status in (400, 403, 404), garbage
        asked.leads = False
        async with port.session.post(LEADER_PATH, json=body) as response:
            assert response.status == 503


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_what_was_said_of_a_token_is_forgotten_after_seconds() -> None:
    judge, clock = Judge(), Clock()
    callers = Callers(judge, clock)  # type: ignore[arg-type]
    assert await callers.of_token("good") is not None
    judge.tokens.clear()
    assert await callers.of_token("good") is not None
    clock.now += REMEMBERED_S + 1
    assert await callers.of_token("good") is None


def test_nothing_that_is_remembered_grows_without_end() -> None:
    recent: Recent[int, bool] = Recent(3, 10.0)
    for number in range(10):
        recent.put(number, True, 0.0)
        recent.get(0, 0.0)
    assert len(recent) == 3
    assert recent.get(9, 0.0) is True
    assert recent.get(9, 11.0) is None
    assert max(TOKENS, RIGHTS, CALLERS) <= 10_000


async def test_many_at_once_get_an_answer_or_are_told_to_come_back() -> None:
    asked = Asked()
    for number in range(60):
        asked.judge.tokens[f"t{number}"] = f"u{number}"
    async with asked.port() as port:
        answers = await asyncio.gather(*(port.get("books", f"t{number}") for number in range(60)))
    assert {status for status, _ in answers} <= {403, 503}
    assert any(status == 403 for status, _ in answers)


async def test_what_a_pod_was_told_is_forgotten_with_the_pod_and_with_the_leadership() -> None:
    asked = Asked()
    asked.decide()
    told = asked.announcements
    waits, before = asked.caches.pods.get(f"{MINE}/waits"), asked.caches.pods.get(f"{OTHERS}/before")
    assert waits is not None
    assert before is not None
    assert told.holds.keys() == {waits.uid, before.uid}
    told.pod_changed(waits, None)
    assert told.holds.keys() == {before.uid}
    asked.decide()
    told.pod_changed(waits, replace(waits, gates=()))
    assert told.holds.keys() == {before.uid}
    async with background(told.run()):
        await asyncio.sleep(0)
    assert told.holds == {}


async def test_a_pod_that_no_pass_has_come_to_yet_is_told_its_place_and_no_reason() -> None:
    asked = Asked()
    asked.judge.rights = {EVERYTHING}
    async with asked.port() as port:
        _, told = await port.get(POD)
    assert (told["decision"], told["position"]["number"]) == ("hold", 2)
    assert {"reason", "heldBy", "quota"}.isdisjoint(told)
