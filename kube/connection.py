"""Where the API server is and who we are: kubeconfig files, the pod's service account, and their refreshed tokens.

kubernetes_asyncio reads the configuration and builds the TLS transport; this module decides which configuration it
is and turns everything that can be wrong in one into a single error.
"""

import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml
from aiohttp.connector import AddrInfoType
from kubernetes_asyncio.client.api_client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config.config_exception import ConfigException
from kubernetes_asyncio.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)
from kubernetes_asyncio.config.kube_config import list_kube_config_contexts, load_kube_config
from yarl import URL

from kube.errors import KubeError, describe

Reload = Callable[[], Awaitable[None]]

GARBAGE = (
    ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    RecursionError,
)
"""What reading a file that is no kubeconfig makes the library raise, its own exception among them."""

_POD_NAMESPACE = Path(SERVICE_TOKEN_FILENAME).with_name("namespace")
_DEFAULT_NAMESPACE = "default"

_KEEP_ALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3))
"""Seconds of silence, seconds between probes, probes without answer: the kernel gives a dead peer up after eleven."""

_READ_BUFFER = 2**21
"""As in the library's own session: no event of a watch is larger than what the API server stores, 1.5 MiB as a rule."""


class ConfigurationError(KubeError):
    """There is no usable kubeconfig, neither by file nor in a pod; the message names what was tried."""


@dataclass(frozen=True, slots=True)
class Connection:
    """An authenticated transport to one API server; `reload` reads changed credentials again."""

    api: ApiClient
    reload: Reload


async def connect(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """The connection of the given kubeconfig; without one, of the pod's service account; else of the user.

    The user's is what kubectl takes: the files of $KUBECONFIG, or ~/.kube/config. A `context` belongs to a
    kubeconfig, so naming one passes over the service account. Raises ConfigurationError.
    """
    if kubeconfig is None and context is None and _in_pod():
        return _in_cluster()
    files = str(kubeconfig) if kubeconfig is not None else _default_kubeconfig()
    _require_one(files)
    configuration = _new_configuration()

    async def load() -> None:
        # Not persisted: the file is the user's, and refreshed tokens live in the configuration.
        await load_kube_config(files, context, configuration, persist_config=False)

    try:
        await load()
        return Connection(_api(configuration), load)
    except GARBAGE as error:
        raise ConfigurationError(f"cannot use kubeconfig {files}: {describe(error)}") from error


def namespace_of(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """The namespace that the same arguments of `connect` stand for; `default` where none is named.

    Raises ConfigurationError.
    """
    if kubeconfig is None and context is None and _in_pod():
        try:
            return _POD_NAMESPACE.read_text().strip() or _DEFAULT_NAMESPACE
        except OSError as error:
            raise ConfigurationError(f"cannot use the pod's service account: {describe(error)}") from error
    files = str(kubeconfig) if kubeconfig is not None else _default_kubeconfig()
    _require_one(files)
    try:
        contexts, current = list_kube_config_contexts(files)
        chosen = current if context is None else next(one for one in contexts or () if one["name"] == context)
        return str((chosen or {})["context"].get("namespace") or _DEFAULT_NAMESPACE)
    except (*GARBAGE, StopIteration) as error:
        raise ConfigurationError(f"cannot use kubeconfig {files}: {describe(error)}") from error


def plain(url: str) -> Connection:
    """The connection to a server that asks for no credentials, such as `kubectl proxy`."""
    configuration = _new_configuration()
    configuration.host = url.rstrip("/")

    async def load() -> None:
        """Nothing to read again."""

    return Connection(_api(configuration), load)


def unpooled(link: Connection) -> aiohttp.ClientSession:
    """A session to the same server with the same certificates, in which each request has a connection of its own.

    A kept connection that has died without a word looks like any other, and whoever takes it waits in vain.
    """
    return _session(link, force_close=True)


def apart(link: Connection) -> aiohttp.ClientSession:
    """A session to the same server with the same certificates, whose connections serve nobody else."""
    return _session(link, force_close=False)


def _session(link: Connection, *, force_close: bool) -> aiohttp.ClientSession:
    context = _tls_context(link.api.configuration)
    connector = aiohttp.TCPConnector(
        limit=0, force_close=force_close, ssl=context, socket_factory=_kept_alive
    )
    return aiohttp.ClientSession(connector=connector, read_bufsize=_READ_BUFFER)


def _api(configuration: Configuration) -> ApiClient:
    """The library's client, except that the environment is asked for a proxy once.

    Its own session has aiohttp ask at each request, in another thread, which takes two fifths of all that a small request
    costs.
    """
    configuration.proxy = configuration.proxy or _proxy_for(URL(configuration.host or ""))
    api = ApiClient(configuration)
    rest = api.rest_client
    library_session, rest.pool_manager = (
        rest.pool_manager,
        aiohttp.ClientSession(connector=rest.pool_manager.connector, read_bufsize=_READ_BUFFER),
    )
    library_session.detach()
    return api


def _proxy_for(url: URL) -> str | None:
    """The proxy that the environment names for an address; None for the direct way."""
    named = getproxies().get(url.scheme)
    if not named or proxy_bypass(url.host or ""):
        return None
    # aiohttp passes over those that are spoken to over TLS, too.
    return None if named.startswith("https:") else named


def _tls_context(configuration: Configuration) -> ssl.SSLContext:
    """What the library makes of a configuration, which it does not hand out."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.disable_strict_ssl_verification:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _kept_alive(address: AddrInfoType) -> socket.socket:
    """A socket whose peer the kernel asks now and then whether it is still there."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _in_cluster() -> Connection:
    configuration = _new_configuration()
    # It installs a hook that reads the token file again each minute: projected tokens rotate.
    loader = InClusterConfigLoader(SERVICE_TOKEN_FILENAME, SERVICE_CERT_FILENAME)

    async def load() -> None:
        loader.load_and_set(configuration)

    try:
        loader.load_and_set(configuration)
        return Connection(_api(configuration), load)
    except GARBAGE as error:
        raise ConfigurationError(f"cannot use the pod's service account: {describe(error)}") from error


def _new_configuration() -> Configuration:
    configuration = Configuration()
    # From Python 3.13 on the default context asks for extensions that the certificate authorities of many clusters
    # lack; Go clients do not ask for them, and the chain is verified all the same.
    configuration.disable_strict_ssl_verification = hasattr(ssl, "VERIFY_X509_STRICT")
    return configuration


def _in_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and Path(SERVICE_TOKEN_FILENAME).exists()


def _default_kubeconfig() -> str:
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def _require_one(files: str) -> None:
    if not any(Path(file).expanduser().is_file() for file in files.split(os.pathsep) if file):
        raise ConfigurationError(f"no kubeconfig at {files}, and not in a pod with a service account")
