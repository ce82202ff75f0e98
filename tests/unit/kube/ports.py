"""A port that is open for the time of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from kube.serving import Server


class _Served(Protocol):
    server: Server


P = TypeVar("P", bound=_Served)


@asynccontextmanager
async def opened(port: P) -> AsyncIterator[P]:
    await port.server.start()
    try:
        yield port
    finally:
        await port.server.stop()
