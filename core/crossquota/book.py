"""What guests use on each node, one event at a time."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from core.crossquota.guest import enabled, guest
from core.crossquota.quota import Quota, node_quota
from core.objects import Node, Pod
from core.settings import Settings
from core.sharded import Sharded

Amounts = Mapping[str, int]
"""Limited resource -> thousandths."""

_NOTHING: Final[Amounts] = MappingProxyType({})


@lru_cache(maxsize=4096)
def _shared(*amounts: tuple[str, int]) -> Amounts:
    """The amounts in one copy, however many pods ask for the same: they are kept of every guest of the cluster."""
    return dict(amounts)


class _Site:
    """One node by its name, with or without GPUs, whether it is there or not."""

    __slots__ = ("guests", "name", "used")

    def __init__(self, name: str) -> None:
        self.name = name
        self.used: dict[str, int] = {}
        self.guests: dict[str, Amounts] = {}

    def put(self, uid: str, amounts: Amounts) -> None:
        self.drop(uid)
        self.guests[uid] = amounts
        for resource, milli in amounts.items():
            self.used[resource] = self.used.get(resource, 0) + milli

    def drop(self, uid: str) -> None:
        for resource, milli in self.guests.pop(uid, _NOTHING).items():
            self.used[resource] -= milli


class GuestBook:
    """The guests of every node with GPUs. An event costs the same however many there are of anything.

    Pods are kept by the names of their nodes whatever is known of these: so a node that comes, or gets its first GPU, has its
    guests at once, and nobody ever has to look for them among all pods. Told of are those of nodes that have, or once had, GPUs.

    A bind that was granted counts like a pod that is there until the watch shows what became of it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._enabled = enabled(settings)
        self._quotas: dict[str, Quota | None] = {}
        """Of the nodes that are told of; None while one has no GPUs."""
        self._sites = Sharded[_Site]()
        """By the names of nodes, those on which there is a guest."""
        self._places = Sharded[_Site]()
        """Where a pod is, by its UID."""
        self._granted: dict[str, list[_Site]] = {}
        """The nodes to which a pod may be on its way, by its UID; never of a pod that is in `_places`."""

    def put_node(self, node: Node) -> None:
        """Takes in a node. One whose GPUs are away for a while, as its device plugin restarts, keeps its guests."""
        quota = node_quota(node, self._settings)
        if quota is not None or node.name in self._quotas:
            self._quotas[node.name] = quota

    def drop_node(self, name: str) -> None:
        """Takes out a node, and what was granted there."""
        self._quotas.pop(name, None)
        site = self._sites.get(name)
        if site is None:
            return
        for uid in [uid for uid in site.guests if uid in self._granted]:
            left = [other for other in self._granted.pop(uid) if other is not site]
            if left:
                self._granted[uid] = left
            self._drop(site, uid)

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod in its present state. What it was granted stays booked until it has a node, or can get none."""
        if not self._enabled:
            return
        if pod.bound or pod.deleting or pod.terminal:
            self.take_back(pod.uid)
        self._leave(pod.uid)
        self._book(pod)

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod that is gone. Unknown UIDs are fine."""
        self.take_back(uid)
        self._leave(uid)

    def grant(self, pod: Pod) -> None:
        """Takes in a pod as it will be once the bind under way is stored.

        Granted another node after that, it counts on both: either bind may be the one that is stored.
        """
        if pod.node_name not in self._quotas or pod.uid in self._places:
            return
        found = guest(pod, self._settings)
        if found is not None:
            site = self._site(pod.node_name)
            if pod.uid not in site.guests:
                self._granted.setdefault(pod.uid, []).append(site)
            site.put(pod.uid, found.amounts)

    def take_back(self, uid: str) -> None:
        """Takes back all that the pod was granted: no bind of it is under way any more. Unknown UIDs are fine."""
        for site in self._granted.pop(uid, ()):
            self._drop(site, uid)

    def quota(self, node: str) -> Quota | None:
        """The limits of a node; None for one without GPUs."""
        return self._quotas.get(node)

    def used(self, node: str, *, but: str = "") -> Amounts:
        """What the guests of a node use together, without the pod of the UID `but`. To be read at once."""
        site = self._told_of(node)
        if site is None:
            return _NOTHING
        own = site.guests.get(but)
        if own is None:
            return site.used
        return {resource: milli - own.get(resource, 0) for resource, milli in site.used.items()}

    def guests(self, node: str) -> Mapping[str, Amounts]:
        """What each guest of a node uses, by UID. To be read at once."""
        site = self._told_of(node)
        return {} if site is None else site.guests

    def nodes(self) -> list[str]:
        """The names of the nodes that have limits."""
        return [name for name, quota in self._quotas.items() if quota is not None]

    def _told_of(self, node: str) -> _Site | None:
        return self._sites.get(node) if node in self._quotas else None

    def _book(self, pod: Pod) -> None:
        """Books a bound pod until it ends; one that is being deleted still runs."""
        if not pod.bound or pod.terminal:
            return
        found = guest(pod, self._settings)
        if found is not None:
            site = self._site(pod.node_name)
            self._places.add(pod.uid, site)
            site.put(pod.uid, _shared(*found.amounts.items()))

    def _leave(self, uid: str) -> None:
        site = self._places.pop(uid, None)
        if site is not None:
            self._drop(site, uid)

    def _site(self, name: str) -> _Site:
        return self._sites.opened(name, lambda: _Site(name))

    def _drop(self, site: _Site, uid: str) -> None:
        site.drop(uid)
        if not site.guests:
            self._sites.pop(site.name, None)


def guest_book(nodes: Iterable[Node], pods: Iterable[Pod], settings: Settings) -> GuestBook:
    """The book over objects at hand."""
    book = GuestBook(settings)
    for node in nodes:
        book.put_node(node)
    for pod in pods:
        book.put_pod(pod)
    return book
