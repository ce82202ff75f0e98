"""An API server in this process, and a client of it."""

from collections.abc import AsyncIterator

import pytest

from kube.client import Client
from tests.fakes.apiserver import FakeApiServer


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    async with server.client() as connected:
        yield connected
