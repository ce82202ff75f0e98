"""From what is held to what is stored: announcements and recorder together, over an API server that keeps what it takes."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from core import reasons
from core.objects import Pod
from core.plan.decision import Hold
from core.refusal import Refusal
from kube.client import Json
from kube.events import EventRecorder
from kube.listing import Page
from kube.metrics import Metrics
from tests.builders import a_pod
from tests.fakes.apiserver import background

pytestmark = pytest.mark.looptime

LATENCY_S = 0.02


class Store:
    """Each write takes its time, and so does each page; what was created is listed afterwards."""

    def __init__(self, page_s: float = LATENCY_S) -> None:
        self.page_s = page_s
        self.created: list[Json] = []
        self.patches = 0

    async def create(self, resource: Any, body: Json, *_: Any, **__: Any) -> Json:
        assert resource is not None
        await asyncio.sleep(LATENCY_S)
        self.created.append(body)
        return body

    async def patch(self, *_: Any, **__: Any) -> Json:
        await asyncio.sleep(LATENCY_S)
        self.patches += 1
        return {}

    async def list(self, *_: Any, limit: int = 250, **__: Any) -> AsyncGenerator[Page]:
        for first in range(0, len(self.created), limit):
            await asyncio.sleep(self.page_s)
            yield Page(self.created[first : first + limit], "1")


@asynccontextmanager
async def leading(store: Store) -> AsyncIterator[Announcements]:
    recorder = EventRecorder(store, "cardquota", "host", metrics=Metrics(CollectorRegistry()))
    announcements = Announcements(recorder, history=recorder.recall)
    async with background(recorder.run()), background(announcements.run()):
        yield announcements


def held(pod: Pod, used: int) -> Hold:
    text = f"Queue <q> has insufficient <A> quota: requested <1000>, total would be <{used}>, but capability is <1>"
    return Hold(pod, "q", Refusal(reasons.INSUFFICIENT_SCALAR_QUOTA, text))


async def test_five_thousand_pods_held_in_one_pass_have_one_event_each_and_the_next_leader_adds_none() -> (
    None
):
    """Nobody looks at them again: what is said of each is said because of that one pass."""
    store, pods = Store(), [a_pod(f"p{number}").gated().view() for number in range(5000)]
    async with leading(store) as announcements:
        for pod in pods:
            announcements.held(held(pod, 3000))
        await asyncio.sleep(30)
    assert Counter(body["regarding"]["uid"] for body in store.created) == dict.fromkeys(
        (pod.uid for pod in pods), 1
    )
    async with leading(store) as announcements:
        for used in range(10):
            for pod in pods[:600]:
                announcements.held(held(pod, used))
            await asyncio.sleep(200)
    assert (len(store.created), store.patches) == (5000, 0)


async def test_a_slow_api_server_has_a_new_leader_say_nothing_again_and_lose_nothing_that_is_news() -> None:
    """It takes a minute and a half to tell what was said before; what happens meanwhile is said after that."""
    store, pods = Store(page_s=8.0), [a_pod(f"p{number}").gated().view() for number in range(5001)]
    async with leading(store) as announcements:
        for pod in pods[:5000]:
            announcements.held(held(pod, 3000))
        await asyncio.sleep(30)
    assert len(store.created) == 5000
    async with leading(store) as announcements:
        for pod in pods:
            announcements.held(held(pod, 4000))
        await asyncio.sleep(60)
        assert len(store.created) == 5000
        await asyncio.sleep(60)
    assert [body["regarding"]["name"] for body in store.created[5000:]] == ["p5000"]
    assert store.patches == 0
