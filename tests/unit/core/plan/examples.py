"""Small clusters that are planned whole, and what is read off the plan."""

from collections.abc import Sequence

from core.objects import Group, Job, Node, Pod, Queue
from core.plan.offline import Plan, plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_job, a_node, a_pod
from tests.builders.objects import GroupBuilder, JobBuilder, NodeBuilder, PodBuilder, QueueBuilder

BATCH = "batch.volcano.sh/v1alpha1"


GPU, MPS = "nvidia.com/gpu", "nvidia.com/gpu.shared"


Thing = NodeBuilder | QueueBuilder | GroupBuilder | JobBuilder | PodBuilder


def planned(*things: Thing, settings: Settings | None = None) -> Plan:
    """The plan of a controller that knows these objects and no others."""
    ledger = Ledger(settings or Settings())
    pods = []
    for thing in things:
        match thing.view():
            case Node() as node:
                ledger.put_node(node)
            case Queue() as queue:
                ledger.put_queue(queue)
            case Group() as group:
                ledger.put_group(group)
            case Job() as job:
                ledger.put_job(job)
            case Pod() as pod:
                pods.append(pod)
                ledger.put_pod(pod)
    return plan(ledger, pods)


def nodes(card: str, *counts: int) -> list[Thing]:
    """A node of this card for each count."""
    return [
        a_node(f"{card.lower()}-{number}").card(card, count).allocatable("cpu", 64)
        for number, count in enumerate(counts)
    ]


def pods(name: str, card: str, count: int, *, each: int = 1, resource: str = GPU) -> list[PodBuilder]:
    """Gated pods `<name>-0` and so on in the queue `q`, from the oldest on; each asks for `each` cards."""
    return [
        a_pod(f"{name}-{number}")
        .limit(resource, each)
        .card(card)
        .in_queue("q")
        .gated()
        .created(f"2024-01-01T00:00:{number:02}Z")
        for number in range(count)
    ]


def volcano_job(
    name: str, tasks: Sequence[PodBuilder], *, minimum: int, request: dict[str, int], second: int = 0
) -> list[Thing]:
    """A Volcano Job in the queue `q` as its controller leaves it: the PodGroup with the declared cards, and the pods."""
    job = a_job(name).in_queue("q").cards(request)
    group = a_group(name).in_queue("q").min_member(minimum).cards(request).uid(f"uid-group-{name}")
    group = group.owned_by("Job", name, api_version=BATCH).created(f"2024-01-01T00:01:{second:02}Z")
    members = [pod.in_group(name).owned_by("Job", name, api_version=BATCH) for pod in tasks]
    return [job, group, *members]


def running(things: Sequence[PodBuilder], node: str, card: str) -> list[PodBuilder]:
    """The pods after they were lifted for one of this card each, and bound."""
    return [pod.bound_to(node).assigned({card: 1}) for pod in things]


def decided(result: Plan, decision: str) -> list[str]:
    return sorted(key.removeprefix("ml/") for key, pod in result.pods.items() if pod.decision == decision)


def given(result: Plan) -> dict[str, int]:
    """Card -> how many the lifted pods got of it."""
    sums: dict[str, int] = {}
    for pod in result.pods.values():
        for card, count in (pod.assigned or {}).items():
            sums[card] = sums.get(card, 0) + count
    return sums


def used(result: Plan, card: str) -> int:
    """Allocated plus reserved of the queue `q`, in whole cards."""
    queue = result.queues["q"]
    return (queue.allocated.get(card, 0) + queue.reserved.get(card, 0)) // 1000
