"""Whether devices fit the quota of a queue, and the words for when they do not."""

from collections.abc import Callable, Iterator, Mapping

from core import reasons
from core.dra.amounts import Amounts, DeviceKey, render
from core.dra.limits import DeviceLimits
from core.refusal import Refusal


def device_shortfall(
    queue: str,
    limits: DeviceLimits,
    used: Callable[[DeviceKey], int],
    needed: Amounts,
    *,
    deny_unlisted: bool,
) -> Refusal | None:
    """None when all of `needed` fits beside what is `used`; exactly reaching a limit fits.

    `needed` is what comes on top: a claim that is charged already needs nothing. `deny_unlisted` says what becomes of a
    capacity that the quota of its class does not name.
    """
    wanted = {key: amount for key, amount in sorted(needed.items()) if amount > 0}
    for key in wanted:
        if limits.closes(key.device_class):
            text = f"queue {queue}: DeviceClass {key.device_class} is closed, the device quota cannot be read: {limits.malformed}"
            return Refusal(reasons.DEVICE_QUOTA_MALFORMED, text)
    broken = list(_exceeded(limits, used, wanted, deny_unlisted=deny_unlisted))
    return (
        Refusal(reasons.INSUFFICIENT_DEVICE_QUOTA, f"queue {queue}: {'; '.join(broken)}") if broken else None
    )


def _exceeded(
    limits: DeviceLimits,
    used: Callable[[DeviceKey], int],
    wanted: Mapping[DeviceKey, int],
    *,
    deny_unlisted: bool,
) -> Iterator[str]:
    for key, amount in wanted.items():
        limit = limits.bounds.get(key)
        if limit is not None:
            if used(key) + amount > limit:
                numbers = f"requested {render(amount)}, used {render(used(key))}, limit {render(limit)}"
                never = ", more than the whole quota; ask for less, or raise it" if amount > limit else ""
                yield f"DeviceClass {key.display} quota exceeded: {numbers}{never}"
        elif deny_unlisted and key.dimension and key.device_class in limits.classes:
            yield f"DeviceClass {key.display} is not in the quota: requested {render(amount)}"
