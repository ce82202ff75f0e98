"""The leader's audit of its own books."""

import asyncio
import logging

import pytest
from prometheus_client import CollectorRegistry

from controller.auditing import FIRST_S, INTERVAL_S, Auditor
from controller.metrics import Metrics
from tests.builders import a_node, a_pod
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches

pytestmark = pytest.mark.looptime

NODE = a_node("n").card("A", 8).view()
POD = a_pod("p").gpu(2).card("A").in_queue("q").assigned({"A": 2}).bound_to("n").view()


async def test_the_books_are_audited_now_and_then_and_what_is_wrong_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = CollectorRegistry()
    known = caches([NODE], [POD])

    def drift(kind: str) -> float | None:
        return registry.get_sample_value("cardquota_ledger_drift", {"kind": kind})

    async with background(Auditor(known, Metrics(registry)).run()):
        await asyncio.sleep(FIRST_S - 1)
        assert drift("sum") is None
        await asyncio.sleep(2)
        assert (drift("sum"), drift("pod")) == (0, 0)
        known.ledger.accounts["q"].allocated["A"] += 1000
        await asyncio.sleep(INTERVAL_S - 10)
        assert drift("sum") == 0
        with caplog.at_level(logging.ERROR):
            await asyncio.sleep(10)
        assert (drift("sum"), drift("pod")) == (1, 0)
        (record,) = (vars(record) for record in caplog.records)
        assert record["message"] == "the books are wrong"
        assert record["first"] == ["Queue q, A allocated: 3 in the books, 2 found"]
    assert drift("sum") is None
    assert registry.get_sample_value("cardquota_ledger_audits_total") == 2
