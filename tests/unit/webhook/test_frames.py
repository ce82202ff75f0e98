"""How far it is from the bytes of a review to those of its answer: a reader follows every call."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from core import names
from core.admission.request import ClusterView
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from core.settings import Settings
from kube.admission.metrics import ReviewMetrics
from tests.builders import a_namespace, a_node, a_pod, a_queue
from tests.fakes.bodies import Sending
from tests.unit.webhook.reviews import a_review, body
from webhook.process import make_app

HOUSE = Path(__file__).parents[3]
PACKAGES = tuple(str(HOUSE / package) for package in ("core", "kube", "webhook"))
GENERATED = "<string>"
"""Where the methods of dataclasses are."""


def everything() -> ClusterView:
    """A cluster in which nothing is left to be listed, so that no rule is left out."""
    inventory = Inventory({})
    inventory.put(a_node("n1").card("NVIDIA-H200", 8).view())
    return ClusterView(
        inventory=inventory,
        queues={"q": a_queue("q").cards({"NVIDIA-H200": 8}).view()},
        namespaces={"ml": a_namespace("ml").view()},
        device_classes=frozenset({"gpu.example.com"}),
        serving=DeviceClasses(),
    )


def a_worker() -> dict[str, Any]:
    """A pod of a Volcano Job that names its card and its queue, as the API server sends it."""
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "u",
        "controller": True,
    }
    pod = a_pod("train").card("NVIDIA-H200").in_queue("q").label("app", "x")
    pod = pod.container("main", limits={"nvidia.com/gpu": "1", "cpu": "8"}, requests={"nvidia.com/gpu": "1"})
    return (
        pod.annotation(names.JOB_QUEUE_ANNOTATION, "q")
        .put("metadata", "ownerReferences", value=[owner])
        .build()
    )


async def frames(path: str, raw: dict[str, Any]) -> list[str]:
    """The calls of our own Python code for one review, when the same has been asked before."""
    view = everything()
    app = make_app(Settings(), lambda: view, frozenset(), metrics=ReviewMetrics(CollectorRegistry()))
    handler: Callable[[Any], Any] = next(
        route.handler for route in app.router.routes() if route.resource and route.resource.canonical == path
    )
    content, called = body(a_review(raw)), list[str]()

    def asked() -> Any:
        sending = Sending(len(content), **{"Content-Type": "application/json"})
        return sending.sends(content).ends().request

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith((*PACKAGES, GENERATED)):
            called.append(code.co_qualname)

    assert (await handler(asked())).status == 200
    request = asked()
    sys.setprofile(note)
    try:
        response = await handler(request)
    finally:
        sys.setprofile(None)
    assert b'"allowed":true' in response.body
    return called


@pytest.mark.parametrize(("path", "most"), [("/mutate/pods", 30), ("/validate/pods", 60)])
async def test_a_review_takes_few_calls(path: str, most: int) -> None:
    called = await frames(path, a_worker())
    assert len(called) <= most, called
    assert "Draft.of" in called
