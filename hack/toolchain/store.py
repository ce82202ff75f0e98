"""The cache of built binaries: found if there, built if missing, by one process at a time."""

import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from hack.toolchain import catalogue, golang
from hack.toolchain.catalogue import Binary, ToolchainError
from hack.toolchain.progress import Reporter, duration

_LOCK_POLL_S = 0.2
_TAIL_LINES = 30
_STOP_TIMEOUT_S = 10.0
_LIST_TIMEOUT_S = 120.0


def cache_root(environ: Mapping[str, str]) -> Path:
    """Return the project's folder in the user's cache: `$XDG_CACHE_HOME/cardquota`, else `~/.cache/cardquota`."""
    base = environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "cardquota"


class Store:
    """The binaries for one set of pinned versions."""

    def __init__(self, environ: Mapping[str, str] | None = None, *, tools: Path = catalogue.TOOLS) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._tools = tools
        self._cache = cache_root(self._environ)
        self._platform = catalogue.host_platform()
        self.folder = self._cache / "bin" / catalogue.cache_key(self._platform, tools)

    def find(self, name: str) -> Path | None:
        """Return the program if it need not be built: from `KUBEBUILDER_ASSETS`, else from the cache."""
        item = catalogue.binary(name)
        assets = self._environ.get("KUBEBUILDER_ASSETS", "")
        places = [Path(assets) / item.name] if assets else []
        places.append(self._folder_of(item) / item.name)
        return next((place for place in places if place.is_file() and os.access(place, os.X_OK)), None)

    def ensure(self, names: Iterable[str], reporter: Reporter) -> dict[str, Path]:
        """Return the path of every named program, building what is missing.

        Another process that builds the same versions is waited for. Raises `ToolchainError`, with the end of the
        compiler's output, when a build fails.
        """
        wanted = list(names)
        if any(self.find(name) is None for name in wanted):
            with self._build_lock(reporter):
                self._build([catalogue.binary(name) for name in wanted if self.find(name) is None], reporter)
        return {name: self._path(name) for name in wanted}

    def source_of(self, name: str, reporter: Reporter) -> Path:
        """Return the folder of the module that a program is built from, with what else it holds; it is downloaded if need be."""
        family = catalogue.binary(name).family
        go = golang.find(self._cache, self._environ.get("PATH"), reporter.line)
        try:
            asked = subprocess.run(
                [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", catalogue.MODULES[family]],
                cwd=self._tools / family,
                env=self._build_environment(),
                capture_output=True,
                text=True,
                check=True,
                timeout=_LIST_TIMEOUT_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolchainError(f"the module of {name} cannot be found: {error}") from error
        return Path(asked.stdout.strip())

    def _folder_of(self, item: Binary) -> Path:
        if item.name in catalogue.BINARIES:
            return self.folder
        return self._cache / "bin" / catalogue.cache_key(self._platform, self._tools, items=(item,))

    def _path(self, name: str) -> Path:
        found = self.find(name)
        if found is None:
            raise ToolchainError(
                f"{name} was built but has vanished from {self._folder_of(catalogue.binary(name))}"
            )
        return found

    @contextmanager
    def _build_lock(self, reporter: Reporter) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        started = reported = time.monotonic()
        with (self.folder / ".lock").open("w", encoding="utf-8") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    now = time.monotonic()
                    if now - reported >= reporter.interval_s:
                        reporter.alive(f"another process builds in {self.folder} ({duration(now - started)})")
                        reported = now
                    time.sleep(_LOCK_POLL_S)
            yield

    def _build(self, missing: list[Binary], reporter: Reporter) -> None:
        if not missing:
            return
        for leftover in self.folder.glob(".*.partial"):
            leftover.unlink()
        go = golang.find(self._cache, self._environ.get("PATH"), reporter.line)
        reporter.line(f"building {', '.join(item.name for item in missing)} with {go}")
        started = time.monotonic()
        for number, item in enumerate(missing, start=1):
            self._build_one(go, item, f"[{number}/{len(missing)}] {item.name}", reporter)
        reporter.line(f"{len(missing)} built in {duration(time.monotonic() - started)}: {self.folder}")

    def _build_one(self, go: Path, item: Binary, title: str, reporter: Reporter) -> None:
        partial = self.folder / f".{item.name}.partial"
        started = time.monotonic()
        reporter.alive(f"{title}: building {catalogue.version(item.family, self._tools)}")
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            with subprocess.Popen(
                [go, *catalogue.build_arguments(item, partial, self._tools)],
                cwd=self._tools / item.family,
                env=self._build_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as process:
                code = _wait(process, f"{title}: building", reporter)
            if code != 0:
                raise ToolchainError(
                    f"go build of {item.package} failed (exit status {code}):\n{_tail(output)}"
                )
        target = self._folder_of(item)
        target.mkdir(parents=True, exist_ok=True)
        partial.rename(target / item.name)
        reporter.line(f"{title}: done in {duration(time.monotonic() - started)}")

    def _build_environment(self) -> dict[str, str]:
        # The user's module proxy, checksum settings and build cache are theirs to set. What would change the result is ours.
        return self._environ | {
            "CGO_ENABLED": "0",
            "GOOS": self._platform.os,
            "GOARCH": self._platform.arch,
            "GOWORK": "off",
            "GO111MODULE": "on",
        }


def _wait(process: subprocess.Popen[bytes], title: str, reporter: Reporter) -> int:
    started = time.monotonic()
    try:
        while True:
            try:
                return process.wait(timeout=reporter.interval_s)
            except subprocess.TimeoutExpired:
                reporter.alive(f"{title}, {duration(time.monotonic() - started)}")
    finally:
        if process.poll() is None:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _tail(output: TextIO) -> str:
    output.seek(0)
    lines = [line.rstrip() for line in output if not line.startswith("go: downloading ")]
    return "\n".join(lines[-_TAIL_LINES:])
