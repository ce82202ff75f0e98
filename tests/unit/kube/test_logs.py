import io
import logging
from typing import Any, Literal

import orjson
import pytest

from kube import logs


@pytest.fixture
def log() -> logging.Logger:
    return logging.getLogger("cardquota.test")


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def start(form: Literal["json", "text"] = "json", level: str = "INFO") -> io.StringIO:
    stream = io.StringIO()
    logs.setup(level, form, stream)
    return stream


def test_a_line_is_an_object_with_its_extras(log: logging.Logger) -> None:
    """Time in UTC with its zone, level, logger, message, and every extra by its name."""
    stream = start()
    log.info("lifted %s", "p", extra={"queue": "q", "cards": 2, "names": ("a", "b"), "odd": {1: object}})
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert "object" in line.pop("odd")["1"]
    assert line == {
        "level": "info",
        "logger": "cardquota.test",
        "message": "lifted p",
        "queue": "q",
        "cards": 2,
        "names": ["a", "b"],
    }


def test_an_extra_does_not_hide_a_standard_field(log: logging.Logger) -> None:
    """Both are there."""
    stream = start()
    log.info("one", extra={"level": "of water"})
    assert lines(stream)[0]["level"] == "info"
    assert lines(stream)[0]["level_"] == "of water"


SECRET = "hunter2secret"


@pytest.mark.parametrize(
    ("message", "extra"),
    [
        (f"sent Bearer {SECRET}", {}),
        (f"token eyJhbGciOiJSUzI1.{SECRET}.sig", {}),
        (f"-----BEGIN EC PRIVATE KEY-----\n{SECRET}\n-----END EC PRIVATE KEY-----", {}),
        (f"cut -----BEGIN PRIVATE KEY-----\n{SECRET}", {}),
        ("x", {"token": SECRET}),
        ("x", {"secret": {"data": SECRET}}),
        ("x", {"object": {"kind": "Secret", "data": {"tls.key": SECRET}}}),
        ("x", {"headers": {"Authorization": SECRET}}),
        ("x", {"list": [f"Bearer {SECRET}"]}),
        ("x", {"error": ValueError(f"Bearer {SECRET}")}),
        ("x", {"ca.key": SECRET}),
    ],
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_secrets_are_taken_out(
    log: logging.Logger, form: Literal["json", "text"], message: str, extra: dict[str, Any]
) -> None:
    """By the name of a field and by the look of a text, at any depth, in both forms."""
    stream = start(form)
    log.info(message, extra=extra)
    assert SECRET not in stream.getvalue()
    assert logs.REDACTED in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "text"])
def test_secrets_are_taken_out_of_traces(log: logging.Logger, form: Literal["json", "text"]) -> None:
    """An exception's text is a text like any other."""
    stream = start(form)
    try:
        int(f"Bearer {SECRET}")
    except ValueError:
        log.exception("failed")
    assert "Traceback" in stream.getvalue()
    assert SECRET not in stream.getvalue()


def test_the_text_form_is_for_people(log: logging.Logger) -> None:
    """One line with key=value."""
    stream = start("text")
    log.warning("gate kept", extra={"pod": "a/p", "reason": "QueueNotFound"})
    assert stream.getvalue().endswith(" warning cardquota.test: gate kept pod=a/p reason=QueueNotFound\n")


def test_a_second_setup_replaces_the_first(log: logging.Logger) -> None:
    """No line is written twice, and the level may change while running."""
    first = start()
    second = start(level="debug")
    log.debug("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


def test_libraries_below_stay_at_info(log: logging.Logger) -> None:
    """Their debug output holds bodies."""
    stream = start(level="DEBUG")
    logging.getLogger("kubernetes_asyncio.client.rest").debug("response body: %s", SECRET)
    logging.getLogger("aiohttp.client").debug(SECRET)
    assert stream.getvalue() == ""


def test_an_unknown_level_is_refused(log: logging.Logger) -> None:
    """At the start, not by silence later."""
    with pytest.raises(ValueError, match="LOUD"):
        logs.setup("LOUD", stream=io.StringIO())


@pytest.mark.parametrize("turn", [1, 2])
def test_what_a_test_has_set_up_is_not_left_to_the_next_one(turn: int) -> None:
    root = logging.getLogger()
    assert not [each for each in root.handlers if isinstance(each.formatter, logs.JsonFormatter)], turn
    start(level="CRITICAL")
