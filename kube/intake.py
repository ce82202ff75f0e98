"""The request bodies of one process: how many bytes are let in at a time, and how long they may take to arrive.

What is made of a body takes several times its size, so the limit of a single body does not bound the memory: a hundred of
them may come at once.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from kube.bigjson import Body

IN_FLIGHT: Final = 24 * 1024 * 1024
"""Bytes of all bodies that are being read or worked on."""
READ_S: Final = 10.0
"""How long a body may take to arrive: nobody waits longer for our answers."""
FOR_SCHEDULERS: Final = 16 * 1024 * 1024
"""What of it is for schedulers' questions where a process answers those and reviews of binds."""
OTHERS: Final = 4 * 1024 * 1024
"""What of it no single address gets, so that one that sends slowly or endlessly does not keep all others out."""
RETRY_AFTER_S: Final = 1


class RefusedError(Exception):
    """A body that is not taken in; `str()` says why."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status

    @property
    def headers(self) -> dict[str, str]:
        """The headers of an answer that tells the client so."""
        again = self.status is HTTPStatus.SERVICE_UNAVAILABLE
        return {"Retry-After": str(RETRY_AFTER_S)} if again else {}


def busy(most: int) -> RefusedError:
    """The refusal of a body for which there is no room beside the others."""
    text = f"requests of more than {most} bytes are being worked on; try again"
    return RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, text)


class Intake:
    """Counts the bytes of bodies as they arrive: to announce them costs nothing, so it takes nothing from others either.

    A single body is always taken in, up to its own limit, even where that is higher than the limit of all together. The last
    `others` bytes are for those whose address has nothing here yet. Where there is no room, the body gives way that has been
    arriving for the longest: those that are sent slowly so as to hold bytes, not those that come at once.
    """

    def __init__(self, most: int = IN_FLIGHT, read_s: float = READ_S, *, others: int = 0) -> None:
        self._most = most
        self._others = others
        self.read_s = read_s
        self._held = 0
        self._by_address: dict[str, int] = {}
        self._arriving: dict[_Share, None] = {}

    @property
    def held(self) -> int:
        """The bytes that are counted now."""
        return self._held

    def body(self, request: web.Request, limit: int, name: str = "") -> AbstractAsyncContextManager[Body]:
        """The body of a request, of at most `limit` bytes (`name` is that of the setting); counted while the block goes on.

        Raises RefusedError: 413 for a body that is too large, 503 while too many are here already, 408 for a client that
        does not get to the end of its body.
        """
        return _Share(self, request, limit, name)

    def arriving(self, share: "_Share") -> None:
        """Its last bytes are still to come; it may have to give way until `arrived`."""
        self._arriving[share] = None

    def arrived(self, share: "_Share") -> None:
        """It gives way to nobody any more."""
        self._arriving.pop(share, None)

    def take(self, more: int, share: "_Share") -> None:
        """Counts so many bytes more for a body, in the place of others if need be. Raises RefusedError."""
        while (full := self._full_at(more, share)) is not None:
            oldest = next((other for other in self._arriving if other is share or other.counted), share)
            if oldest is share:
                raise busy(full)
            self.arrived(oldest)
            oldest.give_way(full)
        self._held += more
        self._by_address[share.address] = self._by_address.get(share.address, 0) + more

    def _full_at(self, more: int, share: "_Share") -> int | None:
        """The limit that so many bytes more would exceed."""
        theirs = self._by_address.get(share.address, 0)
        most = self._most - (self._others if theirs > share.counted else 0)
        return most if self._held > share.counted and self._held + more > most else None

    def give_back(self, share: "_Share") -> None:
        """Its bytes are counted no more."""
        self._held -= share.counted
        left = self._by_address.get(share.address, 0) - share.counted
        if left > 0:
            self._by_address[share.address] = left
        else:
            self._by_address.pop(share.address, None)
        share.counted = 0


class _Share(AbstractAsyncContextManager[Body]):
    """The part of one body; a class, since a generator would cost every review as much as its parsing."""

    def __init__(self, intake: Intake, request: web.Request, limit: int, name: str) -> None:
        self._intake = intake
        self._request = request
        self._limit = limit
        self._name = name
        self.counted = 0
        self.address = request.remote or ""
        self._timeout: asyncio.Timeout | None = None
        self._gave_way_at: int | None = None

    async def __aenter__(self) -> Body:
        try:
            return self._read_at_once() if self._request.content.is_eof() else await self._read_in_time()
        except BaseException:
            self._intake.give_back(self)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._intake.give_back(self)

    def give_way(self, most: int) -> None:
        """Gives up a body that is still arriving, for others that find no room within `most` bytes."""
        assert self._timeout is not None, "it is arriving"
        # Not the error itself: that would know the frames that it went through, and so itself and the body, until a collection.
        self._gave_way_at = most
        self._intake.give_back(self)
        self._timeout.reschedule(asyncio.get_running_loop().time())

    def _read_at_once(self) -> bytes:
        """The body of a usual review: it has come with its headers, so nothing is waited for, and nothing put together."""
        body = self._request.content.read_nowait()
        self._count(len(body))
        return body

    async def _read_in_time(self) -> bytearray:
        if (self._request.content_length or 0) > self._limit:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._intake.read_s) as self._timeout:
                self._intake.arriving(self)
                return await self._read()
        except TimeoutError:
            if self._gave_way_at is not None:
                raise busy(self._gave_way_at) from None
            text = f"the body did not arrive within {self._intake.read_s:g} s"
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, text) from None
        finally:
            self._intake.arrived(self)

    async def _read(self) -> bytearray:
        """The body as it comes: an announced length may be missing, or be that of a compressed body.

        Put together part by part; to join 16 MB in the end takes 15 ms, for the memory alone.
        """
        body = bytearray()
        while part := await self._request.content.readany():
            if self._gave_way_at is not None:
                raise busy(self._gave_way_at)
            self._count(len(part))
            body += part
        if self._gave_way_at is not None:
            raise busy(self._gave_way_at)
        return body

    def _count(self, more: int) -> None:
        if self.counted + more > self._limit:
            raise self._too_large()
        self._intake.take(more, self)
        self.counted += more

    def _too_large(self) -> RefusedError:
        limit = f"{self._name}, {self._limit} bytes" if self._name else f"{self._limit} bytes"
        return RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {limit}")


DEFAULT: Final = Intake(others=OTHERS)
"""The bodies of this process."""
