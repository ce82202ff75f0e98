"""The informers of the controller, and the ledger that follows them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from core.objects import Group, Job, Namespace, Node, Pod, Queue, group, job, namespace, node, pod, queue
from core.queues.ledger import Ledger
from core.settings import Settings
from kube.informer import Informer
from kube.reflector import ListWatch
from kube.resources import NAMESPACES, NODES, PODGROUPS, PODS, QUEUES, VOLCANO_JOBS, Resource

V = TypeVar("V", Pod, Node, Queue, Group, Job, Namespace)


class Caches:
    """Every object the controller decides on. `ledger` is up to date whenever control is with another task."""

    def __init__(self, client: ListWatch, settings: Settings) -> None:
        self.ledger = Ledger(settings)
        self._signals: list[asyncio.Event] = []
        ledger = self.ledger
        self.pods = _informer(client, PODS, pod.project, _namespaced)
        self.nodes = _informer(client, NODES, node.project, _named)
        self.queues = _informer(client, QUEUES, queue.project, _named, optional=True)
        self.groups = _informer(client, PODGROUPS, group.project, _namespaced, optional=True)
        self.jobs = _informer(client, VOLCANO_JOBS, job.project, _namespaced, optional=True)
        self.namespaces = _informer(client, NAMESPACES, namespace.project, _named)
        self._follow(self.nodes, ledger.put_node, lambda old: ledger.drop_node(old.name))
        self._follow(self.queues, ledger.put_queue, lambda old: ledger.drop_queue(old.name))
        self._follow(self.groups, ledger.put_group, lambda old: ledger.drop_group(old.key))
        self._follow(self.jobs, ledger.put_job, lambda old: ledger.drop_job(old.key))
        self._follow(self.namespaces, ledger.put_namespace, lambda old: ledger.drop_namespace(old.name))
        self._follow(self.pods, ledger.put_pod, lambda old: ledger.drop_pod(old.uid))
        self._pod_waiters: dict[str, asyncio.Event] = {}
        self.pods.subscribe(self._wake_waiters)

    @property
    def synced(self) -> bool:
        """Whether every collection has been listed completely."""
        return all(informer.synced for informer in self._informers())

    async def wait_synced(self) -> None:
        """Returns when every collection has been listed completely; `run` has to be running."""
        for informer in self._informers():
            await informer.wait_synced()

    def signal(self) -> asyncio.Event:
        """An event that every change sets from now on; it belongs to the caller, who clears it."""
        event = asyncio.Event()
        self._signals.append(event)
        return event

    def notify(self) -> None:
        """Sets every signal: something in the ledger changed."""
        for event in self._signals:
            event.set()

    async def wait_changed(self, seen: Pod, timeout_s: float) -> None:
        """Returns when the pod of this name is another one than `seen`, or gone, or after `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.pods.get(seen.key) == seen:
                    waiter = self._pod_waiters.setdefault(seen.key, asyncio.Event())
                    await waiter.wait()
        except TimeoutError:
            return

    async def refresh(self) -> None:
        """Lists everything anew; afterwards nothing that was written before the call is missing."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers():
                tasks.create_task(informer.refresh(), name=f"refresh {informer.resource}")

    async def run(self) -> None:
        """Follows the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers():
                tasks.create_task(informer.run(), name=f"informer {informer.resource}")

    def _informers(self) -> "Iterator[Informer[Any]]":
        yield from (self.namespaces, self.nodes, self.queues, self.groups, self.jobs, self.pods)

    def _wake_waiters(self, old: Pod | None, new: Pod | None) -> None:
        view = new or old
        waiter = self._pod_waiters.pop(view.key, None) if view is not None else None
        if waiter is not None:
            waiter.set()

    def _follow(self, informer: Informer[V], put: Callable[[V], None], drop: Callable[[V], None]) -> None:
        def handle(old: V | None, new: V | None) -> None:
            if new is not None:
                put(new)
            elif old is not None:
                drop(old)
            self.notify()

        informer.subscribe(handle)


def _informer(
    client: ListWatch,
    resource: Resource,
    project: Callable[[dict[str, Any]], V],
    key: Callable[[V], str],
    *,
    optional: bool = False,
) -> Informer[V]:
    return Informer(client, resource, project, key=key, optional=optional)


def _named(view: Node | Queue | Namespace) -> str:
    return view.name


def _namespaced(view: Pod | Group | Job) -> str:
    return view.key
