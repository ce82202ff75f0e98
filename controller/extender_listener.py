"""The ports beside the main one: each serves nothing but questions of one kind of asker.

Volcano's scheduler cannot be told whose certificates to trust, so its port is plain HTTP. Who may reach them is a
NetworkPolicy's business.
"""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from controller.extender import KUBE_PATHS
from kube.handshakes import Turns
from kube.serving import Server, application

_FINISH_S = 5.0
"""Longer than the scheduler waits for an answer."""
STRANGERS_PER_S: Final = 20.0
"""TLS handshakes that strangers get at each of these ports: a scheduler keeps a connection or two, and people ask seldom."""
KNOWN_PER_S: Final = 50.0
"""Those of addresses that were served there: whoever wants more of them takes the time of binds."""


Routes = Callable[[web.Application], None]


@asynccontextmanager
async def listening(
    routes: Routes, host: str, port: int | None, *, name: str, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """The port is open, unless there is none. `name` is for the log."""
    if port is None:
        yield
        return
    app = application()
    routes(app)
    handshakes = Turns(strangers_per_s=STRANGERS_PER_S, known_per_s=KNOWN_PER_S)
    server = Server(app, host, port, tls, name=name, finish_s=_FINISH_S, handshakes=handshakes)
    await server.start()
    try:
        yield
    finally:
        await server.stop()


def add_moved_routes(app: web.Application, port: int) -> None:
    """Sends kube-scheduler on to its port: configurations of the first release name the one that the hook has kept.

    Whoever asks repeats the question there, so nothing of it is read here.
    """

    async def moved(request: web.Request) -> web.StreamResponse:
        url = request.url.with_port(port).with_scheme("https")
        return web.Response(status=308, headers={"Location": str(url)})

    for path in KUBE_PATHS:
        app.router.add_post(path, moved)
