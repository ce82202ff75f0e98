"""A reflector that follows a script, and what it says in a word each."""

import asyncio
from contextlib import aclosing
from random import Random

from prometheus_client import CollectorRegistry

from kube import changes
from kube.errors import Gone
from kube.metrics import Metrics
from kube.reflector import Reflector
from kube.resources import PODS
from tests.fakes.listwatch import ScriptedSource

GONE = Gone(410, "Expired")


def words(event: changes.Event) -> str:
    match event:
        case changes.Upsert(key, content):
            return f"+{key}@{content['metadata']['resourceVersion']}"
        case changes.Removed(key):
            return f"-{key}"
        case _:
            return type(event).__name__


async def play(
    source: ScriptedSource,
    *,
    optional: bool = False,
    dispensable: bool = False,
    seed: int = 1,
    metrics: Metrics | None = None,
) -> list[str]:
    """What the reflector says until the script is over and nothing more comes, but for the beginning of its lists."""
    metrics = metrics or Metrics(CollectorRegistry())
    following = Reflector(
        source, PODS, optional=optional, dispensable=dispensable, rng=Random(seed), metrics=metrics
    )
    said: list[str] = []

    async def follow() -> None:
        async with aclosing(following.run()) as events:
            async for event in events:
                if event != changes.ListBegins():
                    said.append(words(event))  # noqa: PERF401 - what was said before the cancellation counts

    task = asyncio.create_task(follow())
    await asyncio.wait({task, asyncio.create_task(source.exhausted.wait())}, return_when="FIRST_COMPLETED")
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    return said
