"""A client of the API server in this process."""

from collections.abc import AsyncIterator

import pytest

from kube.client import Client
from tests.fakes.apiserver import FakeApiServer


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    async with server.client() as connected:
        yield connected
