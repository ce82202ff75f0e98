"""The three places where a queue's device quota may stand, read into one form, and the limits that come of them together.

`spec.dra` and the annotation hold the same JSON; resource names such as `deviceclass/C` in `spec.capability` are the third.
What cannot be read is a violation where it is written. Where it is stored all the same, it closes the classes that it may be
about: a typing error must not turn into "not limited".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core import names, quantity, reasons, strictjson
from core.dra.amounts import NANO, DeviceKey, nano
from core.objects import Queue
from core.violations import Hint, Violation, child

CAPABILITY: Final = "capability"
DESERVED: Final = "deserved"
GUARANTEE: Final = "guarantee"
KINDS: Final = (CAPABILITY, DESERVED, GUARANTEE)

SPEC_PATH: Final = "spec.dra"
ANNOTATION_PATH: Final = child("metadata.annotations", names.DRA_QUOTA_ANNOTATION)
_KEYS_PATH: Final = "spec.capability"
_EXAMPLE: Final = '{"capability": {"gpu.example.com": {"count": 8}}}'

_MAX_COUNT: Final = 2**63 - 1
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LENGTH: Final = 253
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_LENGTH: Final = 32
_DOMAIN_LENGTH: Final = 63
_MILLI: Final = NANO // 1000
_TOLD: Final = 3


@dataclass(frozen=True, slots=True)
class Bound:
    """One amount in nano-units, and the path of the field that holds it."""

    amount: int
    path: str


@dataclass(slots=True)
class Carrier:
    """What one place says. Filled while it is read, and not changed afterwards."""

    path: str
    bounds: Mapping[str, dict[DeviceKey, Bound]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    """The readable amounts by kind."""
    classes: dict[str, str] = field(default_factory=dict)
    """The classes that `capability` lists, each with its path."""
    closed: set[str] = field(default_factory=set)
    """Classes whose limit cannot be read."""
    unreadable: bool = False
    """Whether what cannot be read may be about any class."""
    violations: list[Violation] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    malformed: list[Violation] = field(default_factory=list)
    """Those violations that close something."""

    def limits(self) -> dict[str, dict[DeviceKey, int]]:
        """Class -> its readable limits."""
        found: dict[str, dict[DeviceKey, int]] = {}
        for key, bound in self.bounds[CAPABILITY].items():
            found.setdefault(key.device_class, {})[key] = bound.amount
        return found

    def refuse(self, path: str, detail: str, **shown: Any) -> None:
        """Notes a violation; `shown` may hold its `kind` and the `value`."""
        self.violations.append(Violation(reasons.DEVICE_QUOTA_MALFORMED, path, detail, **shown))

    def close(self, since: int, device_class: str | None = None) -> None:
        """Closes a class, or with None every class, if there are more violations than `since`."""
        found = self.violations[since:]
        if found and device_class is None:
            self.unreadable = True
        elif found and device_class is not None:
            self.closed.add(device_class)
        self.malformed += found


def carriers_of(queue: Queue) -> tuple[Carrier, ...]:
    """What the three places of a stored queue say."""
    return read_carriers(queue.spec_dra, queue.dra_quota, queue.capability)


def read_carriers(spec_dra: object, annotation: str, capability: Mapping[str, int]) -> tuple[Carrier, ...]:
    """What the three places say; `capability` in thousandths."""
    return _structured(spec_dra, SPEC_PATH), _annotation(annotation), _keys(capability)


def device_keys(capability: Mapping[str, int]) -> dict[str, int]:
    """The part of a resource list that is a device quota."""
    return {name: milli for name, milli in capability.items() if DeviceKey.parse(name) is not None}


def _annotation(text: str) -> Carrier:
    carrier = Carrier(ANNOTATION_PATH)
    if not text:
        return carrier
    try:
        value = strictjson.loads(text)
    except strictjson.StrictJsonError as error:
        carrier.refuse(ANNOTATION_PATH, f"{error}; write a JSON object, such as {_EXAMPLE}", value=text)
    else:
        if isinstance(value, dict):
            return _structured(value, ANNOTATION_PATH)
        carrier.refuse(ANNOTATION_PATH, f"must be a JSON object, such as {_EXAMPLE}", value=text)
    carrier.close(0)
    return carrier


def _structured(value: object, path: str) -> Carrier:
    carrier = Carrier(path)
    parts = _members(carrier, value, path, allowed=KINDS)
    carrier.close(0)
    for kind in KINDS:
        here, since = f"{path}.{kind}", len(carrier.violations)
        entries = _members(carrier, parts.get(kind), here)
        if kind == CAPABILITY:
            carrier.close(since)
        for device_class, entry in entries.items():
            since = len(carrier.violations)
            _entry(carrier, kind, device_class, entry, child(here, device_class))
            if kind == CAPABILITY:
                carrier.close(since, device_class)
    return carrier


def _members(
    carrier: Carrier, value: object, path: str, allowed: tuple[str, ...] | None = None
) -> Mapping[str, Any]:
    """The members of an object, none for null; a key that is not `allowed` may be any other one misspelt."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        carrier.refuse(path, "must be an object", value=value)
        return {}
    for key in value:
        if allowed is not None and key not in allowed:
            carrier.refuse(child(path, str(key)), f"is not known, only {', '.join(allowed)} are")
    return {key: member for key, member in value.items() if isinstance(key, str)}


