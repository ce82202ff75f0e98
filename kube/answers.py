"""Answers of many megabytes, sent bit by bit."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from aiohttp import web

PART: Final = 256 * 1024
"""Bytes that are encrypted and handed to the socket in one go."""
_SEND_S: Final = 10.0
"""How long a client may take to receive an answer that does not fit into the buffers of its connection."""


async def in_parts(
    request: web.Request, parts: Sequence[bytes], headers: Mapping[str, str]
) -> web.StreamResponse:
    """Answers 200 with these bytes. What is short goes out in one write."""
    length = sum(map(len, parts))
    if length <= PART or request.method == "HEAD":
        return web.Response(body=b"".join(parts), headers=headers)
    response = web.StreamResponse(headers=headers)
    response.content_length = length
    try:
        async with asyncio.timeout(_SEND_S):
            await response.prepare(request)
            for part in parts:
                for start in range(0, len(part), PART):
                    await response.write(part[start : start + PART])
                    # A client that is fast enough would keep everybody else waiting until it has all of it.
                    await asyncio.sleep(0)
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    return response
