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


def read(log: Path, offset: int = 0) -> list[AuditedRequest]:
    """Return the resource requests recorded from byte `offset` on (take `log.stat().st_size` beforehand).

    A request is there at the latest a moment after its answer, a watch after its end.
    """
    with log.open("rb") as file:
        file.seek(offset)
        # The last line may be half written.
        events = [json.loads(line) for line in file if line.endswith(b"\n")]
    return [_request(event) for event in events if "objectRef" in event]


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
    )
