"""An API server in this process, for the tests that ask for one."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.apiserver import FakeApiServer


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running
