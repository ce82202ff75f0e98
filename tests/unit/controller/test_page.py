"""The status page at the leader's port: to each caller what that one may see, at little cost, and only where it is switched on."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

import orjson
import pytest
from aiohttp import web

from controller.answering import LEADER_PATH, Answers
from controller.page import Boards, Pages
from core.names import ANSWERS_ROOT, TOKEN_HEADER
from core.page.hours import Summed
from core.page.view import View, read
from core.usage.sums import Sums
from kube.callers import Callers
from kube.client import Client
from kube.serving import application
from tests.builders import a_queue
from tests.unit.controller.asking import MINE, OTHERS, Asked, NoLeader, Port, asks_too_often
from tests.unit.controller.cluster import show
from tests.unit.core.page.views import Element, parsed

PODS = ("ann", "list", "pods", "", "")
OWN = ("ann", "list", "pods", MINE, "")
QUEUES = ("ann", "list", "queues", "", "")
NODES = ("ann", "list", "nodes", "", "")
USAGE = ("ann", "get", "configmaps", "home", "cardquota-usage")
EVERYTHING = {PODS, QUEUES, NODES, USAGE}
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Authorization": "Bearer good"}
PAGE = ANSWERS_ROOT + "page"


class Shown(Asked):
    """The leader of the other questions, with the page switched on."""

    def __init__(self, *, leads: bool = True, link: NoLeader | None = None, shows: bool = True) -> None:
        super().__init__(leads=leads)
        self.made = 0

        def holds() -> Mapping[str, Any]:
            self.made += 1
            return self.announcements.holds

        boards = Boards(self.caches, holds, lambda: Summed(Sums(0), 0), lambda: 1_800_000_000_000_000)
        callers = Callers(cast("Client", self.judge))
        pages = Pages(self.caches, boards, callers, "leader-1", "home")
        self.among_replicas = application()
        self.answers = Answers(
            self.knowledge,
            lambda: self.leads,
            link or NoLeader(),
            self.among_replicas,
            pages=pages if shows else None,
        )


def shown(rights: set[tuple[str, str, str, str, str]], **options: Any) -> Shown:
    made = Shown(**options)
    made.judge.rights = rights
    made.decide()
    return made


async def viewed(port: Port, query: str = "", token: str = "good") -> View:
    headers = {"Authorization": f"Bearer {token}"}
    async with port.session.get(PAGE + query, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "application/json"
        return read(await response.read())


async def browsed(port: Port, query: str = "") -> tuple[web.Response | Any, Element]:
    async with port.session.get(PAGE + query, headers=HTML) as response:
        assert response.status == 200, await response.text()
        return response, parsed(await response.text())


async def test_an_administrator_sees_all_of_it() -> None:
    async with shown(EVERYTHING).port() as port:
        view = await viewed(port)
    assert view.queues is not None
    assert view.waiting is not None
    assert view.nodes is not None
    assert [one.name for one in view.queues.rows] == ["q"]
    assert [(one.pod, one.number, one.line) for one in view.waiting.rows] == [
        (f"{OTHERS}/before", 1, 2),
        (f"{MINE}/waits", 2, 2),
    ]
    assert [(one.name, one.cards[0].used) for one in view.nodes.rows] == [("n", 2)]
    assert view.changes is not None
    assert view.hours is not None
    assert (view.source, view.notes) == ("the leader, leader-1", ())


async def test_a_tenant_sees_own_pods_and_nobody_else_by_name() -> None:
    async with shown({OWN, QUEUES}).port() as port:
        view = await viewed(port, f"?own={MINE}")
        _, page = await browsed(port, f"?own={MINE}")
    assert view.waiting is not None
    assert [(one.pod, one.number, one.line) for one in view.waiting.rows] == [(f"{MINE}/waits", 2, 2)]
    assert (view.nodes, view.hours) == (None, None)
    assert OTHERS not in str(view)
    assert OTHERS not in page.text


@pytest.mark.parametrize(
    "query", ["", f"?namespace={OTHERS}", f"?own={OTHERS}", f"?own={MINE}&namespace={OTHERS}"]
)
async def test_of_a_namespace_whose_pods_one_may_not_list_nothing_is_told(query: str) -> None:
    async with shown({OWN, NODES}).port() as port:
        view = await viewed(port, query)
    assert (view.queues, view.waiting, view.changes, view.hours) == (None, None, None, None)
    assert f"{OTHERS}/" not in str(view)


@pytest.mark.parametrize(
    ("right", "part"),
    [(QUEUES, "queues"), (NODES, "nodes"), (PODS, "waiting"), (USAGE, "hours")],
)
async def test_each_part_takes_its_own_right(right: tuple[str, str, str, str, str], part: str) -> None:
    async with shown({right}).port() as port:
        view = await viewed(port)
    there = {name for name in ("queues", "nodes", "waiting", "hours") if getattr(view, name) is not None}
    assert there == {part}
    if part == "waiting":
        assert view.waiting is not None
        assert {(one.number, one.line) for one in view.waiting.rows} == {(0, 0)}


async def test_without_any_right_there_is_no_page() -> None:
    async with shown(set()).port() as port:
        for headers, status in ((HTML, 403), ({"Authorization": "Bearer bad"}, 401), ({}, 401)):
            async with port.session.get(PAGE, headers=headers) as response:
                assert response.status == status
                assert (await response.json())["kind"] == "Status"


async def test_a_browser_has_it_written_out_with_its_policy() -> None:
    async with shown(EVERYTHING).port() as port:
        response, page = await browsed(port)
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"
    assert f"{MINE}/waits" in page.text


async def test_it_is_not_there_unless_it_is_switched_on() -> None:
    async with shown(EVERYTHING, shows=False).port() as port:
        for headers in (HTML, {TOKEN_HEADER: "good"}):
            async with port.session.get(PAGE, headers=headers) as response:
                assert response.status == 404


async def test_all_who_ask_in_the_same_seconds_share_one_look_at_the_books() -> None:
    asked = shown(EVERYTHING)
    async with asked.port() as port:
        await asyncio.gather(*(viewed(port, f"?waiting={number}") for number in range(1, 10)))
        assert asked.made == 1
        now = asyncio.get_running_loop().time
        end = now() + 30
        while asked.made == 1:
            assert now() < end, "the same look for ever"
            await asyncio.sleep(0.3)
            await viewed(port)


async def test_whoever_asks_too_often_waits() -> None:
    async with shown(EVERYTHING).port() as port:

        async def asks() -> int:
            async with port.session.get(PAGE, headers=HTML) as response:
                return response.status

        await asks_too_often(asks, answered=200)


async def test_a_standby_passes_the_question_on_and_writes_the_answer_out_itself() -> None:
    async with (
        shown(EVERYTHING).port() as port,
        port.session.get(PAGE, headers={"Authorization": "Bearer good"}) as response,
    ):
        body = await response.read()
    link = NoLeader((200, body))
    async with shown(EVERYTHING, leads=False, link=link).port() as port:
        _, page = await browsed(port, f"?namespace={MINE}&find=a%26b")
    assert json.loads(link.passed[0])["question"] == f"page?namespace={MINE}&find=a%26b"
    assert f"{MINE}/waits" in page.text


@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b'{"taken": "x"}'])
async def test_an_answer_of_another_version_is_told_as_such(body: bytes) -> None:
    async with (
        shown(EVERYTHING, leads=False, link=NoLeader((200, body))).port() as port,
        port.session.get(PAGE, headers=HTML) as response,
    ):
        assert response.status == 503
        assert "version" in (await response.json())["message"]


async def test_what_another_replica_passes_on_is_judged_here() -> None:
    asked = shown({OWN, QUEUES})
    body = orjson.dumps({"caller": {"username": "ann"}, "question": f"page?own={MINE}"})
    async with (
        asked.port(asked.among_replicas) as port,
        port.session.post(LEADER_PATH, data=body) as response,
    ):
        assert response.status == 200
        view = read(await response.read())
    assert view.waiting is not None
    assert [one.pod for one in view.waiting.rows] == [f"{MINE}/waits"]


async def test_whoever_was_deleted_and_which_quota_was_another_is_shown_while_it_is_known() -> None:
    made = shown(EVERYTHING)
    show(made.caches.pods, f"{OTHERS}/theirs", None)
    show(made.caches.queues, "q", a_queue("q").cards({"A": 3}).view())
    async with made.port() as port:
        view = await viewed(port)
    assert view.changes is not None
    assert [(one.what, one.pod, one.queue) for one in view.changes.latest] == [
        ("gone", f"{OTHERS}/theirs", "q")
    ]
    assert [(one.queue, one.what) for one in view.changes.quotas] == [("q", "A: 2 to 3")]
    assert view.changes.known == 1_800_000_000
