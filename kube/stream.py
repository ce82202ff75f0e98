"""The body of an answer that goes on and on, piece by piece, until it ends or falls silent."""

import asyncio
from types import TracebackType
from typing import Self

import aiohttp

from kube import errors


class Stream:
    """A context, at whose end the answer ends with its connection, unless it was read to its end.

    A watch that is ended early has more to send. A proper end of TLS waits for the other side, and perhaps there is none.
    One timer looks after all pieces: hundreds come in a second, and a timeout for each took longer than to take it in.
    """

    def __init__(self, response: aiohttp.ClientResponse, silence_s: float) -> None:
        self.silent = False
        """Whether it was ended because nothing had come for `silence_s`, while somebody waited for it."""
        self._response = response
        self._silence_s = silence_s
        self._loop = asyncio.get_running_loop()
        self._waits_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._look_in(self._silence_s)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._tear_off()
        self._response.close()

    async def next_piece(self) -> bytes:
        """What has arrived, as soon as anything has: empty at the end of the answer, and once it is silent.

        Raises what TRANSPORT_ERRORS names when it breaks off.
        """
        self._waits_since = self._loop.time()
        try:
            return await self._response.content.readany()
        except errors.TRANSPORT_ERRORS:
            if self.silent:
                return b""
            raise
        finally:
            self._waits_since = None

    def _look_in(self, delay_s: float) -> None:
        self._timer = self._loop.call_later(delay_s, self._look)

    def _look(self) -> None:
        """Ends what is silent, whoever waits; while nobody does, it is not the server that is late."""
        now = self._loop.time()
        left_s = self._silence_s if self._waits_since is None else self._waits_since + self._silence_s - now
        if left_s > 0:
            self._look_in(left_s)
        else:
            self.silent = True
            self._tear_off()

    def _tear_off(self) -> None:
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
