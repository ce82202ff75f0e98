"""Whether CPU and memory fit a queue, for a pod or for a whole group: the words are the same for both."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from core import reasons
from core.queues.amounts import CPU, MEMORY
from core.queues.numbers import go_float
from core.queues.whole import in_cores, in_gi
from core.refusal import Refusal

_MILLI_PER_MI: Final = 1000 * 2**20


def cpu_memory_fits(limits: Mapping[str, int], used: Callable[[str], int], wanted: Mapping[str, int]) -> bool:
    """As `cpu_memory_shortfall`, without the words; `limits` are those of CPU and memory alone."""
    for key, limit in limits.items():
        asked = wanted.get(key, 0)
        if asked > 0 and used(key) + asked > limit:
            return False
    return True


def cpu_memory_shortfall(
    queue: str, capability: Mapping[str, int], used: Callable[[str], int], wanted: Mapping[str, int]
) -> Refusal | None:
    """None when the CPU and memory wanted fit; CPU is looked at first. Other keys of `wanted` are not looked at.

    All in thousandths; `used` gives allocated plus reserved. A dimension that `capability` lacks is not limited
    (`attributes.cpu_memory_capability` has resolved what an unset one means). Exactly reaching the limit fits; asking
    for nothing always does. CPU is told in thousandths of a core, memory in Mi.
    """
    for key, code, name, unit in (
        (CPU, reasons.INSUFFICIENT_CPU_QUOTA, "CPU", ""),
        (MEMORY, reasons.INSUFFICIENT_MEMORY_QUOTA, "memory", " Mi"),
    ):
        asked, limit = wanted.get(key, 0), capability.get(key)
        total = used(key) + asked
        if asked <= 0 or limit is None or total <= limit:
            continue
        scale = _MILLI_PER_MI if unit else 1
        told = [f"<{go_float(Fraction(amount, scale))}{unit}>" for amount in (asked, total, limit)]
        plain = (in_gi if unit else in_cores)(asked, total - asked, limit)
        return Refusal(
            code,
            f"Queue <{queue}> has insufficient {name} quota: requested {told[0]}, "
            f"total would be {told[1]}, but capability is {told[2]}. {plain}",
        )
    return None
