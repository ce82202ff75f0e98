"""`python -m hack.bench.watched SCENE SCALE QUIET_S`: a real controller process over the store, and a watch on its loop.

Everything is the product's own, from the start of the process to its end, but for the client of the API server; and a leader
does not wait for what a former one may still have under way. Prints one line of JSON.
"""

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import orjson

from controller import leading, process
from controller.options import Options
from core.settings import Settings
from hack.bench.peers import BenchError, Peer
from hack.bench.pulse import Deaf, Pulse
from hack.bench.scenes import SCENES, Scene
from hack.bench.stage import Json
from hack.bench.store import Store
from hack.controlplane.ports import free_ports
from kube import certificates, pki
from kube.resources import NODES, PODS, QUEUES, SECRETS
from tests.builders import a_node, a_pod, a_queue

HOST = "127.0.0.1"

_CALM_WINDOW_S = 0.1
_CALM_WINDOWS = 4
_CALM_SHARE = 0.2
"""Nothing is left to be done when the process took less than this part of each of some windows."""
_NAMESPACE = "cardquota-system"
_SECRET = "cardquota-controller"
_SMALL = "small"
_SMALL_EVERY_S = 0.25
_SMALL_AT_LAST_S = 5.0


@dataclass(slots=True)
class Outcome:
    """What was seen during a scene, and during a while in which nothing happened; `problem` where it came to nothing."""

    deaf: Deaf = field(default_factory=Deaf)
    quiet: Deaf = field(default_factory=Deaf)
    took_s: float = 0.0
    read_s: float = 0.0
    """What it took to read the texts that the controller was told, and nothing else."""
    ended: bool = True
    led: bool = True
    """Whether leadership was as it should be all the time."""
    waited_ms: float = 0.0
    """The longest that another queue's pod waited for its lift."""
    quiet_waited_ms: float = 0.0
    requests: dict[str, int] = field(default_factory=dict)
    problem: str = "the process ended before the scene"


