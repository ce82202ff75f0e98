"""What guests use on each node with GPUs, one event at a time."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from core.crossquota.guest import enabled, guest
from core.crossquota.quota import Quota, node_quota
from core.objects import Node, Pod
from core.settings import Settings
from core.steps import Steps, batched, finish

Amounts = Mapping[str, int]
"""Limited resource -> thousandths."""

_NOTHING: Final[Amounts] = MappingProxyType({})
_PODS_IN_A_STEP: Final = 250


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
    pods there are (`pods`) are looked through once, with the first question about it, for all such nodes together.

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
        self._reading: set[str] = set()
        """Those of them on which `read_up` is looking for guests."""
        self._read_anew: set[str] = set()
        """The UIDs of which more has been heard meanwhile."""

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
        self._reading.discard(name)
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
            self._heard_of(pod.uid)
            self._leave(pod.uid)
            self._book(pod)

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod that is gone. Unknown UIDs are fine."""
        self.take_back(uid)
        self._heard_of(uid)
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
        self._read_up(node)
        site = self._sites.get(node)
        if site is None:
            return _NOTHING
        own = site.guests.get(but)
        if own is None:
            return site.used
        return {resource: milli - own.get(resource, 0) for resource, milli in site.used.items()}

    def guests(self, node: str) -> Mapping[str, Amounts]:
        """What each guest of a node uses, by UID. To be read at once."""
        self._read_up(node)
        site = self._sites.get(node)
        return {} if site is None else site.guests

    def knows(self, node: str) -> bool:
        """Whether the guests of a node are known, so that to ask for them costs no look through all pods."""
        return node in self._sites and node not in self._unread

    def nodes(self) -> list[str]:
        """The names of the nodes that have limits."""
        return [name for name, site in self._sites.items() if site.quota is not None]

    def read_up(self) -> Steps[None]:
        """Looks through the pods in steps, if there are nodes of which no guests are known yet; then no question has to.

        One at a time. A question may come before the end, and a node or a pod come, change or go.
        """
        if not self._unread:
            return
        self._reading, self._read_anew = {*self._unread}, set()
        try:
            for some in batched(tuple(self._pods()), _PODS_IN_A_STEP):
                for pod in some:
                    if pod.node_name in self._reading and pod.uid not in self._read_anew:
                        self._leave(pod.uid)
                        self._book(pod)
                yield
                if not self._reading:
                    return
            self._unread -= self._reading
        finally:
            self._reading, self._read_anew = set(), set()

    def _heard_of(self, uid: str) -> None:
        if self._reading:
            self._read_anew.add(uid)

    def _read_up(self, node: str) -> None:
        """The same for a question that cannot wait."""
        if node in self._unread:
            finish(self.read_up())

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
