"""What both processes are made of: their flags, their two ports, their certificate and their probes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from kube import errors, logs, metrics, runtime
from kube.certificates import FollowedPair
from kube.health import Health, condition
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from kube.serving import Server, application
from kube.stalls import StallWatch
from kube.tls import ServingCertificate
from kube.webhook_entries import Configuration

_LOG = logging.getLogger(__name__)

_KINDS = {"-mutating": MUTATING_WEBHOOKS, "-validating": VALIDATING_WEBHOOKS}

_FINISH_S = 15.0
"""Longer than the API server waits for any webhook of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """The flags that both processes share, under their names.

    `service` and `dns_names` are what the certificate is issued for. Port 0 means any free port. `drain_s` is how long
    requests are still answered after readiness has begun to fail. `settings_warnings` has a line for each setting that is
    not used as it was written.
    """

    namespace: str
    cert_secret: str
    service: str
    dns_names: tuple[str, ...] = ()
    webhook_configurations: tuple[str, ...] = ()
    controller_account: str = ""
    port: int = 9443
    metrics_port: int = 8080
    bind_address: str = "0.0.0.0"  # noqa: S104 - a pod is reached from outside, by the API server
    kubeconfig: Path | None = None
    log_level: str = "info"
    drain_s: float = 3.0
    settings_warnings: tuple[str, ...] = ()

    @property
    def certificate_names(self) -> tuple[str, ...]:
        """Every DNS name of the serving certificate, each once."""
        return tuple(dict.fromkeys((self.service, *self.dns_names)))

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The webhook configurations whose caBundle is kept. Raises ValueError for a name without a known ending."""
        return tuple((_resource(name), name) for name in self.webhook_configurations)


def _resource(name: str) -> Resource:
    """The resource of a configuration by the ending of its name: the rights of the process cover only that one."""
    for ending, resource in _KINDS.items():
        if name.endswith(ending):
            return resource
    raise ValueError(f"webhook configuration {name!r}: the name must end in {' or '.join(_KINDS)}")


def run(options: ProcessOptions, serve: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    """Runs `serve` until SIGTERM or SIGINT; the exit status: what it returns, 1 when it cannot start.

    Raises ValueError for options that make no sense.
    """
    logs.setup(options.log_level)
    _ = options.configurations
    metrics.DEFAULT.settings_warnings.set(len(options.settings_warnings))
    for warning in options.settings_warnings:
        _LOG.warning("a setting is not used as it was written", extra={"detail": warning})
    try:
        return runtime.run(serve)
    except (errors.KubeError, OSError) as error:
        _LOG.error("cannot start", extra={"error": errors.describe(error)})
        return 1


class Frame:
    """Certificate, probes and ports of one process. Ready once it has a pair to serve, of an authority in its Secret's `ca.crt`.

    That is what the API server is told to trust; the webhook's pair is stored only afterwards.
    """

    def __init__(self, options: ProcessOptions, serving: ServingCertificate, pair: FollowedPair) -> None:
        self._options = options
        self._pair = pair
        self.serving = serving
        self.health = Health()
        self.health.require_ready(
            "certificate",
            condition(
                lambda: self.serving.loaded,
                "there is no serving certificate yet, or none that its ca.crt vouches for; the leader issues it",
            ),
        )

    async def run(self) -> None:
        """Keeps to the certificate that is stored until cancelled."""
        await self._pair.run()

    @asynccontextmanager
    async def listening(self, app: web.Application, name: str) -> AsyncIterator[None]:
        """Both ports open; in the end the main port drains while the other one still says why.

        What makes the process deaf meanwhile is counted and named.
        """
        monitoring = application()
        self.health.add_routes(monitoring)
        metrics.add_route(monitoring)
        options = self._options
        monitor = Server(monitoring, options.bind_address, options.metrics_port, name="metrics")
        server = Server(
            app,
            options.bind_address,
            options.port,
            self.serving.context,
            name=name,
            health=self.health,
            finish_s=_FINISH_S,
        )
        with StallWatch().watching():
            await monitor.start()
            try:
                await server.start()
                try:
                    yield
                finally:
                    await server.stop(options.drain_s)
            finally:
                await monitor.stop()
