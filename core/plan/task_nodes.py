"""To which nodes the members of a gang under Volcano's scheduler may be led.

By default it takes the nodes that rule out one pod of a task for ruled out for all pods of the task, see
`predicateErrorCacheEnable`. Members of one task that are led to different nodes, or of which only some are led, would never
start together. So a task is led to one node, or all of it may go to all nodes, and each member is nominated for its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from core import names
from core.objects import Pod
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

_IN_ONE_STEP: Final = 250
"""Lifts that are looked at in about half a millisecond."""


@dataclass(frozen=True, slots=True)
class TaskNodes:
    """Where the members of a task are that were let in and have no node yet.

    `within` are the nodes that they were led to; without any the next ones may be led anywhere, unless not all `led` is.
    """

    within: tuple[str, ...] = ()
    led: bool = True


ANYWHERE: Final = TaskNodes()
"""Nobody is on the way."""


def starts_in_cycles(ledger: Ledger, pod: Pod, together: int) -> bool:
    """Whether the scheduler takes one pod of its task for all; so many of its group have to be in for it to be of use."""
    return together > 1 and pod.scheduler_name in ledger.settings.volcano.scheduler_names


def nodes_of_tasks(ledger: Ledger, pod: Pod) -> Mapping[str, TaskNodes]:
    """For the tasks of the pod's group of which members are on their way, those of a trial that has begun among them."""
    led = ledger.tasks_led(pod.group_key)
    return {task: TaskNodes(tuple(filter(None, nodes)), "" not in nodes) for task, nodes in led.items()}


def led_apart(lifts: Iterable[Lift]) -> Steps[dict[str, list[str]]]:
    """The tasks of whose members some are led elsewhere than others, or nowhere, and to which nodes: those of the most first."""
    found: dict[str, Counter[str]] = {}
    pace = Pace(_IN_ONE_STEP)
    for lift in lifts:
        if pace.due():
            yield
        found.setdefault(lift.pod.task, Counter())[lift.records.get(names.NODE_ANNOTATION, "")] += 1
    return {
        task: [node for node, _ in nodes.most_common() if node]
        for task, nodes in found.items()
        if len(nodes) > 1
    }
