"""The watch over deleted pods that have given their quota back: who runs on long after its deadline counts again."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from controller.announcements import Announcements
from controller.caches import Caches
from core.index import Index
from core.objects import Node, Pod
from core.plan.overruns import PATIENCE_S, due_in_s, overrun_notice
from kube.workqueue import IDLE, WorkQueue

_TICK_S = 0.01
"""What is due within this time is due: a timer may go off a little early."""

_SIDE_BY_SIDE = 1
"""The work never waits for anything."""


@dataclass(slots=True)
class _Ending:
    """A deleted pod as it was seen last, and when it has to be gone, by this process' own clock."""

    pod: Pod
    due: float


class OverrunWatch:
    """Keeps a timer for each deleted pod that is still there, and none for any other.

    `now` is the wall clock in microseconds since 1970. On a node that is not ready nobody can end a pod, and its quota is not held for that. When such a node comes back its
    kubelet has as much time as if the deadline had passed then. Every replica follows, so that all have the same books;
    what is said waits for the one that leads.
    """

    def __init__(self, caches: Caches, announcements: Announcements, now: Callable[[], int]) -> None:
        self._caches = caches
        self._announcements = announcements
        self._now = now
        self._endings: dict[str, _Ending] = {}
        self._by_node = Index()
        self._queue: WorkQueue[str] = WorkQueue(self._look, slots=_SIDE_BY_SIDE)
        caches.pods.subscribe(self._pod_changed)
        caches.nodes.subscribe(self._node_changed)

    def __len__(self) -> int:
        """How many pods are looked after."""
        return len(self._endings)

    async def run(self) -> None:
        """Looks after pods when they are due, until cancelled."""
        await self._queue.run()

    def tell(self) -> None:
        """Has said once more who counts again: another leader may have begun."""
        for uid in self._caches.ledger.stages.overrun & self._endings.keys():
            self._say(self._endings[uid].pod)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._forget(old.uid)
        if new is None:
            return
        if not self._caches.ledger.stages.may_overrun(new):
            self._forget(new.uid)
            return
        known = self._endings.get(new.uid)
        if known is not None and known.pod.deadline == new.deadline:
            known.pod = new
            return
        # Seen for the first time, or deleted once more with a shorter grace, which never gives it more time.
        delay_s = due_in_s(new, self._now())
        if known is not None:
            delay_s = min(delay_s, known.due - _moment())
        self._by_node.put(new.uid, new.node_name)
        self._look_in(_Ending(new, 0.0), max(0.0, delay_s))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None or _ready(old) == _ready(new):
            return
        for uid in tuple(self._by_node.get(node.name)):
            ending = self._endings[uid]
            if not _ready(new):
                self._count(ending.pod, overrun=False)
            elif ending.due < _moment() + PATIENCE_S:
                self._look_in(ending, PATIENCE_S)

    def _look_in(self, ending: _Ending, delay_s: float) -> None:
        ending.due = _moment() + delay_s
        self._endings[ending.pod.uid] = ending
        self._queue.add(ending.pod.uid, delay_s)

    async def _look(self, uid: str) -> float | None:
        """See kube.workqueue.Work."""
        ending = self._endings.get(uid)
        if ending is not None and (left_s := ending.due - _moment()) > _TICK_S:
            self._queue.add(uid, left_s)
        elif ending is not None and _ready(self._caches.nodes.get(ending.pod.node_name)):
            self._count(ending.pod, overrun=True)
        return IDLE

    def _count(self, pod: Pod, *, overrun: bool) -> None:
        if not self._caches.count_overrun(pod, overrun=overrun):
            return
        if overrun:
            self._say(pod)
        else:
            self._announcements.not_overrun(pod)

    def _say(self, pod: Pod) -> None:
        """Whoever asks for nothing of ours is counted, for its CPU is its queue's, but has never heard of us."""
        if pod.asks:
            queue = self._caches.ledger.attribution(pod).queue
            self._announcements.overrun(pod, overrun_notice(pod, queue))

    def _forget(self, uid: str) -> None:
        if self._endings.pop(uid, None) is not None:
            self._queue.discard(uid)
            self._by_node.put(uid)
            # It has ended or is gone, so it is in no book any more.
            self._caches.ledger.stages.count_no_more(uid)


def _ready(node: Node | None) -> bool:
    return node is not None and node.ready


def _moment() -> float:
    return asyncio.get_running_loop().time()
