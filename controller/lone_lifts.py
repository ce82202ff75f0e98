"""What is asked of the API server before the first member of a PodGroup is lifted by itself.

Our view of PodGroups may be behind: one that was made anew, or whose minMember was raised, may seem to let its members go one by
one, and a lift cannot be taken back. So what such a lift rests on is read once. Gangs that are lifted together, and members
that follow others, need no such question.
"""

import asyncio
import logging
from typing import Final

from controller.caches import Caches
from core import names
from core.objects import Group, group
from core.plan.begun import others_are_in
from core.plan.decision import Lift
from kube import errors
from kube.calls import LiftClient
from kube.informer import GARBAGE
from kube.resources import PODGROUPS

_LOG = logging.getLogger(__name__)

ANSWER_S: Final = 4.0
"""How long an answer is waited for."""

SURE_S: Final = 2.0
"""So long what was read holds for all members, until the first of them is seen without gate."""

ABSENT_S: Final = 60.0
"""So long it is believed that there are no PodGroups at all."""

ARE_SERVED: Final = ""
"""The question whether there are PodGroups at all. Any other one is the `namespace/name` of a PodGroup."""

_Terms = tuple[object, ...]


class LoneLifts:
    """The questions that lifts depend on, and what was answered. `ask` puts a difference into the caches."""

    def __init__(self, client: LiftClient, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._sure: dict[str, tuple[float, _Terms]] = {}
        """What was found as it was known, or has members that are in, and until when that counts; in the order of that time."""
        self._absent_until = float("-inf")

    def question(self, lift: Lift) -> str | None:
        """What has to be asked before this lift is written; None where nothing has. Only within a running event loop."""
        if names.GANG_ANNOTATION in lift.records:
            return None
        pod, ledger, now = lift.pod, self._caches.ledger, asyncio.get_running_loop().time()
        if not (pod.asks or ledger.devices.wanted(pod)):
            return None
        if not pod.group_name:
            by_groups = pod.scheduler_name in ledger.settings.volcano.scheduler_names
            return (
                ARE_SERVED if by_groups and not ledger.groups_served and now >= self._absent_until else None
            )
        key = f"{pod.namespace}/{pod.group_name}"
        known = _terms(self._caches.groups.get(key))
        until, terms = self._sure.get(key, (now, ()))
        if now < until and terms == known:
            return None
        if not others_are_in(ledger, pod):
            return key
        self._note(key, known)
        return None

    async def ask(self, question: str) -> None:
        """Asks; what is different from what was known is known then, to whoever decides. Raises KubeError without an answer."""
        if question == ARE_SERVED:
            await self._ask_for_any()
            return
        before = _terms(self._caches.groups.get(question))
        found = await self._read(question)
        if _terms(self._caches.groups.get(question)) != before:
            return  # The watch has come further meanwhile.
        if _terms(found) == before:
            self._note(question, before)
        else:
            _LOG.info("PodGroup is not what it was known to be", extra={"group": question})
            self._caches.found_group(question, found)

    async def _ask_for_any(self) -> None:
        served = await self._client.serves(PODGROUPS, timeout_s=ANSWER_S)
        if served:
            self._caches.ledger.serve_groups(True)
            self._caches.notify()
        else:
            self._absent_until = asyncio.get_running_loop().time() + ABSENT_S

    async def _read(self, key: str) -> Group | None:
        """A PodGroup as it is now, None where there is none, or none that can be read."""
        namespace, _, name = key.partition("/")
        try:
            raw = await self._client.get(PODGROUPS, name, namespace, timeout_s=ANSWER_S)
        except errors.NotFound as error:
            if await self._client.serves(PODGROUPS, timeout_s=ANSWER_S):
                return None
            # A server or a proxy that starts up answers so as well. That there are none any more is found by listing them.
            raise errors.ServerError(
                503, "ServiceUnavailable", f"PodGroups are not served at present: {error}"
            ) from error
        try:
            return group.project(raw)
        except GARBAGE:
            return None

    def _note(self, key: str, terms: _Terms) -> None:
        now = asyncio.get_running_loop().time()
        self._sure.pop(key, None)
        while self._sure and (first := next(iter(self._sure))) and self._sure[first][0] <= now:
            del self._sure[first]
        self._sure[key] = now + SURE_S, terms


def _terms(found: Group | None) -> _Terms:
    """What of a PodGroup decides about a lift; its status does not."""
    if found is None:
        return ()
    return (
        found.uid,
        found.queue,
        found.min_member,
        tuple(sorted(found.min_task_member.items())),
        found.card_request,
    )
