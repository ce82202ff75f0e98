"""A controller's start over a large cluster: time, memory, and the pauses of the garbage collector afterwards.

`python -m hack.bench.memory PODS NODES CHANGES` is the process that is measured; it prints one line of JSON.
"""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import orjson

from controller.caches import Caches
from core.plan.lift import Planner
from core.settings import Settings
from hack.bench import samples
from hack.bench.clock import Pauses, resident_mib
from hack.bench.effort import FULL, Effort
from hack.bench.pages import PAGE, Pages, in_pages
from hack.bench.peers import BenchError
from hack.bench.report import Row, Sheet, Target
from kube import runtime
from kube.resources import NODES, PODS, QUEUES
from tests.builders.objects import PodBuilder

_LIMIT_S: Final = 300.0
_QUEUES: Final = 100
_PART: Final = 10_000
_NAME, _NODE, _VERSION = b"bench-name", b"bench-node", b"bench-version"


@dataclass(frozen=True, slots=True)
class Start:
    """What one process measured on itself: processor seconds, MiB, and milliseconds of the longest collections."""

    pods: int
    kept: int
    parse_s: float
    start_s: float
    plan_ms: float
    resident_mib: float
    load_pause_ms: float
    pause_ms: float
    full_pause_ms: float


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """Starts over the large cluster and, for the floor, over a page of pods."""
    progress(f"one page of {PAGE} pods")
    floor = _child(PAGE, 10, effort.changes)
    progress(f"{effort.pods} pods on {effort.pod_nodes} nodes")
    large = _child(effort.pods, effort.pod_nodes, effort.changes)
    judged = effort.pods >= FULL.pods and effort.pod_nodes >= FULL.pod_nodes
    return _rows(large, floor, effort, judged=judged)


def _child(pods: int, nodes: int, changes: int) -> Start:
    command = [sys.executable, "-m", "hack.bench.memory", str(pods), str(nodes), str(changes)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=_LIMIT_S, check=True)
    except subprocess.SubprocessError as error:
        raise BenchError(f"a start over {pods} pods: {error}") from error
    return Start(**orjson.loads(done.stdout))


def _rows(large: Start, floor: Start, effort: Effort, *, judged: bool) -> list[Row]:
    row = Sheet("memory", judged).row

    def below(bound: float) -> Target:
        return Target("figure", "<", bound)

    small = f"the same process over {PAGE} pods"
    after = f"{effort.changes:,} changes"
    return [
        row(
            f"start over {large.pods:,} pods: list, views, ledger, first pass",
            "s",
            large.start_s,
            large.parse_s,
            "orjson reading the same pages",
            below(45),
        ),
        row("resident memory", "MiB", large.resident_mib, floor.resident_mib, small, below(700)),
        row(f"longest collection in {after}", "ms", large.pause_ms, floor.pause_ms, small, below(20)),
        row(f"a full collection after {after}", "ms", large.full_pause_ms, floor.full_pause_ms, small),
        row("longest collection while starting", "ms", large.load_pause_ms, floor.load_pause_ms, small),
    ]


class _Cluster:
    """Objects as JSON, made one by one, so that the process never holds the text of all of them.

    Of ten pods seven ask for nothing, two run on a card and one waits for a card.
    """

    def __init__(self, pods: int, nodes: int) -> None:
        self._pods = pods
        self._nodes = nodes
        # One template for each kind of pod: building them one by one would cost more than what is measured.
        name = _NAME.decode()
        web, card = samples.web_pod(name, _NODE.decode()), samples.training_pod(name)
        bound = card.bound_to(_NODE.decode())
        self._kinds = [_template(web)] * 7 + [_template(bound)] * 2 + [_template(card.gated())]

    def pods(self, numbers: range | None = None, version: str = "1") -> Iterator[bytes]:
        for number in numbers or range(self._pods):
            text = self._kinds[number % len(self._kinds)]
            text = text.replace(_NAME, b"pod-%d" % number).replace(_VERSION, version.encode())
            yield text.replace(_NODE, b"n%d" % (number * samples.CARDS_PER_NODE % self._nodes))

    def nodes(self) -> Iterator[bytes]:
        return (orjson.dumps(samples.card_node(number).build()) for number in range(self._nodes))

    def queues(self) -> Iterator[bytes]:
        quota = dict.fromkeys(samples.PRODUCTS, 10)
        return (orjson.dumps(samples.queue(number, quota).build()) for number in range(_QUEUES))


def _template(pod: PodBuilder) -> bytes:
    return orjson.dumps(pod.put("metadata", "resourceVersion", value=_VERSION.decode()).build())


async def _measure(pods: int, nodes: int, changes: int) -> Start:
    """Goes through a start and a number of changes in this process."""
    cluster = _Cluster(pods, nodes)
    # A part of the pages tells what making and reading one costs.
    part = range(min(pods, _PART))
    making_s = _seconds(lambda: [len(page) for page in in_pages(cluster.pods(part))]) * pods / len(part)
    reading_s = _seconds(lambda: [len(orjson.loads(page)) for page in in_pages(cluster.pods(part))])
    reading_s *= pods / len(part)
    changed = range(min(pods, changes))
    source = Pages(
        {PODS.plural: cluster.pods, NODES.plural: cluster.nodes, QUEUES.plural: cluster.queues},
        {PODS.plural: lambda: cluster.pods(changed, version="2")},
    )
    caches = Caches(source, Settings())
    following = asyncio.create_task(caches.run(), name="informers")
    try:
        started = time.process_time()
        with Pauses() as loading:
            await runtime.filled(caches.wait_synced())
            listed_s = time.process_time() - started
            plan_s = _seconds(lambda: _first_pass(caches))
        with Pauses() as natural:
            source.start.set()
            await source.quiet.wait()
        with Pauses() as full:
            gc.collect()
    finally:
        following.cancel()
    return Start(
        pods=pods,
        kept=len(caches.pods),
        parse_s=max(reading_s - making_s, 0.0),
        start_s=max(listed_s - making_s, 0.0) + plan_s,
        plan_ms=plan_s * 1000,
        resident_mib=resident_mib(),
        load_pause_ms=loading.longest_ms,
        pause_ms=natural.longest_ms,
        full_pause_ms=full.longest_ms,
    )


def _first_pass(caches: Caches) -> None:
    planner = Planner(caches.ledger)
    for name in planner.order(caches.ledger.accounts):
        planner.decide(name)


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main(arguments: Sequence[str]) -> int:
    """Measures in this process, which runs as those of the product do."""

    async def run(_stop: asyncio.Event) -> int:
        print(orjson.dumps(asdict(await _measure(*map(int, arguments)))).decode())
        return 0

    return runtime.run(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
