"""Log lines as JSON objects, or as text for people, with nothing in them that must not be read.

The standard library's logging, since every library below uses it. Values go into `extra`, not into the message, so
that lines of one kind can be found by their message.
"""

import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, TextIO

import orjson

REDACTED = "[redacted]"

_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {
    "message",
    "asctime",
    "taskName",
}
_SECRET_KEYS = re.compile(
    r"(^|[_.-])(token|password|passwd|secret|authorization|data|key|pem)$", re.IGNORECASE
)
_SECRET_TEXT = re.compile(
    r"Bearer\s+[\w.~+/=-]+"
    r"|eyJ[\w-]{8,}\.[\w-]+(\.[\w-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)",
    re.DOTALL,
)
_EXTRAS = 256
"""More names of extras than there are."""
_LIBRARIES = ("kubernetes_asyncio", "aiohttp", "asyncio")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, every extra, and the trace of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Never raises for an extra that is not JSON: that is shown as its repr."""
        fields = _fields(self, record)
        return orjson.dumps(fields, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


class TextFormatter(logging.Formatter):
    """`time level logger: message key=value ...`, the trace of an exception below."""

    def format(self, record: logging.LogRecord) -> str:
        """The same content as JsonFormatter gives."""
        fields = _fields(self, record)
        time, level, logger, message = (fields.pop(name) for name in ("time", "level", "logger", "message"))
        trace = fields.pop("trace", None)
        extras = "".join(f" {key}={value}" for key, value in fields.items())
        line = f"{time} {level:<7} {logger}: {message}{extras}"
        return line if trace is None else f"{line}\n{trace}"


def setup(level: str = "INFO", form: Literal["json", "text"] = "json", stream: TextIO | None = None) -> None:
    """Sends everything from `level` on to `stream` (stderr) in one form; replaces what a former call set up.

    The libraries below stay at INFO or above whatever the level: at DEBUG they log bodies. Raises ValueError for a
    level that does not exist.
    """
    root = logging.getLogger()
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root.setLevel(level.upper())
    take_off()
    root.addHandler(handler)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(max(logging.INFO, root.level))


def take_off() -> None:
    """Takes off what `setup` has set up, if it has."""
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old.formatter, JsonFormatter | TextFormatter)]:
        root.removeHandler(old)


def redact(text: str) -> str:
    """`text` without bearer tokens, JSON web tokens and private keys."""
    return _SECRET_TEXT.sub(REDACTED, text)


def _fields(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, Any]:
    moment = datetime.fromtimestamp(record.created, UTC)
    fields: dict[str, Any] = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": redact(record.getMessage()),
    }
    for key, value in vars(record).items():
        if key not in _STANDARD:
            shown = REDACTED if _names_secret(key) else _clean(value)
            fields[key if key not in fields else f"{key}_"] = shown
    if record.exc_info:
        fields["trace"] = redact(formatter.formatException(record.exc_info))
    return fields


@lru_cache(maxsize=_EXTRAS)
def _names_secret(extra: str) -> bool:
    """Remembered: the extras of all lines have their names in the code."""
    return _SECRET_KEYS.search(extra) is not None


def _clean(value: object) -> object:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {
            name: REDACTED if _SECRET_KEYS.search(str(name)) else _clean(item) for name, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact(str(value))
