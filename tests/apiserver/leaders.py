"""Which of several controllers leads, by the Lease that they share and by what each says, and where the API server asks about binds."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import samples

TAKE_OVER_S = 45.0
"""How long is waited for what a standby does after its leader was killed: it begins within half a minute.

The lease of the killed one has to run out, and the last bind that it allowed has to be stored or lost.
"""

_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def leader_index(plane: ControlPlane, installation: Installation) -> int:
    """The place of the leading controller among those that run, once one of them holds the Lease."""
    path = plane.api.path("coordination.k8s.io/v1", "Lease", installation.namespace, "cardquota")

    def found() -> list[int]:
        holder = plane.api.get(path).expect(200, 404).get("spec", {}).get("holderIdentity", "")
        return [
            index
            for index, process in enumerate(installation.controller_processes)
            if process.running and holder.startswith(process.name)
        ]

    return wait_for("a running controller holds the Lease", found)[0]


@dataclass(frozen=True, slots=True)
class HookEntry:
    """The entry of the binding hook: the configuration it is in, its place there, and its `clientConfig`."""

    path: str
    place: int
    client: dict[str, Any]

    @property
    def url_path(self) -> str:
        """The path there."""
        return str(urlsplit(self.client["url"]).path)


def hook_entry(plane: ControlPlane) -> HookEntry:
    """Where the API server asks about binds at the moment."""
    (found,) = [
        HookEntry(f"{_CONFIGURATIONS}/{configuration['metadata']['name']}", place, entry["clientConfig"])
        for configuration in plane.api.get(_CONFIGURATIONS).expect()["items"]
        for place, entry in enumerate(configuration.get("webhooks", ()))
        if entry["name"] == "bindings.cardquota.io"
    ]
    return found


def leading(installation: Installation) -> list[int]:
    """Which of two controllers take themselves for the leader, by what they show; one that is killed, even while it shows it, does not."""
    return [index for index in range(2) if _leads(installation, index)]


def _leads(installation: Installation, index: int) -> bool:
    try:
        exposition = installation.metrics("controller", index)
    except (OSError, HTTPException):
        return False
    return samples(exposition, "cardquota_leader", lease="cardquota") > 0


class Leaders:
    """Looks all the time who takes itself for the leader, while `with` lasts."""

    _EVERY_S = 0.1

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._over = threading.Event()
        self.most = 0
        """How many did at most at one moment."""
        self._pool = ThreadPoolExecutor(1, "leaders")

    def __enter__(self) -> Self:
        self._looking = self._pool.submit(self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._pool.shutdown()
        self._looking.result()  # raises what has ended it early

    def _look(self) -> None:
        while not self._over.wait(self._EVERY_S):
            self.most = max(self.most, len(leading(self._installation)))
