"""The leader's other loop: Queue status shows what each queue uses, written on change only."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from controller.announcements import Announcements
from controller.caches import Caches
from controller.metrics import Metrics
from core.display.notices import queue_notices
from core.display.status import published, status_patch
from core.names import FIELD_MANAGER
from core.objects import Queue
from core.queues.account import Account
from core.queues.entry import Entry
from core.steps import Steps, each, in_order
from kube import errors
from kube.calls import Patcher
from kube.client import PatchType
from kube.lease import Term
from kube.resources import QUEUES
from kube.workqueue import IDLE, WorkQueue

_LOG = logging.getLogger(__name__)

SETTLE_S = 0.2
"""Changes of one burst are published together."""

SIDE_BY_SIDE = 8
"""Status writes at a time, and as many again of queues whose last write failed; more while slow ones are found out."""

_PACE_S = 1.0
"""A queue is written so often at most, the first time after a while at once. The Volcano scheduler writes each at this pace."""

_REPEAT_FIRST_S = 2.0
_REPEAT_MAX_S = 300.0
_TIMEOUT_S = 4.0

_ADDED_IN_A_STEP = 100
"""Queues that begin to wait for being looked at in about half a millisecond."""

_TOLD_IN_A_STEP = 64
"""Pods of which it is found out in about half a millisecond whether something is to be said."""

_TICK_S = 0.01
"""Added to every wait, so that two clocks that differ by a hair do not make a loop."""


@dataclass(slots=True)
class _Written:
    """What was last written for a queue, or tried to be, when, and how long to wait before writing the same again."""

    wanted: dict[str, str]
    at: float
    repeat_s: float
    blocked_until: float
    """Nothing at all is written before that: the write failed."""

    @property
    def paced_until(self) -> float:
        """Nothing is looked at before that, whether anything is to be written or not."""
        return self.at + _PACE_S

    def due(self, wanted: dict[str, str]) -> float:
        """From when on this may be written."""
        return max(self.blocked_until, self.at + self.repeat_s if wanted == self.wanted else self.paced_until)


class Publisher:
    """Keeps `status.allocated` of every queue right while it leads.

    Each queue is looked at and written by itself, several side by side: one whose write hangs or fails delays no other.
    What a change costs follows the queues that it touched.
    """

    def __init__(
        self, client: Patcher, caches: Caches, announcements: Announcements, metrics: Metrics
    ) -> None:
        self._client = client
        self._caches = caches
        self._wanted = asyncio.Event()
        """Set when there are figures to publish."""
        caches.ledger.wakeups.follow_figures(self._wanted.set)
        self._announcements = announcements
        self._metrics = metrics
        self._queue: WorkQueue[str] = WorkQueue(self._publish, slots=SIDE_BY_SIDE)
        self._leads: Callable[[], bool] = bool
        self._written: dict[str, _Written] = {}
        self._resting: OrderedDict[str, float] = OrderedDict()
        """Until when nobody is told again that he counts as none, by queue and in the order of that time."""
        caches.queues.subscribe(self._queue_changed)

    def _queue_changed(self, old: Queue | None, new: Queue | None) -> None:
        """Forgets a queue that is gone: one of its name that is made anew is another one."""
        if old is not None and new is None:
            self._written.pop(old.name, None)

    async def run(self, term: Term) -> None:
        """Publishes until cancelled. At the start every queue is looked at once."""
        self._leads = term.valid
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._queue.run(), name="queue status")
                await self._follow()
        finally:
            self._queue.clear()
            self._written.clear()
            self._resting.clear()

    async def _follow(self) -> None:
        """Has every queue looked at once, and then what was touched, at most once in SETTLE_S."""
        ledger, turns = self._caches.ledger, self._caches.turns
        # Those are among them; and who comes on the list of them next is told of.
        ledger.wakeups.take_figures()
        names = [*ledger.queues, *ledger.accounts]
        while True:
            await turns.finish(self._added(names))
            await asyncio.sleep(SETTLE_S)
            await self._wanted.wait()
            self._wanted.clear()
            names = list(ledger.wakeups.take_figures())

    def _added(self, names: list[str]) -> Steps[None]:
        """Has these queues looked at, in the order of their names. They are as many as pods where each names another one."""
        names = yield from in_order(names, str, _ADDED_IN_A_STEP)
        yield from each(names, self._look_at, _ADDED_IN_A_STEP)

    def _look_at(self, name: str) -> None:
        """Has a queue looked at as soon as that may be; until then it changes again, as a rule."""
        self._queue.add(name, self._paced_s(name))

    def _paced_s(self, name: str) -> float:
        """For how long a queue is not looked at yet, in seconds."""
        written = self._written.get(name)
        left_s = 0.0 if written is None else written.paced_until - asyncio.get_running_loop().time()
        return left_s + _TICK_S if left_s > 0 else 0.0

    async def _publish(self, name: str) -> float | None:
        """Looks at one queue, and writes its status where that is wrong. See kube.workqueue.Work."""
        ledger, written, now = self._caches.ledger, self._written.get(name), asyncio.get_running_loop().time()
        if (paced_s := self._paced_s(name)) > 0:
            # It changed while it was written.
            self._queue.add(name, paced_s)
            return IDLE
        account = ledger.accounts.get(name)
        if account is not None and account.uncounted_pods:
            await self._tell_uncounted(name, account, now)
        queue = ledger.queues.get(name)
        if queue is None:
            return IDLE
        self._announcements.about_queue(queue, queue_notices(ledger, name))
        wanted = {**published(ledger.sums(name).allocated), **ledger.devices.published(queue)}
        patch = status_patch(queue, wanted)
        if patch is None:
            return IDLE
        if written is not None and now < (due := written.due(wanted)):
            self._queue.add(name, due - now + _TICK_S)
            return IDLE
        if not self._leads():
            return _REPEAT_FIRST_S
        return await self._write(queue, wanted, patch)

    async def _tell_uncounted(self, name: str, account: Account, now: float) -> None:
        """They may be many: those of a queue are gone through once in _PACE_S, however often it changes."""
        resting = self._resting
        while resting and resting[first := next(iter(resting))] <= now:
            del resting[first]
        if name in resting:
            self._queue.add(name, resting[name] - now + _TICK_S)
            return
        resting[name] = now + _PACE_S
        await self._caches.turns.finish(self._told_uncounted(account))

    def _told_uncounted(self, account: Account) -> Steps[None]:
        """Says on each pod whose cards count as none that it is so, if that has not been said yet."""

        def tell(entry: Entry) -> None:
            if account.uncounted_pods.get(entry.pod.uid) is entry:
                self._announcements.uncounted(entry)

        yield from each(tuple(account.uncounted_pods.values()), tell, _TOLD_IN_A_STEP)

    async def _write(self, queue: Queue, wanted: dict[str, str], patch: dict[str, object]) -> float | None:
        """Writes once, and has the queue looked at again when the same may be written again."""
        written = self._written[queue.name] = self._attempt(queue.name, wanted)
        try:
            await self._client.patch(
                QUEUES,
                queue.name,
                patch,
                patch_type=PatchType.MERGE,
                subresource="status",
                field_manager=FIELD_MANAGER,
                timeout_s=_TIMEOUT_S,
            )
        except errors.NotFound:
            _LOG.debug("queue is gone", extra={"queue": queue.name})
        except errors.KubeError as error:
            self._metrics.status_writes.labels("failed").inc()
            _LOG.warning(
                "queue status not written", extra={"queue": queue.name, "error": errors.describe(error)}
            )
            wait_s = max(written.repeat_s, errors.retry_after_s(error))
            written.blocked_until = asyncio.get_running_loop().time() + wait_s
            return wait_s + _TICK_S
        else:
            self._metrics.status_writes.labels("done").inc()
        self._queue.add(queue.name, written.repeat_s + _TICK_S)
        return None

    def _attempt(self, name: str, wanted: dict[str, str]) -> _Written:
        """A write that begins now. What was written already and has gone again waits longer each time.

        Somebody who replaces the whole status once a second without us (the Volcano scheduler while our webhook is
        away) would otherwise be fought at that pace.
        """
        now, before, repeat_s = asyncio.get_running_loop().time(), self._written.get(name), _REPEAT_FIRST_S
        # The longer a written status has stood, the less it counts as a fight.
        if before is not None and before.wanted == wanted and now - before.at < 4 * before.repeat_s:
            repeat_s = min(_REPEAT_MAX_S, 2 * before.repeat_s)
        return _Written(wanted, now, repeat_s, blocked_until=now)
