import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import errors
from kube.errors import ApiError

STATUSES: list[tuple[int, str, type[ApiError]]] = [
    (401, "Unauthorized", errors.Unauthorized),
    (403, "Forbidden", errors.Forbidden),
    (404, "NotFound", errors.NotFound),
    (409, "Conflict", errors.Conflict),
    (409, "AlreadyExists", errors.AlreadyExists),
    (410, "Expired", errors.Gone),
    (422, "Invalid", errors.Invalid),
    (429, "TooManyRequests", errors.Throttled),
    (500, "InternalError", errors.ServerError),
    (503, "ServiceUnavailable", errors.ServerError),
    (400, "BadRequest", ApiError),
]


@pytest.mark.parametrize(("status", "reason", "kind"), STATUSES)
def test_a_status_object_becomes_the_error_of_its_code(
    status: int, reason: str, kind: type[ApiError]
) -> None:
    """The type by code (and AlreadyExists by reason), the texts as the server wrote them."""
    details = {"name": "x", "retryAfterSeconds": 3}
    body = {"kind": "Status", "code": status, "reason": reason, "message": "why", "details": details}
    error = errors.from_response(status, {}, orjson.dumps(body))
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, reason, "why")
    assert (error.details, error.retry_after) == (details, 3.0)
    assert str(error) == f"{status} {reason} why"


def test_a_text_body_is_kept_on_one_line_and_cut() -> None:
    """A load balancer's page becomes a message, not a log full of HTML."""
    error = errors.from_response(503, {"Retry-After": "7"}, b"<html>\n  no backend" + b"x" * 9000)
    assert isinstance(error, errors.ServerError)
    assert error.message.startswith("<html> no backend")
    assert len(error.message) == 300
    assert error.retry_after == 7.0


@pytest.mark.parametrize("value", ["", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "-1", "0", "inf", "nan"])
def test_a_retry_after_that_is_no_number_of_seconds_is_none(value: str) -> None:
    """A date, zero or nonsense leaves the waiting time to us."""
    assert errors.from_response(429, {"Retry-After": value}, b"").retry_after is None


@given(
    status=st.integers(300, 599),
    body=st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers(-5, 600) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["kind", "code", "reason", "message", "details", "retryAfterSeconds"]), inner
            )
        ),
    ).map(lambda raw: orjson.dumps({"kind": "Status", "details": raw, "reason": raw, "message": raw})),
)
def test_no_body_makes_the_mapping_raise(status: int, body: bytes) -> None:
    """There is an error to return whatever came."""
    error = errors.from_response(status, {}, body)
    assert isinstance(error, ApiError)
    assert error.status == status
    assert str(error)


def test_an_error_event_without_a_usable_code_counts_as_a_server_error() -> None:
    """The watch then goes on as after any 5xx."""
    assert isinstance(errors.from_status({"code": "many"}), errors.ServerError)
    assert isinstance(errors.from_status({"code": 410}), errors.Gone)


def test_how_long_the_server_asked_to_be_left_alone() -> None:
    """Nothing where it named no time, and never a day because something in between said so."""
    assert errors.retry_after_s(errors.from_response(429, {"Retry-After": "7"}, b"")) == 7.0
    assert errors.retry_after_s(errors.from_response(503, {"Retry-After": "86400"}, b"")) == 300.0
    assert errors.retry_after_s(errors.from_response(503, {}, b"")) == 0.0
    assert errors.retry_after_s(errors.ConnectionFailed("cut")) == 0.0
