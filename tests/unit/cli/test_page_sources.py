"""Where `cardquota page` has its pages from: the leader with the user's own rights, else the cluster as the user may list it."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest

from cli import cluster, leader, live, page, page_sources, state
from cli.errors import CommandError, UnavailableError
from cli.main import parser
from cli.state import State
from core.page.view import Wish
from core.settings import Settings
from kube import errors
from kube.client import Client
from tests.builders import a_node, a_pod, a_queue
from tests.unit.core.page.views import filled


def a_state(*names: str) -> State:
    """A queue without cards, for which these pods wait."""
    pods = (a_pod(name).gpu(1).card("A").in_queue("q").gated() for name in names)
    things = (a_node("n").card("A", 8), a_queue("q").cards({"A": 0}), *pods)
    return state.build([thing.build() for thing in things], "here")


class Leader:
    """What the leader answers; the questions that it was asked."""

    def __init__(self, answer: dict[str, Any], why: str = "") -> None:
        self.answer = answer, why
        self.questions: list[str] = []
        self.fails: errors.KubeError | None = None

    async def asked(self, _client: object, home: str, question: str) -> tuple[dict[str, Any], str]:
        assert home == "cardquota-system"
        self.questions.append(question)
        if self.fails is not None:
            raise self.fails
        return self.answer


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Leader:
    """A leader who shows a page, by way of an API server."""
    found = Leader(orjson.loads(orjson.dumps(filled("told"))))

    @asynccontextmanager
    async def client() -> AsyncIterator[None]:
        yield

    async def connect(*_: object) -> Any:
        return client()

    monkeypatch.setattr(Client, "connect", connect)
    monkeypatch.setattr(leader, "asked", found.asked)
    monkeypatch.setattr(cluster, "installed", lambda _options: a_state())
    monkeypatch.setattr(live, "namespace_of", lambda *_: "mine")
    return found


def options(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(["page", *arguments])


async def test_the_leader_is_asked_with_the_users_namespace_for_what_the_browser_asks(asked: Leader) -> None:
    async with page_sources.of_leader(None, None, "cardquota-system", "mine") as pages:
        view = await pages(Wish(find="a b", waiting=2))
        await pages(Wish(own="other"))
    assert view == filled("told")
    assert asked.questions == ["page?find=a+b&own=mine&waiting=2", "page?own=other"]


async def test_what_the_leader_does_not_say_is_an_error_that_says_why(asked: Leader) -> None:
    async with page_sources.of_leader(None, None, "cardquota-system", "mine") as pages:
        asked.answer = {}, "your kubeconfig shows no token"
        with pytest.raises(UnavailableError, match="no token"):
            await pages(Wish())
        asked.answer = {"taken": "yesterday"}, ""
        with pytest.raises(UnavailableError, match="another version"):
            await pages(Wish())
        asked.fails = errors.ConnectionFailed("no route")
        with pytest.raises(UnavailableError, match="no route"):
            await pages(Wish())


def test_where_the_leader_answers_nothing_is_listed(asked: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the cluster is listed")

    monkeypatch.setattr(cluster, "read", never)
    page.source_of(options("-n", "ml"))
    assert asked.questions == ["page?own=ml"]
    page.source_of(options())
    assert asked.questions[1:] == ["page?own=mine"]


async def test_where_it_does_not_the_cluster_is_listed_and_that_is_said(
    asked: Leader, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.answer = {}, "there is no such port"
    monkeypatch.setattr(leader, "ask", lambda *_: asked.answer)
    monkeypatch.setattr(cluster, "read", lambda _options: (Settings(), a_state("one")))
    async with page.source_of(options()) as pages:
        found = await pages(Wish())
    assert "note: the leader was not asked: there is no such port" in capsys.readouterr().err
    assert found.waiting is not None
    assert [(one.pod, one.reason) for one in found.waiting.rows] == [("ml/one", "InsufficientScalarQuota")]


def test_whoever_may_not_list_all_that_decides_is_shown_nothing_false(
    asked: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = replace(a_state("one"), pods_of="ml")
    asked.answer = {}, "there is no such port"
    monkeypatch.setattr(leader, "ask", lambda *_: asked.answer)
    monkeypatch.setattr(cluster, "read", lambda _options: (Settings(), hidden))
    with pytest.raises(CommandError, match="you may not list Pod in all namespaces"):
        page.source_of(options())


async def test_a_cluster_is_listed_anew_but_not_with_each_load(monkeypatch: pytest.MonkeyPatch) -> None:
    now, listed = [0.0], ["two"]
    monkeypatch.setattr("cli.page_sources.time.monotonic", lambda: now[0])
    monkeypatch.setattr(cluster, "again", lambda _options: a_state(*listed))
    pages = page_sources.of_cluster(options(), a_state("one"), Settings())

    async def shown() -> list[str]:
        found = await pages(Wish())
        assert found.waiting is not None
        return [one.pod for one in found.waiting.rows]

    assert await shown() == ["ml/one"]
    now[0] = 9.0
    assert await shown() == ["ml/one"]
    now[0] = 10.0
    assert await shown() == ["ml/two"]
