"""Quota as it would be written: a queue with another limit for one key, and the commands that would set it or create the queue."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core import names
from core.answers.words import whole
from core.cards.quota import MAX_CARDS, CardJsonError, parse_quota
from core.dra.amounts import DeviceKey
from core.objects import Queue
from core.objects import raw as read
from core.quantity import render_milli
from core.queues.amounts import CPU_AND_MEMORY
from core.strictjson import StrictJsonError, loads

_MILLI = 1000


def written(key: str, milli: int) -> int:
    """The limit, in thousandths, as it can be written for a key: cards by the whole one, though shares of one may be asked for."""
    divisible = key in names.MGPU_RESOURCES or key in CPU_AND_MEMORY or DeviceKey.parse(key) is not None
    return milli if divisible else whole(milli)


def with_limit(queue: Queue, key: str, milli: int) -> Queue | None:
    """The queue with this limit, in thousandths, rounded up to what can be written; None where it has no place for it."""
    if key in names.MGPU_RESOURCES or key in CPU_AND_MEMORY:
        return replace(queue, capability={**queue.capability, key: milli}, has_capability=True)
    device = DeviceKey.parse(key)
    if device is not None:
        return _with_devices(queue, device, key, milli)
    cards = written(key, milli) // _MILLI
    return None if cards > MAX_CARDS else replace(queue, card_quota=card_quota(queue, key, cards))


def card_quota(queue: Queue, card: str, cards: int) -> str:
    """The text of the card quota with so many of one card; what cannot be read is replaced."""
    try:
        now = dict(parse_quota(queue.card_quota))
    except CardJsonError:
        now = {}
    return json.dumps({**now, card: cards}, ensure_ascii=False)


def command(queue: str, key: str, changed: Queue) -> str:
    """What sets the limit of the changed queue; empty where it stands in more than one place, or in none that is known."""
    if key in names.MGPU_RESOURCES or key in CPU_AND_MEMORY:
        amount = render_milli(changed.capability[key])
        patch = json.dumps({"spec": {"capability": {key: amount}}})
        return f"kubectl patch queue {queue} --type=merge -p {_quoted(patch)}"
    if DeviceKey.parse(key) is not None:
        return ""
    text = _quoted(f"{names.CARD_QUOTA_ANNOTATION}={changed.card_quota}")
    return f"kubectl annotate queue {queue} --overwrite {text}"


def creation(manifest: Mapping[str, Any]) -> str:
    """What creates the object; on one line, so that it can be pasted with blanks before it."""
    # Not `echo`, which in some shells reads the backslashes of JSON.
    return f"printf %s {_quoted(json.dumps(manifest))} | kubectl create -f -"


def _quoted(text: str) -> str:
    """As a shell reads it; `'` cannot stand between quotes of its kind."""
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _with_devices(queue: Queue, device: DeviceKey, key: str, milli: int) -> Queue | None:
    """A device quota may stand in three places, and the least of them counts: it is raised wherever it stands."""
    changed = queue
    spec = _entered(queue.spec_dra, device, milli)
    if spec is not None:
        changed = replace(changed, spec_dra=spec)
    try:
        annotated = _entered(loads(queue.dra_quota), device, milli) if queue.dra_quota else None
    except StrictJsonError:
        annotated = None
    if annotated is not None:
        changed = replace(changed, dra_quota=json.dumps(annotated))
    if key in queue.capability:
        changed = replace(changed, capability={**queue.capability, key: milli})
    return None if changed is queue else changed


def _entered(quota: object, device: DeviceKey, milli: int) -> Mapping[str, Any] | None:
    """The JSON of a device quota with another limit; None where it does not limit this."""
    entry = read.mapping(quota, "capability", device.device_class)
    if device.dimension:
        if device.dimension not in read.mapping(entry, "capacity"):
            return None
        amounts = {**read.mapping(entry, "capacity"), device.dimension: render_milli(milli)}
        changed = {**entry, "capacity": amounts}
    elif "count" in entry:
        changed = {**entry, "count": -(-milli // _MILLI)}
    else:
        return None
    whole = read.mapping(quota)
    return {**whole, "capability": {**read.mapping(whole, "capability"), device.device_class: changed}}
