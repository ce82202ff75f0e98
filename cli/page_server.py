"""The status page on loopback, at an address that is told to nobody but its user."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from cli.errors import CommandError
from core.page.html.document import HEADERS, document
from core.page.html.links import wish_of
from core.page.view import View, Wish
from core.steps import finish
from kube.serving import Server, application

HOST: Final = "127.0.0.1"
_SECRET_BYTES: Final = 24
_OF_HTTP: Final = 80
"""Browsers do not name this port."""

Pages = Callable[[Wish], Awaitable[View]]
"""Makes the page that is asked for. Raises CommandError where there is none."""


class PageServer:
    """A port with nothing but the page. Raises OSError on entering where it cannot be had."""

    def __init__(self, pages: Pages, port: int) -> None:
        app = application()
        self._path = add_page(app, pages, lambda: self._server.port)
        self._server = Server(app, HOST, port, name="page", finish_s=1.0)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self._server.port}{self._path}"

    async def __aenter__(self) -> Self:
        """Returns when the page is there."""
        await self._server.start()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Takes it away."""
        await self._server.stop()


def add_page(app: web.Application, pages: Pages, port: Callable[[], int]) -> str:
    """Adds the page to an application that is served on this port of loopback. Returns its path.

    Whoever else is on this machine, or is a page of another site in the same browser, does not know the path and has no answer.
    """
    path = f"/page/{secrets.token_urlsafe(_SECRET_BYTES)}/"

    async def asked(request: web.Request) -> web.Response:
        return await _answer(request, pages, port())

    app.router.add_get(path, asked, allow_head=False)
    return path


async def _answer(request: web.Request, pages: Pages, port: int) -> web.Response:
    """The page for a request. Under another name than this machine's own none is served: a name may be made to point here."""
    names = {f"{HOST}:{port}", f"localhost:{port}"}
    if port == _OF_HTTP:
        names |= {HOST, "localhost"}
    if request.host not in names:
        return _text("this page has no other name than the one that was printed", HTTPStatus.FORBIDDEN)
    try:
        view = await pages(wish_of(request.query_string))
    except CommandError as error:
        return _text(f"error: {error}", HTTPStatus.SERVICE_UNAVAILABLE)
    return web.Response(
        text=finish(document(view)), content_type="text/html", charset="utf-8", headers=HEADERS
    )


def _text(words: str, status: HTTPStatus) -> web.Response:
    safe: Mapping[str, str] = {
        key: value for key, value in HEADERS.items() if key != "Content-Security-Policy"
    }
    return web.Response(
        status=status, text=f"{words}\n", headers={**safe, "Content-Security-Policy": "default-src 'none'"}
    )
