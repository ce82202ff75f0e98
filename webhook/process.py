"""The admission process: what runs in it, in which order it starts, and how it ends."""

import asyncio
import logging
from functools import partial

from core.settings import Settings
from kube import errors, logs, runtime
from kube.client import Client
from kube.process import Frame, ProcessOptions
from webhook.app import make_app
from webhook.views import LiveViews

_LOG = logging.getLogger(__name__)


def run(settings: Settings, options: ProcessOptions) -> int:
    """Runs the process until SIGTERM or SIGINT; the exit status: 0 after a clean stop, 1 when it cannot start.

    Raises ValueError for options that make no sense.
    """
    logs.setup(options.log_level)
    _ = options.configurations
    try:
        return runtime.run(partial(_serve, settings, options))
    except (errors.KubeError, OSError) as error:
        _LOG.error("cannot start", extra={"error": errors.describe(error)})
        return 1


async def _serve(settings: Settings, options: ProcessOptions, stop: asyncio.Event) -> int:
    async with await Client.connect(options.kubeconfig) as client:
        frame, views = Frame(client, options), LiveViews(client, settings)
        app = make_app(settings, views.current, frozenset({options.controller_account} - {""}))
        async with frame.listening(app, "admission"):
            await runtime.run_until(stop, frame.run, *views.runnables, partial(_settle, views))
    return 0


async def _settle(views: LiveViews) -> None:
    """What was listed stays for long: keeps later garbage collections from walking over it."""
    await views.wait_listed()
    runtime.settle_gc()
