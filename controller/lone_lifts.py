"""What is asked of the API server before the first member of a PodGroup is lifted by itself.

Our view of PodGroups may be behind: one that was made anew, or whose minimum was raised, may seem to let its members go one by
one, and a lift cannot be taken back. So what such a lift rests on is read once. Gangs that are lifted together, and members
that follow others, need no such question.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from controller.caches import Caches
from core import names
from core.objects import Group, Pod, group_key, kinds
from core.objects import raw as parts
from core.objects.kinds import Kind
from core.plan.decision import Lift
from kube import errors
from kube.calls import LiftClient
from kube.informer import GARBAGE
from kube.resources import KUBERNETES_PODGROUPS, PODGROUPS, Resource

_LOG = logging.getLogger(__name__)

ANSWER_S: Final = 4.0
"""How long an answer is waited for."""

SURE_S: Final = 2.0
"""So long what was read holds for all members, until the first of them is seen without gate."""

ABSENT_S: Final = 60.0
"""So long it is believed that there are no PodGroups at all."""


class _Groups(NamedTuple):
    resource: Resource
    kind: Kind[Group]


_ALL: Final[Mapping[str, _Groups]] = {
    names.VOLCANO_GROUPS: _Groups(PODGROUPS, kinds.GROUP),
    names.KUBERNETES_GROUPS: _Groups(KUBERNETES_PODGROUPS, kinds.KUBERNETES_GROUP),
}
"""The PodGroups of each API group, which by itself is the question whether there are any. Any other one is the key of a PodGroup."""

_Terms = tuple[object, ...]


class LoneLifts:
    """The questions that lifts depend on, and what was answered. `ask` puts a difference into the caches."""

    def __init__(self, client: LiftClient, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._sure: dict[str, tuple[float, _Terms]] = {}
        """What was found as it was known, or has members that are in, and until when that counts; in the order of that time."""
        self._absent_until: dict[str, float] = {}

    def question(self, lift: Lift) -> str | None:
        """What has to be asked before this lift is written; None where nothing has. Only within a running event loop."""
        pod, ledger = lift.pod, self._caches.ledger
        if names.GANG_ANNOTATION in lift.records:
            # Whom it starts with is known, unless it names a PodGroup of a kind that nobody has seen yet.
            unseen = pod.gang is not None and any(map(group_key.is_kubernetes, pod.pod_groups))
            return (
                names.KUBERNETES_GROUPS if unseen and self._may_be_served(names.KUBERNETES_GROUPS) else None
            )
        if not (pod.asks or ledger.devices.wanted(pod)):
            return None
        by_groups = pod.scheduler_name in ledger.settings.volcano.scheduler_names
        if by_groups and not pod.group_name and self._may_be_served(names.VOLCANO_GROUPS):
            return names.VOLCANO_GROUPS
        return next(filter(None, (self._about(key, pod) for key in pod.pod_groups)), None)

    def _about(self, key: str, pod: Pod) -> str | None:
        """What has to be asked of a PodGroup that a pod names."""
        ledger, now = self._caches.ledger, asyncio.get_running_loop().time()
        if group_key.is_kubernetes(key) and names.KUBERNETES_GROUPS not in ledger.groups_served:
            return names.KUBERNETES_GROUPS if self._may_be_served(names.KUBERNETES_GROUPS) else None
        known = terms_of(self._caches.group(key))
        until, terms = self._sure.get(key, (now, ()))
        if now < until and terms == known:
            return None
        if not ledger.others_are_in(pod):
            return key
        self._note(key, known)
        return None

    def _may_be_served(self, api_group: str) -> bool:
        """Whether it is not known that there are such PodGroups, nor was it found out lately that there are none."""
        if api_group in self._caches.ledger.groups_served:
            return False
        return asyncio.get_running_loop().time() >= self._absent_until.get(api_group, float("-inf"))

    async def ask(self, question: str) -> None:
        """Asks; what is different from what was known is known then, to whoever decides. Raises KubeError without an answer."""
        if question in _ALL:
            await self._ask_for_any(question)
            return
        before = terms_of(self._caches.group(question))
        found, version = await self._read(question)
        if terms_of(self._caches.group(question)) != before:
            return  # The watch has come further meanwhile.
        if terms_of(found) == before:
            self._note(question, before)
        else:
            _LOG.info("PodGroup is not what it was known to be", extra={"group": question})
            self._caches.found_group(question, found, version)

    async def _ask_for_any(self, api_group: str) -> None:
        served = await self._client.serves(_ALL[api_group].resource, timeout_s=ANSWER_S)
        if served:
            self._caches.ledger.serve_groups(True, api_group)
        else:
            self._absent_until[api_group] = asyncio.get_running_loop().time() + ABSENT_S

    async def _read(self, key: str) -> tuple[Group | None, str]:
        """A PodGroup as it is now, None where there is none, or none that can be read; and the version in which it was read."""
        resource, kind = _ALL[
            names.KUBERNETES_GROUPS if group_key.is_kubernetes(key) else names.VOLCANO_GROUPS
        ]
        namespace, _, name = group_key.object_key(key).partition("/")
        try:
            raw = await self._client.get(resource, name, namespace, timeout_s=ANSWER_S)
        except errors.NotFound as error:
            if await self._client.serves(resource, timeout_s=ANSWER_S):
                return None, ""
            # A server or a proxy that starts up answers so as well. That there are none any more is found by listing them.
            raise errors.ServerError(
                503, "ServiceUnavailable", f"PodGroups are not served at present: {error}"
            ) from error
        try:
            return kind.project(raw), parts.text(parts.mapping(raw, "metadata"), "resourceVersion")
        except GARBAGE:
            return None, ""

    def _note(self, key: str, terms: _Terms) -> None:
        now = asyncio.get_running_loop().time()
        self._sure.pop(key, None)
        while self._sure and (first := next(iter(self._sure))) and self._sure[first][0] <= now:
            del self._sure[first]
        self._sure[key] = now + SURE_S, terms


def terms_of(found: Group | None) -> _Terms:
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