class Watched:
    """One scene on one controller, which connects to this as to an API server."""

    def __init__(self, scene: Scene, scale: float, quiet_s: float) -> None:
        self.outcome = Outcome()
        self.metrics_port, self.port, self.kube_port = free_ports(3)
        self.store = Store(rival=scene.standby)
        if scene.standby:
            self.store.fill(SECRETS, [_certificates()])
        self._scene = scene
        self._quiet_s = quiet_s
        self._act = scene.prepare(self.store, scale)
        self.store.fill(NODES, [a_node(_SMALL).card(_SMALL, 8).build()])
        self.store.fill(QUEUES, [a_queue(_SMALL).cards({_SMALL: 1_000_000}).build()])
        self._pulse = Pulse()
        self._folder = tempfile.TemporaryDirectory(prefix="cardquota-bench-")
        self._peer = Peer("hack.bench.ask")
        self._appeared: dict[str, float] = {}
        self._going: asyncio.Task[None] | None = None

    async def connect(self, _kubeconfig: Path | None) -> Store:
        """What the process gets for its client; from here on it is watched."""
        self._going = asyncio.create_task(self._go_through(), name="scene")
        return self.store

    @property
    def led(self) -> bool:
        """Whether the controller has led all the time since it first did; a standby, whether it never has."""
        return len(self.store.terms) == (0 if self._scene.standby else 1)

    def close(self) -> None:
        """Ends what was started besides."""
        self._peer.close()
        self._folder.cleanup()

    # -- the stage ---------------------------------------------------------------------------------------------

    async def calm(self) -> None:
        """Returns when the controller has nothing left to do."""
        calm, cpu, at = 0, time.process_time(), time.monotonic()
        while calm < _CALM_WINDOWS:
            await asyncio.sleep(_CALM_WINDOW_S)
            now_cpu, now = time.process_time(), time.monotonic()
            # A process that was not let run is not one that has nothing to do.
            punctual = now - at < 2 * _CALM_WINDOW_S
            calm = calm + 1 if punctual and now_cpu - cpu < _CALM_SHARE * (now - at) else 0
            cpu, at = now_cpu, now

    async def patches(self, count: int) -> None:
        """Returns when the controller has patched so many pods."""
        await self.store.until(lambda: self.store.requests["patch pods"] >= count)

    async def ask(self, path: str, *, body: Path | None = None, times: int = 1) -> None:
        """Has another process ask the controller."""
        page = path == "/metrics"
        base = f"http://{HOST}:{self.metrics_port}" if page else f"https://{HOST}:{self.kube_port}"
        self._peer.tell({"url": base + path, "body": str(body) if body else None, "times": times})
        answer = await asyncio.to_thread(self._peer.hear)
        if "problem" in answer:
            raise BenchError(f"{path}: {answer['problem']}")

    def file(self, content: bytes) -> Path:
        """A file with this content."""
        path = Path(self._folder.name) / "body"
        path.write_bytes(content)
        return path

    # -- the course of it --------------------------------------------------------------------------------------

    async def _go_through(self) -> None:
        try:
            with self._pulse.beating():
                await self._play()
            self.outcome.problem = ""
        except BenchError as error:
            self.outcome.problem = str(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    async def _play(self) -> None:
        started = time.monotonic()
        await self._ready()
        if not self._scene.starts:
            await self.calm()
            await self._be_quiet()
            started = time.monotonic()
        outcome = self.outcome
        async with self._others():
            try:
                async with asyncio.timeout(self._scene.limit_s):
                    await self._act(self)
            except TimeoutError:
                outcome.ended = False
            outcome.took_s = time.monotonic() - started
        outcome.waited_ms = self._longest_wait_ms()
        outcome.deaf = self._pulse.take()
        if self._scene.starts:
            await self._be_quiet()
        outcome.led = self.led
        outcome.requests = dict(self.store.requests)

    async def _ready(self) -> None:
        """Returns once the controller leads and decides; a standby, once everything is listed and it asks who leads."""
        store = self.store
        if self._scene.standby:
            await store.until(lambda: "get leases" in store.requests and not store.listing)
        else:
            key = self._appear()
            await store.until(lambda: key in store.lifted)

    async def _be_quiet(self) -> None:
        self._pulse.take()
        async with self._others():
            await asyncio.sleep(self._quiet_s)
        self.outcome.quiet_waited_ms = self._longest_wait_ms()
        self.outcome.quiet = self._pulse.take()

    # -- other queues ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _others(self) -> AsyncIterator[None]:
        """Meanwhile a pod of another queue appears now and then; all of them have been waited for, but not for ever."""
        self._appeared.clear()
        if not self._scene.hostile:
            yield
            return
        appearing = asyncio.create_task(self._go_on_appearing())
        try:
            yield
        finally:
            appearing.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SMALL_AT_LAST_S):
                await self.store.until(lambda: self._appeared.keys() <= self.store.lifted.keys())

    async def _go_on_appearing(self) -> None:
        while True:
            self._appear()
            await asyncio.sleep(_SMALL_EVERY_S)

    def _appear(self) -> str:
        name = f"small-{len(self.store.lifted)}-{len(self._appeared)}"
        pod = a_pod(name, namespace=_SMALL).gpu(1).card(_SMALL).in_queue(_SMALL).gated().build()
        self.store.tell(self.store.prepare(PODS, "ADDED", [pod]))
        self._appeared[f"{_SMALL}/{name}"] = asyncio.get_running_loop().time()
        return f"{_SMALL}/{name}"

    def _longest_wait_ms(self) -> float:
        now, lifted = asyncio.get_running_loop().time(), self.store.lifted
        return max((lifted.get(key, now) - at for key, at in self._appeared.items()), default=0.0) * 1000


def _certificates() -> Json:
    """What the leader has issued for all replicas."""
    bundle = pki.renewed(None, [HOST], datetime.now(UTC))
    return {
        "metadata": {"name": _SECRET, "namespace": _NAMESPACE, "uid": _SECRET},
        "data": certificates.encoded(certificates.of_bundle(bundle)),
    }


def main(arguments: Sequence[str]) -> int:
    """Goes through the scene in this process."""
    name, scale, quiet_s = arguments
    with closing(Watched(SCENES[name], float(scale), float(quiet_s))) as watched:
        options = Options(
            namespace=_NAMESPACE,
            cert_secret="cardquota-certificates",
            authority_secret=_SECRET,
            service="cardquota-controller.cardquota-system.svc",
            identity="watched",
            bind_address=HOST,
            port=watched.port,
            kube_extender_port=watched.kube_port,
            metrics_port=watched.metrics_port,
            hook_timeout_s=1.0,
            drain_s=0.0,
            log_level="error",
        )
        with (
            patch.object(process, "Client", SimpleNamespace(connect=watched.connect)),
            patch.object(leading, "QUIET_S", 0.0),
            # There is no Lease at first, and no leader before that might go on.
            patch.object(process, "anything_let_in", lambda _ledger: False),
        ):
            status = process.run(Settings(), options)
        outcome = watched.outcome
        started = time.process_time()
        for text in watched.store.texts():
            orjson.loads(text)
        outcome.read_s = time.process_time() - started
    print(orjson.dumps(asdict(outcome)).decode())
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
