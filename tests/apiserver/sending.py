"""The chart's webhook entries in front of a recorder, and requests of which one asks where they were sent."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from core import names
from hack.controlplane import Answer, ControlPlane, wait_for
from hack.installation import rendering
from hack.installation.inventory import Inventory
from hack.installation.rendering import of_kind
from tests.apiserver.recorder import Recorder

NAMESPACE = "cardquota-system"
H200 = {names.CARD_NAME_ANNOTATION: "NVIDIA-H200"}
MGPU = {names.MGPU_CORE: 30, names.MGPU_MEMORY: 1024}

GATE, RULES, HINTS = (
    "mutating/pods.cardquota.io",
    "validating/pods.cardquota.io",
    "validating/hints.pods.cardquota.io",
)
PROTECTION, STRATEGY = "validating/protection.pods.cardquota.io", "validating/strategy.pods.cardquota.io"
QUEUES, QUEUE_STATUS = "validating/queues.cardquota.io", "mutating/queue-status.cardquota.io"
WORKLOADS, CRONJOBS = "validating/workloads.cardquota.io", "validating/cronjobs.cardquota.io"
PODGROUPS, QUEUE_HINTS = "validating/podgroups.cardquota.io", "validating/hints.queues.cardquota.io"
DELETIONS = "validating/deletions.queues.cardquota.io"
VOLCANO_JOBS, BINDINGS = "validating/volcano-jobs.cardquota.io", "mutating/bindings.cardquota.io"


@contextmanager
def sent_to(plane: ControlPlane, recorder: Recorder, values: Mapping[str, Any]) -> Iterator[None]:
    """The chart's CRDs and webhook configurations, the latter calling the recorder."""
    objects = rendering.render(plane.binary("helm"), {"crds": {"install": True}, **values}, NAMESPACE)
    inventory = Inventory(plane.api)
    try:
        for thing in of_kind(objects, "CustomResourceDefinition").values():
            inventory.apply(thing)
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            for configuration in of_kind(objects, kind).values():
                inventory.apply(recorder.redirected(configuration))
        probe = a_pod("default", annotations=H200)

        def called() -> bool:
            plane.api.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", probe).expect(201)
            return recorder.entries_for(probe["metadata"]["name"])[-2:] == [GATE, RULES]

        wait_for("the API server calls the webhooks", called)
        yield
    finally:
        inventory.remove()


def a_pod(
    namespace: str,
    *,
    annotations: Mapping[str, str] | None = None,
    limits: Mapping[str, int] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"limits": dict(limits or {})}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p-{secrets.token_hex(6)}",
            "namespace": namespace,
            "annotations": dict(annotations or {}),
        },
        "spec": {"schedulerName": "nobody", "containers": [container], **spec},
    }


class Send:
    """Sends a dry run and says which entries were called for it."""

    def __init__(self, plane: ControlPlane, recorder: Recorder) -> None:
        self._api = plane.api
        self._recorder = recorder

    def create(self, thing: Mapping[str, Any], *statuses: int) -> list[str]:
        path = self._api.path_of(thing, collection=True)
        return self._sent(thing, self._api.request("POST", f"{path}?dryRun=All", thing), statuses or (201,))

    def patch(
        self, thing: Mapping[str, Any], patch: Any, subresource: str = "", *, manager: str = "somebody"
    ) -> list[str]:
        path = self._api.path_of(thing, subresource=subresource)
        return self._sent(thing, self._api.patch(path, patch, dryRun="All", fieldManager=manager), (200,))

    def bind(self, thing: Mapping[str, Any], path: str, node: str) -> list[str]:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": thing["metadata"]["name"], "namespace": thing["metadata"]["namespace"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self._sent(thing, self._api.request("POST", f"{path}?dryRun=All", binding), (201,))

    def store(self, thing: Mapping[str, Any]) -> None:
        """Create for good; the requests are forgotten."""
        self._api.create(thing).expect(201)
        self._recorder.clear()

    def _sent(self, thing: Mapping[str, Any], answer: Answer, statuses: tuple[int, ...]) -> list[str]:
        answer.expect(*statuses)
        sent = self._recorder.entries_for(thing["metadata"]["name"])
        self._recorder.clear()
        return sent
