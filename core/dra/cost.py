"""What a claim is charged for: what its spec asks for, in devices of each class and in their capacity.

Before the allocation, a request that leaves the number or the class open is charged with the worst that may come of it;
afterwards with what came of it. Apart from that the allocation does not count, even where a driver rounds up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from core.dra.amounts import Amounts, DeviceKey, most, nano, total
from core.objects.claim import ALL_DEVICES, Alternative, DeviceRequest

MAX_DEVICES: Final = 32
"""The most devices that Kubernetes allocates for one claim, hence the worst that a request for all of them costs."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The charge of a claim, and why it cannot be computed; then `amounts` hold what can."""

    amounts: Amounts = field(default_factory=dict)
    problem: str = ""


def cost_of(
    requests: Sequence[DeviceRequest], allocated: Mapping[str, int] | None, *, count_admin_access: bool
) -> Cost:
    """The cost of a claim with these requests, or of one that will be made with them (`allocated` None).

    Access for administration takes no device away from anybody; it is free unless `count_admin_access` says otherwise.
    """
    charges: list[Amounts] = []
    problems: list[str] = []
    for request in requests:
        possible = _possible(request, allocated or {})
        paid = [way for way in possible if count_admin_access or not way.admin_access]
        charges.append(most(_amounts(way, (allocated or {}).get(request.result_name(way))) for way in paid))
        if not possible:
            problems.append(f"request {request.name} is neither exactly nor firstAvailable")
        problems += [f"request {request.result_name(way)} {way.problem}" for way in paid if way.problem]
    return Cost({key: amount for key, amount in total(charges).items() if amount}, "; ".join(problems))


def is_estimate(requests: Sequence[DeviceRequest], allocated: Mapping[str, int] | None) -> bool:
    """Whether such a claim is charged with the worst that may come of it, and may turn out to cost less."""
    return any(
        len(ways := _possible(request, allocated or {})) > 1
        or any(way.mode == ALL_DEVICES and request.result_name(way) not in (allocated or {}) for way in ways)
        for request in requests
    )


def _possible(request: DeviceRequest, allocated: Mapping[str, int]) -> Sequence[Alternative]:
    """The ways in which the request may be served: the one that was chosen, or all."""
    chosen = [way for way in request.alternatives if request.result_name(way) in allocated]
    return chosen or request.alternatives


def _amounts(way: Alternative, results: int | None) -> Amounts:
    """What one way costs; `results` is the number of devices that were allocated for it, None before that."""
    if way.problem:
        return {}
    devices = way.count
    if way.mode == ALL_DEVICES:
        devices = MAX_DEVICES if results is None else results
    capacity = {
        DeviceKey(way.device_class, dimension): devices * nano(amount)
        for dimension, amount in way.capacity.items()
    }
    return {DeviceKey(way.device_class): nano(devices), **capacity}
