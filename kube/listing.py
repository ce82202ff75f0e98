"""What lists and watches are asked for, and what they answer."""

from dataclasses import dataclass
from typing import Any

from kube import errors
from kube.bigjson import JsonError
from kube.resources import ALL, Scope


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. All pages of one list show the state at the same `resource_version`."""

    items: list[dict[str, Any]]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch: type ADDED, MODIFIED, DELETED or BOOKMARK, and the object as it was sent."""

    type: str
    object: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Watching:
    """What a watch is to show: the changes after a version, of the objects that are meant; and its times in seconds.

    The server is asked to end it after `timeout_s`. It ends as well when nothing at all arrives for `inactivity_s`, and
    has failed without an answer within `answer_s`.
    """

    resource_version: str
    timeout_s: float
    inactivity_s: float
    answer_s: float = 10.0
    scope: Scope = ALL


def event_of(raw: object) -> WatchEvent:
    """The event that a line of a watch is. Raises the error that an ERROR event carries, and JsonError for what is no event."""
    kind, content = (raw.get("type"), raw.get("object")) if isinstance(raw, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(content, dict):
        raise JsonError("not a watch event")
    if kind == "ERROR":
        raise errors.from_status(content)
    return WatchEvent(kind, content)
