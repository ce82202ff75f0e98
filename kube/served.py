"""Whether the API server serves a kind of which nothing else is looked at: discovery tells, which everybody may ask."""

import asyncio
import logging
from typing import Final, Protocol

from kube import errors
from kube.resources import Resource

_LOG = logging.getLogger(__name__)

ANSWER_S: Final = 10.0
"""How long an answer is waited for."""
EVERY_S: Final = 60.0
"""How often it is asked: a kind comes with a setting of the API server, and as rarely."""


class Discovering(Protocol):
    """What of a client is called."""

    async def serves(self, resource: Resource, *, timeout_s: float) -> bool:
        """See kube.client.Client.serves."""


class Served:
    """Asks while `run` runs. `served` is the last answer, None before the first."""

    def __init__(self, client: Discovering, resource: Resource) -> None:
        self._client = client
        self._resource = resource
        self.served: bool | None = None

    async def run(self) -> None:
        """Asks every now and then until cancelled."""
        while True:
            try:
                self.served = await self._client.serves(self._resource, timeout_s=ANSWER_S)
            except errors.KubeError as error:
                extra = {"resource": str(self._resource), "error": errors.describe(error)}
                _LOG.info("not known whether it is served", extra=extra)
            await asyncio.sleep(EVERY_S)
