"""A plain HTTP port for Volcano's scheduler, which cannot be told whose certificates to trust.

It serves nothing but questions about placement, and answers them from what the scheduler knows anyway. Who may reach it is
a NetworkPolicy's business.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controller.extender import Extender
from kube.serving import Server, application

_FINISH_S = 5.0
"""Longer than the scheduler waits for an answer."""


@asynccontextmanager
async def listening(extender: Extender, host: str, port: int | None) -> AsyncIterator[None]:
    """The port is open, unless there is none."""
    if port is None:
        yield
        return
    app = application()
    extender.add_volcano_routes(app)
    server = Server(app, host, port, name="extender", finish_s=_FINISH_S)
    await server.start()
    try:
        yield
    finally:
        await server.stop()
