"""The range in which a waiting pod is said to start holds the true start, over simulated queues."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from core.answers.estimate import Freed, Start, start_of
from core.answers.explain import explain
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue

MINUTE = 60_000_000
QUOTA = 16
QUEUES = 60
"""So many are simulated for each shape of work."""


@dataclass
class Work:
    """A pod of the simulation: how many cards, for how long, and when it started."""

    name: str
    cards: int
    minutes: float
    started: float = 0.0

    @property
    def end(self) -> float:
        return self.started + self.minutes


class Queue:
    """A queue with more work than cards; the next one comes when one starts."""

    def __init__(
        self, luck: random.Random, fifo: bool, lasts: Callable[[], float], sizes: Sequence[int]
    ) -> None:
        self._luck, self._lasts, self._sizes, self.fifo = luck, lasts, sizes, fifo
        self.now = 0.0
        self.running: list[Work] = []
        self.waiting: list[Work] = []
        self.ended: list[Work] = []
        self._count = 0
        for _ in range(24):
            self._come()
        self._start()

    def _come(self) -> None:
        self._count += 1
        self.waiting.append(Work(f"w{self._count:05d}", self._luck.choice(self._sizes), self._lasts()))

    def _start(self) -> None:
        for one in list(self.waiting):
            if sum(other.cards for other in self.running) + one.cards <= QUOTA:
                one.started = self.now
                self.running.append(one)
                self.waiting.remove(one)
                self._come()
            elif self.fifo:
                return

    def step(self) -> None:
        """On to the next end."""
        first = min(self.running, key=lambda one: one.end)
        self.now = first.end
        self.running.remove(first)
        self.ended.append(first)
        self._start()

    def ledger(self) -> Ledger:
        """The same in the books."""
        ledger = Ledger(Settings())
        ledger.put_node(a_node("n").card("A", 64).view())
        queue = a_queue("q").cards({"A": QUOTA})
        ledger.put_queue((queue.fifo() if self.fifo else queue).view())
        for place, one in enumerate(sorted((*self.running, *self.waiting), key=lambda each: each.name)):
            pod = a_pod(one.name).in_queue("q").card("A").gpu(one.cards)
            pod = pod.created(f"2024-01-01T00:{place // 60:02d}:{place % 60:02d}Z")
            if one in self.running:
                bound = pod.charged("q").assigned({"A": one.cards}).put("spec", "nodeName", value="n")
                ledger.put_pod(bound.view())
            else:
                ledger.put_pod(pod.gated().view())
        return ledger


@dataclass(frozen=True)
class Trial:
    """What was said to somebody who waited, and how long it took."""

    said: Start
    took: float

    @property
    def held(self) -> bool:
        return self.said.earliest <= self.took and (self.said.latest is None or self.took <= self.said.latest)


def tried(luck: random.Random, fifo: bool, lasts: Callable[[], float], sizes: Sequence[int]) -> Trial | None:
    """None where nothing was said."""
    queue = Queue(luck, fifo, lasts, sizes)
    for _ in range(luck.randrange(20, 80)):
        queue.step()
    # Somebody asks at any moment between two ends.
    upcoming = min(one.end for one in queue.running)
    asked = queue.now + luck.random() * (upcoming - queue.now)
    who = luck.choice(queue.waiting[:8])
    ledger = queue.ledger()
    pod = next(entry.pod for entry in ledger.waiting("q") if entry.pod.name == who.name)
    found = explain(ledger, pod.uid, {})
    assert found is not None
    ended = [Freed(round(one.end * MINUTE), one.cards * 1000) for one in queue.ended]
    said = start_of(found, ended, round(asked * MINUTE), "A")
    if said is None:
        return None
    for _ in range(20_000):
        if who not in queue.waiting:
            break
        queue.step()
    return Trial(said, (queue.now - asked) * MINUTE)


def shapes(luck: random.Random) -> dict[str, tuple[bool, Callable[[], float], Sequence[int]]]:
    """Fifo or not, how long pods last, how many cards they take."""
    return {
        "memoryless, single cards": (True, lambda: luck.expovariate(1 / 60), (1,)),
        "memoryless, many sizes": (True, lambda: luck.expovariate(1 / 60), (1, 1, 2, 4, 8)),
        "heavy tails": (True, lambda: luck.lognormvariate(4, 1.2), (1, 2, 4)),
        "nearly alike": (True, lambda: luck.uniform(50, 70), (1, 2)),
        "whoever fits goes, single cards": (False, lambda: luck.expovariate(1 / 60), (1,)),
        "whoever fits goes, many sizes": (False, lambda: luck.lognormvariate(4, 1), (1, 2, 4)),
    }


@pytest.mark.parametrize("shape", [*shapes(random.Random(0))])
def test_the_range_holds_the_true_start_nine_times_of_ten(shape: str) -> None:
    """And is no empty phrase: where nobody may be passed over for ever, its end is not many times the true one."""
    luck = random.Random(shape)
    fifo, lasts, sizes = shapes(luck)[shape]
    found = [one for _ in range(QUEUES) if (one := tried(luck, fifo, lasts, sizes)) is not None]
    assert len(found) >= QUEUES / 2
    assert sum(one.held for one in found) >= 0.9 * len(found)
    if fifo or len(sizes) == 1:
        latest = [one.said.latest for one in found if one.said.latest is not None]
        assert len(latest) == len(found)
        assert statistics.median(latest) <= 8 * statistics.median(one.took for one in found)


def test_without_history_nothing_is_said() -> None:
    luck = random.Random(1)
    queue = Queue(luck, True, lambda: luck.expovariate(1 / 60), (1,))
    ledger = queue.ledger()
    found = explain(ledger, ledger.waiting("q")[0].pod.uid, {})
    assert found is not None
    assert start_of(found, [], MINUTE, "A") is None
    few = [Freed(minute * MINUTE, 1000) for minute in range(4)]
    assert start_of(found, few, 9 * MINUTE, "A") is None
    assert start_of(found, [*few, Freed(4 * MINUTE, 1000)], 9 * MINUTE, "A") is not None


def test_ends_of_one_moment_are_one_end() -> None:
    """A gang that ends gives no better knowledge of the rate than a single pod."""
    luck = random.Random(1)
    ledger = Queue(luck, True, lambda: luck.expovariate(1 / 60), (1,)).ledger()
    found = explain(ledger, ledger.waiting("q")[0].pod.uid, {})
    assert found is not None
    together = [Freed(5 * MINUTE + number, 1000) for number in range(20)]
    assert start_of(found, together, 9 * MINUTE, "A") is None
