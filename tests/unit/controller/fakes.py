"""A client whose writes are recorded, and answered as the test says."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube import errors
from kube.client import Json, PatchType
from kube.lease import Term
from kube.resources import Resource


@dataclass(frozen=True)
class Write:
    """One patch as it went out."""

    at: float
    name: str
    body: Any
    subresource: str | None
    field_manager: str | None


@dataclass
class Writer:
    """The get, serves, patch and delete calls of kube.client.Client.

    `answers` to writes are used up first: an error to raise, or None; then `answer_to` by name; then success, with what is
    in `answered` by name. Reads find what is in `stored`, by key.
    What has one of the names in `stuck` hangs until the time-out, each time, and fails.
    """

    answers: deque[errors.KubeError | None] = field(default_factory=deque)
    stuck: set[str] = field(default_factory=set)
    writes: list[Write] = field(default_factory=list)
    trials: list[Write] = field(default_factory=list)
    """Dry runs, which are answered as writes are."""
    reads: list[str] = field(default_factory=list)
    failing_reads: deque[errors.KubeError] = field(default_factory=deque)
    stored: dict[str, Json] = field(default_factory=dict)
    answered: dict[str, Json] = field(default_factory=dict)
    answer_to: Callable[[str], errors.KubeError | None] = lambda _name: None
    trial_answer: Callable[[str], errors.KubeError | None] = lambda _name: None
    """What is answered to dry runs at once, before all else."""
    latency_s: Callable[[str], float] = lambda _name: 0.001
    served: bool = True
    """What discovery says."""
    discoveries: int = 0
    failing_discoveries: deque[errors.KubeError] = field(default_factory=deque)
    deletions: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    """Key, uid and resourceVersion of what was to be deleted."""

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
        timeout_s: float = 10.0,
    ) -> Json:
        assert (resource, patch_type) is not None
        assert namespace is None or name
        now = asyncio.get_running_loop().time()
        kept = self.trials if dry_run else self.writes
        if dry_run and (denied := self.trial_answer(name)) is not None:
            raise denied
        kept.append(Write(now, name, body, subresource, field_manager))
        return await self._answer(name, timeout_s)

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        assert (resource, timeout_s) is not None
        self.reads.append(name)
        await asyncio.sleep(0.001)
        if self.failing_reads:
            raise self.failing_reads.popleft()
        try:
            return self.stored[f"{namespace}/{name}"]
        except KeyError:
            raise errors.NotFound(404, "NotFound", f"{name} not found", None, None) from None

    async def serves(self, resource: Resource, *, timeout_s: float = 10.0) -> bool:
        assert (resource, timeout_s) is not None
        self.discoveries += 1
        await asyncio.sleep(0.001)
        if self.failing_discoveries:
            raise self.failing_discoveries.popleft()
        return self.served

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        timeout_s: float = 10.0,
    ) -> Json:
        assert resource is not None
        self.deletions.append((f"{namespace}/{name}", uid, resource_version))
        return await self._answer(name, timeout_s)

    async def _answer(self, name: str, timeout_s: float) -> Json:
        if name in self.stuck:
            await asyncio.sleep(timeout_s)
            raise errors.ConnectionFailed("timed out")
        await asyncio.sleep(self.latency_s(name))
        answer = self.answers.popleft() if self.answers else self.answer_to(name)
        if answer is not None:
            raise answer
        return self.answered.get(name, {})


class Recorder:
    """Events as they were emitted: (object, reason, note). What is named in `waiting` has not been written yet."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, str, str]] = []
        self.waiting: set[str] = set()
        self.retracted: list[tuple[str, str]] = []

    def emit(
        self,
        regarding: Any,
        event_type: str,
        reason: str,
        note: str,
        action: str,
        topic: str | None = None,
    ) -> None:
        assert (event_type, bool(action), topic) != ("Warning", False, "")
        self.emitted.append((f"{regarding.kind} {regarding.name}", reason, note))

    def retract(self, identity: str, topic: str) -> bool:
        self.retracted.append((identity, topic))
        return identity in self.waiting


def term() -> Term:
    """A term that lasts."""
    return Term(0, lambda: 0.0, 1.0)
