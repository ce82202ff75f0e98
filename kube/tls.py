"""The certificate that a TLS server presents, exchangeable while it serves."""

import logging
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from cryptography import x509

from kube import pem
from kube.metrics import DEFAULT, Metrics

_LOG = logging.getLogger(__name__)


class ServingCertificate:
    """Holds the one SSLContext that a server was started with, and swaps the pair inside it.

    New handshakes get the new pair at once; open connections go on undisturbed. Until the first `load` every
    handshake fails. With `required_ca` (PEM) every client has to show a certificate that one of these authorities, or of
    those of `load`, has issued. Raises ValueError where that is no PEM of certificates.
    """

    def __init__(self, metrics: Metrics = DEFAULT, *, required_ca: bytes | None = None) -> None:
        self._metrics = metrics
        self._context = _new_context()
        if required_ca is not None:
            _require(self._context, required_ca)
        self._loaded: tuple[bytes, bytes, bytes | None] | None = None
        self._trusted: set[bytes] = set()

    @property
    def context(self) -> ssl.SSLContext:
        """The live context, the same object for ever."""
        return self._context

    @property
    def loaded(self) -> bool:
        """Whether there is a pair to serve."""
        return self._loaded is not None

    @property
    def certificate(self) -> bytes | None:
        """The PEM certificates being served, the server's own first."""
        return None if self._loaded is None else self._loaded[0]

    def load(self, cert_pem: bytes, key_pem: bytes, client_ca: bytes | None = None) -> bool:
        """Serves this pair from now on; whether it could be used.

        A pair that cannot (halves that do not match, garbage) is logged and counted, and the one before stays. With
        `client_ca`, clients may present a certificate and it is verified against it; the handshake without one still
        succeeds, so handlers that need to know their caller ask for the peer's certificate. Authorities add up: one
        that is left out in a later load is trusted until the process ends.
        """
        if self._loaded == (cert_pem, key_pem, client_ca):
            return True
        try:
            # A mismatched pair ruins the context that it is loaded into, so a throwaway context goes first.
            _load(_new_context(), cert_pem, key_pem, client_ca)
            not_after = _not_after(cert_pem)
            new_ca = None if client_ca in self._trusted else client_ca
            _load(self._context, cert_pem, key_pem, new_ca)
        except (ssl.SSLError, ValueError) as error:
            self._metrics.certificate_loads.labels("refused").inc()
            _LOG.error("serving certificate refused, the one before stays", extra={"error": str(error)})
            return False
        if client_ca is not None:
            self._trusted.add(client_ca)
        self._loaded = (cert_pem, key_pem, client_ca)
        self._metrics.certificate_loads.labels("loaded").inc()
        self._metrics.certificate_not_after.set(not_after.timestamp())
        _LOG.info("serving certificate loaded", extra={"not_after": not_after.isoformat()})
        return True


def client_context(
    ca_pem: bytes, cert_pem: bytes | None = None, key_pem: bytes | None = None
) -> ssl.SSLContext:
    """The context of a client that trusts `ca_pem` alone and presents the pair if there is one.

    Raises ssl.SSLError or ValueError for what is not PEM or does not match.
    """
    context = ssl.create_default_context(cadata=pem.readable(ca_pem).decode("ascii"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert_pem is not None and key_pem is not None:
        _load(context, cert_pem, key_pem, None)
    return context


def check_authorities(authorities: bytes) -> None:
    """Raises ValueError where `required_ca` of a ServingCertificate could not be this."""
    _require(_new_context(), authorities)


def _require(context: ssl.SSLContext, authorities: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError(f"the certificates cannot be read: {error}") from error
    context.verify_mode = ssl.CERT_REQUIRED


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, cert_pem: bytes, key_pem: bytes, client_ca: bytes | None) -> None:
    with _file_of(cert_pem + b"\n" + key_pem) as path:
        context.load_cert_chain(path)
    if client_ca is not None:
        context.load_verify_locations(cadata=pem.readable(client_ca).decode("ascii"))
        if context.verify_mode is ssl.CERT_NONE:
            context.verify_mode = ssl.CERT_OPTIONAL


@contextmanager
def _file_of(content: bytes) -> Iterator[str]:
    """A path under which OpenSSL, which takes no bytes, can read `content`: in memory, keys never reach a disk."""
    descriptor = os.memfd_create("pair", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _not_after(cert_pem: bytes) -> datetime:
    return x509.load_pem_x509_certificate(cert_pem).not_valid_after_utc
