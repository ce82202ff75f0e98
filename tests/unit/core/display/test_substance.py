"""What is news in a message, and what is a number of the moment."""

import pytest

from core import reasons
from core.display.substance import substance
from core.queues.whole import Use, in_cards, in_cores, in_gi

SCALAR, GANG, ROOM = reasons.INSUFFICIENT_SCALAR_QUOTA, reasons.GANG_INCOMPLETE, reasons.NO_FREE_CARD
DEVICES, OVER = reasons.INSUFFICIENT_DEVICE_QUOTA, reasons.QUOTA_EXCEEDED
CPU, MEMORY = reasons.INSUFFICIENT_CPU_QUOTA, reasons.INSUFFICIENT_MEMORY_QUOTA

SHORT = "Queue <{}> has insufficient <{}> quota: requested <{}>, total would be <{}>, but capability is <{}>"
NODE = "Queue <q> lets the pod in, but no node has room; node {}: {}"
EXCEEDED = (
    "Queue <q> uses more than its quota: <A> used <{}>, but capability is <{}>; b used {}, limit {}; nothing"
)


@pytest.mark.parametrize(
    ("reason", "before", "after"),
    [
        (SCALAR, SHORT.format("q", "A", "1000", "4000", "3000"), SHORT.format("q", "A", 500, "1e+06", 1.5)),
        (SCALAR, SHORT.format("q", "A", "1 Gi", "2048 Mi", "3Ki"), SHORT.format("q", "A", -5, 0, "0.00")),
        (
            SCALAR,
            "text; PodGroup ml/g-7 needs 2 more members at once, 1 fit",
            "text; PodGroup ml/g-7 needs 12 more members at once, 0 fit",
        ),
        (
            SCALAR,
            f"short. {in_cards(1000, [Use('A', 3000, 3000)])}",
            f"short. {in_cards(1500, [Use('A', 40_000, 5000)])}",
        ),
        (
            SCALAR,
            f"short. {in_cards(1000, [Use('A', 3000, 3000), Use('4090', 0, 0)])}",
            f"short. {in_cards(2500, [Use('A', 4000, 4000), Use('4090', 1000, 9000)])}",
        ),
        (
            SCALAR,
            f"short. {in_cards(4000, [Use('A', 3000, 3000)])}; PodGroup ml/g needs 2 more members at once, 1 fit",
            f"short. {in_cards(1000, [Use('A', 0, 0)])}; PodGroup ml/g needs 1 more members at once, 0 fit",
        ),
        (CPU, f"short. {in_cores(1000, 2000, 2000)}", f"short. {in_cores(1, 2001, 4000)}"),
        (CPU, f"short. {in_cores(1000, 0, 500)}", f"short. {in_cores(1, 2001, 0)}"),
        (MEMORY, f"short. {in_gi(2**40, 2**50, 2**45)}", f"short. {in_gi(1, 2**60, 2**44)}"),
        (MEMORY, f"short. {in_gi(2**40, 0, 2**39)}", f"short. {in_gi(1, 2**60, 0)}"),
        (
            GANG,
            "Queue <q>: PodGroup ml/g needs 3 more members at once, with only 2 ready",
            "Queue <q>: PodGroup ml/g needs 3 more members at once, with only 1 ready",
        ),
        (ROOM, NODE.format("n-1", "no room"), NODE.format("n-2", "too few cards")),
        (
            DEVICES,
            "queue q: DeviceClass memory.gpu quota exceeded: requested 1Gi, used 500m, limit 2",
            "queue q: DeviceClass memory.gpu quota exceeded: requested 1, used 2Ti, limit 0",
        ),
        (OVER, EXCEEDED.format(3000, 2000, 5, 4), EXCEEDED.format("1e+06", 2000, "5Gi", 4)),
    ],
)
def test_numbers_of_the_moment_are_no_news(reason: str, before: str, after: str) -> None:
    assert substance(reason, before) == substance(reason, after)


@pytest.mark.parametrize(
    ("reason", "before", "after"),
    [
        (SCALAR, SHORT.format("q", "A", 1, 2, 3), SHORT.format("q2", "A", 1, 2, 3)),
        (SCALAR, SHORT.format("q", "A", 1, 2, 3), SHORT.format("q", "B", 1, 2, 3)),
        (SCALAR, SHORT.format("1", "4090", 1, 2, 3), SHORT.format("2", "4090", 1, 2, 3)),
        (SCALAR, SHORT.format("1", "4090", 1, 2, 3), SHORT.format("1", "3090", 1, 2, 3)),
        (SCALAR, SHORT.format("team-1", "A", 1, 2, 3), SHORT.format("team-2", "A", 1, 2, 3)),
        (SCALAR, SHORT.format("q", "H-80.1", 1, 2, 3), SHORT.format("q", "H-80.2", 1, 2, 3)),
        (
            SCALAR,
            f"short. {in_cards(3000, [Use('A', 3000, 3000)])}",
            f"short. {in_cards(3000, [Use('A', 2000, 2000)])}",
        ),
        (CPU, f"short. {in_cores(1000, 1000, 1000)}", f"short. {in_cores(1000, 1000, 999)}"),
        (MEMORY, f"short. {in_gi(2**40, 2**40, 2**40)}", f"short. {in_gi(2**40, 2**40, 2**39)}"),
        (GANG, "PodGroup ml/g-1 needs 1", "PodGroup ml/g-2 needs 1"),
        (GANG, "PodGroup ml/1 needs 1", "PodGroup ml/2 needs 1"),
        (DEVICES, "queue 1: DeviceClass 7 quota", "queue 2: DeviceClass 7 quota"),
        (DEVICES, "queue 1: DeviceClass 7 quota", "queue 1: DeviceClass 8 quota"),
        (OVER, EXCEEDED.format(3000, 2000, 5, 4), EXCEEDED.format(3000, 1000, 5, 4)),
        (OVER, EXCEEDED.format(3000, 2000, 5, 4), EXCEEDED.format(3000, 2000, 5, 3)),
    ],
)
def test_what_is_waited_for_is_news(reason: str, before: str, after: str) -> None:
    assert substance(reason, before) != substance(reason, after)


def test_the_reason_is_news_whatever_the_words() -> None:
    assert substance(SCALAR, "text") != substance(CPU, "text")
