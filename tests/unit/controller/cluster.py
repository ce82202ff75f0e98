"""A controller's caches over objects at hand: no API server, no watch; what happens is put in by the test."""

from collections.abc import Callable, Iterable
from typing import Any

from controller.caches import Caches
from core.objects import Node, Pod
from core.settings import Settings
from kube import errors
from kube.changes import Bookmark
from kube.client import Json
from kube.informer import Informer
from kube.resources import Resource
from kube.turns import Turns


class NoApi:
    """A client that nobody may call."""

    def list(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("no list is expected")

    def watch(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("no watch is expected")


class NoWrites(NoApi):
    """One that may not write either."""

    async def patch(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("no write is expected")


class NoUsage:
    """Nowhere to write usage down, and nobody may ask for it."""

    async def get(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("no read is expected")

    async def replace(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("no write is expected")


class Pods:
    """The one read of the binding hook: pods by key; `fails` is raised instead, `meanwhile` called before the answer."""

    def __init__(self, *pods: Json) -> None:
        self.stored = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in pods}
        self.fails: errors.KubeError | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.reads = 0

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        self.reads += 1
        if self.fails is not None:
            raise self.fails
        self.meanwhile()
        try:
            return self.stored[f"{namespace}/{name}"]
        except KeyError:
            raise errors.NotFound(404, "NotFound", f"{resource} {name} not found", None, timeout_s) from None


def caches(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    settings: Settings | None = None,
    turns: Turns | None = None,
) -> Caches:
    """Caches that have seen these objects."""
    result = Caches(NoApi(), settings or Settings(), turns)
    for node in nodes:
        show(result.nodes, node.name, node)
    for pod in pods:
        show(result.pods, pod.key, pod)
    return result


def show(informer: Informer[Any], key: str, view: Any) -> None:
    """The watch shows a view, or with None that the object has gone."""
    informer._put(key, view)


def come_to(informer: Informer[Any], version: str) -> None:
    """The watch says that it has shown everything up to this version."""
    informer._take(Bookmark(version))
