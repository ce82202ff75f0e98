"""Whether a kind is served is asked now and then, and an answer that does not come changes nothing."""

import asyncio

import pytest

from kube import errors
from kube.resources import KUBERNETES_PODGROUPS, Resource
from kube.versions import EVERY_S, Served
from tests.fakes.apiserver import background

pytestmark = pytest.mark.looptime


class Discovery:
    """Answers as it is told to, one after the other."""

    def __init__(self, *answers: bool | errors.KubeError) -> None:
        self._answers = [*answers]

    async def serves(self, resource: Resource, *, timeout_s: float) -> bool:
        assert resource is KUBERNETES_PODGROUPS
        assert timeout_s > 0
        answer = self._answers.pop(0)
        if isinstance(answer, errors.KubeError):
            raise answer
        return answer


async def test_the_last_answer_counts_and_a_failure_is_none() -> None:
    cut = errors.ConnectionFailed("cut")
    asked = Served(Discovery(cut, False, cut, True), KUBERNETES_PODGROUPS)
    assert asked.served is None
    found: list[bool | None] = []
    async with background(asked.run()):
        await asyncio.sleep(EVERY_S / 2)
        found.append(asked.served)
        for _ in range(3):
            await asyncio.sleep(EVERY_S)
            found.append(asked.served)
    assert found == [None, False, False, True]
