"""The order in which a replica begins and ends to lead."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.leading import Leader
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from core.queues.ledger import Ledger
from core.settings import Settings
from kube.lease import Term
from tests.unit.controller.cluster import NoWrites
from tests.unit.controller.fakes import Recorder, Writer, term
from tests.unit.controller.test_binding import World, share

pytestmark = pytest.mark.looptime

QUIET_S = 5.0
LEAVE = Settings.model_validate({"dra": {"queueCRD": "leave"}})


class Leading:
    """A leader over a binding hook's world; `order` notes what happens at its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World(share("a"))
        self.world.hook.stop()
        self.order: list[bool] = []
        metrics, recorder, writer = Metrics(CollectorRegistry()), Recorder(), Writer()
        parts = (writer, self.world.caches, Announcements(recorder), metrics)
        self.leader = Leader(
            self.world.caches,
            Lifter(*parts),
            Publisher(*parts),
            Repairer(writer, self.world.caches, recorder, metrics, Settings()),
            ReservationWatch(writer, *parts[1:], Settings(), lambda: 0),
            QueueDefinitionKeeper(NoWrites(), self.world.caches, recorder, metrics, LEAVE),
            self.world.hook,
            QueueSeries(self.world.caches.ledger),
            quiet_s=QUIET_S,
        )
        forget_all = Ledger.forget_all

        def noted(ledger: Ledger) -> None:
            self.order.append(self.world.hook.leading)
            forget_all(ledger)

        monkeypatch.setattr(Ledger, "forget_all", noted)

        async def refreshed() -> None:
            await asyncio.sleep(1)

        monkeypatch.setattr(self.world.caches, "refresh", refreshed)


async def test_nobody_is_granted_cards_while_what_was_assumed_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leading = Leading(monkeypatch)
    task = asyncio.create_task(leading.leader.lead(term()))
    await asyncio.sleep(0.1)
    assert leading.world.hook.leading
    task.cancel()
    await asyncio.wait({task})
    assert leading.order == [False]
    assert not leading.world.hook.leading


@pytest.mark.parametrize(("epoch", "quiet_s"), [(0, 0.0), (1, QUIET_S + 1), (7, QUIET_S + 1)])
async def test_after_another_leader_the_last_bind_it_allowed_is_waited_for_and_everything_listed_anew(
    monkeypatch: pytest.MonkeyPatch, epoch: int, quiet_s: float
) -> None:
    leading = Leading(monkeypatch)
    task = asyncio.create_task(leading.leader.lead(Term(epoch, lambda: 0.0, 1.0)))
    if quiet_s:
        await asyncio.sleep(quiet_s - 0.1)
        assert not leading.world.hook.leading
    await asyncio.sleep(0.2)
    assert leading.world.hook.leading
    task.cancel()
    await asyncio.wait({task})
