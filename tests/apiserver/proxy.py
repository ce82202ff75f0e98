"""A TCP proxy before the API server, that answers late, loses answers, or lets connections die without a word."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

News = Literal["lost", "passed", "kept"]
"""What becomes of what the server says without being asked for it."""

_LOOPBACK = "127.0.0.1"
_PIECE = 64 * 1024


class _Link:
    """One connection through the proxy: the client's side and the server's."""

    def __init__(self, *, dead: bool) -> None:
        self.dead = dead
        """Whether nothing passes any more, in either direction, and nobody is told."""
        self.loses: News | None = None
        """Whether it breaks, instead of passing it on, with the server's next answer, and what becomes of news."""
        self.asked = False
        """Whether the client spoke last: it waits for an answer."""
        self.passing = asyncio.Event()
        """Whether what the server says is passed on; else it is kept."""
        self.passing.set()


class Proxy:
    """Use as a context manager; it runs in a thread of its own, so a test may be synchronous or not.

    `delay_s` is how much later everything that the server says arrives, on every connection; it may be set at any time.
    """

    def __init__(self, server: str, *, delay_s: float = 0.0) -> None:
        """`server` is the URL of the API server."""
        target = urlsplit(server)
        assert target.hostname, server
        self._target = (target.hostname, target.port or 443)
        self.delay_s = delay_s
        self.url = ""
        self.accepted = 0
        """How many connections there have been."""
        self.lost = 0
        """How many of them broke with what the server said."""
        self._links: set[_Link] = set()
        self._new_die = False
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the proxy does not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the proxy does not end"

    def kubeconfig(self, original: Path, file: Path) -> Path:
        """Writes a kubeconfig like the original one (in JSON, as the control plane's are), that leads through here."""
        config = json.loads(original.read_text("utf-8"))
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = self.url
        file.write_text(json.dumps(config), "utf-8")
        return file

    @property
    def open(self) -> int:
        """How many connections there are. It falls to nothing once every client has ended its own."""
        return len(self._links)

    def blackhole(self, *, new: bool = False) -> None:
        """From now on nothing passes on the connections that there are, and nobody is told; `new` ones are like that too."""

        def kill() -> None:
            self._new_die = new
            for link in self._links:
                link.dead = True

        self._in_loop(kill)

    def heal(self) -> None:
        """New connections live again; those that died stay dead."""

        def revive() -> None:
            self._new_die = False

        self._in_loop(revive)

    def drop_answers(self, news: News = "lost") -> None:
        """Each connection that there is now breaks when the server next says something, which is lost.

        So a request is carried out and its answer never comes. New connections are sound: the repetition gets through.
        On connections on which no answer is waited for, watches for instance, what the server says may be `passed` on, or
        `kept` until `pass_news`.
        """

        def mark() -> None:
            for link in self._links:
                if news == "kept" and not link.asked:
                    link.passing.clear()
                else:
                    link.loses = news

        self._in_loop(mark)

    def pass_news(self) -> None:
        """What was kept is passed on."""

        def release() -> None:
            for link in self._links:
                link.passing.set()

        self._in_loop(release)

    def _in_loop(self, change: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            change()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(10), "the proxy is stuck"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:

            def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                tasks.create_task(self._link(reader, writer))

            server = await asyncio.start_server(accept, _LOOPBACK, 0)
            self.url = f"https://{_LOOPBACK}:{server.sockets[0].getsockname()[1]}"
            self._ready.set()
            await self._stop.wait()
            server.close()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes everything on until one side closes; then both are closed."""
        self.accepted += 1
        link = _Link(dead=self._new_die)
        self._links.add(link)
        writers = [writer]
        try:
            from_server, to_server = await asyncio.open_connection(*self._target)
            writers.append(to_server)
            await _first_of(self._requests(link, reader, to_server), self._answers(link, from_server, writer))
        except OSError:
            return  # one side has broken off, or the server is away: the other side is told by the end of its connection
        finally:
            for each in writers:
                each.transport.abort()
            # What an abort does, it does in its turn; whoever sees that nothing is open finds it done.
            self._loop.call_soon(self._links.discard, link)

    async def _requests(
        self, link: _Link, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter
    ) -> None:
        while piece := await reader.read(_PIECE):
            link.asked = True
            if not link.dead:
                to_server.write(piece)
                await to_server.drain()

    async def _answers(
        self, link: _Link, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        clock = asyncio.get_running_loop().time
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def collect() -> None:
            while piece := await from_server.read(_PIECE):
                late.put_nowait((clock() + self.delay_s, piece))
            late.put_nowait((clock() + self.delay_s, b""))
            await asyncio.Event().wait()  # the end is told in its turn

        async def pass_on() -> None:
            while True:
                due, piece = await late.get()
                await asyncio.sleep(max(0.0, due - clock()))
                await link.passing.wait()
                if link.loses == "lost" or (link.loses and link.asked):
                    self.lost += 1
                    return
                if link.dead:
                    continue
                if not piece:
                    return
                link.asked = False
                writer.write(piece)
                await writer.drain()

        await _first_of(collect(), pass_on())


async def _first_of(*works: Coroutine[Any, Any, None]) -> None:
    """Runs them until one ends, then ends the others; raises what the first one raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