def _entry(carrier: Carrier, kind: str, device_class: str, entry: object, path: str) -> None:
    if len(device_class) > _SUBDOMAIN_LENGTH or _SUBDOMAIN.fullmatch(device_class) is None:
        detail = f"must be the name of a DeviceClass: lower-case letters, digits, - and ., at most {_SUBDOMAIN_LENGTH}"
        carrier.refuse(path, detail, value=device_class)
    if entry is None:
        carrier.hints.append(
            Hint(reasons.DEVICE_QUOTA_INERT, path, "null is as if it were not there: no limit")
        )
        return
    if not isinstance(entry, dict):
        carrier.refuse(path, 'must be an object, such as {"count": 8}', value=entry)
        return
    bounds = carrier.bounds[kind]
    members = _members(carrier, entry, path, allowed=("count", "capacity"))
    if kind == CAPABILITY:
        carrier.classes[device_class] = path
    count = _count(carrier, members.get("count"), f"{path}.count")
    if count is not None:
        bounds[DeviceKey(device_class)] = Bound(nano(count), f"{path}.count")
    for dimension, value in _members(carrier, members.get("capacity"), f"{path}.capacity").items():
        here = child(f"{path}.capacity", dimension)
        if not _is_qualified(dimension):
            detail = "must be the name of a capacity: an identifier, perhaps after a domain and a slash"
            carrier.refuse(here, detail, value=dimension)
        amount = _amount(carrier, value, here)
        if amount is not None:
            bounds[DeviceKey(device_class, dimension)] = Bound(amount, here)


def _count(carrier: Carrier, value: object, path: str) -> int | None:
    if value is None:
        carrier.refuse(path, "the number of devices must be given", kind="Required value")
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        carrier.refuse(path, "must be an integer number of devices, written without quotes", value=value)
        return None
    if not 0 <= value <= _MAX_COUNT:
        detail = "must not be negative" if value < 0 else f"must be at most {_MAX_COUNT}"
        carrier.refuse(path, detail, value=value)
        return None
    return value


def _amount(carrier: Carrier, value: object, path: str) -> int | None:
    try:
        amount = quantity.parse(value)
    except quantity.QuantityError as error:
        carrier.refuse(path, str(error), value=value)
        return None
    if amount < 0:
        carrier.refuse(path, "must not be negative", value=value)
        return None
    return nano(amount)


def _is_qualified(dimension: str) -> bool:
    """Whether a text may name a capacity of a device."""
    domain, slash, identifier = dimension.rpartition("/")
    if slash and (len(domain) > _DOMAIN_LENGTH or _SUBDOMAIN.fullmatch(domain) is None):
        return False
    return len(identifier) <= _IDENTIFIER_LENGTH and _IDENTIFIER.fullmatch(identifier) is not None


def _keys(capability: Mapping[str, int]) -> Carrier:
    """The quota by resource names. There a number of devices that is 0 means the same as none: not limited."""
    carrier = Carrier(_KEYS_PATH)
    for name, milli in capability.items():
        key = DeviceKey.parse(name)
        if key is None:
            continue
        path = child(_KEYS_PATH, name)
        carrier.classes.setdefault(key.device_class, path)
        if milli < 0:
            since = len(carrier.violations)
            carrier.refuse(path, "must not be negative")
            carrier.close(since, key.device_class)
        elif key.dimension:
            carrier.bounds[CAPABILITY][key] = Bound(milli * _MILLI, path)
        elif milli > 0:
            carrier.bounds[CAPABILITY][key] = Bound(nano(-(-milli // 1000)), path)
    return carrier


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """Upper limits in nano-units. A class that is not listed is not limited."""

    bounds: Mapping[DeviceKey, int] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    """The classes that are listed, those that cannot be read among them."""
    closed: frozenset[str] = frozenset()
    """Classes of which nothing may be used, since their limit cannot be read."""
    unreadable: bool = False
    """Whether that goes for every class."""
    malformed: str = ""
    """What cannot be read; empty when everything can."""

    def closes(self, device_class: str) -> bool:
        """Whether nothing of a class may be used because its limit cannot be read."""
        return self.unreadable or device_class in self.closed


NO_LIMITS: Final = DeviceLimits()


def pruned(queue: Queue) -> bool:
    """Whether a quota was sent that the API server did not store, and nothing stands in its place."""
    stored = queue.spec_dra is not None or bool(queue.dra_quota or device_keys(queue.capability))
    return queue.sent_dra and not stored


def device_limits_of(queue: Queue) -> DeviceLimits:
    """The limits of a stored queue; of places that differ the smaller limit counts. Never raises."""
    carriers = carriers_of(queue)
    bounds: dict[DeviceKey, int] = {}
    for carrier in carriers:
        for key, bound in carrier.bounds[CAPABILITY].items():
            bounds[key] = min(bounds.get(key, bound.amount), bound.amount)
    malformed = [violation for carrier in carriers for violation in carrier.malformed]
    closed = frozenset(name for carrier in carriers for name in carrier.closed)
    return DeviceLimits(
        bounds=bounds,
        classes=closed.union(*(carrier.classes for carrier in carriers)),
        closed=closed,
        unreadable=any(carrier.unreadable for carrier in carriers),
        malformed="; ".join(map(str, malformed[:_TOLD])),
    )
