"""How a lift that was decided gets into the API server, or why it does not.

A lift is a JSON patch that names the resourceVersion: of all its repetitions at most one can be stored, and none once the pod
is another one. Until it is certain how it ended its quota stays booked. Nothing is taken back because time has passed alone:
what the watch shows decides, or what is read.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus

from controller.caches import Caches
from controller.flight import PATIENCE_S, RETRY_MAX_S, TRIES, Flight, Key, about, key_of
from controller.lift_requests import OF_ANOTHER_POD, patched, queue_of_requests, read_pod
from controller.lone_lifts import LoneLifts, terms_of
from controller.metrics import Metrics
from controller.open_questions import OpenQuestions
from controller.refused_lifts import RefusedLifts
from controller.returned_lifts import ReturnedLifts
from controller.trial_lifts import TrialLifts
from controller.untried_lifts import UntriedLifts
from controller.write_order import WriteOrder
from core.objects import Group, Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from kube import errors
from kube.calls import LiftClient
from kube.lease import Term
from kube.workqueue import IDLE

_LOG = logging.getLogger(__name__)


class LiftWriter:
    """Writes lifts, term after term. A slot is held by a request only; namespaces take turns.

    `begin_pass` has a pass begun though nobody is on the list of those to decide on.
    """

    def __init__(
        self, client: LiftClient, caches: Caches, metrics: Metrics, begin_pass: Callable[[], None]
    ) -> None:
        self._client = client
        self._read = partial(read_pod, client, caches.project_pod)
        self._caches = caches
        self._metrics = metrics
        self._lone = LoneLifts(client, caches)
        self._questions = OpenQuestions()
        self._returned = ReturnedLifts(caches, begin_pass)
        self._planner: Planner | None = None
        self._term: Term | None = None
        self._flights: dict[Key, Flight] = {}
        self._order = WriteOrder()
        self._untried = UntriedLifts(self._flights, self._order, self._questions, caches.ledger)
        self._queue = queue_of_requests(self._work)
        self._refused = RefusedLifts(caches.ledger)
        self._trials = TrialLifts(client, caches, metrics, self._refused, self._order, self._read)
        caches.pods.subscribe(self._pod_changed)
        for groups in (caches.groups, caches.kubernetes_groups):
            groups.subscribe(self._group_changed)

    async def run(self, planner: Planner, term: Term) -> None:
        """Writes until cancelled. What is refused is told to `planner`."""
        self._planner, self._term = planner, term
        self._refused.begin(planner)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._queue.run(), name="lift queue")
                tasks.create_task(self._trials.run(term), name="questions about lifts")
                in_vain = self._untried.give_up(self._caches.turns, self._hold)
                tasks.create_task(in_vain, name="lifts that hang")
        finally:
            self._planner = self._term = None
            self._queue.clear()
            self._flights.clear()
            self._untried.clear()
            self._order.clear()
            self._refused.end()
            self._returned.clear()

    async def give_back(self) -> None:
        """Takes back the bookings of group members that are to be decided on again. To be called before each pass."""
        await self._returned.give_back()

    def write(self, lift: Lift) -> None:
        """Has a lift written that is booked in the ledger, or gives it back until it has been asked about."""
        if (key := key_of(lift.pod)) in self._flights:
            self._order.end(self._flights.pop(key).lift)
        if self._trials.due(key, lift):
            self._trials.ask(key, lift)
            self._returned.retract((lift,))
            return
        self._order.begun(lift)
        self._flights[key] = Flight(lift, since=asyncio.get_running_loop().time())
        self._queue.add(key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Looks after the lift of a pod that has changed at once; forgets one that is gone."""
        pod = new or old
        if pod is None or self._planner is None:
            return
        key = key_of(pod)
        if key in self._flights:
            self._queue.add(key)
        elif key in self._refused and (new is None or not new.gated):
            self._refused.forget(key)
            self._trials.discard(key)

    def _group_changed(self, old: Group | None, new: Group | None) -> None:
        """Takes back what was decided for single members and is not being written yet, all at once: they are decided on again.

        Were it done one by one, a pass in between would take those still booked for members that are in, and let in only what
        the gang lacks beside them.
        """
        group = new or old
        if group is None or self._planner is None or terms_of(old) == terms_of(new):
            return
        alone = self._untried.of_single_members(group.key)
        if alone:
            for key in alone:
                del self._flights[key]
            self._decide_again(self._order.lost_together(group.key, alone))
            self._returned.retract(alone.values())

    # -- one lift ----------------------------------------------------------------------------------------------

    async def _work(self, key: Key) -> float | None:
        """One step for one pod. Returns after how many seconds it goes on, None or IDLE when nothing is left to be done."""
        await self._caches.sums_settled()
        flight = self._flights.get(key)
        if flight is None:
            return IDLE
        if flight.overtaken(self._caches.ledger):
            self._done(key, flight)
            return IDLE
        if self._term is None or not self._term.valid():
            return RETRY_MAX_S
        if flight.is_another(self._caches.ledger):
            return self._outdated(key, flight) or IDLE
        flight.void = self._planner is not None and not self._planner.stands(flight.lift)
        if flight.void and flight.certain and not flight.look:
            self._take_back(key, flight)
            return IDLE
        if flight.look or flight.void:
            again_s = await self._look(key, flight)
            # That a pod can be read says nothing about writes.
            return IDLE if again_s is None else again_s
        if not flight.tries and (flight.given_up or self._order.waits(flight.lift)):
            return IDLE
        question = self._lone.question(flight.lift)
        if question is not None:
            return await self._ask(key, flight, question)
        return await self._write(key, flight)

    async def _ask(self, key: Key, flight: Flight, question: str) -> float:
        """Has something found out on which the lift depends; then it is looked at again, with all that wait for the same."""
        if self._questions.join(question, key):
            return IDLE
        delay_s = 0.0
        try:
            await self._lone.ask(question)
        except errors.KubeError as error:
            delay_s = self._again(flight, error)
            return delay_s
        else:
            self._queue.add(key)
            return IDLE
        finally:
            for other in self._questions.end(question):
                self._queue.add(other, delay_s)

    async def _write(self, key: Key, flight: Flight) -> float | None:
        lift = flight.lift
        flight.tries += 1
        try:
            answer = await patched(self._client, lift)
        except (errors.Throttled, errors.Unauthorized) as error:
            # Not taken in at all; as a rule it will be soon.
            return self._put_off(key, flight, error)
        except (errors.ServerError, errors.ConnectionFailed) as error:
            return self._unknown(flight, error)
        except errors.ApiError as error:
            if error.status == HTTPStatus.REQUEST_TIMEOUT:
                return self._unknown(flight, error)
            return await self._refuse(key, flight, error)
        # The scheduler may see it sooner than we do, and is not to wait at the bind.
        stored = self._caches.answered(lift.pod, answer)
        if stored is not None and stored.gated:
            return self._undone(key, flight)
        self._metrics.lifted(lift.queue, "done")
        _LOG.info("lifted", extra=about(lift, None))
        self._done(key, flight, stored=True)
        return None

    def _undone(self, key: Key, flight: Flight) -> float | None:
        """The lift was taken in, and the pod that is stored has our gate: somebody's webhook puts it back."""
        flight.undone()
        self._metrics.lifted(flight.lift.queue, "refused")
        _LOG.error("lift refused", extra=about(flight.lift, None) | {"error": flight.given_up})
        if not (flight.certain or flight.is_another(self._caches.ledger)):
            # This try has changed nothing, and an earlier one that was not answered may be stored yet.
            flight.look = True
            return flight.read_again_s(asyncio.get_running_loop().time())
        self._hold(key, flight)
        return None

    def _put_off(self, key: Key, flight: Flight, error: errors.KubeError) -> float:
        """The patch was not taken in. Quota is not held for longer than a lift is given, if the server wants to be left alone."""
        delay_s = self._again(flight, error)
        if not (flight.given_up and delay_s > PATIENCE_S):
            return delay_s
        if not flight.certain:
            return flight.read_after_s(delay_s, asyncio.get_running_loop().time())
        self._hold(key, flight)
        return IDLE

    def _unknown(self, flight: Flight, error: errors.KubeError) -> float:
        """Nobody knows whether the patch was stored, or still will be."""
        flight.look, now = True, asyncio.get_running_loop().time()
        flight.keep_open(error, now)
        delay_s = self._again(flight, error)
        return flight.read_after_s(delay_s, now) if flight.given_up else delay_s

    async def _refuse(self, key: Key, flight: Flight, error: errors.ApiError) -> float | None:
        """The patch was not stored. The pod may be another one than was looked at, perhaps by an earlier try of this lift."""
        self._metrics.lifted(flight.lift.queue, "refused")
        changed = isinstance(error, OF_ANOTHER_POD)
        _LOG.log(logging.DEBUG if changed else logging.ERROR, "lift refused", extra=about(flight.lift, error))
        if not changed or flight.tries >= TRIES:
            flight.given_up = errors.describe(error)
        flight.look = True
        return await self._look(key, flight)

    async def _look(self, key: Key, flight: Flight) -> float | None:
        """What is stored decides."""
        asked_at = asyncio.get_running_loop().time()
        try:
            found = await self._caches.look_up(flight.lift.pod, self._read)
        except errors.KubeError as error:
            return self._again(flight, error)
        if found is None or flight.overtaken(self._caches.ledger):
            self._done(key, flight)
            return None
        if flight.is_another(self._caches.ledger):
            return self._outdated(key, flight)
        flight.read_at = asked_at
        if not (flight.given_up or flight.void):
            # Nothing has been stored. Should an earlier try be under way still, only one of the two can be.
            flight.look = False
            return flight.delay_s
        if not flight.certain:
            return flight.read_again_s(asyncio.get_running_loop().time())
        end = self._hold if flight.given_up else self._take_back
        end(key, flight)
        return None

    # -- how it goes on ----------------------------------------------------------------------------------------

    def _again(self, flight: Flight, error: errors.KubeError) -> float:
        self._metrics.lifted(flight.lift.queue, "retried")
        _LOG.warning("lift not answered, trying again", extra=about(flight.lift, error))
        return flight.failed(error, asyncio.get_running_loop().time(), self._caches.ledger)

    def _done(self, key: Key, flight: Flight, *, stored: bool = False) -> None:
        """Nothing is to be written any more; the booking stays until the watch shows what became of the pod."""
        if self._flights.get(key) is flight:
            del self._flights[key]
            seen = self._caches.latest(flight.lift.pod.key)
            if stored or (seen is not None and seen.uid == key[1] and not seen.gated):
                self._untried.stored(key[0])
                self._refused.stored(key)
                for other in self._order.stored(flight.lift):
                    self._queue.add(other)
            else:
                self._refused.forget(key)
                self._lost(flight.lift)

    def _outdated(self, key: Key, flight: Flight) -> float | None:
        """The pod has changed and has its gate: the lift can never be stored any more. It may have been, without an answer in time.

        As long as the server wants to be left alone with it, it is not decided on again: that would be another request.
        """
        if (left_s := flight.not_before - asyncio.get_running_loop().time()) > 0:
            return left_s
        if flight.put_back(self._caches.ledger):
            return self._undone(key, flight)
        self._take_back(key, flight)
        return None

    def _take_back(self, key: Key, flight: Flight) -> None:
        """The lift is not stored and never will be: the pod is decided on again."""
        if self._flights.get(key) is flight:
            del self._flights[key]
        self._lost(flight.lift)
        self._returned.take(flight.lift)

    def _lost(self, lift: Lift) -> None:
        """Others that were decided on as if this one were in are decided on again, before anybody gets what it gives back."""
        self._decide_again(self._order.lost(lift))

    def _decide_again(self, lifts: Iterable[Lift]) -> None:
        for lift in lifts:
            key = key_of(lift.pod)
            if self._untried.has(key, lift):
                del self._flights[key]
                self._returned.keep(lift)

    def _hold(self, key: Key, flight: Flight) -> None:
        """The pod gives its quota back and waits, with the reason, until it is tried anew; unless it is gone meanwhile, or in."""
        if flight.overtaken(self._caches.ledger):
            self._done(key, flight)
            return
        if flight.was_long(asyncio.get_running_loop().time()):
            self._refused.doubt(key[0], flight.given_up)
        wait_s = self._refused.refuse(key, flight.lift, flight.given_up, flight.not_before)
        self._take_back(key, flight)
        self._queue.discard(key)
        self._trials.ask_later(key, wait_s)
