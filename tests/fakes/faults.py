"""How an API server may fail: another answer than its own, silence, or a stream that breaks."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from tests.fakes.answers import status

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> Fault:
    """That status and body."""

    async def fault(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=code, body=body, headers=headers)

    return fault


def answer_status(code: int, reason: str, message: str = "") -> Fault:
    """A Status object with its code, as the API server answers."""

    async def fault(_request: web.Request) -> web.StreamResponse:
        return status(code, reason, message)

    return fault


def silence(start: bytes = b"") -> Fault:
    """Headers (of a watch or any answer), perhaps a start, and then nothing until the client goes away."""

    async def fault(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(start)
        await asyncio.Event().wait()  # until the handler is cancelled, because the client has gone
        return response

    return fault


def no_answer() -> Fault:
    """Not even headers."""

    async def fault(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    return fault


def stream(*chunks: bytes, cut: bool = False) -> Fault:
    """These chunks, each written by itself; with `cut` the connection is then broken instead of ended."""

    async def fault(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return fault
