"""One HTTP exchange with the API server: credentials, timeouts, status check, metrics, errors of one tree.

The request goes to the aiohttp session of kubernetes_asyncio directly. The library's own request method checks no
status on raw calls, sets no timeout at all unless told, encodes every body with the slower stdlib JSON and logs
whole answers at DEBUG, Secrets included.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from http import HTTPStatus
from io import BytesIO
from urllib.parse import urlencode

import aiohttp
from kubernetes_asyncio.config.config_exception import ConfigException
from yarl import URL

from kube import connection, errors
from kube.metrics import Metrics

_LOG = logging.getLogger(__name__)

_RELOAD_EVERY_S = 10.0
_CONNECT_S = 10.0
AGAIN_WITHIN_S = 1.0
"""A request is sent again only so soon after it was sent first: a leader's write must not arrive long after it was allowed."""
_ONE_PIECE = 512 * 1024
# Plain numbers: to ask an enumeration for a member takes longer than to compare with it.
_SUCCESSES = range(HTTPStatus.OK, HTTPStatus.MULTIPLE_CHOICES)
_UNAUTHORIZED = int(HTTPStatus.UNAUTHORIZED)
_REMEMBERED = 64
"""Timeouts, and queries: nearly all requests have one of a few."""
_FAILURES = (*errors.TRANSPORT_ERRORS, ConfigException)
"""The library reads rotating tokens while a request is prepared, so its own exception can come from there too."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `verb` and `resource` are what metrics and error messages call it.

    `answer_s` bounds the time until the answer begins, connecting included; `unpooled`: see connection.unpooled.
    """

    method: str
    path: str
    verb: str
    resource: str
    timeout: aiohttp.ClientTimeout
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    answer_s: float | None = None
    unpooled: bool = False

    def failed(self, cause: Exception) -> errors.ConnectionFailed:
        """The error for an exchange that broke off; names what was asked, never the body."""
        return errors.ConnectionFailed(f"{self.verb} {self.resource}: {errors.describe(cause)}")


@lru_cache(maxsize=_REMEMBERED)
def within(timeout_s: float) -> aiohttp.ClientTimeout:
    """The timeout of an ordinary exchange: `timeout_s` for everything, at most ten of them for the connection."""
    return aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(timeout_s, _CONNECT_S))


