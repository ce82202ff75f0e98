"""Members of a task that change places: one is bound on the node of another, which is nominated for the place that it has left.

What has to be looked at is noted when a bind is seen; to look is work for the turns. Binds of one task are seen together as a
rule, so the place that was left may have been taken by a further member before anybody has looked: then that one's is tried.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from controller.caches import Caches
from core.mgpu.destination import Task, gives_way, nominated_for, task_of
from core.objects import Pod
from core.plan.admitted import AdmittedNodes
from core.plan.stuck import place_gone, takes_now
from core.queues.entry import Entry
from core.steps import Steps, each
from kube.workqueue import WorkQueue

_PASSED_IN_A_STEP: Final = 50
"""Pods of which it is found out in less than half a millisecond whether they are members; each of those is a step by itself."""

_Key = tuple[Task, str]
"""A task and the node that one of it has come to, which was nominated for another one."""


class ChangedPlaces:
    """Looks at the binds that were noted, as long as it is run. `move` has a pod nominated for another node, and its room booked there."""

    def __init__(self, caches: Caches, move: Callable[[Pod, str], None]) -> None:
        self._caches = caches
        self._move = move
        self._left: dict[_Key, deque[str]] = {}
        """The places that were left, in their order, and that nobody has been looked at for."""
        self._admitted = AdmittedNodes(caches.ledger)
        """Which nodes the rules of such pods admit: asked by one look after the other, forgotten with the term."""
        self._looks: WorkQueue[_Key] = WorkQueue(self._look, slots=1)

    def __len__(self) -> int:
        """At how many nodes of a task it is still to be looked."""
        return len(self._looks)

    def note(self, bound: Pod) -> None:
        """Has looked at whose place a pod has taken that was nominated for another node than it is bound to."""
        task = task_of(bound)
        if task is not None:
            key = (task, bound.node_name)
            self._left.setdefault(key, deque()).append(nominated_for(bound))
            self._looks.add(key)

    async def run(self) -> None:
        """Looks until cancelled, one bind after the other."""
        await self._looks.run()

    def clear(self) -> None:
        """Notes nothing any more of what was seen."""
        self._looks.clear()
        self._left.clear()
        self._admitted = AdmittedNodes(self._caches.ledger)

    async def _look(self, key: _Key) -> None:
        """Looks at the first bind that was noted; for each there is one that may change its place. See kube.workqueue.Work."""
        await self._caches.turns.finish(self._change(*key, self._take(key)))
        if key in self._left:
            self._looks.add(key)

    def _take(self, key: _Key) -> str:
        places = self._left[key]
        place = places.popleft()
        if not places:
            del self._left[key]
        return place

    def _change(self, task: Task, node: str, left: str) -> Steps[None]:
        """Has the first one that has lost its place on the node nominated for the one that was left, if that is enough for it.

        Whoever is bound, moved or gone by the time of its look is passed over.
        """
        ledger = self._caches.ledger
        for uid in (yield from self._members(task, node)):
            yield
            entry = ledger.led_to(node).get(uid)
            if entry is None:
                continue
            gone = yield from place_gone(ledger, entry.pod, self._admitted)
            place = (yield from self._place(entry.pod, task, node, left)) if gone else ""
            if place and uid in ledger.led_to(node):
                self._move(entry.pod, place)
                return

    def _members(self, task: Task, node: str) -> Steps[list[str]]:
        """The UIDs of those of the task for which room is booked on the node."""
        found: list[str] = []

        def add(entry: Entry) -> None:
            if gives_way(entry.pod, task):
                found.append(entry.pod.uid)

        yield from each(tuple(self._caches.ledger.led_to(node).values()), add, _PASSED_IN_A_STEP)
        return found

    def _place(self, pod: Pod, task: Task, node: str, left: str) -> Steps[str]:
        """The place that was left if it takes the pod now, else the one that was left by who has come there since, and so on."""
        ledger = self._caches.ledger
        places, seen = deque([left]), {node}
        while places:
            place = places.popleft()
            if place in seen:
                continue
            seen.add(place)
            yield
            if (yield from takes_now(ledger, pod, place, self._admitted)):
                return place
            places.extend(self._left.get((task, place), ()))
        return ""
