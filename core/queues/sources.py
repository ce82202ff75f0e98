"""The objects that say which queue a pod charges, and which pods look at each of them."""

from collections.abc import Collection
from functools import partial

from core.index import Index
from core.objects import Group, Job, Namespace, Pod
from core.queues.access_book import AccessBook
from core.queues.attribution import Attribution, Source, attribute, named_by, queue_on_record, recorded
from core.queues.undecided import Undecided, job_key, pod_group_key


class QueueSources:
    """PodGroups, Volcano Jobs and namespaces. `access` says whether pods of a namespace may use a queue.

    Every change returns the UIDs of the followed pods that it may send to another queue, and costs as much as these. Those are
    none where the object says of the queue what it said before.
    """

    def __init__(self, default: str, access: AccessBook) -> None:
        self._default = default
        self._access = access
        self._groups: dict[str, Group] = {}
        self._jobs: dict[str, Job] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._fixed: dict[str, Attribution] = {}
        self._by_group = Index()
        self._undecided = Undecided()

    def attribution(self, pod: Pod) -> Attribution:
        """The queue that a pod charges: by its record, or as it was fixed, or by the objects known now."""
        return recorded(pod) or self._fixed.get(pod.uid) or self._resolved(pod)

    def fix(self, pod: Pod) -> str:
        """From now on a pod that was let in without a record charges the queue that the objects known now name."""
        if pod.uid not in self._fixed:
            self._fixed[pod.uid] = self.attribution(pod)
        return self._fixed[pod.uid].queue

    def release(self) -> Collection[str]:
        """From now on the objects say again what the pods without record charge. Returns the UIDs of those."""
        released = tuple(self._fixed)
        self._fixed.clear()
        return released

    def source(self, pod: Pod) -> Source:
        """What says so: for people to look at."""
        if recorded(pod) is not None:
            return Source.RECORD
        queue = self.attribution(pod).queue
        return next((source for source, name in self._said(pod) if name == queue), Source.DEFAULT)

    def _said(self, pod: Pod) -> tuple[tuple[Source, str], ...]:
        """What each object says about the queue of a pod."""
        return named_by(pod, self.pod_group_of(pod), self._job_of(pod), self._namespaces.get(pod.namespace))

    def _job_of(self, pod: Pod) -> Job | None:
        key = job_key(pod)
        job = self._jobs.get(key) if key is not None else None
        if job is not None and pod.owner is not None and pod.owner.uid and job.uid != pod.owner.uid:
            # Created anew under the name; the pod is a leftover of the one before.
            return None
        return job

    def _resolved(self, pod: Pod) -> Attribution:
        group, job = self.pod_group_of(pod), self._job_of(pod)
        # Nobody who came with a node, past gate and bind, is charged to a queue that would not have let them in.
        chargeable = partial(self._admits, pod.namespace) if _came_past(pod) else bool
        return attribute(pod, group, job, self._namespaces.get(pod.namespace), self._default, chargeable)

    def _admits(self, namespace: str, queue: str) -> bool:
        return self._access.allows(queue, namespace)

    def group_of(self, pod: Pod) -> Group | None:
        """Those with whom a pod starts, its gang or the PodGroup that it names; None while that does not exist."""
        return self._groups.get(pod.group_key)

    def pod_group_of(self, pod: Pod) -> Group | None:
        """The PodGroup of Volcano that a pod names, which says what it charges; None while it does not exist."""
        key = pod_group_key(pod)
        return self._groups.get(key) if key is not None else None

    def group(self, key: str) -> Group | None:
        """The gang or the PodGroup of this key; None while it does not exist."""
        return self._groups.get(key)

    def members(self, group: str) -> Collection[str]:
        """The UIDs of the followed pods that belong to a gang or a PodGroup."""
        return self._by_group.get(group)

    def follow(self, pod: Pod) -> None:
        """Names the pod from now on when an object changes that may send it to another queue, or that says who starts with it."""
        self._by_group.put(pod.uid, pod.group_key or None)
        if queue_on_record(pod) or pod.uid in self._fixed:
            self._decided(pod.uid)
            return
        self._undecided.put(pod)
        named = [name for _, name in self._said(pod) if name] if _came_past(pod) else ()
        self._access.follow_past(pod.uid, pod.namespace, named)

    def _decided(self, uid: str) -> None:
        """From now on no change of an object, nor of who may use a queue, sends this pod anywhere."""
        self._undecided.drop(uid)
        self._access.follow_past(uid, "", ())

    def unfollow(self, uid: str) -> None:
        """Forgets a pod."""
        self._fixed.pop(uid, None)
        self._decided(uid)
        self._by_group.put(uid)

    def put_group(self, group: Group) -> Collection[str]:
        """Takes in a PodGroup; most of its changes are about something else: its own controller writes its status."""
        old = self._groups.get(group.key)
        self._groups[group.key] = group
        said = old.queue if old is not None else ""
        return self._undecided.of_group(group.key) if said != group.queue else ()

    def drop_group(self, key: str) -> Collection[str]:
        """Takes out a PodGroup."""
        old = self._groups.pop(key, None)
        return self._undecided.of_group(key) if old is not None and old.queue else ()

    def put_gang(self, key: str, gang: Group | None) -> None:
        """Takes in what the members of a gang say of it now, None for one that is no more; what they charge is the same."""
        if gang is None:
            self._groups.pop(key, None)
        else:
            self._groups[key] = gang

    def put_job(self, job: Job) -> Collection[str]:
        """Takes in a Volcano Job; as of PodGroups, most of its changes are about something else."""
        old = self._jobs.get(job.key)
        self._jobs[job.key] = job
        says_the_same = old is not None and (old.uid, old.queue) == (job.uid, job.queue)
        return () if says_the_same else self._undecided.of_job(job.key)

    def drop_job(self, key: str) -> Collection[str]:
        """Takes out a Volcano Job."""
        return self._undecided.of_job(key) if self._jobs.pop(key, None) is not None else ()

    def put_namespace(self, namespace: Namespace) -> Collection[str]:
        """Takes in a namespace; most of its changes are about something else."""
        old = self._namespaces.get(namespace.name)
        self._namespaces[namespace.name] = namespace
        said = old.queue if old is not None else ""
        return self._undecided.of_namespace(namespace.name) if said != namespace.queue else ()

    def drop_namespace(self, name: str) -> Collection[str]:
        """Takes out a namespace. Its pods are gone as a rule, unless somebody has taken its finalizers away, or their watch is late."""
        old = self._namespaces.pop(name, None)
        return self._undecided.of_namespace(name) if old is not None and old.queue else ()


def _came_past(pod: Pod) -> bool:
    """Whether a pod has a node though nobody let it in."""
    return pod.bound and not pod.let_in
