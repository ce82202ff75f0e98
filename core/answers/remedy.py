"""What would help a waiting pod. Every remedy has been tried on the books: with it, and nothing else, the pod is lifted."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from core.answers.beyond import EmptyCluster
from core.answers.whatif import Change, SpentError, WhatIf
from core.objects import Pod
from core.objects.taints import Tolerations
from core.plan.decision import Hold
from core.queues.entry import Entry

_MOST_STEPS: Final = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. `amount` and `total` are thousandths of `key`: so much more than now, and so much in all."""

    action: str
    text: str
    object: str = ""
    key: str = ""
    amount: int = 0
    total: int = 0
    pods: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do, all of it, in this order; `change` is the cluster after that."""

    steps: tuple[Step, ...]
    change: Change

    @property
    def weight(self) -> tuple[int, int, int]:
        """By which the smallest comes first: few things, what takes nothing away from anybody, little of it."""
        cost = {"create": 1, "raise": 1, "end": 2}
        hardest = max(cost.get(step.action, 0) for step in self.steps)
        much = sum(len(step.pods) if step.action == "end" else step.amount // 1000 for step in self.steps)
        return len(self.steps), hardest, much


@dataclass(slots=True)
class Case:
    """A waiting pod, what has been changed so far, and why it still waits."""

    whatif: WhatIf
    target: Entry
    hold: Hold
    tolerations: Mapping[str, Tolerations]
    """Of whoever has no node, by UID."""
    change: Change = field(default_factory=Change.none)

    @property
    def obstacle(self) -> Entry:
        """The pod whose waiting it is about: the first of a fifo queue that keeps the target back, else the target."""
        behind = self.hold.behind
        return (self.whatif.ledger.entry(behind.uid) if behind is not None else None) or self.current

    @property
    def current(self) -> Entry:
        """The target as the books have it, to be read with the change made."""
        return self.whatif.ledger.entry(self.target.pod.uid) or self.target

    def changed(self, pod: Pod) -> Pod:
        """A pod as the steps before leave it."""
        return self.change.pods.get(pod.uid, pod)

    def outcome(self, change: Change) -> Hold | None:
        """Why the target would wait after another change; None when it would be lifted. Raises SpentError."""
        return self.whatif.hold(change, self.target.pod.uid)

    def helps(self, change: Change) -> bool:
        """Whether the target would be lifted. Raises SpentError."""
        return self.outcome(change) is None

    def finds_a_node(self, change: Change) -> bool:
        """Whether some node could ever run the target after another change: else a lift is in vain."""
        with self.whatif.made(change):
            return EmptyCluster(self.whatif.ledger, self.tolerations).beyond(self.current) is None

    def after(self, change: Change, hold: Hold) -> "Case":
        """The case after a step that was not enough."""
        return replace(self, hold=hold, change=change)


@dataclass(frozen=True, slots=True)
class Found:
    """Steps that go together, the whole change with them, and why the pod waits then; None when it does not."""

    steps: tuple[Step, ...]
    change: Change
    hold: Hold | None


Finder = Callable[[Case], Found | None]
"""Finds the smallest step of its kind that helps, or that at least takes the present obstacle away. Raises SpentError."""


def remedies(case: Case, routes: Mapping[str, tuple[Finder, ...]]) -> tuple[list[Remedy], bool]:
    """Every route that leads to a lift and to a node, the smallest first, and whether all were followed to their ends.

    One that does all that a smaller one does, and more, is left out.
    A route goes on with the first of its finders that knows a step, until the pod is lifted.
    """
    found: dict[tuple[Step, ...], Remedy] = {}
    complete = True
    for finders in routes.values():
        try:
            remedy = _followed(case, finders)
        except SpentError:
            complete = False
            continue
        if remedy is not None and case.finds_a_node(remedy.change):
            found.setdefault(remedy.steps, remedy)
    told: list[Remedy] = []
    for remedy in sorted(found.values(), key=lambda one: one.weight):
        if not any(_does_all_of(remedy, smaller) for smaller in told):
            told.append(remedy)
    return told, complete


def _does_all_of(larger: Remedy, smaller: Remedy) -> bool:
    return all(
        any(
            step == one or (step.action == one.action == "end" and {*step.pods} <= {*one.pods})
            for one in larger.steps
        )
        for step in smaller.steps
    )


def _followed(case: Case, finders: tuple[Finder, ...]) -> Remedy | None:
    steps: list[Step] = []
    for _ in range(_MOST_STEPS):
        found = next(_steps(case, finders), None)
        if found is None or found.change == case.change:
            return None
        steps = [step for step in steps if not _replaced(step, found.steps)] + [*found.steps]
        if found.hold is None:
            return Remedy(tuple(steps), found.change)
        case = case.after(found.change, found.hold)
    return None


def _replaced(step: Step, later: tuple[Step, ...]) -> bool:
    """Whether a later step names another card for the same pods, so that this one is not done at all."""
    return any(step.action == one.action == "card" and step.object == one.object for one in later)


def _steps(case: Case, finders: tuple[Finder, ...]) -> Iterator[Found]:
    for finder in finders:
        found = finder(case)
        if found is not None:
            yield found