class Transport:
    """Sends requests over one connection; any number of tasks of one event loop may share it.

    What is closed in the end is the connection; with a `session`, by which the requests go then, that alone.
    """

    def __init__(
        self,
        link: connection.Connection,
        *,
        user_agent: str,
        metrics: Metrics,
        session: aiohttp.ClientSession | None = None,
    ) -> None:
        _silence_bodies()
        self._session = session
        self._link = link
        self._user_agent = user_agent
        # A series is looked up under a lock; there are as many here as there.
        self._requests, self._seconds = cache(metrics.api_requests.labels), cache(metrics.api_seconds.labels)
        self._reload_lock = asyncio.Lock()
        self._reloaded_at = -_RELOAD_EVERY_S
        self._unpooled: aiohttp.ClientSession | None = None

    @property
    def host(self) -> str:
        """URL of the API server, without a trailing slash."""
        return str(self._link.api.configuration.host)

    async def bearer_token(self) -> str:
        """The token by which the API server knows us; empty where it knows us by something else."""
        shown: dict[str, str] = {}
        try:
            await self._link.api.update_params_for_auth(shown, [], ["BearerToken"])
        except _FAILURES as error:
            raise errors.ConnectionFailed(f"credentials: {errors.describe(error)}") from error
        kind, _, token = next(iter(shown.values()), "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    async def close(self) -> None:
        """Closes every connection; requests under way fail."""
        if self._unpooled is not None:
            await self._unpooled.close()
        await (self._link.api if self._session is None else self._session).close()

    async def read(self, request: Request) -> bytes:
        """The whole body of a 2xx answer. Raises ApiError or ConnectionFailed."""
        clock = asyncio.get_running_loop().time
        started = clock()
        response = await self.open(request)
        try:
            return await response.read()
        except errors.TRANSPORT_ERRORS as error:
            raise request.failed(error) from error
        finally:
            response.release()
            self._seconds(request.verb, request.resource).observe(clock() - started)

    async def open(self, request: Request) -> aiohttp.ClientResponse:
        """The 2xx answer with its body not yet read; the caller releases or closes it.

        One 401 is not final: tokens expire while a process runs, so the credentials are read again and the request
        is sent once more, unless the answer and the reading took long. Raises ApiError or ConnectionFailed.
        """
        try:
            # What is cancelled here closes its connection: nobody else is given one that does not answer.
            async with asyncio.timeout(request.answer_s):
                response = await self._send_twice(request)
            code = response.status
            self._requests(request.verb, request.resource, code).inc()
            if code in _SUCCESSES:
                return response
            try:
                body = await response.read()
            finally:
                response.release()
        except _FAILURES as error:
            self._requests(request.verb, request.resource, "error").inc()
            raise request.failed(error) from error
        raise errors.from_response(code, response.headers, body)

    async def _send_twice(self, request: Request) -> aiohttp.ClientResponse:
        clock = asyncio.get_running_loop().time
        sent_at = clock()
        response = await self._send(request)
        if response.status != _UNAUTHORIZED or not await self._reload(sent_at):
            return response
        if clock() > sent_at + AGAIN_WITHIN_S:
            return response
        response.release()
        return await self._send(request)

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        # Lists would compress well, but gzip costs both ends more than the network inside a cluster does.
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": self._user_agent,
            **request.headers,
        }
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        await self._link.api.update_params_for_auth(headers, [], ["BearerToken"])
        rest = self._link.api.rest_client
        query = _encoded(tuple(request.query.items()))
        session = self._own_connection() if request.unpooled else self._session or rest.pool_manager
        return await session.request(
            request.method,
            # Encoded already: otherwise yarl would decode percent-encoded parts of names again.
            URL(f"{self.host}{request.path}{query}", encoded=True),
            data=_data(request.body),
            headers=headers,
            timeout=request.timeout,
            allow_redirects=False,  # no API server redirects, and credentials must not follow one
            proxy=rest.proxy,
            proxy_headers=rest.proxy_headers,
            server_hostname=rest.server_hostname,
        )

    def _own_connection(self) -> aiohttp.ClientSession:
        if self._unpooled is None:
            self._unpooled = connection.unpooled(self._link)
        return self._unpooled

    async def _reload(self, sent_at: float) -> bool:
        """Reads the credentials again, at most each ten seconds; whether another try makes sense.

        It does as well where another task has read them since `sent_at`.
        """
        async with self._reload_lock:
            if self._reloaded_at > sent_at:
                return True
            now = asyncio.get_running_loop().time()
            if now - self._reloaded_at < _RELOAD_EVERY_S:
                return False
            self._reloaded_at = now
            try:
                await self._link.reload()
            except connection.GARBAGE as error:
                _LOG.warning("credentials cannot be read again", extra={"error": type(error).__name__})
                return False
            return True


@lru_cache(maxsize=_REMEMBERED)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return f"?{urlencode(query)}" if query else ""


def _data(body: bytes | None) -> bytes | BytesIO | None:
    """Large bodies as a stream: in one piece aiohttp would write them without giving way, and warns of it."""
    return body if body is None or len(body) <= _ONE_PIECE else BytesIO(body)


def _silence_bodies() -> None:
    """Keeps the libraries below at INFO or above, whatever the root logger says: at DEBUG they log bodies."""
    for name in ("kubernetes_asyncio", "aiohttp"):
        logger = logging.getLogger(name)
        if logger.level < logging.INFO:
            logger.setLevel(logging.INFO)
