"""For how long an extended resource goes on as it was served last when no DeviceClass serves it any more."""

from collections.abc import Callable
from typing import Final

from core.dra.extended import DeviceClasses
from core.objects import DeviceClass
from kube.workqueue import IDLE, WorkQueue

GRACE_S: Final = 300.0
"""A driver's chart that is reinstalled, by hand or by a tool that tries again, has its DeviceClass back within a few minutes. Where the
class is gone for good, pods that its quota has no room for wait so much longer."""


class ClassGrace:
    """Keeps a timer for each resource without a class, by this process' own clock, and says when it is over.

    A process that starts meanwhile knows nothing of the class.
    """

    def __init__(self, classes: DeviceClasses, release: Callable[[str], object]) -> None:
        """`classes` are kept by others, `release` is told each resource to which its class has not come back."""
        self._classes = classes
        self._release = release
        self._waiting: set[str] = set()
        self._queue: WorkQueue[str] = WorkQueue(self._end, slots=1)

    def class_changed(self, _old: DeviceClass | None, _new: DeviceClass | None) -> None:
        """Follows the classes, each time after they have taken in a change."""
        orphaned = self._classes.orphaned.keys()
        for resource in self._waiting - orphaned:
            self._queue.discard(resource)
        for resource in orphaned - self._waiting:
            self._queue.add(resource, GRACE_S)
        self._waiting = set(orphaned)

    async def run(self) -> None:
        """Looks after resources until cancelled."""
        await self._queue.run()

    async def _end(self, resource: str) -> float | None:
        """See kube.workqueue.Work."""
        self._waiting.discard(resource)
        self._release(resource)
        return IDLE
