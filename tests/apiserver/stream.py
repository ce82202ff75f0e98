"""Pods that pass through a small queue one after the other, so that work is always going on."""

import json

from hack.controlplane import wait_for
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.watching import Watch, admitted, within

QUOTA = 3
TAKE_OVER_S = 90.0
"""The lease has to run out, and everything is listed anew, late at that."""


class Stream:
    """A queue of three cards through which pods pass one after the other: whenever one ends the next is let in."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.card, self.queue = cluster.add_card(), unique("q")
        cluster.create_queue(queue(self.queue, json.dumps({self.card: QUOTA})))
        self._come = 0

    def watch(self) -> Watch:
        """Complains of every moment in which more are let in than the quota allows."""
        return Watch(self.cluster.plane, self.cluster.path(), within({self.card: QUOTA}))

    def begin(self) -> None:
        self._add(QUOTA + 1)
        self._wait_full()

    def move_on(self) -> None:
        """Return once one has ended and the next one runs in its place."""
        self._add(1)
        ending = min(self.cluster.running())
        self.cluster.finish(ending)
        wait_for(f"{ending} has ended", lambda: ending not in self.cluster.running(), TAKE_OVER_S)
        self._wait_full()

    def _add(self, count: int) -> None:
        names = [f"p{self._come + number:03}" for number in range(count)]
        self._come += count
        self.cluster.create(*(card_pod(name, self.card, self.queue) for name in names))

    def _wait_full(self) -> None:
        def full() -> bool:
            return len(admitted(self.cluster.pods())) == len(self.cluster.running()) == QUOTA

        wait_for("the quota is used up by pods that run", full, TAKE_OVER_S)
