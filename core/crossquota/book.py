"""What guests use on each node with GPUs, one event at a time."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from core.crossquota.guest import enabled, guest
from core.crossquota.quota import Quota, node_quota
from core.objects import Node, Pod
from core.settings import Settings

Amounts = Mapping[str, int]
"""Limited resource -> thousandths."""

_NOTHING: Final[Amounts] = MappingProxyType({})


class _Site:
    """One node that has, or once had, GPUs."""

    __slots__ = ("guests", "quota", "used")

    def __init__(self) -> None:
        self.quota: Quota | None = None
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
    """The guests of every node with GPUs. It is as large as their number, and an event costs the same however many.

    A pod on a node of which nothing is known, or that has no GPUs, is not kept. So when a node gets its first GPU, all
    pods there are (`pods`) are looked through once, with the next question, for all such nodes together.

    A bind that was granted counts like a pod that is there until the watch shows what became of it.
    """

    def __init__(self, settings: Settings, pods: Callable[[], Iterable[Pod]]) -> None:
        self._settings = settings
        self._pods = pods
        self._sites: dict[str, _Site] = {}
        self._places: dict[str, str] = {}
        self._granted: dict[str, set[str]] = {}
        """The nodes to which a pod may be on its way, by its UID; never of a pod that is in `_places`."""
        self._unread: set[str] = set()

    def put_node(self, node: Node) -> None:
        """Takes in a node. One whose GPUs are away for a while, as its device plugin restarts, keeps its guests."""
        quota = node_quota(node, self._settings)
        site = self._sites.get(node.name)
        if site is None and quota is not None:
            site = self._sites[node.name] = _Site()
            self._unread.add(node.name)
        if site is not None:
            site.quota = quota

    def drop_node(self, name: str) -> None:
        """Takes out a node."""
        self._unread.discard(name)
        site = self._sites.pop(name, None)
        for uid in site.guests if site is not None else ():
            if uid in self._granted:
                self._granted[uid].remove(name)
            else:
                del self._places[uid]

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod in its present state. What it was granted stays booked until it has a node, or can get none."""
        if pod.bound or pod.deleting or pod.terminal:
            self.take_back(pod.uid)
        if self._sites:
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
        site, found = self._sites.get(pod.node_name), guest(pod, self._settings)
        if site is not None and found is not None and pod.uid not in self._places:
            self._granted.setdefault(pod.uid, set()).add(pod.node_name)
            site.put(pod.uid, found.amounts)

    def take_back(self, uid: str) -> None:
        """Takes back all that the pod was granted: no bind of it is under way any more. Unknown UIDs are fine."""
        for name in self._granted.pop(uid, ()):
            self._sites[name].drop(uid)

    def quota(self, node: str) -> Quota | None:
        """The limits of a node; None for one without GPUs."""
        site = self._sites.get(node)
        return None if site is None else site.quota

    def used(self, node: str, *, but: str = "") -> Amounts:
        """What the guests of a node use together, without the pod of the UID `but`. To be read at once."""
        self._read_up()
        site = self._sites.get(node)
        if site is None:
            return _NOTHING
        own = site.guests.get(but)
        if own is None:
            return site.used
        return {resource: milli - own.get(resource, 0) for resource, milli in site.used.items()}

    def guests(self, node: str) -> Mapping[str, Amounts]:
        """What each guest of a node uses, by UID. To be read at once."""
        self._read_up()
        site = self._sites.get(node)
        return {} if site is None else site.guests

    def nodes(self) -> list[str]:
        """The names of the nodes that have limits."""
        return [name for name, site in self._sites.items() if site.quota is not None]

    def _read_up(self) -> None:
        if not self._unread:
            return
        unread, self._unread = self._unread, set()
        for pod in self._pods():
            if pod.node_name in unread:
                self._leave(pod.uid)
                self._book(pod)

    def _leave(self, uid: str) -> None:
        place = self._places.pop(uid, None)
        if place is not None:
            self._sites[place].drop(uid)

    def _book(self, pod: Pod) -> None:
        """Books a bound pod until it ends; one that is being deleted still runs."""
        site = self._sites.get(pod.node_name)
        if site is None or pod.terminal:
            return
        found = guest(pod, self._settings)
        if found is None:
            return
        self._places[pod.uid] = pod.node_name
        site.put(pod.uid, found.amounts)


def guest_book(nodes: Iterable[Node], pods: Iterable[Pod], settings: Settings) -> GuestBook:
    """The book over objects at hand."""
    kept = tuple(pods) if enabled(settings) else ()
    book = GuestBook(settings, lambda: kept)
    for node in nodes:
        book.put_node(node)
    return book
