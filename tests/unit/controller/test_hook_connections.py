"""Whose connection is kept at the hook's port: whoever knows the path, and nobody else."""

import asyncio
from unittest.mock import Mock

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from controller.app import add_hook_routes
from controller.binding import BindingHook
from controller.hook_paths import PLAIN_PATH, HookPaths
from kube.admission.metrics import ReviewMetrics
from kube.certificates import Content
from kube.intake import Intake
from kube.segments import LENGTH, Segments, as_data
from kube.serving import Server, application

KNOWN, GUESSED = "a" * LENGTH, "b" * LENGTH


async def stored() -> Content:
    return Content(as_data(Segments(KNOWN)))


@pytest.mark.parametrize(
    ("segment", "status", "kept"), [(KNOWN, 415, True), (GUESSED, 404, False), ("x", 404, False)]
)
async def test_the_path_alone_proves_a_connection(segment: str, status: int, kept: bool) -> None:
    """Even if what is asked there is wrong: its next bind must not find the connection gone."""
    app = application()
    hook = Mock(spec=BindingHook)
    add_hook_routes(app, hook, ReviewMetrics(CollectorRegistry()), HookPaths(stored), Intake())
    server = Server(app, "127.0.0.1", 0)
    await server.start()
    try:
        url = f"http://127.0.0.1:{server.port}{PLAIN_PATH}/{segment}"
        async with (
            asyncio.timeout(5.0),
            aiohttp.ClientSession() as session,
            session.post(url, data=b"{}", headers={"Content-Type": "text/plain"}) as response,
        ):
            assert response.status == status
            assert (response.headers.get("Connection") != "close") is kept
    finally:
        await server.stop()
