"""Somebody who asks the leader for its books, as a person may, while others ask all they can."""

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from typing import Self
from urllib.parse import urlsplit

import yaml

from hack.controlplane import ControlPlane
from hack.install import Installation
from tests.apiserver.cluster import unique
from tests.apiserver.granted import wait_granted_to

BOOKS = "/answers/v1/books"
RBAC = "rbac.authorization.k8s.io"
HONEST, OTHER = "ann", "eve"
_PAUSE_S = 0.5
_GIVEN_UP_S = 20.0


class Honest:
    """Asks twice a second, each time from another address and with another token: nobody knows it from before.

    `taken` are the seconds from the first attempt to an answer, for each question; whoever is told to come back does so.
    """

    def __init__(
        self, plane: ControlPlane, installation: Installation, namespace: str, questions: int
    ) -> None:
        self._url = urlsplit(installation.answers_url(0))
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._tokens = [token(plane, namespace, HONEST) for _ in range(questions)]
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name="honest")
        self.taken: list[float] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _ask_on(self) -> None:
        for number, shown in enumerate(self._tokens):
            began = time.monotonic()
            while self._ask(f"127.0.1.{number + 1}", shown) != HTTPStatus.OK:
                if self._enough.is_set() or time.monotonic() - began > _GIVEN_UP_S:
                    break
                time.sleep(0.1)
            else:
                self.taken.append(time.monotonic() - began)
                if not self._enough.wait(_PAUSE_S):
                    continue
            if not self._enough.is_set():
                self.taken.append(_GIVEN_UP_S)
            return

    def _ask(self, address: str, shown: str) -> int:
        """The status of one answer; 0 for none."""
        line = HTTPSConnection(
            self._url.hostname or "",
            self._url.port,
            timeout=_GIVEN_UP_S,
            source_address=(address, 0),
            context=self._tls,
        )
        with contextlib.closing(line), contextlib.suppress(OSError, HTTPException):
            line.request("GET", BOOKS, headers={"Authorization": f"Bearer {shown}"})
            answer = line.getresponse()
            json.loads(answer.read())
            return answer.status
        return 0


@contextlib.contextmanager
def readers(plane: ControlPlane, namespace: str) -> Iterator[None]:
    """`HONEST` and `OTHER` may read queues, and so the books."""
    theirs = [plane.service_account_kubeconfig(namespace, name, create=True) for name in (HONEST, OTHER)]
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": unique("reads")},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cardquota-queue-reader"},
        "subjects": [
            {"kind": "ServiceAccount", "name": name, "namespace": namespace} for name in (HONEST, OTHER)
        ],
    }
    path = plane.api.path_of(plane.apply(role)[0])
    try:
        for kubeconfig in theirs:
            wait_granted_to(plane, kubeconfig, "/api/v1/nodes")
        yield
    finally:
        plane.api.delete(path).expect()


def token(plane: ControlPlane, namespace: str, account: str) -> str:
    """One more token of an account."""
    text = plane.service_account_kubeconfig(namespace, account).read_text("utf-8")
    return str(yaml.safe_load(text)["users"][0]["user"]["token"])
