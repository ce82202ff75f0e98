"""What is asked of the API server about one lift."""

from collections.abc import Callable

from controller.flight import WRITE_TIMEOUT_S, Key
from core.names import FIELD_MANAGER
from core.objects import Pod
from core.plan.decision import Lift
from kube import errors
from kube.calls import LiftClient, Reader
from kube.client import Json, PatchType
from kube.informer import GARBAGE
from kube.resources import PODS
from kube.workqueue import Work, WorkQueue

SLOTS = 16
"""Requests under way at once; more would only queue up in the API server."""
PER_NAMESPACE = 8
FIRST_CONTACTS = 128
"""Requests besides, one for each namespace of which no lift has been answered yet. So many may hang, and nobody else waits."""

OF_ANOTHER_POD = (errors.NotFound, errors.Conflict, errors.Invalid)
"""Answers by which the pod may be another one than was looked at, or gone."""


def queue_of_requests(work: Work[Key]) -> WorkQueue[Key]:
    """A queue of requests about lifts, in which namespaces take turns."""
    return WorkQueue(
        work, slots=SLOTS, per_lane=PER_NAMESPACE, unheard=FIRST_CONTACTS, lane=lambda key: key[0]
    )


async def patched(client: LiftClient, lift: Lift, *, dry_run: bool = False) -> Json:
    """The pod with this lift, which is stored unless this is a dry run. Raises KubeError."""
    return await client.patch(
        PODS,
        lift.pod.name,
        lift.patch,
        lift.pod.namespace,
        patch_type=PatchType.JSON,
        field_manager=FIELD_MANAGER,
        dry_run=dry_run,
        timeout_s=WRITE_TIMEOUT_S,
    )


async def read_pod(client: Reader, project: Callable[[Json], Pod], pod: Pod) -> Pod | None:
    """What is stored under the name of a pod; None for nothing. Raises KubeError, also where the answer is no pod."""
    try:
        raw = await client.get(PODS, pod.name, pod.namespace, timeout_s=WRITE_TIMEOUT_S)
    except errors.NotFound:
        return None
    try:
        _ = raw["metadata"]["uid"]
        return project(raw)
    except GARBAGE as error:
        raise errors.ConnectionFailed(f"no pod was answered: {type(error).__name__}") from error
