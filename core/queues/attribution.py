"""Which queue a pod charges: until it is let in what the objects say that it refers to, afterwards its record alone."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from core import names
from core.objects import Group, Job, Namespace, Owner, Pod


class Charged(Protocol):
    """What says where a pod goes: a pod as it is stored, or one that only a template describes."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """As of a pod."""

    @property
    def owner(self) -> Owner | None:
        """The controlling owner."""


class Source(StrEnum):
    """What may say which queue a pod charges."""

    RECORD = "record"
    GROUP = "podgroup"
    JOB = "job"
    JOB_ANNOTATION = "job annotation"
    ANNOTATION = "annotation"
    NAMESPACE = "namespace"
    DEFAULT = "default"


class Attribution(NamedTuple):
    """A queue name, and whether anything named it; otherwise it is the configured default."""

    queue: str
    named: bool


def recorded(pod: Pod) -> Attribution | None:
    """The queue that a pod was let in by; None for one that waits at our gate, and where nothing is on record.

    Only the controller writes records. Everything else that names a queue belongs to tenants: were a running pod charged by
    it, who moves a reference would move the charge.
    """
    queue = queue_on_record(pod)
    return Attribution(queue, named=True) if queue else None


def queue_on_record(pod: Pod) -> str:
    """The name of that queue; empty where there is none."""
    return "" if pod.gated else pod.annotations.get(names.CHARGED_QUEUE_ANNOTATION, "")


def attribute(
    pod: Charged,
    group: Group | None,
    job: Job | None,
    namespace: Namespace | None,
    default: str,
    chargeable: Callable[[str], bool] = bool,
) -> Attribution:
    """The pod's queue: its PodGroup's, its Volcano Job's, its own annotation's, its namespace's, the default.

    The PodGroup comes first because that is what the Volcano scheduler itself goes by. `group` and `job` are the
    objects the pod refers to, None where they do not exist (yet). An empty name counts as unset at every step, and so does
    one that is not `chargeable`; the default is not asked about.
    """
    for _, name in named_by(pod, group, job, namespace):
        if name and chargeable(name):
            return Attribution(name, named=True)
    return Attribution(default, named=False)


def named_by(
    pod: Charged, group: Group | None, job: Job | None, namespace: Namespace | None
) -> tuple[tuple[Source, str], ...]:
    """What each of these objects says about the queue, perhaps nothing; the first one to say something counts."""
    # The Job controller copies the queue to the pod; it serves while the Job itself is not in sight.
    copied = pod.annotations.get(names.JOB_QUEUE_ANNOTATION, "")
    return (
        (Source.GROUP, group.queue if group else ""),
        (Source.JOB, job.queue if job else ""),
        (Source.JOB_ANNOTATION, copied if copied and owned_by_job(pod) else ""),
        (Source.ANNOTATION, pod.annotations.get(names.QUEUE_NAME_ANNOTATION, "")),
        (Source.NAMESPACE, namespace.queue if namespace else ""),
    )


def owned_by_job(pod: Charged) -> bool:
    """Whether a Volcano Job controls the pod."""
    owner = pod.owner
    return owner is not None and is_job(owner)


def is_job(owner: Owner | None) -> bool:
    """Whether an owner is a Volcano Job; batch Jobs are of the same kind but of another group."""
    return owner is not None and owner.kind == "Job" and owner.api_version.startswith("batch.volcano.sh/")
