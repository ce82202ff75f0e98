"""Requests whose bodies arrive as the test says."""

import asyncio
from collections.abc import Mapping
from unittest.mock import Mock

from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request


class Sending:
    """A POST under way. `announced` is its Content-Length, none where the body comes in chunks."""

    def __init__(self, announced: int | None = None, path: str = "/", **headers: str) -> None:
        length: Mapping[str, str] = {} if announced is None else {"Content-Length": str(announced)}
        loop = asyncio.get_running_loop()
        connection = Mock(spec=BaseProtocol, connected=True, _reading_paused=False)
        self._body = StreamReader(connection, 2**16, loop=loop)
        self.request: web.Request = make_mocked_request(
            "POST", path, {**length, **headers}, payload=self._body, client_max_size=8 * 2**20
        )

    def sends(self, data: bytes) -> "Sending":
        """A part of the body has arrived."""
        self._body.feed_data(data)
        return self

    def ends(self) -> "Sending":
        """The body is complete."""
        self._body.feed_eof()
        return self


def sent(data: bytes, *, announced: bool = True) -> web.Request:
    """A request whose body is there already."""
    return Sending(len(data) if announced else None).sends(data).ends().request
