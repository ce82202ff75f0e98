"""Devices that the claims of pods ask for, and what queues allow of them: by the document of claims.

A claim that several pods share counts once in a queue, and once in each above it; one that a template is made into counts by
the template.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tests.chaos.checker import terms
from tests.chaos.checker.history import World
from tests.chaos.checker.log import Object

PREFIX: Final = "deviceclass/"

Claims = dict[str, Counter[str]]
"""What each claim asks for, by a name that no other has."""


def limits(queue: Object) -> dict[str, int]:
    """How many devices of a class a queue allows."""
    text = ((queue.get("metadata") or {}).get("annotations") or {}).get(terms.DEVICE_QUOTA)
    listed = json.loads(text)["capability"] if text else {}
    return {PREFIX + name: int(limit["count"]) for name, limit in listed.items() if "count" in limit}


def claims(pod: Object, world: World) -> Claims:
    """What the claims of a pod ask for; of claims and templates that were never seen nothing is known."""
    namespace, found = pod["metadata"].get("namespace"), Claims()
    for entry in pod["spec"].get("resourceClaims") or ():
        kind, name = "resourceclaims", entry.get("resourceClaimName")
        key = f"{namespace}/{name}"
        if not name:
            kind, name = "resourceclaimtemplates", entry.get("resourceClaimTemplateName")
            key = f"{pod['metadata']['uid']}/{entry['name']}"
        for thing in world.all(kind):
            if (thing["metadata"]["name"], thing["metadata"].get("namespace")) == (name, namespace):
                spec = thing["spec"]
                found[key] = _asked(spec["spec"] if kind == "resourceclaimtemplates" else spec)
    return found


def _asked(spec: Mapping[str, Any]) -> Counter[str]:
    asked: Counter[str] = Counter()
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = request["exactly"]
        asked[PREFIX + exactly["deviceClassName"]] += int(exactly.get("count", 1))
    return asked


def together(many: Iterable[Claims]) -> Counter[str]:
    """What all of these ask for, a claim that is shared counted once."""
    distinct: Claims = {}
    for each in many:
        distinct |= each
    total: Counter[str] = Counter()
    for asked in distinct.values():
        total.update(asked)
    return total


def held_twice(world: World) -> Iterator[tuple[Object, Object, str]]:
    """Claims that hold a device which another one, the second of each pair, holds as well."""
    holders: dict[str, Object] = {}
    for claim in world.all("resourceclaims"):
        for device in _held(claim):
            other = holders.setdefault(device, claim)
            if other is not claim:
                yield claim, other, f"holds device {device}, which {other['metadata']['name']} holds as well"


def _held(claim: Object) -> Iterator[str]:
    """The devices that are a claim's alone: access for administration and parts of devices take them from nobody."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        if not result.get("adminAccess") and not result.get("shareID"):
            yield f"{result['driver']}/{result['pool']}/{result['device']}"
