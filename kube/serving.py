"""An HTTP or HTTPS server around an aiohttp application, with a shutdown that loses no request.

The order of the shutdown: readiness fails, a pause lets Services and API servers take notice while requests are
still answered, the listening socket closes, open requests finish.
"""

import asyncio
import logging
import socket
import ssl

from aiohttp import web

from kube import doors, threshold
from kube.handshakes import Turns
from kube.health import Health

_LOG = logging.getLogger(__name__)

BODY_LIMIT = 8 * 1024 * 1024
"""Bytes accepted in a request body; etcd stores objects of 1.5 MiB, and an AdmissionReview holds an object twice."""


def application(*, body_limit: int = BODY_LIMIT) -> web.Application:
    """An empty application that accepts bodies of up to `body_limit` bytes (aiohttp's own limit is 1 MiB)."""
    return web.Application(client_max_size=body_limit)


class _Site(web.TCPSite):
    """A port that takes connections within limits."""

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        name: str,
        *,
        reuse_port: bool,
        handshakes: Turns | None,
    ) -> None:
        super().__init__(runner, host, port, ssl_context=tls)
        self._wanted = (host, port)
        self._tls = tls
        self._shared = reuse_port or None
        self._called = name
        self._handshakes = handshakes
        self._entrance: doors.Doors | None = None

    async def start(self) -> None:
        await web.BaseSite.start(self)
        inner = self._runner.server
        assert inner is not None, "the runner is set up"
        host, port = self._wanted
        threshold.keep_tls_small()
        self._entrance = doors.Doors(inner, tls=self._tls, name=self._called, turns=self._handshakes)
        loop = asyncio.get_running_loop()
        if ":" in host:
            listener = _listener(host, port, shared=self._shared is True)
            self._server = await loop.create_server(self._entrance, sock=listener)
        else:
            self._server = await loop.create_server(self._entrance, host, port, reuse_port=self._shared)

    async def stop(self) -> None:
        await super().stop()
        if self._entrance is not None:
            self._entrance.shut()


def _listener(host: str, port: int, *, shared: bool) -> socket.socket:
    """On an address of IPv6, with those of IPv4 where it means all: asyncio itself leaves them out. Raises OSError."""
    return socket.create_server(
        (host, port),
        family=socket.AF_INET6,
        reuse_port=shared,
        dualstack_ipv6=socket.has_dualstack_ipv6(),
    )


class Server:
    """Serves `app` on one port. `start` and `stop` are to be called once each, from one event loop.

    With `health`, stopping makes it fail readiness first. `finish_s` is the time that open requests are given once the
    port is closed; it has to exceed the time-out of whoever calls. A handler that goes on after it is cancelled.
    `handshakes` is the pace of TLS handshakes, where it is not the usual one.
    """

    def __init__(
        self,
        app: web.Application,
        host: str,
        port: int,
        ssl_context: ssl.SSLContext | None = None,
        *,
        name: str = "http",
        health: Health | None = None,
        finish_s: float = 30.0,
        reuse_port: bool = False,
        handshakes: Turns | None = None,
    ) -> None:
        self._app = app
        self._host = host
        self._wanted_port = port
        self._ssl_context = ssl_context
        self._name = name
        self._health = health
        self._finish_s = finish_s
        self._reuse_port = reuse_port
        self._handshakes = handshakes
        self._runner: web.AppRunner | None = None
        self._port: int | None = None
        self._draining = False

    @property
    def port(self) -> int:
        """The port being listened on: the real one where 0 was asked for. Raises RuntimeError before `start`."""
        if self._port is None:
            raise RuntimeError("the server was not started")
        return self._port

    async def start(self) -> None:
        """Returns when connections are accepted. Raises OSError when the port cannot be had."""
        self._app.on_response_prepare.append(self._answered)
        runner = web.AppRunner(
            self._app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=self._finish_s,
            keepalive_timeout=doors.IDLE_S,
            lingering_time=doors.LINGER_S,
        )
        await runner.setup()
        site = _Site(
            runner,
            self._host,
            self._wanted_port,
            self._ssl_context,
            self._name,
            reuse_port=self._reuse_port,
            handshakes=self._handshakes,
        )
        try:
            await site.start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self._port = int(runner.addresses[0][1])
        _LOG.info("listening", extra={"server": self._name, "host": self._host, "port": self.port})

    async def stop(self, drain_s: float = 0.0) -> None:
        """Returns when the last open request is answered or was given up, at most twice `finish_s` after the port closed.

        For `drain_s` seconds before that, requests are answered as ever, but readiness fails, and each answer asks its
        client to open a new connection for the next request: by then that goes to another replica.
        """
        if self._runner is None:
            return
        self._draining = True
        if self._health is not None:
            self._health.drain()
        runner, self._runner = self._runner, None
        try:
            if drain_s > 0:
                await asyncio.sleep(drain_s)
        finally:
            await runner.cleanup()
        _LOG.info("stopped", extra={"server": self._name})

    async def _answered(self, request: web.Request, response: web.StreamResponse) -> None:
        doors.answered(request, response)
        if self._draining or doors.more_was_asked(request):
            doors.close_after(response)
