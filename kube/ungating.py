"""cardquota put out of force: nobody is asked about pods any more, and no pod is left at the gate.

Done before an uninstall and where nothing else helps, so it counts on none of our processes and keeps nothing: whatever was
interrupted is begun again from what the API server has. A controller that leads is not asked: it goes
on for the rest of its term, and loses the right to renew it, for it would make a Lease anew that nobody removes.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeVar

from core.ungating import Gated, gated
from kube import errors
from kube.backoff import Backoff
from kube.calls import Deleter, Patcher
from kube.client import PatchType
from kube.listing import Page
from kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    ALL,
    LEASES,
    MUTATING_WEBHOOKS,
    PODS,
    ROLE_BINDINGS,
    VALIDATING_WEBHOOKS,
    Resource,
    Scope,
)

MUTATING, VALIDATING = "cardquota-mutating", "cardquota-validating"
POLICIES = (
    "cardquota-gate",
    "cardquota-records",
    "cardquota-create",
    "cardquota-deletion",
    "cardquota-eviction",
)
LEADER_ELECTION = "cardquota-leader-election"
LEASE = "cardquota"

_WORKERS = 8
_WRITE_TIMEOUT_S = 10.0
_UNBOUND = Scope(field_selector="spec.nodeName=")
"""A pod that has its node has no gate; the API server keeps an index of the nodes' names."""
_TELL_EVERY_S = 5.0

_SHOWN = 3

T = TypeVar("T")
Say = Callable[[str], None]


class UngateError(Exception):
    """Gates are left that could not be taken off; the text names pods, and what the API server says of them."""


class Api(Patcher, Deleter, Protocol):
    """The calls of kube.client.Client that this makes."""

    def list(self, resource: Resource, scope: Scope = ALL) -> AsyncGenerator[Page]:
        """See Client.list."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How fast it goes, and how long it goes on.

    `per_second` pods are patched at most. API servers learn of webhooks and policies that are gone a moment late: for
    `settle_s` seconds pods may still come with a gate. It is given up when for `patience_s` seconds nothing has got done.
    """

    per_second: float = 100.0
    settle_s: float = 5.0
    patience_s: float = 120.0
    look_again_s: float = 1.0


async def waiting(api: Api) -> list[Gated]:
    """Every pod at our gate, in all namespaces. Raises KubeError."""
    found: list[Gated] = []
    async with aclosing(api.list(PODS, _UNBOUND)) as pages:
        async for page in pages:
            found += [one for one in map(gated, page.items) if one is not None]
    return found


class Ungating:
    """One run of it. `namespace` is where cardquota is installed; `say` is told of each step and of the progress."""

    def __init__(self, api: Api, namespace: str, say: Say, limits: Limits | None = None) -> None:
        self._api = api
        self._namespace = namespace
        self._say = say
        self._limits = limits or Limits()
        self._clock = asyncio.get_running_loop().time
        self._next_write_at = 0.0
        self._lifted = 0
        self._lifted_at = 0.0
        self._told_at = 0.0
        self._refused: dict[str, str] = {}
        """What was said of the pods that were refused in this round."""

    async def run(self) -> int:
        """Returns how many gates it took off, once none is left.

        Raises UngateError, and KubeError where the API server does not let us, or is away for too long.
        """
        await self._disarm()
        settled_at = self._lifted_at = self._clock()
        settled_at += self._limits.settle_s
        while True:
            looked_at = self._clock()
            pods: list[Gated] = await self._patiently("list pods", lambda: waiting(self._api))
            if pods:
                await self._lift(pods)
            elif looked_at >= settled_at:
                break
            await asyncio.sleep(self._limits.look_again_s)
        await self._remove(LEASES, LEASE, self._namespace)
        return self._lifted

    async def _disarm(self) -> None:
        """First the webhook that gives the gate, then who forbids to take it off, then the right to lead."""
        await self._remove(MUTATING_WEBHOOKS, MUTATING)
        await self._remove(VALIDATING_WEBHOOKS, VALIDATING)
        for resource in (ADMISSION_POLICY_BINDINGS, ADMISSION_POLICIES):
            for policy in POLICIES:
                await self._remove(resource, policy)
        await self._remove(ROLE_BINDINGS, LEADER_ELECTION, self._namespace)

    async def _remove(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        async def delete() -> bool:
            try:
                await self._api.delete(resource, name, namespace, timeout_s=_WRITE_TIMEOUT_S)
            except errors.NotFound:
                return False
            return True

        removed = await self._patiently(f"delete {resource} {name}", delete)
        self._say(f"{resource.kind} {name}: {'removed' if removed else 'not there'}")

    async def _patiently(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` returns, once the API server answers. Raises KubeError for what does not pass by itself."""
        backoff = Backoff(Random(), base_s=0.5, cap_s=5.0)  # noqa: S311 - spreads attempts, protects nothing
        began_at = self._clock()
        while True:
            try:
                return await ask()
            except (errors.ServerError, errors.ConnectionFailed, errors.Throttled, errors.Gone) as error:
                if self._clock() - began_at >= self._limits.patience_s:
                    raise
                self._say(f"{what}: {errors.describe(error)}; trying again")
                await asyncio.sleep(max(backoff.next_delay(), errors.retry_after_s(error)))

    # -- gates ---------------------------------------------------------------------------------------------------

    async def _lift(self, pods: list[Gated]) -> None:
        """One round over all that wait; who is refused is in the next one again. Raises UngateError."""
        self._say(f"{len(pods)} pods wait at the gate")
        self._refused.clear()
        todo = iter(pods)
        async with asyncio.TaskGroup() as tasks:
            for number in range(min(_WORKERS, len(pods))):
                tasks.create_task(self._work(todo), name=f"ungating {number}")
        self._say(f"{self._lifted} gates taken off" + self._refusals())
        if self._refused and self._clock() - self._lifted_at >= self._limits.patience_s:
            raise UngateError(f"the gates of {len(self._refused)} pods stay" + self._refusals())

    async def _work(self, todo: Iterator[Gated]) -> None:
        for pod in todo:
            await self._turn()
            await self._patch(pod)

    async def _turn(self) -> None:
        """Returns when the next write may begin."""
        now = self._clock()
        begin_at = max(now, self._next_write_at)
        self._next_write_at = begin_at + 1 / self._limits.per_second
        await asyncio.sleep(begin_at - now)

    async def _patch(self, pod: Gated) -> None:
        """Whatever the API server says, others may have more luck; and it may learn only now that the policies are gone."""
        try:
            await self._api.patch(
                PODS,
                pod.name,
                pod.patch,
                pod.namespace,
                patch_type=PatchType.JSON,
                timeout_s=_WRITE_TIMEOUT_S,
            )
        except errors.NotFound:
            return
        except errors.KubeError as error:
            self._refused[str(pod)] = errors.describe(error)
            self._next_write_at = max(self._next_write_at, self._clock() + errors.retry_after_s(error))
            return
        self._lifted += 1
        self._lifted_at = self._clock()
        if self._lifted_at - self._told_at >= _TELL_EVERY_S:
            self._told_at = self._lifted_at
            self._say(f"{self._lifted} gates taken off so far")

    def _refusals(self) -> str:
        """The first refusals with what was said, as an end of a sentence."""
        shown = [f"{pod} ({why})" for pod, why in sorted(self._refused.items())[:_SHOWN]]
        more = len(self._refused) - len(shown)
        return (f"; refused: {', '.join(shown)}" if shown else "") + (f" and {more} more" if more else "")
