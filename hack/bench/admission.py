"""The HTTPS endpoints against a bare handler on the same kind of server, under the same load."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Final

from controller.app import BINDINGS_PATH
from core.admission.dispatch import MUTATE_PODS, VALIDATE_PODS
from hack.bench import samples, servers
from hack.bench.clock import bounded, pair
from hack.bench.effort import Effort
from hack.bench.load import Order, Tally
from hack.bench.peers import BenchError, Peer, peer
from hack.bench.report import Row, Target

Progress = Callable[[str], None]

_FLOOR_IS: Final = (
    "a bare aiohttp handler over the same TLS that parses the same body with orjson and sends it back"
)
_THROUGHPUT: Final = Target("ratio", ">=", 0.8)
_TAIL: Final = Target("ratio", "<=", 2.0)
_ALLOWED: Final = '"allowed":true'


def webhook(effort: Effort, progress: Progress) -> list[Row]:
    """Reviews of a pod of about 5 KB that asks for a card: the patch at its creation, and its validation."""
    body = samples.pod_review(samples.training_pod("train").build())
    return [
        *compared(
            "webhook",
            f"pod review, patched, {_kb(body)}",
            servers.WEBHOOK,
            MUTATE_PODS,
            body,
            effort,
            progress,
        ),
        *compared(
            "webhook",
            f"pod review, validated, {_kb(body)}",
            servers.WEBHOOK,
            VALIDATE_PODS,
            body,
            effort,
            progress,
        ),
    ]


def binding(effort: Effort, progress: Progress) -> list[Row]:
    """Binds of a pod that asks for nothing and that the informer holds."""
    body = samples.binding_review(servers.BOUND_POD, "n1")
    what = f"bind of a pod that asks for nothing, {_kb(body)}"
    return compared("binding", what, servers.BINDING, BINDINGS_PATH, body, effort, progress)


def compared(
    name: str,
    what: str,
    kind: str,
    path: str,
    body: bytes,
    effort: Effort,
    progress: Progress,
    expect: str = _ALLOWED,
    throughput: Target | None = _THROUGHPUT,
) -> list[Row]:
    """Requests, tail and processor time of one server beside the bare one; its answers must contain `expect`."""
    with ExitStack() as stack:
        load = stack.enter_context(peer("hack.bench.load"))
        bare = stack.enter_context(peer("hack.bench.servers", servers.BARE))
        real = stack.enter_context(peer("hack.bench.servers", kind))
        floor_order = order(bare, servers.BARE_PATH, '"metadata"', body, effort)
        figure_order = order(real, path, expect, body, effort)
        floors: list[Tally] = []
        figures: list[Tally] = []
        for number in bounded(effort.rounds, effort.limit_s):
            floors.append(measured(load, floor_order))
            figures.append(measured(load, figure_order))
            progress(f"{what}: round {number + 1} of {effort.rounds}")
    return _rows(name, what, figures, floors, effort, throughput)


def order(server: Peer, path: str, expect: str, body: bytes, effort: Effort) -> Order:
    """The order for a server that has just been started; waits until it listens."""
    listening = server.hear()
    return Order(
        pid=server.pid,
        port=listening["port"],
        ca=listening["ca"],
        path=path,
        body=body.decode(),
        expect=expect,
        requests=effort.requests,
        connections=effort.connections,
        limit_s=effort.limit_s,
    )


def measured(load: Peer, order: Order) -> Tally:
    """Has one order carried out. Raises BenchError unless every answer is as expected."""
    load.tell(asdict(order))
    tally = Tally(**load.hear())
    if tally.problem:
        raise BenchError(f"{order.path}: {tally.problem}")
    return tally


def _rows(
    name: str,
    what: str,
    figures: Sequence[Tally],
    floors: Sequence[Tally],
    effort: Effort,
    throughput: Target | None,
) -> list[Row]:
    def row(label: str, unit: str, value: Callable[[Tally], float], target: Target | None) -> Row:
        found = pair([value(each) for each in figures], [value(each) for each in floors])
        return Row(
            benchmark=name,
            what=f"{what}: {label}",
            figure=found.figure,
            floor=found.floor,
            ratio=found.ratio,
            unit=unit,
            floor_is=_FLOOR_IS,
            target=target,
        )

    return [
        row("requests", "/s", lambda each: each.per_s, throughput),
        row(f"p99 at {effort.connections}", "ms", lambda each: each.p99_ms, _TAIL),
        row("processor time", "us", lambda each: each.cpu_us, None),
    ]


def _kb(body: bytes) -> str:
    return f"{len(body) / 1000:.1f} KB"
