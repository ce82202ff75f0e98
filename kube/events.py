"""Events about objects, written in the background and never in the way of the work.

Of each object and topic the newest words wait until they are written: nothing is lost because the API server is away or
because much is said at once, and what waits is bounded by the objects there are. Repeats of an event are counted on the
first one's `series`, and no object gets more than a burst of them, however fast something flaps.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from kube import errors
from kube.backoff import Backoff, Pauses
from kube.event_store import EventClient, EventStore, EventType, Past, Reference, Words, cut
from kube.metrics import DEFAULT, Metrics
from kube.workqueue import WorkQueue

__all__ = ["EventRecorder", "EventType", "Past", "Reference"]

_LOG = logging.getLogger(__name__)

SLOTS = 8
"""Events that are written side by side; those that failed before have as many for themselves."""

PER_NAMESPACE = 6
"""Of these in one namespace: one where every write hangs leaves some to the others from the first moment."""

RECALL_S = 10.0
"""For how long a process looks for what was said before."""

_PASSING = (
    errors.ConnectionFailed,
    errors.ServerError,
    errors.Throttled,
    errors.Unauthorized,
    errors.Conflict,
)
"""What may go better later. Anything else is a refusal, as that of a namespace which is going away."""

_NAME_LIMIT = 200
_BURST = 25
_REFILL_S = 300.0
_REPEAT_S = 600.0
_TOPICS = 25
_REMEMBERED = 4096


@dataclass(slots=True)
class _News:
    """What is to be written: the words, how often they were said, when last, and not to be written before `due`."""

    words: Words
    name: str
    """Of the event, the same in each attempt: what was stored without our knowing is not stored twice."""
    at: datetime
    due: float
    backoff: Backoff
    count: int = 1
    sent: bool = False
    """Whether it may be stored already."""


@dataclass(slots=True)
class _Said:
    """What was written: the words, in which event, how often they were said, and when that was written."""

    words: Words
    name: str
    count: int
    written: float


@dataclass(slots=True)
class _Object:
    """What is to be said about an object and what was, by topic, and how many more events it may have."""

    regarding: Reference
    since: float
    news: dict[str, _News] = field(default_factory=dict)
    said: dict[str, _Said] = field(default_factory=dict)
    tokens: float = _BURST
    gone: bool = False


class _Key(NamedTuple):
    namespace: str
    identity: str
    topic: str


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
        self._objects: dict[str, _Object] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()
        """The objects about which nothing waits, the one least recently written about first."""
        self._pauses = Pauses(self._rng, patience=PER_NAMESPACE - 1)
        self._recalls = 0
        self._first = WorkQueue(
            self._attempt, slots=SLOTS, per_lane=PER_NAMESPACE, lane=lambda key: key.namespace
        )
        self._again = WorkQueue(self._work, slots=SLOTS // 2)
        """What failed: with one object the store may hang, and nobody has to wait behind that."""

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
        words = Words(event_type, reason, cut(note), action)
        key = _Key(regarding.event_namespace, regarding.identity, topic or _own_topic(words))
        about, now = self._object(regarding), _loop_time()
        waiting, said = about.news.get(key.topic), about.said.get(key.topic)
        if said is not None and said.words == words and now - said.written < self._repeat_s:
            said.count += 1
            self._drop(about, key)
        elif waiting is None:
            due = self._take_token(about, now)
            news = _News(words, self._name(regarding), self._now(), due, Backoff(self._rng))
            self._begin(about, key, news, due - now)
        elif waiting.words == words:
            waiting.count += 1
        else:
            name = self._name(regarding)
            about.news[key.topic] = _News(words, name, self._now(), waiting.due, waiting.backoff)

    def retract(self, identity: str, topic: str) -> bool:
        """Takes back what waits to be written on a topic. Returns whether there was any that cannot have been stored."""
        about = self._objects.get(identity)
        news = about.news.get(topic) if about is not None else None
        if about is None or news is None:
            return False
        self._drop(about, _Key(about.regarding.event_namespace, identity, topic))
        return not news.sent

    def gone(self, identity: str) -> None:
        """Forgets an object that does not exist any more; what waits about it, its end perhaps, is tried once."""
        if (about := self._objects.get(identity)) is not None:
            about.gone = True
            self._settle(about)

    async def recall(self, take: Callable[[Past], None]) -> None:
        """Hands `take` each event that was stored under our name before; what is emitted meanwhile waits.

        What cannot be read within RECALL_S, or at all, is left out.
        """
        self._recalls += 1
        read = 0
        try:
            async with asyncio.timeout(RECALL_S):
                async for page in self._store.pages():
                    read += len(page)
                    for past in page:
                        self._remember(past)
                        take(past)
        except (TimeoutError, errors.KubeError) as error:
            words = "not all earlier events could be read, some may be said again"
            _LOG.warning(words, extra={"error": errors.describe(error), "read": read})
        finally:
            self._recalls -= 1
            if not self._recalls:
                self._resume()

    async def run(self) -> None:
        """Writes until cancelled; what waits then stays for a further run."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._first.run(), name="events")
            tasks.create_task(self._again.run(), name="events that failed")

    # -- what waits --------------------------------------------------------------------------------------------

    def _object(self, regarding: Reference) -> _Object:
        about = self._objects.get(regarding.identity)
        if about is None:
            about = self._objects[regarding.identity] = _Object(regarding, _loop_time())
            self._settle(about)
        return about

    def _begin(self, about: _Object, key: _Key, news: _News, delay_s: float) -> None:
        if len(about.news) == _TOPICS:
            self._drop(about, key._replace(topic=next(iter(about.news))))
            self._metrics.events_dropped.labels("full").inc()
        about.news[key.topic] = news
        self._metrics.events_queued.inc()
        self._settle(about)
        if not self._recalls:
            self._put(key, delay_s)

    def _put(self, key: _Key, delay_s: float) -> None:
        """A key is in one of the two only."""
        (self._again if key in self._again else self._first).add(key, max(0.0, delay_s))

    def _drop(self, about: _Object, key: _Key) -> None:
        if about.news.pop(key.topic, None) is not None:
            self._first.discard(key)
            self._again.discard(key)
            self._metrics.events_queued.dec()
            self._settle(about)

    def _settle(self, about: _Object) -> None:
        """Remembers objects about which nothing waits within bounds, and none that is gone."""
        identity = about.regarding.identity
        self._idle.pop(identity, None)
        if about.news:
            return
        if about.gone:
            self._objects.pop(identity, None)
            return
        self._idle[identity] = None
        if len(self._idle) > _REMEMBERED:
            del self._objects[self._idle.popitem(last=False)[0]]

    def _take_token(self, about: _Object, now: float) -> float:
        """When the object may have one more event: a burst of 25 at once, and one more each five minutes."""
        about.tokens = min(float(_BURST), about.tokens + (now - about.since) / _REFILL_S)
        about.since = now
        about.tokens = max(about.tokens - 1.0, -float(_TOPICS))
        return now + max(0.0, -about.tokens) * _REFILL_S

    def _remember(self, past: Past) -> None:
        """Takes what another process has written, or this one in an earlier life, for written just now."""
        topic = _own_topic(past.words)
        about = self._object(past.regarding)
        about.said.setdefault(topic, _Said(past.words, past.name, past.count, _loop_time()))
        self._drop(about, _Key(past.regarding.event_namespace, past.regarding.identity, topic))

    def _resume(self) -> None:
        now = _loop_time()
        for identity, about in self._objects.items():
            for topic, news in about.news.items():
                key = _Key(about.regarding.event_namespace, identity, topic)
                if key not in self._first and key not in self._again:
                    self._put(key, news.due - now)

    # -- writing -----------------------------------------------------------------------------------------------

    async def _attempt(self, key: _Key) -> float | None:
        """The first attempt on what there is to say, unless nothing is tried in the namespace now."""
        if (pause_s := self._pauses.left_s(key.namespace)) > 0:
            return pause_s
        again_s = await self._work(key)
        if again_s is not None:
            self._again.add(key, again_s)
        return None

    async def _work(self, key: _Key) -> float | None:
        about = self._objects.get(key.identity)
        news = about.news.get(key.topic) if about is not None else None
        if about is None or news is None:
            return None
        if (pause_s := self._pauses.left_s(key.namespace)) > 0:
            return pause_s
        news.sent = True
        try:
            said = await self._write(about, news, about.said.get(key.topic))
        except _PASSING as error:
            return self._failed(about, key, news, error)
        except errors.KubeError as error:
            self._given_up(about, key, news, error)
            return None
        self._pauses.succeeded(key.namespace)
        about.said[key.topic] = said
        self._done(about, key, news)
        return None

    async def _write(self, about: _Object, news: _News, said: _Said | None) -> _Said:
        if said is not None and said.words == news.words:
            count = said.count + news.count
            try:
                await self._store.count_up(said.name, about.regarding, count, news.at)
            except errors.NotFound:
                _LOG.debug("event has expired, another one is written", extra={"event": said.name})
            else:
                self._metrics.events_written.labels("series").inc()
                return _Said(news.words, said.name, count, _loop_time())
        await self._store.create(news.name, about.regarding, news.words, news.count, news.at)
        self._metrics.events_written.labels("create").inc()
        return _Said(news.words, news.name, news.count, _loop_time())

    def _done(self, about: _Object, key: _Key, news: _News) -> None:
        if about.news.get(key.topic) is news:
            self._drop(about, key)
        elif key.topic in about.news:
            self._put(key, 0.0)  # other words have come since

    def _failed(self, about: _Object, key: _Key, news: _News, error: errors.KubeError) -> float | None:
        """What cannot be written now is written later, as long as the object exists."""
        if key.topic not in about.news:
            return None
        if about.gone:
            self._given_up(about, key, news, error)
            return None
        news.sent = isinstance(error, errors.ConnectionFailed)
        self._first.discard(key)  # should it have been begun anew meanwhile
        due_s = about.news[key.topic].due - _loop_time()
        return max(self._pauses.failed(key.namespace, key, error), news.backoff.next_delay(), due_s)

    def _given_up(self, about: _Object, key: _Key, news: _News, error: errors.KubeError) -> None:
        self._metrics.events_dropped.labels("failed").inc()
        extra = {"reason": news.words.reason, "kind": about.regarding.kind, "error": errors.describe(error)}
        _LOG.warning("event not written", extra=extra)
        self._done(about, key, news)

    def _name(self, regarding: Reference) -> str:
        """As client-go names them: the object's name, and something that no other event of it has."""
        return f"{regarding.name[:_NAME_LIMIT].rstrip('.-')}.{self._rng.getrandbits(64):016x}"


def _own_topic(words: Words) -> str:
    return f"{words.reason}: {words.note}"


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
