"""The mGPU amounts of one container as they stand in raw JSON, with the paths that messages need."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from core import names, quantity, violations
from core.objects import raw as read


class Flaw(Enum):
    """What is wrong with the way an amount is written."""

    NOT_WHOLE = auto()
    NO_LIMIT = auto()
    """Requested without a limit."""
    DIFFERS = auto()
    """Request and limit are two numbers."""


@dataclass(frozen=True, slots=True)
class Amount:
    """One key of one container.

    `path` is that of `written`, or, of an absent key, that of the limit which is missing. `value` is the request
    where there is one, else the limit; None when the key is absent or no whole number.
    """

    key: str
    path: str
    limit_path: str
    written: object = None
    limit: object = None
    present: bool = False
    value: int | None = None
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container, asking or not."""

    index: int
    name: str
    path: str
    core: Amount
    memory: Amount

    @property
    def label(self) -> str:
        """`container "name"`, safe to print."""
        return f"container {violations.show(self.name)}"

    @property
    def amounts(self) -> tuple[Amount, Amount]:
        """Core and memory."""
        return self.core, self.memory

    @property
    def asks(self) -> bool:
        """Whether either key is there, whatever its value."""
        return self.core.present or self.memory.present

    @property
    def readable(self) -> bool:
        """Whether what is there is whole numbers."""
        return all(amount.flaw is not Flaw.NOT_WHOLE for amount in self.amounts)


def containers(spec: Mapping[str, Any], prefix: str, section: str) -> list[Container]:
    """The containers of one list of a pod spec: `section` is `containers` or `initContainers`."""
    result = []
    for index, raw in enumerate(read.sequence(spec, section)):
        path = f"{prefix}spec.{section}[{index}]"
        core, memory = (_amount(f"{path}.resources", raw, key) for key in names.MGPU_RESOURCES)
        result.append(Container(index, read.text(read.mapping(raw), "name"), path, core, memory))
    return result


def _amount(path: str, raw: object, key: str) -> Amount:
    limits, requests = (read.mapping(raw, "resources", kind) for kind in ("limits", "requests"))
    limit_path, request_path = (violations.child(f"{path}.{kind}", key) for kind in ("limits", "requests"))
    if key not in limits and key not in requests:
        return Amount(key, limit_path, limit_path)
    limit, request = _whole(limits, key), _whole(requests, key)
    at_request = key in requests and (key not in limits or (limit is not None and limit != request))
    shown, flaw, value = (requests, None, request) if at_request else (limits, None, limit)
    if value is None:
        flaw = Flaw.NOT_WHOLE
    elif key not in limits:
        flaw = Flaw.NO_LIMIT
    elif at_request:
        flaw = Flaw.DIFFERS
    return Amount(
        key=key,
        path=request_path if at_request else limit_path,
        limit_path=limit_path,
        written=shown[key],
        limit=limits.get(key),
        present=True,
        value=value,
        flaw=flaw,
    )


def _whole(amounts: Mapping[str, Any], key: str) -> int | None:
    if key not in amounts:
        return None
    try:
        value = quantity.parse(amounts[key])
    except quantity.QuantityError:
        return None
    return int(value) if quantity.is_whole(value) else None
