"""Events as the API server takes and gives them (events.k8s.io/v1)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Literal, NamedTuple, Protocol

from kube import errors
from kube.calls import Patcher
from kube.client import Json, PatchType
from kube.informer import GARBAGE
from kube.listing import Page
from kube.resources import ALL, EVENTS, Resource, Scope
from kube.times import micro_time

NOTE_LIMIT = 1024
"""Bytes of UTF-8 that the API server accepts as an event's note."""

TIMEOUT_S = 5.0
"""For one request."""

PAGE = 500
"""Events that are asked for at once. The fewer pages, the sooner a slow server has told all, and before it forgets their state."""

PAGE_S = 20.0
"""For how long a page is waited for: servers let requests stand in line for 15 s."""

RECALL_S = 900.0
"""For how long all of a list is, however often it is begun anew: a server may forget the state of it, and end it with an error."""

_LATE = f"no page of events within {PAGE_S:.0f} s, or not all within {RECALL_S:.0f} s"

_PAGES = 2000
"""A million events, several for each pod that waits. More than that somebody else has written under our name."""

_PIECE = 20
"""Events that are handed on in one go: less than 5 ms of work, whatever others have made of their notes."""

_LONGEST = 1024
"""Bytes of UTF-8 in all texts of an event without its note together; ours have fewer."""

_NAME_LIMIT = 200

_PASSING = (
    errors.ConnectionFailed,
    errors.ServerError,
    errors.Throttled,
    errors.Unauthorized,
    errors.Forbidden,
    errors.Conflict,
)
"""What may go better later. Anything else is a refusal, as that of a namespace which is gone."""

_PASSING_LIST = (
    errors.ConnectionFailed,
    errors.ServerError,
    errors.Throttled,
    errors.Unauthorized,
    errors.Gone,
)
"""The same of a list. Rights are not waited for: everything that is to be said waits meanwhile."""

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, resource: Resource, name: str, namespace: str = "", uid: str = "") -> "Reference":
        """The reference to an object of a known resource."""
        return cls(resource.api_version, resource.kind, name, namespace, uid)

    @property
    def identity(self) -> str:
        """The UID; where only a name is known, what makes up the name."""
        return self.uid or f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def event_namespace(self) -> str:
        """Events about cluster-scoped objects live in `default`: the API server accepts them nowhere else."""
        return self.namespace or "default"


class Words(NamedTuple):
    """What makes two events about an object the same one."""

    type: str
    reason: str
    note: str
    action: str

    @property
    def topic(self) -> str:
        """Of an event that is one of its own. Not its text: thousands that others have written may be remembered."""
        return f"{hash((self.reason, self.note)):x}"


@dataclass(frozen=True, slots=True)
class Past:
    """An event as it is stored: about what, the words, how often they were said, and when last."""

    name: str
    regarding: Reference
    words: Words
    count: int
    at: datetime


