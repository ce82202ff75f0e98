"""What the leader tells one caller: of an own pod why it waits, of the books what they say; no more than the caller may see."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from controller.announcements import Announcements
from controller.caches import Caches
from controller.metrics import Metrics
from core.answers import report
from core.answers.explain import MOST, Explanation, let_go_of_holders, observed
from core.display.figures import own_figures
from core.quantity import render_amounts
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, in_order
from kube.callers import Caller, Callers, Right
from kube.turns import Turns

_QUEUES: Final = "scheduling.volcano.sh"
_NAMESPACES: Final = 16
"""So many namespaces are asked about for one answer; pods of others are not named."""
_NAMES: Final = 1000
"""Names that are put in order in about half a millisecond."""
_STEP: Final = 100
"""Queues whose figures are written in about half a millisecond."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a question has no answer."""

    status: HTTPStatus
    text: str


class Knowledge:
    """The books of this replica, and what their last pass said; what is told of them is for the leader to tell."""

    def __init__(
        self,
        caches: Caches,
        announcements: Announcements,
        callers: Callers,
        metrics: Metrics,
        identity: str,
    ) -> None:
        self._caches = caches
        self._announcements = announcements
        self.callers = callers
        self._metrics = metrics
        self._identity = identity

    @property
    def turns(self) -> Turns:
        """By which longer work is done."""
        return self._caches.turns

    async def of_pod(self, caller: Caller, namespace: str, name: str) -> dict[str, Any] | Refused:
        """Why a pod waits, as `explain` says it without what would help. Raises KubeError.

        Whether there is such a pod is told to nobody who may not read it.
        """
        if not await self.callers.may(caller, Right("get", "", "pods", namespace, name)):
            return Refused(HTTPStatus.FORBIDDEN, f"you may not get pod {name} in namespace {namespace}")
        pod = self._caches.pods.get(f"{namespace}/{name}")
        if pod is None:
            return Refused(HTTPStatus.NOT_FOUND, f"there is no pod {name} in namespace {namespace}")
        steps = observed(self._caches.ledger, pod.uid, self._announcements.holds)
        found = await self.turns.finish(steps)
        about = {"leader": self._identity, "pod": pod.key}
        if found is None:
            return {**about, "decision": "ignored"}
        try:
            return {**about, **await self._told(caller, found)}
        finally:
            await self.turns.finish(let_go_of_holders(found))

    async def _told(self, caller: Caller, found: Explanation) -> dict[str, Any]:
        """As much of it as the caller may see, and what is left out therefore."""
        told = report.of_pod(found)
        left_out = []
        queues = sorted(report.queues(found))
        unread = [
            name
            for name in queues
            if not await self.callers.may(caller, Right("get", _QUEUES, "queues", name=name))
        ]
        if not unread:
            seen = await self._seen(caller, found)
            steps = report.of_queue(found, self._caches.ledger, seen.__contains__, MOST)
            told |= await self.turns.finish(steps)
        else:
            left_out.append(f"queue {', '.join(unread)}")
        if await self.callers.may(caller, Right("list", "", "nodes")):
            told |= report.of_nodes(found)
        else:
            left_out.append("nodes")
        return {**told, "leftOut": left_out}

    async def of_books(self, caller: Caller) -> dict[str, Any] | Refused:
        """What every queue uses and waits for, and how the leader's last audit ended. Raises KubeError."""
        if not await self.callers.may(caller, Right("list", _QUEUES, "queues")):
            return Refused(HTTPStatus.FORBIDDEN, "you may not list queues.scheduling.volcano.sh")
        await self._caches.settled()
        queues = await self.turns.finish(_figures(self._caches.ledger))
        return {"leader": self._identity, "queues": queues, "drift": self._metrics.drift}

    async def _seen(self, caller: Caller, found: Explanation) -> set[str]:
        """The namespaces whose pods the caller may list, of those that would be named."""
        wanted = await self.turns.finish(report.namespaces(found))
        if await self.callers.may(caller, Right("list", "", "pods")):
            return wanted
        own = found.entry.pod.namespace
        ordered = await self.turns.finish(in_order([*wanted], lambda name: (name != own, name), _NAMES))
        asked = ordered[:_NAMESPACES]
        return {name for name in asked if await self.callers.may(caller, Right("list", "", "pods", name))}


def _figures(ledger: Ledger) -> Steps[dict[str, Any]]:
    """Of each queue what is allocated, reserved and waiting: cards, shares, and devices of the queues below it as well."""
    found: dict[str, Any] = {}
    pace = Pace(_STEP)
    for name, parts in own_figures(ledger):
        if pace.due():
            yield
        found[name] = {part: render_amounts(amounts) for part, amounts in parts.items()}
    return found
