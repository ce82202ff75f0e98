"""Where the pages of `cardquota page` come from: the leader, or objects at hand."""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from cli import books, cluster, history, leader, output, usage
from cli.errors import UnavailableError
from core.answers.whatif import Change, WhatIf
from core.page.board import board
from core.page.hours import Summed
from core.page.html.links import address
from core.page.selection import EVERYTHING, view_of
from core.page.view import View, ViewError, Wish, read
from core.steps import finish
from kube.client import Client
from kube.errors import KubeError

if TYPE_CHECKING:
    from cli.page_server import Pages
    from cli.state import State
    from controller.caches import Caches
    from core.settings import Settings

_NO_REASONS: Final = "Why pods wait is not known here: the leader says so, see cardquota page."
_FRESH_S: Final = 10.0
"""A cluster is listed as often as this at most, however often its page is loaded."""


def of_state(state: "State", settings: "Settings", source: str, now: int | None = None) -> "Pages":
    """Pages of a state as it stands. Why its pods wait is what a pass over it says.

    `now`, in microseconds since 1970, is the present; without it that is when the state was read, or the last moment that it speaks of.
    """
    ledger = books.of(state, settings)
    # The books are as they were afterwards: whoever would be let in still waits in them.
    holds = WhatIf(ledger).holds(Change.none())
    made = finish(board(ledger, state.pods, holds, _summed(state), now or history.last_moment(state)))

    async def pages(wish: Wish) -> View:
        return finish(view_of(made, ledger, wish, EVERYTHING, source))

    return pages


def of_cluster(options: argparse.Namespace, state: "State", settings: "Settings") -> "Pages":
    """Pages of the live cluster, all of which the user may list; it is listed anew when a page is loaded later."""
    one_at_a_time = asyncio.Lock()
    source = "the cluster as you may list it"
    made, due = of_state(state, settings, source, time.time_ns() // 1000), time.monotonic() + _FRESH_S

    def again() -> "Pages":
        return of_state(cluster.again(options), settings, source, time.time_ns() // 1000)

    async def pages(wish: Wish) -> View:
        nonlocal made, due
        async with one_at_a_time:
            if time.monotonic() >= due:
                made, due = await asyncio.to_thread(again), time.monotonic() + _FRESH_S
            return await made(wish)

    return pages


def of_state_later(state: "State", settings: "Settings", source: str) -> "Pages":
    """The same as of_state, which is called by whoever comes first, beside the loop: it may take its time."""
    one_at_a_time = asyncio.Lock()
    made: list[Pages] = []

    async def pages(wish: Wish) -> View:
        async with one_at_a_time:
            if not made:
                made.append(await asyncio.to_thread(of_state, state, settings, source))
        return await made[0](wish)

    return pages


def of_caches(caches: "Caches") -> "Pages":
    """Pages of caches that follow a cluster. Nobody here decides on its pods, so why they wait is not known."""
    from controller.page import Boards

    boards = Boards(caches, dict, lambda: None, lambda: time.time_ns() // 1000)

    async def pages(wish: Wish) -> View:
        steps = view_of(
            await boards.latest(), caches.ledger, wish, EVERYTHING, "the cluster as it is followed here"
        )
        view = await caches.turns.finish(steps)
        return replace(view, notes=(*view.notes, _NO_REASONS))

    return pages


def question(wish: Wish | None = None, own: str = "") -> str:
    """What the leader is asked for a wish; `own` is the namespace of whoever may not list the pods of all."""
    asked = wish or Wish()
    return f"page{address(replace(asked, own=asked.own or own))}"


@asynccontextmanager
async def of_leader(
    kubeconfig: Path | None, context: str | None, home: str, own: str
) -> "AsyncIterator[Pages]":
    """Pages as the leader tells them to this user. Raises KubeError."""
    async with await Client.connect(kubeconfig, context) as client:

        async def pages(wish: Wish) -> View:
            try:
                answer, why = await leader.asked(client, home, question(wish, own))
            except KubeError as error:
                raise UnavailableError(leader.why_not(error, home)) from error
            if not answer:
                raise UnavailableError(why)
            try:
                return read(orjson.dumps(answer))
            except ViewError as error:
                raise UnavailableError(f"the leader is of another version: {error}") from error

        yield pages


def _summed(state: "State") -> Summed | None:
    """What was written down of usage; the rest of the page is good without it."""
    try:
        written = usage.of_state(state)
    except usage.EmptyError:
        return None
    except UnavailableError as error:
        print(f"warning: {output.printable(str(error))}", file=sys.stderr)
        return None
    return None if written is None else Summed(written[0].sums, written[0].through)
