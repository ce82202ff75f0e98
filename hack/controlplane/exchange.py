"""One request on a connection that may have been kept for long, and whether it may be sent again when no answer came.

A server gives up connections on which nothing has happened for a while (kube-apiserver after 90 s), and its word of that
and our next request may cross.
"""

import http.client
import select
import socket
from collections.abc import Mapping
from typing import Final

_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_APPLY: Final = "application/apply-patch+yaml"


class Unanswered(ConnectionError):  # noqa: N818  named for what is known, as the standard library's own are
    """The connection broke before there was an answer. `unsent`: so early that the server lacks a part of the request."""

    def __init__(self, message: str, *, unsent: bool) -> None:
        super().__init__(message)
        self.unsent = unsent


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    payload: bytes | None,
    headers: Mapping[str, str],
) -> tuple[http.client.HTTPResponse, bytes]:
    """Send the request and read the whole answer. Whatever breaks, the connection is closed then.

    Raises `Unanswered` for a connection that broke before the answer began, OSError for a time-out, for one that cannot be
    made, and for one that broke in the middle of the answer.
    """
    unanswered, unsent = False, True
    try:
        if connection.sock is None:
            connection.connect()
        unanswered = True
        connection.request(method, path, payload, dict(headers))
        unsent = False
        response = connection.getresponse()
        unanswered = False
        return response, response.read()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        if isinstance(error, TimeoutError) or (isinstance(error, OSError) and not unanswered):
            raise
        message = f"{method} {path}: {error!r}"
        if isinstance(error, OSError):
            raise Unanswered(message, unsent=unsent) from error
        raise ConnectionError(message) from error


def has_ended(kept: socket.socket) -> bool:
    """Whether the server has closed an idle connection, or sent something that nobody asked for."""
    poller = select.poll()
    poller.register(kept, select.POLLIN)
    return bool(poller.poll(0))


def is_idempotent(method: str, content_type: str) -> bool:
    """Whether a request that was perhaps carried out may be sent once more.

    It is then as if it had been sent once; only the answer may differ: a DELETE may find nothing left, and a PUT of an old
    version a conflict. A POST might create a second object, other patches might be laid over their own result.
    """
    return method in _IDEMPOTENT or (method == "PATCH" and content_type == _APPLY)
