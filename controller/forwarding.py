"""From a standby to the leader: the API server calls any replica, and only the leader may hand out cards."""

import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Protocol, Self

import aiohttp

from core.admission.request import AdmissionRequest, Decision
from core.binding.review import leaderless
from core.names import OWN_PREFIX
from kube.admission.wire import AnswerError, decode_answer, encode_request
from kube.pki import Pair
from kube.tls import client_context

ADDRESS_ANNOTATION = OWN_PREFIX + "address"
"""On the Lease: where the holder is reached, `https://<address>:<port>`."""

LEADER_PATH = "/leader/bindings"
"""The leader's side. It never forwards, so two replicas that each take the other for the leader cannot loop."""


class Holder(Protocol):
    """What of kube.lease.Elector the link looks at."""

    @property
    def identity(self) -> str:
        """Whom this process campaigns for."""

    @property
    def holder(self) -> tuple[str, Mapping[str, str]] | None:
        """Identity and annotations of the Lease's holder."""


class Shown(Protocol):
    """What of kube.certificates.Credentials the link looks at."""

    @property
    def ca_certificates(self) -> bytes:
        """Who issues the certificates of controllers, PEM."""

    @property
    def leaf(self) -> Pair:
        """The pair that all replicas share."""


class LeaderLink:
    """Asks the leader, over TLS with the pair that all replicas share, within an `async with`.

    Connections are kept: where the API server's calls are spread over the replicas, most binds come this way.
    `timeout_s` has to leave the API server, which waits for us, time to hear our own answer.
    """

    def __init__(
        self, elector: Holder, bundle: Callable[[], Shown | None], server_name: str, *, timeout_s: float
    ) -> None:
        self._elector = elector
        self._bundle = bundle
        self._server_name = server_name
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._context: tuple[Shown, ssl.SSLContext] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=self._timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, request: AdmissionRequest) -> Decision:
        """The leader's decision; a refusal that makes the scheduler try again where there is none to be had."""
        told = await self.pass_on(LEADER_PATH, encode_request(request))
        if isinstance(told, str):
            return leaderless(told)
        status, body = told
        if status != HTTPStatus.OK:
            return leaderless(f"the leader could not be asked (status {status})")
        try:
            return decode_answer(body)
        except AnswerError as error:
            return leaderless(f"the leader could not be asked ({type(error).__name__})")

    async def pass_on(self, path: str, body: bytes) -> tuple[int, bytes] | str:
        """Status and body with which the leader answers a POST of JSON; why there is no answer otherwise."""
        holder = self._elector.holder
        if holder is None or holder[0] == self._elector.identity:
            return "no replica of the controller leads now"
        address, bundle = holder[1].get(ADDRESS_ANNOTATION, ""), self._bundle()
        if not address or bundle is None:
            return f"the leader {holder[0]} gave no address"
        try:
            return await self._post(address + path, body, bundle)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"the leader {holder[0]} could not be asked ({type(error).__name__})"

    async def _post(self, url: str, body: bytes, bundle: Shown) -> tuple[int, bytes]:
        assert self._session is not None, "asked outside of `async with`"
        async with self._session.post(
            url,
            data=body,
            headers={"Content-Type": "application/json"},
            ssl=self._trusting(bundle),
            server_hostname=self._server_name,
        ) as response:
            return response.status, await response.read()

    def _trusting(self, bundle: Shown) -> ssl.SSLContext:
        if self._context is None or self._context[0] is not bundle:
            self._context = (
                bundle,
                client_context(bundle.ca_certificates, bundle.leaf.certificate, bundle.leaf.key),
            )
        return self._context[1]
