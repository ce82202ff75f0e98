"""Where the processor time of one review goes: handlers that do more and more of it, each beside the bare one.

All in one process, from the bytes that a connection hands on to those that it is given. What a request costs before and after
that, TLS and the kernel, is the same for the bare handler, and is left out: so a share of ours is larger here than in `webhook`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Final, Self

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry

from controller.app import BINDINGS_PATH
from core.admission.dispatch import MUTATE_PODS, VALIDATE_PODS
from core.admission.request import ALLOWED, AdmissionRequest, Decision
from core.objects.draft import Draft
from hack.bench import samples, servers
from hack.bench.clock import bounded, pair, settled
from hack.bench.effort import Effort
from hack.bench.peers import BenchError
from hack.bench.report import Row
from kube import doors, intake
from kube.admission.endpoint import add_review_route
from kube.admission.metrics import ReviewMetrics
from kube.serving import application

_FLOOR_IS: Final = "the bare handler in the same process: aiohttp, the doors of the port, and orjson"
_ADDRESS: Final = ("10.0.0.1", 1)

Make = Callable[[AsyncExitStack], Awaitable[web.Application]]


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """For each kind of review a row for every step; each does all that those above it do."""
    with settled():
        return asyncio.run(_measured(effort, progress))


async def _measured(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    pod = samples.pod_review(samples.training_pod("train").build())
    bind = samples.binding_review(servers.BOUND_POD, "n1")
    common: Mapping[str, tuple[str, Make]] = {
        "its body taken in": (servers.BARE_PATH, _taking_in),
        "decoded, answered and counted": (servers.BARE_PATH, _asking_nobody),
    }
    facts = {"the facts of the pod gathered": (servers.BARE_PATH, _gathering)}
    return [
        *await _rows("pod", pod, {**common, **facts}, effort, progress),
        *await _rows("pod", pod, {"patched, all of it": (MUTATE_PODS, servers.webhook)}, effort, progress),
        *await _rows(
            "pod", pod, {"validated, all of it": (VALIDATE_PODS, servers.webhook)}, effort, progress
        ),
        *await _rows(
            "bind", bind, {**common, "all of it": (BINDINGS_PATH, servers.binding)}, effort, progress
        ),
    ]


async def _rows(
    name: str,
    body: bytes,
    steps: Mapping[str, tuple[str, Make]],
    effort: Effort,
    progress: Callable[[str], None],
) -> list[Row]:
    async with AsyncExitStack() as stack:
        bare = await _Caller.to(servers.BARE_PATH, servers.bare, body, stack)
        callers = {what: await _Caller.to(*step, body, stack) for what, step in steps.items()}
        floors: list[float] = []
        figures: dict[str, list[float]] = {what: [] for what in steps}
        for number in bounded(effort.rounds, effort.limit_s):
            floors.append(await bare.cpu_us(effort.requests))
            for what, caller in callers.items():
                figures[what].append(await caller.cpu_us(effort.requests))
            progress(f"{name}, {', '.join(steps)}: round {number + 1} of {effort.rounds}")
    found = {what: pair(figures[what], floors) for what in steps}
    return [
        Row(
            benchmark="review",
            what=f"{name}: {what}",
            figure=each.figure,
            floor=each.floor,
            ratio=each.ratio,
            unit="us",
            floor_is=_FLOOR_IS,
        )
        for what, each in found.items()
    ]


async def _taking_in(_stack: AsyncExitStack) -> web.Application:
    bodies = intake.Intake(others=intake.OTHERS)

    async def echo(request: web.Request) -> web.Response:
        async with bodies.body(request, request.client_max_size) as body:
            orjson.loads(body)
        return web.Response(body=body, content_type="application/json")

    app = application()
    app.router.add_post(servers.BARE_PATH, echo)
    return app


async def _asking_nobody(_stack: AsyncExitStack) -> web.Application:
    return _reviewing(lambda _request: None)


async def _gathering(_stack: AsyncExitStack) -> web.Application:
    return _reviewing(lambda request: Draft.of(request.object))


def _reviewing(look: Callable[[AdmissionRequest], object]) -> web.Application:
    async def answer(request: AdmissionRequest) -> Decision:
        look(request)
        return ALLOWED

    app = application()
    metrics = ReviewMetrics(CollectorRegistry())
    add_review_route(app, servers.BARE_PATH, serves=lambda _request: True, answer=answer, metrics=metrics)
    return app


class _Caller:
    """Asks one application the same over and over; the next request comes in the turn of the loop after an answer."""

    def __init__(self, door: asyncio.Protocol, path: str, body: bytes) -> None:
        head = (
            f"POST {path}?timeout=5s HTTP/1.1\r\nHost: {servers.HOST}\r\nContent-Type: application/json\r\n"
        )
        self._request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        self._door = door
        self._line = _Line(door, self._answered)
        self._left = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        door.connection_made(self._line)

    @classmethod
    async def to(cls, path: str, make: Make, body: bytes, stack: AsyncExitStack) -> Self:
        """A caller of an application that is served behind doors until the stack ends."""
        app = await make(stack)
        app.on_response_prepare.append(_told)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        assert runner.server is not None, "the runner is set up"
        return cls(doors.Doors(runner.server, name="review")(), path, body)

    async def cpu_us(self, requests: int) -> float:
        """The processor time of each of so many requests. Raises BenchError for an answer other than 200."""
        self._left = requests
        self._done = asyncio.get_running_loop().create_future()
        started = time.process_time()
        self._ask()
        await self._done
        return (time.process_time() - started) / requests * 1e6

    def _ask(self) -> None:
        self._door.data_received(self._request)

    def _answered(self, answer: bytes) -> None:
        self._left -= 1
        if not answer.startswith(b"HTTP/1.1 200 "):
            self._done.set_exception(BenchError(f"unexpected answer: {answer[:300]!r}"))
        elif self._left:
            asyncio.get_running_loop().call_soon(self._ask)
        else:
            self._done.set_result(None)


async def _told(request: web.Request, response: web.StreamResponse) -> None:
    """As every server of ours does it."""
    doors.answered(request, response)


class _Line(asyncio.Transport):
    """A connection without anything below it: what is written is an answer, each in one piece."""

    def __init__(self, door: asyncio.BaseProtocol, answered: Callable[[bytes], None]) -> None:
        super().__init__({"peername": _ADDRESS})
        self._door = door
        self._answered = answered

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._door

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._answered(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._answered(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Nothing comes but what is asked for."""

    def resume_reading(self) -> None:
        """As above."""

    def close(self) -> None:
        self._door.connection_lost(None)

    abort = close
