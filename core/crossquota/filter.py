"""Whether a node has room for one more guest, why not, and how much it is preferred; and the same limit as a hard one, at a bind."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Final

from core import reasons
from core.crossquota.book import GuestBook
from core.crossquota.guest import Guest, enabled, guest, held_back
from core.crossquota.quota import Quota
from core.objects import Pod
from core.quantity import render_milli
from core.refusal import Refusal
from core.settings import CrossQuotaSettings, Settings

_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi")
_IN_BYTES: Final = ("memory", "ephemeral-storage")
_PAGES: Final = "hugepages-"
_NOTHING: Final = Fraction(0)


def excess(guest: Guest, quota: Quota, used: Mapping[str, int]) -> Refusal | None:
    """None when all that the guest asks for fits; exactly reaching the limit does. `used` without the guest itself.

    What it does not ask for is not looked at: the quota may have been lowered below what is in use.
    """
    failing = [
        resource
        for resource, milli in guest.amounts.items()
        if not within(used.get(resource, 0) + milli, resource, quota)
    ]
    if not failing:
        return None
    return Refusal(
        reasons.CROSS_QUOTA_EXCEEDED,
        message="; ".join(_told(resource, guest.amounts[resource], quota, used) for resource in failing),
        unresolvable=any(not within(guest.amounts[resource], resource, quota) for resource in failing),
    )


def within(milli: int, resource: str, quota: Quota) -> bool:
    """Whether so much is no more than the quota; in whole numbers, which is many times faster than in fractions."""
    limit = quota[resource]
    return milli * limit.denominator <= limit.numerator


def _told(resource: str, milli: int, quota: Quota, used: Mapping[str, int]) -> str:
    required, taken = readable(resource, milli), readable(resource, used.get(resource, 0))
    limit = readable_limit(resource, quota[resource])
    return f"{resource} quota exceeded: required {required}, used {taken}, quota {limit}"


def readable_limit(resource: str, limit: Fraction) -> str:
    """A limit as a quantity, cut to what somebody can ask for: a percentage may end within a byte."""
    step = 1000 if _is_size(resource) else 1
    return readable(resource, floor(limit / step) * step)


def readable(resource: str, milli: int) -> str:
    """An amount as a quantity, exactly: sizes in the largest binary unit that divides them."""
    size, rest = divmod(milli, 1000)
    if rest or not size or not _is_size(resource):
        return render_milli(milli)
    suffix = ""
    for unit in _BINARY:
        if size % 1024:
            break
        size, suffix = size // 1024, unit
    return f"{size}{suffix}"


def _is_size(resource: str) -> bool:
    return resource in _IN_BYTES or resource.startswith(_PAGES)


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


def guards_binds(settings: Settings) -> bool:
    """Whether any bind is looked at: `crossQuota.guardBind`, and a rule to guard."""
    return settings.cross_quota.guard_bind and enabled(settings)


def is_limited(pod: Pod, node: str, book: GuestBook, settings: Settings) -> bool:
    """Whether it depends on the others there if a pod may be bound to a node. To be asked only where binds are guarded.

    `pod` has the labels that CrossQuota's selector looks at.
    """
    return _limits(pod, node, book, settings) is not None


def bind_excess(pod: Pod, node: str, book: GuestBook, settings: Settings) -> Refusal | None:
    """Why a pod must not be bound to a node: only where `crossQuota.guardBind` says so.

    None for a pod or a node that the rule is not about. `book` must have every bind that was granted before; `pod` as for
    `is_limited`.
    """
    found = _limits(pod, node, book, settings) if guards_binds(settings) else None
    return None if found is None else excess(*found, book.used(node, but=pod.uid))


def _limits(pod: Pod, node: str, book: GuestBook, settings: Settings) -> tuple[Guest, Quota] | None:
    quota = book.quota(node)
    if quota is None or not held_back(pod):
        return None
    visitor = guest(pod, settings)
    return None if visitor is None else (visitor, quota)
