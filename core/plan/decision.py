"""What a quota pass decides about a waiting pod."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.affinity import NodeRequirement, Patch
from core.objects import Group, Pod
from core.plan.patch import lift_patch
from core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Spread:
    """What there is to say of a group since members of it that ask for the same have got different cards."""

    group: Group
    message: str


@dataclass(frozen=True, slots=True)
class Lift:
    """A pod that gets its quota now.

    `assigned` counts whole cards, `records` are the annotations that say what it was let in for, `requirement` narrows the
    pod to nodes that have it. `lifted` is the pod as it is booked from now on. `spread` is set on the lift by which members that
    ask for the same have come to several cards, where their scheduler may not cope with that.
    """

    pod: Pod
    queue: str
    assigned: Mapping[str, int]
    records: Mapping[str, str]
    requirement: NodeRequirement
    lifted: Pod
    spread: Spread | None = None
    beyond: bool = False
    """Whether the pod comes to a group that has all that its tasks must have, by what is booked. It is not written before that is
    stored: should those be refused, or the writer be killed, the group would have others in their places, and start nobody."""
    displaces: bool = False
    """Whether the node of its mGPU shares has enough CPU, memory and places only without pods of a lower priority."""

    @property
    def patch(self) -> Patch:
        """The write that lifts the pod; built when it is asked for, so that a pass over thousands stays short."""
        return lift_patch(self.pod, self.requirement, self.records)


@dataclass(frozen=True, slots=True)
class Hold:
    """A pod that stays gated, and why; `announced` says whether its owner is told by an event.

    `group` is the PodGroup that waits as a whole, where that is why. `behind` is the first in line of a fifo queue, for
    which alone the pod waits.
    """

    pod: Pod
    queue: str
    why: Refusal
    announced: bool = True
    group: Group | None = None
    behind: Pod | None = None


Decision = Lift | Hold
