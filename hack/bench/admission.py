"""The HTTPS endpoints against a bare handler on the same kind of server, under the same load."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from core.admission.dispatch import MUTATE_PODS, VALIDATE_PODS
from controller.app import BINDINGS_PATH
from hack.bench import samples, servers
from hack.bench.clock import bounded, cpu_s_of, pair
from hack.bench.effort import Effort
from hack.bench.load import Order, Tally
from hack.bench.report import Row, Target

Progress = Callable[[str], None]

_FLOOR_IS: Final = "a bare aiohttp handler over the same TLS that parses the same body with orjson and sends it back"
_STOP_S: Final = 10.0
_THROUGHPUT: Final = Target("ratio", ">=", 0.8)
_TAIL: Final = Target("ratio", "<=", 2.0)
_ALLOWED: Final = '"allowed":true'


class BenchError(Exception):
    """A server or the load maker did not do what it should; `str()` says what."""


def webhook(effort: Effort, progress: Progress) -> list[Row]:
    """Reviews of a pod of about 5 KB that asks for a card: the patch at its creation, and its validation."""
    body = samples.pod_review(samples.training_pod("train").build())
    return [
        *_compared("webhook", f"pod review, patched, {_kb(body)}", servers.WEBHOOK, MUTATE_PODS, body, effort, progress),
        *_compared("webhook", f"pod review, validated, {_kb(body)}", servers.WEBHOOK, VALIDATE_PODS, body, effort, progress),
    ]


def binding(effort: Effort, progress: Progress) -> list[Row]:
    """Binds of a pod that asks for nothing and that the informer holds."""
    body = samples.binding_review(servers.BOUND_POD, "n1")
    what = f"bind of a pod that asks for nothing, {_kb(body)}"
    return _compared("binding", what, servers.BINDING, BINDINGS_PATH, body, effort, progress)


@dataclass(frozen=True, slots=True)
class _Measured:
    tally: Tally
    cpu_us: float
    """Processor time of the server per request."""


class _Peer:
    """A child process that answers each line on its standard input by a line; it ends when that is closed."""

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", module, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._name = " ".join((module, *arguments))

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, message: object) -> None:
        assert self._process.stdin is not None, "opened as a pipe"
        self._process.stdin.write(orjson.dumps(message).decode() + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None, "opened as a pipe"
        line = self._process.stdout.readline()
        if not line:
            raise BenchError(f"{self._name} ended with exit status {self._process.wait(_STOP_S)}")
        return orjson.loads(line)

    def close(self) -> None:
        """Lets it end, and kills it if it does not."""
        try:
            self._process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@contextmanager
def _peer(module: str, *arguments: str) -> Iterator[_Peer]:
    peer = _Peer(module, *arguments)
    try:
        yield peer
    finally:
        peer.close()


def _compared(
    name: str, what: str, kind: str, path: str, body: bytes, effort: Effort, progress: Progress
) -> list[Row]:
    with ExitStack() as stack:
        load = stack.enter_context(_peer("hack.bench.load"))
        bare = stack.enter_context(_peer("hack.bench.servers", servers.BARE))
        real = stack.enter_context(_peer("hack.bench.servers", kind))
        at_bare, at_real = bare.hear(), real.hear()
        common = {
            "body": body.decode(),
            "requests": effort.requests,
            "connections": effort.connections,
            "limit_s": effort.limit_s,
        }
        floor_order = Order(**at_bare, path=servers.BARE_PATH, expect='"kind"', **common)
        figure_order = Order(**at_real, path=path, expect=_ALLOWED, **common)
        floors: list[_Measured] = []
        figures: list[_Measured] = []
        for number in bounded(effort.rounds, effort.limit_s):
            floors.append(_measured(load, floor_order, bare.pid))
            figures.append(_measured(load, figure_order, real.pid))
            progress(f"{what}: round {number + 1} of {effort.rounds}")
    return _rows(name, what, figures, floors, effort)


def _measured(load: _Peer, order: Order, server: int) -> _Measured:
    before = cpu_s_of(server)
    load.tell(asdict(order))
    tally = Tally(**load.hear())
    if tally.problem:
        raise BenchError(f"{order.path}: {tally.problem}")
    return _Measured(tally, (cpu_s_of(server) - before) / order.total * 1e6)


def _rows(
    name: str, what: str, figures: Sequence[_Measured], floors: Sequence[_Measured], effort: Effort
) -> list[Row]:
    def row(label: str, unit: str, value: Callable[[_Measured], float], target: Target | None) -> Row:
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
        row("requests", "/s", lambda each: each.tally.per_s, _THROUGHPUT),
        row(f"p99 at {effort.connections}", "ms", lambda each: each.tally.p99_ms, _TAIL),
        row("processor time", "us", lambda each: each.cpu_us, None),
    ]


def _kb(body: bytes) -> str:
    return f"{len(body) / 1000:.1f} KB"