class EventClient(Patcher, Protocol):
    """The calls of kube.client.Client that are made about events."""

    async def create(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> Json:
        """See Client.create."""

    def list(
        self,
        resource: Resource,
        scope: Scope = ALL,
        *,
        limit: int = PAGE,
        timeout_s: float = TIMEOUT_S,
    ) -> AsyncGenerator[Page]:
        """See Client.list."""


class EventStore:
    """Writes and reads the events of one reporter: `controller` is a qualified name, `instance` this process.

    Every method raises what the client raises.
    """

    def __init__(self, client: EventClient, controller: str, instance: str) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance[:128]

    async def create(self, name: str, regarding: Reference, words: Words, count: int, at: datetime) -> None:
        """Stores an event of this name; one that is there already was stored by an attempt whose answer was lost."""
        when = micro_time(at)
        about = {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "name": regarding.name,
            "namespace": regarding.namespace,
            "uid": regarding.uid,
        }
        body: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": regarding.event_namespace},
            "eventTime": when,
            **words._asdict(),
            "regarding": {field: value for field, value in about.items() if value},
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }
        if count > 1:
            body["series"] = {"count": count, "lastObservedTime": when}
        try:
            await self._client.create(EVENTS, body, regarding.event_namespace, timeout_s=TIMEOUT_S)
        except errors.AlreadyExists:
            return

    async def count_up(self, name: str, regarding: Reference, count: int, at: datetime) -> None:
        """Notes on an event that it has happened `count` times by now. Raises NotFound when it has expired."""
        body = {"series": {"count": count, "lastObservedTime": micro_time(at)}}
        await self._client.patch(
            EVENTS,
            name,
            body,
            regarding.event_namespace,
            patch_type=PatchType.MERGE,
            timeout_s=TIMEOUT_S,
        )

    async def pages(self, until: float) -> AsyncGenerator[list[Past]]:
        """The events that were stored under the name of this controller, some at a time, for as long as pages of them come.

        Raises a KubeError where one does not come within PAGE_S, nor all until that time of the event loop, and where there is no
        end of them.
        """
        ours = Scope(field_selector=f"reportingController={self._controller}")
        pages = self._client.list(EVENTS, ours, limit=PAGE, timeout_s=PAGE_S)
        async with aclosing(pages):
            for _ in range(_PAGES):
                page = await _next(pages, until)
                if page is None:
                    return
                for first in range(0, len(page.items), _PIECE):
                    piece = page.items[first : first + _PIECE]
                    yield [past for raw in piece if (past := _readable(raw)) is not None]
                    await asyncio.sleep(0)
        raise errors.KubeError(f"more than {_PAGES} pages of events")


def name_for(regarding: Reference, rng: Random) -> str:
    """As client-go names events: the object's name, and something that no other event of it has."""
    return f"{regarding.name[:_NAME_LIMIT].rstrip('.-')}.{rng.getrandbits(64):016x}"


def may_pass(error: errors.KubeError) -> bool:
    """Whether a write that has failed may go better later.

    A quota on events may have room again, and rights may come back. A namespace that ends never takes an event any more.
    """
    return isinstance(error, _PASSING) and not _ends(error)


def may_be_read(error: errors.KubeError) -> bool:
    """Whether a list that has failed may come to its end when it is begun anew."""
    return isinstance(error, _PASSING_LIST)


def _ends(error: errors.KubeError) -> bool:
    if not isinstance(error, errors.Forbidden):
        return False
    causes = error.details.get("causes")
    return "because it is being terminated" in error.message or any(
        isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating"
        for cause in (causes if isinstance(causes, list) else ())
    )


def cut(note: str) -> str:
    """The note as far as the API server takes it."""
    raw = note.encode("utf-8", errors="replace")
    if len(raw) <= NOTE_LIMIT:
        return raw.decode("utf-8")
    return raw[: NOTE_LIMIT - 3].decode("utf-8", errors="ignore") + "..."


async def _next(pages: AsyncGenerator[Page], until: float) -> Page | None:
    now = asyncio.get_running_loop().time()
    if now >= until:
        raise errors.ConnectionFailed(_LATE)
    try:
        async with asyncio.timeout_at(min(until, now + PAGE_S)):
            return await anext(pages, None)
    except TimeoutError as error:
        raise errors.ConnectionFailed(_LATE) from error


def _readable(raw: Json) -> Past | None:
    """None for an event that says nothing we could have said: anybody may write one under our name, with anything in it."""
    try:
        past = _project(raw)
    except GARBAGE:
        return None
    about = past.regarding
    texts = (past.name, about.api_version, about.kind, about.name, about.namespace, about.uid, *past.words)
    note = _size(past.words.note)
    return past if note <= NOTE_LIMIT and sum(map(_size, texts)) - note <= _LONGEST else None


def _size(text: str) -> int:
    return len(text.encode("utf-8", errors="replace"))


def _project(raw: Json) -> Past:
    """What the API server has validated is read as it is; any of it may be missing."""
    series, about = raw.get("series") or {}, raw.get("regarding") or {}
    last = series.get("lastObservedTime") or raw.get("eventTime") or raw["metadata"]["creationTimestamp"]
    return Past(
        raw["metadata"]["name"],
        Reference(*(_text(about, key) for key in ("apiVersion", "kind", "name", "namespace", "uid"))),
        Words(*(_text(raw, key) for key in Words._fields)),
        int(series.get("count") or 1),
        datetime.fromisoformat(last).astimezone(UTC),
    )


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""
