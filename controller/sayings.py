"""What was said about each object on each topic, what is about to be said, and that nothing is said twice."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from core.display.substance import substance
from core.sharded import Sharded
from kube.events import EventType, Past, Reference
from kube.workqueue import WorkQueue

LIFE_S = 3600.0
"""For how long API servers keep events: what was said before that, nobody can see any more."""

LIMIT = 2
"""Events about one object on all limited topics within that time."""

LONGEST_S = 30.0
"""What changes all the time has no moment in which it stands still; it is said after this time."""

_TICK_S = 0.001
"""What is due within this time is due: a timer may go off a little early."""

_TAKEN_BACK_AT_ONCE = 500
"""About so many objects words are taken back before others come to their turn."""

_SLOTS = 16
"""Sayings that come due together and are handed on in one turn of the loop."""


class Recorder(Protocol):
    """The calls of kube.events.EventRecorder that are made."""

    def emit(
        self,
        regarding: Reference,
        event_type: EventType,
        reason: str,
        note: str,
        action: str,
        topic: str | None = None,
    ) -> None:
        """See EventRecorder.emit."""

    def retract(self, identity: str, topic: str) -> bool:
        """See EventRecorder.retract."""


History = Callable[[Callable[[Past], None]], Awaitable[None]]
"""EventRecorder.recall."""


@dataclass(frozen=True, slots=True)
class Saying:
    """The words of an event, and the part of them that makes it worth saying."""

    regarding: Reference
    reason: str
    note: str
    action: str
    news: str = ""
    pressing: bool = False
    """Said at once, however much was said before; it counts all the same."""

    @property
    def gist(self) -> str:
        """What is new in it; without `news` the substance of the words."""
        return self.news or self.substance

    @property
    def substance(self) -> str:
        """As much as can be told of an event that another process wrote, too."""
        return substance(self.reason, self.note)


@dataclass(slots=True)
class _Topic:
    """The gist of what was said last, the substance of what others have said, and what waits to be said."""

    said: str = ""
    heard: str = ""
    heard_at: float = 0.0
    waiting: Saying | None = None
    since: float = 0.0
    due: float = 0.0
    queued: float = 0.0


@dataclass(slots=True)
class _About:
    topics: dict[str, _Topic] = field(default_factory=dict)
    spent: list[float] = field(default_factory=list)
    """When something was said on a limited topic, as far as it still counts."""


_Key = tuple[str, str]


class Sayings:
    """Hands on to a recorder what is news.

    What is said with a moment waits until it has stood for so long, and is dropped when it is taken back before that.
    On the `limited` topics together an object gets at most LIMIT events within LIFE_S; what is new by then is said
    later, if it still is. With a history nothing is said before that has been read, and only while `run` runs.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        limited: frozenset[str] = frozenset(),
        history: History | None = None,
        topic_of: Callable[[Past], str] = lambda _: "",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._recorder = recorder
        self._limited = limited
        self._history = history
        self._topic_of = topic_of
        self._now = now
        self._open = history is None
        self._heard_from, self._wall_at = 0.0, 0.0
        """When it was begun to listen, by the event loop and by the wall clock."""
        self._about = Sharded[_About]()
        self._queue = WorkQueue(self._work, slots=_SLOTS, lane=lambda _: None)

    def __len__(self) -> int:
        """How many objects are remembered."""
        return len(self._about)

    def say(self, topic: str, saying: Saying, *, moment_s: float = 0.0, still: bool = False) -> None:
        """Has it said once it has stood for `moment_s`, unless it is what was said last.

        The newest words are said. It stands as long as their gist is the same; with `still`, as long as they are.
        """
        key, now = (saying.regarding.identity, topic), asyncio.get_running_loop().time()
        state = self._about.opened(key[0], _About).topics.setdefault(topic, _Topic())
        waiting = state.waiting
        if waiting is not None and (waiting.reason, waiting.note) == (saying.reason, saying.note):
            return
        if self._open and self._known(state, saying):
            self._unsay(key, state)
            return
        if waiting is None:
            state.since = now
        if waiting is None or still or waiting.gist != saying.gist:
            state.due = max(now, min(now + moment_s, state.since + LONGEST_S))
        state.waiting = saying
        due = max(state.due, self._free_at(key, saying))
        if self._open and due <= now:
            self._tell(key, state, saying, now)
        elif due < state.queued or key not in self._queue:
            state.queued = due
            self._queue.add(key, due - now)

    def unsay(self, identity: str, topic: str) -> None:
        """Takes back what has not been said yet: it is over."""
        state = self._topic(identity, topic)
        if state is not None:
            self._unsay((identity, topic), state)
            if self._recorder.retract(identity, topic):
                state.said = ""

    def again(self, identity: str, topic: str) -> None:
        """Takes back what has not been said yet, and takes the same for news when it is said the next time."""
        self.unsay(identity, topic)
        state = self._topic(identity, topic)
        if state is not None:
            state.said = state.heard = ""

    def forget(self, identity: str, *topics: str) -> None:
        """Takes back what has not been said yet on these topics, and forgets them; without others the object too."""
        for topic in topics:
            self.unsay(identity, topic)
        about = self._about.get(identity)
        if about is not None:
            for topic in topics:
                about.topics.pop(topic, None)
            if not about.topics:
                del self._about[identity]

    def was_told(self, identity: str, topic: str) -> bool:
        """Whether anything was said about the object on the topic, by whomever."""
        state = self._topic(identity, topic)
        return state is not None and bool(state.said or state.heard)

    def topics(self, identity: str) -> list[str]:
        """The topics on which something was said, or is about to be."""
        about = self._about.get(identity)
        return [] if about is None else list(about.topics)

    def gone(self, identity: str) -> None:
        """Takes back what has not been said about an object yet, and forgets it."""
        self.forget(identity, *self.topics(identity))

    async def run(self) -> None:
        """Reads what was said before, then says what is due, until cancelled.

        With a history, another process goes on from there: then what has not been written yet is left to that.
        """
        try:
            if self._history is not None:
                for about in self._about.values():
                    about.spent = []
                # The same event may be heard twice, and then is one of the same time.
                self._heard_from = asyncio.get_running_loop().time()
                self._wall_at = self._now().timestamp()
                await self._history(self._hear)
                self._open = True
            await self._queue.run()
        finally:
            if self._history is not None:
                self._open = False
                for number, identity in enumerate(tuple(self._about), 1):
                    for topic in self.topics(identity):
                        self.unsay(identity, topic)
                    if number % _TAKEN_BACK_AT_ONCE == 0:
                        await asyncio.sleep(0)

    def _topic(self, identity: str, topic: str) -> _Topic | None:
        about = self._about.get(identity)
        return about.topics.get(topic) if about is not None else None

    def _hear(self, past: Past) -> None:
        """Takes what was stored for said; of several events the latest."""
        topic = self._topic_of(past)
        if not topic:
            return
        about = self._about.opened(past.regarding.identity, _About)
        state = about.topics.setdefault(topic, _Topic())
        at = self._heard_from - max(0.0, self._wall_at - past.at.timestamp())
        if not state.heard or at >= state.heard_at:
            state.heard, state.heard_at = _mark(substance(past.words.reason, past.words.note)), at
        if topic in self._limited:
            about.spent = sorted({*about.spent, at})[-LIMIT:]

    def _known(self, state: _Topic, saying: Saying) -> bool:
        """Whether that is what was said last, by whomever."""
        if state.heard:
            # What a leader after us has said counts more than what we have; its news is as new to it as its words are.
            state.said = saying.gist if state.heard == _mark(saying.substance) else state.heard
            state.heard = ""
        return state.said == saying.gist

    def _unsay(self, key: _Key, state: _Topic) -> None:
        state.waiting = None
        self._queue.discard(key)

    async def _work(self, key: _Key) -> float | None:
        state = self._topic(*key)
        saying = state.waiting if state is not None else None
        if state is None or saying is None:
            return None
        now = asyncio.get_running_loop().time()
        if self._known(state, saying):
            state.waiting = None
        elif (due := max(state.due, self._free_at(key, saying))) > now + _TICK_S:
            state.queued = due
            self._queue.add(key, due - now)
        else:
            self._tell(key, state, saying, now)
        return None

    def _free_at(self, key: _Key, saying: Saying) -> float:
        """When the object may have one more event on the topic."""
        spent = self._about[key[0]].spent
        limited = key[1] in self._limited and not saying.pressing
        return spent[0] + LIFE_S if limited and len(spent) == LIMIT else 0.0

    def _tell(self, key: _Key, state: _Topic, saying: Saying, now: float) -> None:
        self._recorder.emit(
            saying.regarding, "Warning", saying.reason, saying.note, saying.action, topic=key[1]
        )
        self._unsay(key, state)
        state.said = saying.gist
        if key[1] in self._limited:
            about = self._about[key[0]]
            about.spent = [*about.spent, now][-LIMIT:]


def _mark(text: str) -> str:
    """Stands for a text that others have written, and may have made long: memory is short for thousands of these."""
    return f"#{hash(text):x}"
