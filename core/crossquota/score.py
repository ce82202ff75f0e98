"""How much a node is preferred for a guest."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from core.crossquota.filter import within
from core.crossquota.guest import Guest
from core.crossquota.quota import Quota
from core.settings import CrossQuotaSettings

_NOTHING: Final = Fraction(0)


def preference(guest: Guest, quota: Quota, used: Mapping[str, int], weights: Mapping[str, int]) -> Fraction:
    """0..1, exact: how full the node would be with the guest, or how empty, whichever the guest prefers.

    The weighted mean over what the guest asks for; 0 where that does not fit. `used` without the guest itself.
    """
    # One fraction at the end: thousands of nodes are scored in a call, and each fraction on the way costs a gcd.
    top, bottom, weight_sum = 0, 1, 0
    for resource, milli in guest.amounts.items():
        total, limit = used.get(resource, 0) + milli, quota[resource]
        if not within(total, resource, quota):
            return _NOTHING
        whole, taken = limit.numerator, total * limit.denominator
        weight = weights.get(resource, 1)
        part = taken if guest.strategy == "most-allocated" else whole - taken
        top, bottom = top * whole + bottom * weight * part, bottom * whole
        weight_sum += weight
    return Fraction(top, bottom * weight_sum) if weight_sum else _NOTHING


def node_score(guest: Guest, quota: Quota, used: Mapping[str, int], rule: CrossQuotaSettings) -> Fraction:
    """The node's score, exact: the preference times the configured weight; not rounded, not cut."""
    return preference(guest, quota, used, rule.weights) * rule.weight
