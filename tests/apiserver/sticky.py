"""A scheduler that behaves as Volcano's does where a bind is denied: it tries the same node again, every second, for ever.

It looks at what nodes have in sum and at node affinity, and knows nothing of single cards.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from core.objects import Node, Pod, node, pod
from hack.controlplane import Answer
from tests.apiserver.cluster import Cluster
from tests.apiserver.manifests import binding
from tests.fakes.node_rules import admits

SESSION_S = 1.0


class StickyScheduler:
    """Binds the pods of one namespace that name it, until it is left.

    By pod, `denied` counts refused binds, and `sessions` those in which it had no node yet.
    """

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._pool = ThreadPoolExecutor(8)
        self._chosen: dict[str, str] = {}
        self.denied: Counter[str] = Counter()
        self.sessions: Counter[str] = Counter()
        self.said: dict[str, str] = {}
        """The last refusal of each pod."""
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._pool.shutdown()
        if error is None and self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        while not self._stop.wait(SESSION_S):
            try:
                self._session()
            except Exception as error:  # noqa: BLE001 - raised where the test ends
                self.failure = error
                return

    def _session(self) -> None:
        nodes = [node.project(raw) for raw in self._list("/api/v1/nodes")]
        pods = [pod.project(raw) for raw in self._list("/api/v1/pods")]
        used: dict[str, Counter[str]] = {each.name: Counter() for each in nodes}
        for each in pods:
            if each.node_name in used and not each.terminal:
                used[each.node_name].update(each.requests)
        placed = []
        for each in pods:
            if each.bound or each.gates or each.terminal or each.deleting or not self._is_mine(each):
                continue
            self.sessions[each.name] += 1
            chosen = self._chosen.get(each.uid) or self._choose(each, nodes, used)
            if chosen:
                self._chosen[each.uid] = chosen
                used[chosen].update(each.requests)
                placed.append((each, chosen))
        # The binds of a session run side by side.
        for (asked, _), answer in zip(placed, self._pool.map(self._bind, placed), strict=True):
            self._note(asked, answer)

    def _choose(self, each: Pod, nodes: list[Node], used: Mapping[str, Counter[str]]) -> str:
        """The node that is used most of all that have enough in sum, so that the full ones are tried."""
        fitting = [
            (used[candidate.name]["vke.volcengine.com/mgpu-core"], candidate.name)
            for candidate in nodes
            if admits(each, candidate)
            and all(
                used[candidate.name][key] + milli <= candidate.allocatable.get(key, 0)
                for key, milli in each.requests.items()
            )
        ]
        return max(fitting, default=(0, ""))[1]

    def _bind(self, placed: tuple[Pod, str]) -> Answer:
        each, chosen = placed
        return self._cluster.bind(binding(each.name, chosen, uid=each.uid))

    def _note(self, each: Pod, answer: Answer) -> None:
        if answer.status == HTTPStatus.CREATED:
            self._chosen.pop(each.uid)
        elif answer.status == HTTPStatus.CONFLICT:
            self.denied[each.name] += 1
            self.said[each.name] = str(answer.body["message"])
        else:
            answer.expect(HTTPStatus.CREATED, HTTPStatus.NOT_FOUND)

    def _is_mine(self, each: Pod) -> bool:
        return each.scheduler_name == self._name and each.namespace == self._cluster.namespace

    def _list(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._cluster.api.get(path).expect()["items"]
        return found
