"""Pods and gangs that need very much work to be decided on, and others who wait meanwhile."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from core.plan.decision import Decision, Lift
from core.plan.judge import Judge
from core.plan.lift import Planner
from core.plan.together import Gangs
from core.plan.units import Unit
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Steps
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

SIZE = 5
MUCH = 200
A_LITTLE = 3
AT_FIRST = 16
"""Steps of a try while others wait, before it has been in vain for long."""
AFTER_IT = 15
"""Steps for which a newcomer waits at the most if nobody else does, and what it takes to end a try."""


class Tries:
    """How many steps each try has had of gangs, or pods, that need more than others have to wait for: as many as `needs` says."""

    def __init__(self, needs: Callable[[Any], int], *, kept: bool = False) -> None:
        self.steps: list[int] = []
        self.done = 0
        self._needs = needs
        self._kept = kept
        """Whether what was found out in vain need not be found out again."""

    def work(self, of: Unit | Entry) -> Steps[None]:
        needed = self._needs(of)
        if needed:
            self.steps.append(0)
        while needed - (self.done if self._kept else 0) > 0:
            self.steps[-1] += 1
            self.done += self._kept
            needed -= not self._kept
            yield

    @property
    def long(self) -> list[int]:
        """Those that were more than a beginning."""
        return [steps for steps in self.steps if steps > 2]


def costly_gangs(
    monkeypatch: pytest.MonkeyPatch, needs: Callable[[Unit], int], *, kept: bool = False
) -> Tries:
    decide, tries = Gangs.decide, Tries(needs, kept=kept)

    def slowly(self: Gangs, unit: Unit, *known: Any) -> Steps[list[Decision] | None]:
        yield from tries.work(unit)
        return (yield from decide(self, unit, *known))

    monkeypatch.setattr(Gangs, "decide", slowly)
    return tries


def costly_pods(monkeypatch: pytest.MonkeyPatch, needs: Callable[[Entry], int]) -> Tries:
    judge, tries = Judge.judge, Tries(needs)

    def slowly(self: Judge, entry: Entry, *others: Any) -> Steps[Decision | None]:
        yield from tries.work(entry)
        return (yield from judge(self, entry, *others))

    monkeypatch.setattr(Judge, "judge", slowly)
    return tries


def much(_of: Unit | Entry) -> int:
    return MUCH


def books(*gangs: str, fifo: bool = False, let_in: int = 0, **settings: Any) -> Ledger:
    """A queue of gangs with quota for all of them, and another one."""
    ledger = Ledger(Settings.model_validate(settings))
    ledger.put_node(a_node("n").card("A", 10_000).view())
    strategy = "fifo" if fifo else "traverse"
    queue = a_queue("q").cards({"A": 10_000}).put("spec", "dequeueStrategy", value=strategy)
    ledger.put_queue(queue.view())
    for other in ("other", "another"):
        ledger.put_queue(a_queue(other).cards({"A": 10_000}).view())
    for gang in gangs:
        put_gang(ledger, gang, let_in=let_in)
    return ledger


def put_gang(ledger: Ledger, gang: str, queue: str = "q", *, let_in: int = 0, least: int = SIZE) -> None:
    ledger.put_group(a_group(gang).in_queue(queue).min_member(least).view())
    for number in range(SIZE):
        pod = member(gang, number, queue)
        lifted = pod.charged(queue).assigned({"A": 1}).together(SIZE)
        ledger.put_pod((lifted if number < let_in else pod.gated()).view())


def member(gang: str, number: int, queue: str = "q") -> PodBuilder:
    return a_pod(f"{gang}-{number}").gpu(1).card("A").in_group(gang).in_queue(queue)


def put_pod(ledger: Ledger, name: str, queue: str) -> None:
    ledger.put_pod(
        a_pod(name).gpu(1).card("A").in_queue(queue).gated().created("2030-01-01T00:00:00Z").view()
    )


class Crowd:
    """In other queues a pod comes whenever the one before it is lifted, so that somebody waits all the time."""

    def __init__(self, ledger: Ledger, *queues: str) -> None:
        self.ledger = ledger
        self.planner = Planner(ledger)
        self.told: list[Decision] = []
        """What was decided on all others."""
        self.waits: list[int] = []
        """For how many steps each of them has waited."""
        self.passes = 0
        self._queues = queues or ("other",)
        self._coming = count()
        self._steps = 0
        self._since: dict[str, int] = {}

    def until(self, is_enough: Callable[[], object], most: int = 3000) -> None:
        """Goes on until that is so; so many of them may come before."""
        if not self.passes:
            for queue in self._queues:
                self._come(queue)
        for _ in range(most):
            self.passes += 1
            for decision in self.planner.run(self.ledger.wakeups.take_queues()):
                self._steps += decision is None
                if isinstance(decision, Lift) and decision.pod.name.startswith("coming-"):
                    self.waits.append(self._steps - self._since.pop(decision.pod.name))
                    self._come(decision.queue)
                elif decision is not None:
                    self.told.append(decision)
            if is_enough():
                return
        raise AssertionError(f"not within {most} passes")

    def _come(self, queue: str) -> None:
        name = f"coming-{next(self._coming)}"
        self._since[name] = self._steps
        put_pod(self.ledger, name, queue)

    def lifted(self, *names: str) -> bool:
        return set(names) <= {each.pod.name for each in self.told if isinstance(each, Lift)}


def members(*gangs: str, beginning: int = 0) -> list[str]:
    return [f"{gang}-{number}" for gang in gangs for number in range(beginning, SIZE)]
