"""What can go wrong between us and the API server, as a small tree that callers can tell apart.

The tree follows what callers do about an error, not its wording: look again (`Conflict`, `AlreadyExists`), list
again (`Gone`), wait (`Throttled`, `ServerError`, `ConnectionFailed`), give up (`Invalid`), or do
one or the other (`Forbidden`, which a quota or a mistake in the rights that passes may be).
"""

# ruff: noqa: N818 - the names are those of the API's own reasons, as users read them in a Status

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import aiohttp
import orjson

TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, TimeoutError)
"""Everything that aiohttp and the sockets below it raise for a network that does not work.

Cut chunks, refused and reset connections, TLS failures and every timeout are among them; wrong use of the library
is not.
"""

_TEXT_LIMIT = 300
_RETRY_AFTER_MAX_S = 300.0


class KubeError(Exception):
    """Root of the tree: a request did not give what was asked for."""


class ConnectionFailed(KubeError):
    """No usable answer: refused, cut, timed out, or not the API's JSON. The request may or may not have worked."""


class ApiError(KubeError):
    """The API server answered, with a status that is not 2xx.

    `reason`, `message` and `details` are those of the Status object in the body where there was one; `retry_after`
    is in seconds, None where the server named no time.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        return " ".join(part for part in (str(self.status), self.reason, self.message) if part)


class Unauthorized(ApiError):
    """401: the credentials are not (or no longer) accepted."""


class Forbidden(ApiError):
    """403: RBAC or an admission policy said no."""


class NotFound(ApiError):
    """404: no such object, or no such resource in this cluster (a CRD that is not installed)."""


class Conflict(ApiError):
    """409: the object changed since it was read."""


class AlreadyExists(Conflict):
    """409 on create: an object of that name is there."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object was refused, or a `test` of a JSON patch failed."""


class Throttled(ApiError):
    """429: the server asks to come back later."""


class ServerError(ApiError):
    """5xx: the server or something before it failed."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    HTTPStatus.UNAUTHORIZED: Unauthorized,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.GONE: Gone,
    HTTPStatus.UNPROCESSABLE_ENTITY: Invalid,
    HTTPStatus.TOO_MANY_REQUESTS: Throttled,
}


def describe(error: BaseException) -> str:
    """What to show of an error: its text, or its type where it has none (a timeout)."""
    return str(error) or type(error).__name__


def retry_after_s(error: BaseException) -> float:
    """The seconds that the server asked to wait; 0 where it named none, or gave no answer.

    At most five minutes: whatever stands between us and the API server may ask for any time.
    """
    asked = error.retry_after if isinstance(error, ApiError) else None
    return min(asked or 0.0, _RETRY_AFTER_MAX_S)


def from_response(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error for an answer that is not 2xx. Never raises: whatever the body is, there is an error to return.

    A proxy or a load balancer before the API server answers in text or HTML; that text is kept, cut and on one line.
    """
    try:
        raw = orjson.loads(body)
    except orjson.JSONDecodeError:
        raw = None
    retry_after = _seconds(headers.get("Retry-After"))
    if isinstance(raw, dict) and raw.get("kind") == "Status":
        return from_status(raw, status=status, retry_after=retry_after)
    text = " ".join(body[: 4 * _TEXT_LIMIT].decode("utf-8", errors="replace").split())
    return _type_of(status, "")(status, "", text[:_TEXT_LIMIT], None, retry_after)


def from_status(
    raw: Mapping[str, Any], *, status: int | None = None, retry_after: float | None = None
) -> ApiError:
    """The error that a Status object tells of: the body of a failed request, or the object of a watch's ERROR event.

    Without `status` the object's own `code` counts; where that is no error code either, 500.
    """
    if status is None:
        code = raw.get("code")
        status = code if isinstance(code, int) and code >= HTTPStatus.BAD_REQUEST else 500
    reason = _text(raw.get("reason"))
    details = raw.get("details")
    details = details if isinstance(details, dict) else {}
    if retry_after is None:
        retry_after = _seconds(details.get("retryAfterSeconds"))
    return _type_of(status, reason)(status, reason, _text(raw.get("message")), details, retry_after)


def _type_of(status: int, reason: str) -> type[ApiError]:
    if status == HTTPStatus.CONFLICT and reason == "AlreadyExists":
        return AlreadyExists
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerError
    return _BY_STATUS.get(status, ApiError)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    """Retry-After in seconds; a date there (which the API server never sends) counts as not given, 0 too."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
