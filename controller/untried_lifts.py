"""Lifts that wait for their turn, and whether they do so in vain."""

import asyncio
from collections.abc import Callable, Mapping

from controller.flight import PATIENCE_S, Flight, Key
from controller.open_questions import OpenQuestions
from controller.write_order import WriteOrder
from core.names import GANG_ANNOTATION
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.steps import Steps
from kube.turns import Turns

_IN_ONE_STEP = 8
"""So many lifts are looked at before others come to their turn."""


class UntriedLifts:
    """Those of the lifts under way that nobody has begun to write."""

    def __init__(
        self, flights: Mapping[Key, Flight], order: WriteOrder, questions: OpenQuestions, ledger: Ledger
    ) -> None:
        self._flights = flights
        self._order = order
        self._questions = questions
        self._ledger = ledger
        self._stored_at: dict[str, float] = {}
        """When the last lift was stored of each namespace, if that is not long ago."""

    def clear(self) -> None:
        """Nothing is under way."""
        self._stored_at.clear()

    def stored(self, namespace: str) -> None:
        """A lift of a namespace has been stored: those that wait there come to their turn. Only within a running event loop."""
        self._stored_at[namespace] = asyncio.get_running_loop().time()

    def has(self, key: Key, lift: Lift) -> bool:
        """Whether this very lift is among them."""
        flight = self._flights.get(key)
        return flight is not None and flight.lift is lift and not flight.tries

    def of_single_members(self, group: str) -> dict[Key, Lift]:
        """Those of the members of a group that were decided on one by one."""
        under_way = self._order.under_way(group).items()
        return {
            key: lift
            for key, lift in under_way
            if GANG_ANNOTATION not in lift.records and self.has(key, lift)
        }

    async def give_up(self, turns: Turns, hold: Callable[[Key, Flight], None]) -> None:
        """Has `hold` give the quota back of what has waited in vain, for all before it hangs, until cancelled."""
        while True:
            await asyncio.sleep(PATIENCE_S / 4)
            await turns.finish(self._giving_up(hold))

    def _giving_up(self, hold: Callable[[Key, Flight], None]) -> Steps[None]:
        """Those that are marked first are not begun meanwhile."""
        for key, flight in (yield from self.in_vain()):
            if self.has(key, flight.lift):
                hold(key, flight)
            yield

    def in_vain(self) -> Steps[list[tuple[Key, Flight]]]:
        """The lifts of namespaces of which none has been stored in reasonable time, for all before them hangs.

        Looked for in steps, given up and told together as it is then: once lifts of a namespace are stored again, none of it
        waits in vain, and a gang is not given up by half. That says nothing about those that wait for an answer about their group.
        """
        now = asyncio.get_running_loop().time()
        self._stored_at = {each: at for each, at in self._stored_at.items() if at > now - PATIENCE_S}
        found = []
        for number, (key, flight) in enumerate(tuple(self._flights.items()), 1):
            if self._order.waits(flight.lift):
                # For others of its group, not for its turn.
                flight.since = now
            elif flight.since <= now - PATIENCE_S and not flight.patient(now, self._ledger):
                found.append((key, flight))
            if number % _IN_ONE_STEP == 0:
                yield
        in_vain = [
            (key, flight)
            for key, flight in found
            if (key in self._questions or key[0] not in self._stored_at) and self.has(key, flight.lift)
        ]
        for key, flight in in_vain:
            flight.given_up = f"lifts in namespace {key[0]} are not taken in at present"
        return in_vain
