"""The status page as the leader shows it: to each reader what that one may see, out of one look at the books for all."""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from controller.caches import Caches
from controller.knowledge import Refused
from core.display.figures import quota_of
from core.page.board import Board, board
from core.page.hours import Summed
from core.page.html.links import wish_of
from core.page.selection import Sight, view_of
from core.page.view import View, Wish
from core.page.witness import Witness
from core.plan.decision import Hold
from kube.callers import Caller, Callers, Right

_QUEUES: Final = "scheduling.volcano.sh"
_USAGE: Final = "cardquota-usage"
_FRESH_S: Final = 3.0
"""For so long at least a look at the books serves all who ask ..."""
_SHARE: Final = 20.0
"""... and so many times as long as it took: whoever reads page after page keeps the leader from nothing else."""


class Boards:
    """Boards of the books, each for some seconds. `holds` is what the last passes said, by UID; `now` in microseconds since 1970.

    What is gone is remembered from the making on, by whoever leads and by who may come to.
    """

    def __init__(
        self,
        caches: Caches,
        holds: Callable[[], Mapping[str, Hold]],
        summed: Callable[[], Summed | None],
        now: Callable[[], int],
    ) -> None:
        self._caches = caches
        self._holds = holds
        self._summed = summed
        self._now = now
        self._one_at_a_time = asyncio.Lock()
        self._latest: Board | None = None
        ledger = caches.ledger
        self._witness = Witness(
            now,
            lambda name: quota_of(ledger, name),
            lambda pod: ledger.attribution(pod).queue,
            lambda: caches.pods.synced and caches.queues.synced,
        )
        caches.pods.subscribe(self._witness.see_pod)
        caches.queues.subscribe(self._witness.see_queue)

    async def latest(self) -> Board:
        """One that is some seconds old at most, and longer where it takes long to make one."""
        async with self._one_at_a_time:
            if self._latest is None:
                self._latest = await self._make()
            return self._latest

    async def _make(self) -> Board:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._caches.settled()
        steps = board(
            self._caches.ledger,
            self._caches.pods.values(),
            self._holds(),
            self._summed(),
            self._now(),
            self._witness,
        )
        found = await self._caches.turns.finish(steps)
        # Nobody need look again: it keeps alive whatever it is made of.
        loop.call_later(max(_FRESH_S, (loop.time() - began) * _SHARE), self._forget)
        return found

    def _forget(self) -> None:
        self._latest = None


class Pages:
    """Pages of this replica's books; only the leader knows why pods wait. `namespace` is that of the installation."""

    def __init__(
        self, caches: Caches, boards: Boards, callers: Callers, identity: str, namespace: str
    ) -> None:
        self._caches = caches
        self._boards = boards
        self._callers = callers
        self._identity = identity
        self._namespace = namespace

    async def of(self, caller: Caller, query: str) -> View | Refused:
        """What the caller asks for, as far as it may see it. Raises KubeError."""
        wish = wish_of(query)
        sight = await self._sight(caller, wish)
        if not (sight.queues or sight.nodes or sight.hours) and sight.pods is None:
            return Refused(
                HTTPStatus.FORBIDDEN,
                "you may list neither queues.scheduling.volcano.sh nor nodes nor pods; name a namespace whose pods you may list",
            )
        found = await self._boards.latest()
        steps = view_of(found, self._caches.ledger, wish, sight, f"the leader, {self._identity}")
        return await self._caches.turns.finish(steps)

    async def _sight(self, caller: Caller, wish: Wish) -> Sight:
        may = self._callers.may
        return Sight(
            queues=await may(caller, Right("list", _QUEUES, "queues")),
            pods=await self._pods(caller, wish),
            nodes=await may(caller, Right("list", "", "nodes")),
            hours=await may(caller, Right("get", "", "configmaps", self._namespace, _USAGE)),
        )

    async def _pods(self, caller: Caller, wish: Wish) -> str | None:
        """The namespace whose pods the caller may list, empty for all, None for no such."""
        if await self._callers.may(caller, Right("list", "", "pods")):
            return ""
        namespace = wish.namespace or wish.own
        if namespace and await self._callers.may(caller, Right("list", "", "pods", namespace)):
            return namespace
        return None
