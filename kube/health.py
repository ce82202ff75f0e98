"""Liveness and readiness as lists of named conditions, so that a failing probe says what it waits for."""

from collections.abc import Callable

from aiohttp import web

Check = Callable[[], str | None]
"""Returns why the condition does not hold, or None when it does. Called on every probe: cheap and not raising."""

DRAINING = "shutdown"


class Health:
    """The conditions of one process: `live` ones a restart would mend, `ready` ones only time does."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}
        self._draining = False

    def require_live(self, name: str, check: Check) -> None:
        """Makes /healthz and /readyz fail while `check` gives a reason; a name is given once."""
        _add(self._live, name, check)

    def require_ready(self, name: str, check: Check) -> None:
        """Makes /readyz fail while `check` gives a reason; a name is given once."""
        _add(self._ready, name, check)

    def drain(self) -> None:
        """Makes /readyz fail from now on, so that no new requests are sent here."""
        self._draining = True

    def live_failures(self) -> dict[str, str]:
        """The live conditions that do not hold, with the reason of each."""
        return _failures(self._live)

    def ready_failures(self) -> dict[str, str]:
        """The conditions, live ones included, that do not hold, with the reason of each."""
        shutdown = {DRAINING: "the process is shutting down"} if self._draining else {}
        return shutdown | _failures(self._live) | _failures(self._ready)

    def add_routes(self, app: web.Application) -> None:
        """Serves GET /healthz and /readyz: 200 or 503, one line per condition with `?verbose` or on failure."""

        async def healthz(request: web.Request) -> web.Response:
            return _answer(request, list(self._live), self.live_failures())

        async def readyz(request: web.Request) -> web.Response:
            return _answer(request, [DRAINING, *self._live, *self._ready], self.ready_failures())

        app.router.add_get("/healthz", healthz)
        app.router.add_get("/readyz", readyz)


def condition(holds: Callable[[], bool], otherwise: str) -> Check:
    """The check that fails with `otherwise` while `holds` returns false."""
    return lambda: None if holds() else otherwise


def _add(checks: dict[str, Check], name: str, check: Check) -> None:
    if name in checks or name == DRAINING:
        raise ValueError(f"condition {name!r} exists")
    checks[name] = check


def _failures(checks: dict[str, Check]) -> dict[str, str]:
    reasons = ((name, check()) for name, check in checks.items())
    return {name: reason for name, reason in reasons if reason is not None}


def _answer(request: web.Request, names: list[str], failures: dict[str, str]) -> web.Response:
    """The text form of the API server's own probes."""
    if not failures and "verbose" not in request.query:
        return web.Response(text="ok\n")
    lines = [f"[-]{name} {failures[name]}" if name in failures else f"[+]{name} ok" for name in names]
    verdict = "failed" if failures else "passed"
    lines.append(f"{request.path.strip('/')} check {verdict}")
    return web.Response(status=503 if failures else 200, text="\n".join(lines) + "\n")
