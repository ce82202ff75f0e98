"""What a former leader may have granted: binds that hang in the API server and may still be stored, of which nobody tells.

A bind is the request of a scheduler. The API server has asked the former leader, and may go on with the request for as long
as it works on any: the hook has no say in that, and cannot name a resourceVersion, for schedulers write to the pod right
before they bind it. So whoever could be bound with what the former leader granted is remembered until the watch shows what
became of it, or its time is over and a read does. Meanwhile nobody else is granted, or lifted with, what it may take.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from core.binding.binder import Binder
from core.objects import Pod
from kube import errors
from kube.informer import GARBAGE, Informer
from kube.workqueue import WorkQueue

_SLICE = 2000
"""So many pods are looked at before others come to their turn."""

_HELD_AT_ONCE = 50
_SIDE_BY_SIDE = 8
_AGAIN_S = 5.0


class Inheritance:
    """The pods whose bind may be under way. `read` looks a pod up and books it as found."""

    def __init__(self, binder: Binder, read: Callable[[Pod], Awaitable[Pod | None]]) -> None:
        self._binder = binder
        self._read = read
        self._heirs: dict[str, Pod] = {}
        self._queue: WorkQueue[str] = WorkQueue(self._settle, slots=_SIDE_BY_SIDE)

    @property
    def open(self) -> frozenset[str]:
        """The UIDs of the pods of whom it is not known what became of their bind."""
        return frozenset(self._heirs)

    async def take(self, pods: Informer[Pod], named: Collection[str] | None, until: float) -> None:
        """Remembers those of the pods whose bind may be under way; it is stored or lost at that time of the loop.

        `named` are the UIDs of those that the former leader has left open; None where it did not say so.
        """
        found: list[Pod] = []
        for number, pod in enumerate(tuple(pods.values()), 1):
            if (named is None or pod.uid in named) and _may_be_bound(pod) and self._binder.contested(pod):
                found.append(pod)
            if number % _SLICE == 0:
                await asyncio.sleep(0)
        for number, pod in enumerate(found, 1):
            now = pods.get(pod.key)
            if now is not None and now.uid == pod.uid and _may_be_bound(now):
                self._heirs[pod.uid] = pod
                self._binder.hold_outcomes(now)
                self._queue.add(pod.uid, until - asyncio.get_running_loop().time())
            if number % _HELD_AT_ONCE == 0:
                await asyncio.sleep(0)

    def drop_all(self) -> None:
        """Forgets all of them: whoever leads next has them from the Lease, or finds them."""
        self._heirs.clear()
        self._queue.clear()
        self._binder.release_all_outcomes()

    async def run(self) -> None:
        """Asks after those that are due, until cancelled."""
        await self._queue.run()

    def observe(self, old: Pod | None, new: Pod | None) -> None:
        """Follows the watch, after the books have: whoever is bound, ending or gone will not be bound any more."""
        if old is not None and (new is None or new.uid != old.uid):
            self._drop(old.uid)
        if new is not None and not _may_be_bound(new):
            self._drop(new.uid)

    def rival(self, pod: Pod) -> Pod | None:
        """Another pod that may be bound with what this one asks for."""
        if not self._heirs or not self._binder.contested(pod):
            return None
        return next((heir for uid, heir in self._heirs.items() if uid != pod.uid), None)

    async def _settle(self, uid: str) -> float | None:
        heir = self._heirs.get(uid)
        if heir is None:
            return None
        try:
            await self._read(heir)
        except (errors.KubeError, *GARBAGE):
            return _AGAIN_S
        self._drop(uid)
        return None

    def _drop(self, uid: str) -> None:
        if self._heirs.pop(uid, None) is not None:
            self._queue.discard(uid)
            self._binder.release_outcomes(uid)


def _may_be_bound(pod: Pod) -> bool:
    return not (pod.bound or pod.gated or pod.deleting or pod.terminal)
