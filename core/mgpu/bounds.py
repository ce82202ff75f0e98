"""What the best possible outcome of a partly finished placement is: bounds that never err on the wrong side.

All work on one dimension (core or memory) by itself. A card with `free` units that may lose at most `most` of them
contributes free**2 to the objective before, (free - x)**2 after; the loss is x * (2 * free - x).
"""

from collections.abc import Sequence


def together(free: Sequence[int], most: int) -> int:
    """What can be taken from the cards if no card gives more than `most`."""
    below = [units for units in free if units < most]
    return sum(below) + most * (len(free) - len(below))


def least_loss(free: Sequence[int], most: int, demand: int) -> int:
    """The least loss of squares with which `demand` can be taken from the cards, or less; -1 when it cannot be.

    `free` ascending; no card gives more than `most`. The loss of one card is concave, so it lies above its chord
    from 0 to min(free, most); the chord's slope grows with `free`, so the cards are filled up in that order.
    """
    loss = 0
    for units in free:
        room = min(units, most)
        if room >= demand:
            return loss + (2 * units - room) * demand
        loss += (2 * units - room) * room
        demand -= room
    return loss if demand <= 0 else -1


def greatest_loss(free: Sequence[int], most: int, demand: int) -> int:
    """The greatest loss of squares with which `demand` can be taken from the cards; -1 when it cannot be taken.

    `free` descending; no card gives more than `most`. The squares left are least when the fullest cards are lowered
    to one level; the level sinks until `demand` is taken. A card starts to sink when the level reaches it, and stops
    when it has given `most` or is empty.
    """
    loss = 0
    started = stopped = 0
    count = len(free)
    level = free[0] if free else 0
    while demand > 0:
        while started < count and free[started] == level:
            started += 1
        while stopped < started and free[stopped] - most == level:
            stopped += 1
        sinking = started - stopped
        lower = free[started] if started < count else 0
        if sinking == 0:
            if started == count:
                return -1
            level = lower
            continue
        lower = max(lower, free[stopped] - most)
        if level == lower:
            return -1
        drop = (level - lower) * sinking
        if drop >= demand:
            whole, rest = divmod(demand, sinking)
            end = level - whole
            return loss + sinking * (level * level - end * end) + rest * (2 * end - 1)
        demand -= drop
        loss += sinking * (level * level - lower * lower)
        level = lower
    return loss
