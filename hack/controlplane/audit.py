"""Reads the API server's audit log: who asked for what, and what was the answer."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """One answered request; `resource` carries its subresource (`pods/binding`)."""

    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    user_agent: str
    group: str = ""
    forbidden: bool = False
    """By the roles of the user; what admission refuses has the same code."""
    received: str = ""
    """When it came in, by the API server's clock, as ISO 8601 has it."""


def read(log: Path, offset: int = 0, *, of: str = "") -> list[AuditedRequest]:
    """Return the resource requests recorded from byte `offset` on (take `log.stat().st_size` beforehand).

    With `of` those whose user's name begins so. A request is there at the latest a moment after its answer, a watch after its end.
    """
    with log.open("rb") as file:
        if offset:
            # Where it was being written to, its size was that of half a line; that one was begun before.
            file.seek(offset - 1)
            file.readline()
        # The last line may be half written.
        lines = (line for line in file if line.endswith(b"\n") and of.encode() in line)
        events = [event for event in map(json.loads, lines) if "objectRef" in event]
    return [_request(event) for event in events if event["user"]["username"].startswith(of)]


def _request(event: dict[str, Any]) -> AuditedRequest:
    target: dict[str, str] = event["objectRef"]
    resource = target.get("resource", "")
    subresource = target.get("subresource")
    return AuditedRequest(
        user=event["user"]["username"],
        verb=event["verb"],
        resource=f"{resource}/{subresource}" if subresource else resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        user_agent=event.get("userAgent", ""),
        group=target.get("apiGroup", ""),
        forbidden=event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid",
        received=event.get("requestReceivedTimestamp", ""),
    )
