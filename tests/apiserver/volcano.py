"""Stand-ins for Volcano: its scheduler as far as Queue status and the binds of gangs go, its Job controller as to pods."""

import json
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError

import yaml

from core import names
from hack.controlplane import ControlPlane, wait_for
from tests.apiserver.cluster import Cluster, Object
from tests.apiserver.manifests import binding
from tests.fakes.volcano_cycle import VolcanoCycle

PERIOD_S = 0.2
_TIMEOUT_S = 10.0
# No field manager is named, so the API server takes the first part of this; webhooks do not see it.
_USER_AGENT = "vc-scheduler/v1.15.0 (linux/amd64) test"


class StatusWriter:
    """PUTs the status of a queue every `PERIOD_S` with `allocated` for its map; a conflict waits for the next turn.

    Like the real one it reads the queue before, writes without looking at what else the map holds, and passes no field
    manager. The API server stores nothing when the outcome is what was stored before.
    """

    def __init__(self, plane: ControlPlane, path: str) -> None:
        self._url = plane.url + path
        tls = ssl.create_default_context(cafile=plane.ca_file)
        # No proxy from the environment: the API server is on loopback.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )
        user = yaml.safe_load(plane.admin_kubeconfig.read_text("utf-8"))["users"][0]["user"]
        self._headers = {
            "Authorization": f"Bearer {user['token']}",
            "Content-Type": "application/json",
            "User-Agent": _USER_AGENT,
        }
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"status of {path}")
        self._allocated: Mapping[str, str] = {"cpu": "0"}
        self.writes = 0
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if error is None and self.failure is not None:
            raise self.failure

    def use(self, allocated: Mapping[str, str]) -> None:
        """Write this from now on; returns once it has been written twice."""
        self._allocated = dict(allocated)
        self.wait_for_writes(2)

    def wait_for_writes(self, count: int) -> None:
        """Return after `count` further writes."""
        wanted = self.writes + count + 1  # one may be under way
        wait_for(f"{count} more writes of status", lambda: self.failure or self.writes >= wanted)

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S):
            try:
                queue = self._ask("GET", self._url, None)
                status = {**queue.get("status", {}), "state": "Open", "allocated": dict(self._allocated)}
                self._ask("PUT", f"{self._url}/status", {**queue, "status": status})
                self.writes += 1
            except HTTPError as error:
                error.close()
                if error.code != HTTPStatus.CONFLICT:
                    self.failure = error
                    return
            except OSError as error:
                self.failure = error
                return

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers, method=method)
        with self._opener.open(request, timeout=_TIMEOUT_S) as response:
            found: dict[str, Any] = json.load(response)
        return found


class Scheduler:
    """Binds what Volcano's scheduler would bind in a cycle, see VolcanoCycle; all that is in the cluster's namespace."""

    def __init__(self, cluster: Cluster, *, predicate_error_cache: bool = True) -> None:
        self._cluster = cluster
        self._cycle = VolcanoCycle(predicate_error_cache=predicate_error_cache)

    def run(self, *nodes: str) -> int:
        """One cycle over these nodes; returns how many pods it has bound."""
        cluster = self._cluster
        stored = [cluster.api.get(f"/api/v1/nodes/{node}").expect() for node in nodes]
        groups = cluster.api.get(
            cluster.api.path("scheduling.volcano.sh/v1beta1", "PodGroup", cluster.namespace)
        ).expect()["items"]
        found = self._cycle.run(stored, groups, list(cluster.pods().values()))
        for pod, node in found.items():
            cluster.bind(binding(pod, node)).expect(201)
        return len(found)


class JobController:
    """Makes of a Volcano Job what Volcano makes of it, in Volcano's order.

    First the PodGroup, which gets all annotations of the Job; then the scheduler enqueues it, looking at no card; then
    the pods, each a member of the group. The Job controller gives a task that names no minimum all its replicas as one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def submit(self, job: Object) -> Object:
        """Store the Job and make its PodGroup, which is still Pending; returns the Job as it is stored."""
        (stored,) = self._cluster.create(job)
        spec, metadata = stored["spec"], stored["metadata"]
        group = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {
                "name": group_of(stored),
                "annotations": dict(metadata.get("annotations", {})),
                "ownerReferences": [_controlled_by(stored)],
            },
            "spec": {
                "queue": spec["queue"],
                "minMember": spec["minAvailable"],
                "minTaskMember": {task["name"]: task["replicas"] for task in spec["tasks"]},
            },
            "status": {"phase": "Pending"},
        }
        self._cluster.create(group)
        return stored

    def enqueue(self, job: Object) -> None:
        """The scheduler's part, and what the Job controller does next: the group is Inqueue, and the pods are made."""
        self._cluster.api.patch(self.group_path(job), {"status": {"phase": "Inqueue"}}).expect()
        for task in job["spec"]["tasks"]:
            self.add_pods(job, task["name"], range(task["replicas"]))

    def add_pods(self, job: Object, task: str, indexes: range) -> None:
        """Pods of one task, as at the start and whenever one has to be made anew or the Job is scaled out."""
        template = next(item["template"] for item in job["spec"]["tasks"] if item["name"] == task)
        self._cluster.create(*(self._pod(job, task, template, index) for index in indexes))

    def group_path(self, job: Object) -> str:
        """The path of the Job's PodGroup."""
        api, namespace = self._cluster.api, self._cluster.namespace
        return api.path("scheduling.volcano.sh/v1beta1", "PodGroup", namespace, group_of(job))

    def _pod(self, job: Object, task: str, template: Object, index: int) -> Object:
        name, queue = job["metadata"]["name"], job["spec"]["queue"]
        annotations = {
            **template["metadata"].get("annotations", {}),
            names.JOB_QUEUE_ANNOTATION: queue,
            names.TASK_SPEC_ANNOTATION: task,
            names.GROUP_NAME_ANNOTATION: group_of(job),
            "volcano.sh/job-name": name,
            "volcano.sh/task-index": str(index),
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{task}-{index}",
                "annotations": annotations,
                "labels": {names.JOB_QUEUE_ANNOTATION: queue, "volcano.sh/job-name": name},
                "ownerReferences": [_controlled_by(job)],
            },
            "spec": {**template["spec"], "schedulerName": job["spec"]["schedulerName"]},
        }


def group_of(job: Object) -> str:
    """The name of the PodGroup that is made for a Job."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def _controlled_by(job: Object) -> Object:
    metadata = job["metadata"]
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {**owner, "controller": True, "blockOwnerDeletion": True}
