"""The record of the claims that a pod was let in with, `cardquota.io/claims`: which they were, and what they cost then.

Whoever may write claims may take one out of sight while its pod runs on with the devices; what was counted stands here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from core import quantity
from core.dra.amounts import Amounts, DeviceKey, nano, render

_UID: Final = "uid"
"""No name of an amount: those have a slash."""
_UNASKED: Final = "unasked"


@dataclass(frozen=True, slots=True)
class Counted:
    """One entry of `spec.resourceClaims` as it was counted; `uid` is empty where its claim was not made yet.

    Some are put on record because their pod has them, though no quota was asked for them.
    """

    uid: str
    amounts: Amounts
    unasked: bool = False

    def covers(self, amounts: Amounts) -> bool:
        """Whether these cost no more than what was counted."""
        return all(amount <= self.amounts.get(key, 0) for key, amount in amounts.items())


def unasked(entries: Mapping[str, Counted]) -> dict[str, Counted]:
    """The same entries, of claims for which no quota was asked."""
    return {name: replace(entry, unasked=True) for name, entry in entries.items()}


def render_counted(entries: Mapping[str, Counted]) -> str:
    """The annotation's text; the keys are the names of the entries."""
    written = {
        name: ({_UID: entry.uid} if entry.uid else {})
        | ({_UNASKED: "true"} if entry.unasked else {})
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
    uid, unasked_text = fields.get(_UID, ""), fields.get(_UNASKED, "")
    if not isinstance(uid, str) or unasked_text not in ("", "true"):
        return None
    amounts: dict[DeviceKey, int] = {}
    for name, value in fields.items():
        key = None if name in (_UID, _UNASKED) else DeviceKey.parse(name)
        if key is not None and isinstance(value, str):
            try:
                amounts[key] = nano(quantity.parse(value))
            except quantity.QuantityError:
                return None
        elif name not in (_UID, _UNASKED):
            return None
    if not all(amount > 0 for amount in amounts.values()):
        return None
    return Counted(uid, amounts, unasked=bool(unasked_text))
