"""What the benchmarks with a control plane of their own have in common: their errors, the controller's log, what programs use."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from hack.bench.clock import cpu_s_of
from hack.bench.peers import BenchError
from hack.controlplane import ApiError, ControlPlane, ManagedProcess, ProcessError, WaitError


@contextmanager
def errors_told() -> Iterator[None]:
    """Whatever goes wrong with the control plane is a BenchError."""
    try:
        yield
    except (ApiError, WaitError, ProcessError, OSError) as error:
        raise BenchError(f"{type(error).__name__}: {error}") from error


def told(log: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    """The lines of a process's log as mappings, each with its time in seconds since the epoch."""
    for line in log.read_bytes().splitlines():
        entry = orjson.loads(line)
        yield datetime.fromisoformat(entry["time"]).timestamp(), entry


def pid_of(process: ManagedProcess) -> int:
    """Its process id. Raises BenchError when it has ended."""
    if process.pid is None:
        raise BenchError(f"{process.name} has ended")
    return process.pid


def spent_s(plane: ControlPlane) -> dict[str, float]:
    """Processor time that each program has used so far which runs beside the control plane or is part of it, by its name."""
    return {process.name: cpu_s_of(pid_of(process)) for process in plane.processes.values()}


def put(plane: ControlPlane, thing: dict[str, Any]) -> None:
    """Creates it as it is: what only the server says of an object is left out."""
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        thing["metadata"].pop(field, None)
    status = thing.pop("status", None)
    plane.api.create(thing).expect(201)
    if thing["kind"] == "Node":
        plane.api.patch(plane.api.path_of(thing) + "/status", {"status": status}).expect()


def events_of(plane: ControlPlane, namespace: str) -> int:
    """How many events there are in a namespace."""
    listed = plane.api.get(plane.api.path("v1", "Event", namespace), limit="1").expect()
    return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))
