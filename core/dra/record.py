"""The record of the claims that a pod was let in with, `cardquota.io/claims`: which they were, and what they cost then.

Whoever may write claims may take one out of sight while its pod runs on with the devices; what was counted stands here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core import quantity
from core.dra.amounts import Amounts, DeviceKey, nano, render

_UID: Final = "uid"
"""No name of an amount: those have a slash."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One entry of `spec.resourceClaims` as it was counted; `uid` is empty where its claim was not made yet."""

    uid: str
    amounts: Amounts


def render_counted(entries: Mapping[str, Counted]) -> str:
    """The annotation's text; the keys are the names of the entries."""
    written = {
        name: ({_UID: entry.uid} if entry.uid else {})
        | {key.resource: render(amount) for key, amount in sorted(entry.amounts.items())}
        for name, entry in sorted(entries.items())
    }
    return json.dumps(written, separators=(",", ":"))


def read_counted(text: str) -> Mapping[str, Counted] | None:
    """The entries by name; None for a text that we cannot have written."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(written, dict):
        return None
    entries = {name: _entry(fields) for name, fields in written.items()}
    found = {name: entry for name, entry in entries.items() if entry is not None}
    return found if len(found) == len(entries) else None


def _entry(fields: object) -> Counted | None:
    if not isinstance(fields, dict):
        return None
    uid = fields.get(_UID, "")
    if not isinstance(uid, str):
        return None
    amounts: dict[DeviceKey, int] = {}
    for name, value in fields.items():
        key = None if name == _UID else DeviceKey.parse(name)
        if key is not None and isinstance(value, str):
            try:
                amounts[key] = nano(quantity.parse(value))
            except quantity.QuantityError:
                return None
        elif name != _UID:
            return None
    return Counted(uid, amounts) if all(amount > 0 for amount in amounts.values()) else None
