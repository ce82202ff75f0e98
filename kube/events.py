"""Events about objects, written in the background and never in the way of the work.

Of each object and topic the newest words wait until they are written: nothing is lost because the API server is away or
because much is said at once, and what waits is bounded by the objects there are. Repeats of an event are counted on the
first one's `series`, and no object gets more than a burst of them, however fast something flaps.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from random import Random

from kube import errors, event_store
from kube.backoff import Backoff
from kube.event_store import EventClient, EventStore, EventType, Past, Reference, Words
from kube.event_topics import TOPICS, Key, News, Object, Said
from kube.first_tries import FORBIDDEN_MOST_S, FORBIDDEN_S, FirstTries
from kube.metrics import DEFAULT, Metrics
from kube.workqueue import IDLE, WorkQueue

__all__ = ["EventRecorder", "EventType", "Past", "Reference"]

_LOG = logging.getLogger(__name__)

SLOTS = 8
"""Events that are written side by side; those that failed before have as many for themselves."""

PER_NAMESPACE = 6
"""Of these in one namespace: one where every write hangs leaves some to the others from the first moment."""

_REPEAT_S = 600.0
_RECALLED = 3
"""Events of one object that others have written and that are remembered: anybody may write many under our name."""
_RECALLED_ANEW_S = 60.0
"""For how long a list that fails is tried anew, if it comes no further: what there is to say waits meanwhile."""
_RESUMED_AT_ONCE = 250
_REMEMBERED = 4096


class EventRecorder:
    """Takes events at any time and writes them while `run` runs; only within a running event loop.

    `controller` and `instance` say who reports: a qualified name and this process.
    """

    def __init__(
        self,
        client: EventClient,
        controller: str,
        instance: str,
        *,
        repeat_s: float = _REPEAT_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: Random | None = None,
        metrics: Metrics = DEFAULT,
    ) -> None:
        self._store = EventStore(client, controller, instance)
        self._repeat_s = repeat_s
        self._now = now
        self._rng = rng or Random()  # noqa: S311 - spreads attempts and makes names unique, protects nothing
        self._metrics = metrics
        self._objects: dict[str, Object] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()
        """The objects about which nothing waits, the one least recently written about first."""
        self._left: OrderedDict[str, Object] = OrderedDict()
        """The objects that are gone and about which something waits, the one that went first first."""
        self._gone: OrderedDict[str, None] = OrderedDict()
        """Some thousand objects that are gone: that they were deleted may be seen before it is said of them."""
        self._recalls = 0
        self._unread: dict[Key, None] = {}
        """What was emitted during a recall."""
        self._resuming = WorkQueue[None](self._resume, slots=1)
        self._first = WorkQueue(
            self._attempt, slots=SLOTS, per_lane=PER_NAMESPACE, lane=lambda key: key.namespace
        )
        self._again = WorkQueue(self._repeat, slots=SLOTS // 2)
        """What failed: with one object the store may hang, and nobody has to wait behind that."""
        self._turns: FirstTries[Key] = FirstTries(self._rng, self._first.add, patience=PER_NAMESPACE - 1)

    def emit(
        self,
        regarding: Reference,
        event_type: EventType,
        reason: str,
        note: str,
        action: str,
        topic: str | None = None,
    ) -> None:
        """Has an event written, unless newer words on the topic come first. Never blocks, never raises.

        `reason` and `action` are short CamelCase words; a note of more than NOTE_LIMIT bytes is cut. Without a topic the
        event is one of its own. One that repeats what was written in the last minutes is only counted.
        """
        words = Words(event_type, reason, event_store.cut(note), action)
        about, now = self._object(regarding), _loop_time()
        key = about.key(topic or words.topic)
        name, at = event_store.name_for(regarding, self._rng), self._now()
        waiting, said = about.news.get(key.topic), about.said.get(key.topic)
        if said is not None and said.words == hash(words) and now - said.written < self._repeat_s:
            said.count += 1
            self._drop(about, key)
        elif waiting is None:
            due = about.take_token(now)
            self._begin(about, key, News(words, name, at, due, Backoff(self._rng)), due - now)
        elif waiting.words == words:
            waiting.count += 1
        else:
            about.news[key.topic] = replace(waiting, words=words, name=name, at=at, count=1, sent=False)

    def retract(self, identity: str, topic: str) -> bool:
        """Takes back what waits to be written on a topic. Returns whether there was any that cannot have been stored."""
        about = self._objects.get(identity)
        if about is None or (news := about.news.get(topic)) is None:
            return False
        self._drop(about, about.key(topic))
        return not news.sent

    def gone(self, identity: str) -> None:
        """Forgets an object that does not exist any more; what waits about the last of these, as their end, is tried once."""
        self._gone[identity] = None
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)
        if (about := self._objects.get(identity)) is not None:
            about.gone = True
            self._settle(about)

    async def recall(self, take: Callable[[Past], None]) -> None:
        """Hands `take` each event that was stored under our name before, some of them twice; what is emitted meanwhile waits.

        It takes as long as the API server goes on answering. A list that fails is begun anew; what it does not tell even so is
        left out.
        """
        self._recalls += 1
        try:
            await self._read_all(take)
        finally:
            self._recalls -= 1
            if not self._recalls:
                self._resuming.add(None)

    async def _read_all(self, take: Callable[[Past], None]) -> None:
        """Begins anew as long as it comes further than before, and for a minute when it does not."""
        until, backoff = _loop_time() + event_store.RECALL_S, Backoff(self._rng)
        most, since = -1, 0.0
        while True:
            read = 0
            try:
                async for some in self._store.pages(until):
                    read += len(some)
                    for past in some:
                        self._remember(past)
                        take(past)
            except errors.KubeError as error:
                now = _loop_time()
                if read > most:
                    most, since = read, now
                wait_s = max(backoff.next_delay(), errors.retry_after_s(error))
                said = {"error": errors.describe(error), "read": read}
                if not event_store.may_be_read(error) or now + wait_s > min(until, since + _RECALLED_ANEW_S):
                    _LOG.warning("not all earlier events could be read, some may be said again", extra=said)
                    return
                _LOG.info("earlier events are read anew", extra=said)
                await asyncio.sleep(wait_s)
            else:
                return

    async def run(self) -> None:
        """Writes until cancelled; what waits then stays for a further run."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._first.run(), name="events")
            tasks.create_task(self._again.run(), name="events that failed")
            tasks.create_task(self._turns.run(), name="events in line")
            tasks.create_task(self._resuming.run(), name="events that waited for earlier ones")

    # -- what waits --------------------------------------------------------------------------------------------

    def _object(self, regarding: Reference) -> Object:
        about = self._objects.get(regarding.identity)
        if about is None or (about.regarding != regarding and not about.news):
            about = self._objects[regarding.identity] = Object(regarding, _loop_time())
            about.gone = regarding.identity in self._gone
        return about

    def _begin(self, about: Object, key: Key, news: News, delay_s: float) -> None:
        if len(about.news) == TOPICS:
            self._drop(about, about.key(next(iter(about.news))), "full")
        about.news[key.topic] = news
        self._metrics.events_queued.inc()
        self._settle(about)
        if self._recalls:
            self._unread[key] = None
        else:
            self._put(key, delay_s)

    def _put(self, key: Key, delay_s: float) -> None:
        """A key is in one place only."""
        if not self._turns.stands_in_line(key.namespace, key):
            (self._again if key in self._again else self._first).add(key, max(0.0, delay_s))

    def _drop(self, about: Object, key: Key, cause: str = "") -> None:
        """Something waits no longer: it is written, or taken back, or lost for a `cause`."""
        if about.news.pop(key.topic, None) is not None:
            self._first.discard(key)
            self._again.discard(key)
            self._turns.left(key.namespace, key)
            self._unread.pop(key, None)
            self._metrics.events_queued.dec()
            if cause:
                self._metrics.events_dropped.labels(cause).inc()
            self._settle(about)

    def _settle(self, about: Object) -> None:
        """Remembers objects about which nothing waits within bounds, and none that is gone."""
        identity = about.regarding.identity
        self._idle.pop(identity, None)
        if about.news:
            if about.gone and identity not in self._left:
                self._left[identity] = about
                self._bound_left()
            return
        self._left.pop(identity, None)
        if about.gone:
            self._objects.pop(identity, None)
            return
        self._idle[identity] = None
        if len(self._idle) > _REMEMBERED:
            del self._objects[self._idle.popitem(last=False)[0]]

    def _bound_left(self) -> None:
        if len(self._left) > _REMEMBERED:
            first = next(iter(self._left.values()))
            for topic in tuple(first.news):
                self._drop(first, first.key(topic), "full")

    def _remember(self, past: Past) -> None:
        """Takes what another process has written, or this one in an earlier life, for written just now."""
        topic = past.words.topic
        about = self._object(past.regarding)
        if about.regarding != past.regarding:
            return  # forged: it is not in that namespace, and what waits is about the one that is there
        if len(about.said) < _RECALLED:
            about.said.setdefault(topic, Said(hash(past.words), past.name, past.count, _loop_time()))
        self._drop(about, about.key(topic))
        self._settle(about)

    async def _resume(self, _: None) -> float | None:
        """Some of what was emitted during a recall; a hundred thousand at once would hold up everything else."""
        for key in list(islice(self._unread, _RESUMED_AT_ONCE)):
            if self._recalls:
                return None
            del self._unread[key]
            self._put(key, self._objects[key.identity].news[key.topic].due - _loop_time())
        return 0.0 if self._unread else None

    # -- writing -----------------------------------------------------------------------------------------------

    async def _attempt(self, key: Key) -> float | None:
        """The first attempt on what there is to say, in its turn where much has failed in the namespace."""
        if self._turns.waits(key.namespace, key):
            return IDLE
        try:
            again_s = await self._work(key)
        finally:
            self._turns.left(key.namespace, key)
        if again_s is not None:
            self._again.add(key, again_s)
        return None

    async def _repeat(self, key: Key) -> float | None:
        pause_s = self._turns.repeats_in_s(key.namespace)
        return pause_s if pause_s > 0 else await self._work(key)

    async def _work(self, key: Key) -> float | None:
        about = self._objects.get(key.identity)
        if about is None or (news := about.news.get(key.topic)) is None:
            return None
        before, news.sent = news.sent, True
        try:
            said = await self._write(about, news, about.said.get(key.topic))
        except errors.KubeError as error:
            news.sent = before or isinstance(error, errors.ConnectionFailed)
            return self._failed(about, key, news, error)
        self._turns.succeeded(key.namespace)
        about.said[key.topic] = said
        self._done(about, key, news)
        return None

    async def _write(self, about: Object, news: News, said: Said | None) -> Said:
        if said is not None and said.words == hash(news.words):
            count = said.count + news.count
            try:
                await self._store.count_up(said.name, about.regarding, count, news.at)
            except errors.NotFound:
                _LOG.debug("event has expired, another one is written", extra={"event": said.name})
            else:
                self._metrics.events_written.labels("series").inc()
                return Said(hash(news.words), said.name, count, _loop_time())
        await self._store.create(news.name, about.regarding, news.words, news.count, news.at)
        self._metrics.events_written.labels("create").inc()
        return Said(hash(news.words), news.name, news.count, _loop_time())

    def _done(self, about: Object, key: Key, news: News) -> None:
        if about.news.get(key.topic) is news:
            self._drop(about, key)
        elif key.topic in about.news:
            self._put(key, 0.0)  # other words have come since

    def _failed(self, about: Object, key: Key, news: News, error: errors.KubeError) -> float | None:
        """What cannot be written now is written later, as long as the object exists."""
        newest = about.news.get(key.topic)
        if newest is None:
            return None
        again_s = self._pause_s(key, newest, error) if event_store.may_pass(error) else None
        if about.gone or again_s is None:
            self._metrics.events_dropped.labels("failed").inc()
            why = {"reason": news.words.reason, "kind": about.regarding.kind, "error": errors.describe(error)}
            _LOG.warning("event not written", extra=why)
            self._done(about, key, news)
            return None
        self._first.discard(key)  # should it have been begun anew meanwhile
        return max(again_s, newest.due - _loop_time())

    def _pause_s(self, key: Key, news: News, error: errors.KubeError) -> float:
        """For how long it is not tried again."""
        if isinstance(error, errors.Forbidden) and not news.forbidden:
            news.forbidden = True
            news.backoff = Backoff(self._rng, base_s=FORBIDDEN_S, cap_s=FORBIDDEN_MOST_S)
            why = {"namespace": key.namespace, "error": errors.describe(error)}
            _LOG.warning("event not written yet", extra=why)
        return max(news.backoff.next_delay(), self._turns.failed(key.namespace, key, error))


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
