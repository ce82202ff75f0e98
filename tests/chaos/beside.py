"""What is done beside the rest of the load, in queues of its own: a fifo queue, and one for pods with claims.

Each is drawn from a stream of its own, so that the rest of a seed's plan is what it always was.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final

LINE: Final = "line"
LINE_QUOTA: Final = {"A": 4, "B": 2}
"""A fifo queue beside the others, with pods of its own."""
PRIORITIES: Final = {"chaos-low": 0, "chaos-high": 1000}

DEVICES: Final = "devices"
DEVICE_QUOTA: Final = 6
"""Of one class, in a queue that is there for pods with claims."""
TEMPLATES: Final = {"one": 1, "two": 2, "three": 3}
SHARED: Final = {"ours": 2, "theirs": 3}
"""Claims that several pods use, and templates of claims of their own, by how many devices each asks for."""
DEVICE_LOAD: Final = {"claim_pod": 6, "claim_finish": 4, "claim_delete": 2, "claim_quota": 1}
_MOST_CLAIMING: Final = 10

LINE_LOAD: Final = {"line_pod": 6, "line_finish": 5, "line_delete": 1, "line_quota": 1}
"""The same for the fifo queue."""
_MOST_IN_LINE: Final = 12


@dataclass(frozen=True, slots=True)
class Step:
    """One deed of the load, so many seconds after the beginning."""

    at: float
    deed: str
    how: dict[str, Any] = field(default_factory=dict)


def line(random: Random, seconds: float) -> Iterator[Step]:
    """Pods of one card and of all at once, urgent ones and others, in the fifo queue."""
    at, pods = random.uniform(0.0, 2.0), list[str]()
    for number in count():
        if at >= seconds:
            return
        (deed,) = random.choices(list(LINE_LOAD), list(LINE_LOAD.values()))
        if deed == "line_pod" and len(pods) < _MOST_IN_LINE:
            pods.append(f"l{number:04}")
            card = random.choice(list(LINE_QUOTA))
            asked = {"card": card, "count": random.randint(1, LINE_QUOTA[card])}
            yield Step(at, deed, {"name": pods[-1], "priority": random.choice(list(PRIORITIES)), **asked})
        elif deed == "line_quota":
            quota = {card: random.randint(1, most) for card, most in LINE_QUOTA.items()}
            yield Step(at, deed, {"quota": quota})
        elif deed in ("line_finish", "line_delete") and pods:
            yield Step(at, deed, {"names": [pods.pop(random.randrange(min(4, len(pods))))]})
        at += random.expovariate(1.6)


def claims(random: Random, seconds: float) -> Iterator[Step]:
    """Pods with claims of their own, with one that they share, or with both."""
    at, pods = random.uniform(0.0, 2.0), list[str]()
    for number in count():
        if at >= seconds:
            return
        (deed,) = random.choices(list(DEVICE_LOAD), list(DEVICE_LOAD.values()))
        if deed == "claim_pod" and len(pods) < _MOST_CLAIMING:
            pods.append(f"c{number:04}")
            templates = random.sample(list(TEMPLATES), random.choice((0, 1, 1)))
            shared = random.sample(list(SHARED), random.choice((0, 1)) if templates else 1)
            yield Step(at, deed, {"name": pods[-1], "templates": templates, "shared": shared})
        elif deed == "claim_quota":
            yield Step(at, deed, {"count": random.randint(2, DEVICE_QUOTA + 2)})
        elif deed in ("claim_finish", "claim_delete") and pods:
            yield Step(at, deed, {"names": [pods.pop(random.randrange(min(4, len(pods))))]})
        at += random.expovariate(1.0)
