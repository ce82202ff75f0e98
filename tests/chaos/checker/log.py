"""The entries of an audit log, as far as they were answered."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

Object = Mapping[str, Any]

WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
_ENDS: Final = ("ResponseComplete", "Panic")
_GIVEN_UP: Final = 499


@dataclass(frozen=True, slots=True)
class Entry:
    """One request and its answer. Times are seconds since the epoch; `resource` carries its subresource (`pods/binding`)."""

    number: int
    began: float
    ended: float
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    request: Any = None
    response: Object = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    """What the API server and its admission noted down beside it."""

    @property
    def accepted(self) -> bool:
        """Whether what was asked for was done."""
        return self.code // 100 == 2

    @property
    def uncertain(self) -> bool:
        """Whether a write may have been stored although the answer does not say so."""
        return self.code == 0 or self.code >= _GIVEN_UP

    @property
    def failed_open(self) -> list[str]:
        """The webhooks that could not be asked, and were passed over."""
        return [value for key, value in self.notes.items() if key.startswith("failed-open.")]


def parse(lines: Iterable[str | bytes]) -> list[Entry]:
    """The answered requests about resources, dry runs left out. A last line that is half written is left out as well."""
    found = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the API server was killed while it wrote it
        if (
            event.get("stage") in _ENDS
            and "objectRef" in event
            and "dryRun=" not in event.get("requestURI", "")
        ):
            found.append(_entry(number, event))
    return found


def _entry(number: int, event: Mapping[str, Any]) -> Entry:
    target: Mapping[str, str] = event["objectRef"]
    subresource = target.get("subresource")
    resource = target.get("resource", "")
    return Entry(
        number,
        _seconds(event["requestReceivedTimestamp"]),
        _seconds(event["stageTimestamp"]),
        event["user"]["username"],
        event["verb"],
        f"{resource}/{subresource}" if subresource else resource,
        target.get("namespace", ""),
        target.get("name", ""),
        event.get("responseStatus", {}).get("code", 0),
        event.get("requestObject"),
        event.get("responseObject") or {},
        event.get("annotations") or {},
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
