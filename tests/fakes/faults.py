"""How an API server may fail to answer."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
