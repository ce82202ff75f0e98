"""What is to be said about an object and what was said, by topic."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kube.backoff import Backoff
from kube.event_store import Reference, Words

TOPICS = 25
"""Events that wait about one object."""

_BURST = 25
_REFILL_S = 300.0


class Key(NamedTuple):
    """What waits: on which topic, about which object, whose events are in which namespace."""

    namespace: str
    identity: str
    topic: str


@dataclass(slots=True)
class News:
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
    forbidden: bool = False
    """Whether it ever was: then it is tried at longer intervals."""


@dataclass(slots=True)
class Said:
    """What was written: the words, in which event, how often they were said, and when that was written."""

    words: int
    """Their hash: the texts of thousands are not kept."""
    name: str
    count: int
    written: float


@dataclass(slots=True)
class Object:
    """What is to be said about an object and what was, by topic, and how many more events it may have."""

    regarding: Reference
    since: float
    news: dict[str, News] = field(default_factory=dict)
    said: dict[str, Said] = field(default_factory=dict)
    tokens: float = _BURST
    gone: bool = False

    def key(self, topic: str) -> Key:
        """Of what waits on a topic."""
        return Key(self.regarding.event_namespace, self.regarding.identity, topic)

    def take_token(self, now: float) -> float:
        """When the object may have one more event: a burst of 25 at once, and one more each five minutes."""
        self.tokens = min(float(_BURST), self.tokens + (now - self.since) / _REFILL_S)
        self.since = now
        self.tokens = max(self.tokens - 1.0, -float(TOPICS))
        return now + max(0.0, -self.tokens) * _REFILL_S
