"""What both processes do before they serve anything."""

import asyncio
import logging

import pytest
from prometheus_client import REGISTRY

from kube import process
from kube.process import ProcessOptions


async def at_once(_: asyncio.Event) -> int:
    return 0


@pytest.mark.parametrize("warnings", [(), ("crossQuota.weight: -1 is negative; 10 is used", "x")])
def test_settings_that_are_not_used_as_written_are_logged_and_counted(
    warnings: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    options = ProcessOptions(namespace="n", cert_secret="c", service="s", settings_warnings=warnings)
    before = logging.getLogger().handlers.copy()
    assert process.run(options, at_once) == 0
    logging.getLogger().handlers[:] = before
    assert REGISTRY.get_sample_value("cardquota_settings_warnings") == len(warnings)
    said = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.__dict__["detail"] for record in said] == list(warnings)
