"""The informers of the controller, and the ledger that follows them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from controller.readings import Readings, is_state_of
from core import names
from core.crossquota.book import GuestBook
from core.crossquota.guest import keys
from core.mgpu.booked import RecordBook
from core.objects import Group, Pod, group_key, kinds, pod
from core.objects.kinds import Kind, V
from core.queues import intake
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Pace, Steps
from kube.class_grace import ClassGrace
from kube.client import Json
from kube.informer import GARBAGE, Informer, informer_of
from kube.reflector import ListWatch
from kube.turns import Turns
from kube.unseen import Unseen

_KEPT_IN_A_STEP: Final = 1000
"""Pods that are gone through for their records, if they have no shares."""
_OF_SHARES: Final = 50
"""As much work as so many of these is one that has."""
_BREAK_S: Final = 1.0
"""No shorter is the break after a change of what very many pods refer to, see core.queues.breaks."""


class Caches:
    """Every object the controller decides on. `ledger` is up to date whenever control is with another task.

    Whoever works on the ledger for longer does so by `turns`: of all that is to be booked anew and decided there is one slice
    in each round of the loop, and not one of each.
    """

    def __init__(self, client: ListWatch, settings: Settings, turns: Turns | None = None) -> None:
        self.ledger = Ledger(settings)
        self.turns = turns or Turns()
        self._left_behind = asyncio.Event()
        self._break_begun = asyncio.Event()
        self._readings = Readings()
        self._unseen = Unseen(self._drop_pod)
        """By UID, the pods that the ledger has by a read alone."""
        ledger = self.ledger
        ledger.follow_left_behind(self._left_behind.set)
        ledger.devices.breaks.follow(self._break_begun.set)
        labels = keys(settings.cross_quota.label_selector)
        self.project_pod = partial(pod.project, labels_kept=labels)
        self._listing = Turns()
        """Of the informers: ten of them, with a slice of each, would keep everybody else waiting for ten."""
        self.pods = informer_of(client, kinds.POD, project=self._shown_pod, turns=self._listing)
        self.nodes = self._followed(client, kinds.NODE)
        self.queues = self._followed(client, kinds.QUEUE)
        self.groups = self._followed(client, kinds.GROUP, ledger.serve_groups)
        self.kubernetes_groups = self._followed(
            client, kinds.KUBERNETES_GROUP, partial(ledger.serve_groups, of=names.KUBERNETES_GROUPS)
        )
        self.jobs = self._followed(client, kinds.JOB)
        self.namespaces = self._followed(client, kinds.NAMESPACE)
        self.claims = self._followed(client, kinds.CLAIM, ledger.devices.serve)
        self.templates = self._followed(client, kinds.CLAIM_TEMPLATE)
        self.device_classes = self._followed(client, kinds.DEVICE_CLASS)
        self._class_grace = ClassGrace(ledger.devices.book.classes, ledger.release_resource)
        self.device_classes.subscribe(self._class_grace.class_changed)
        self._with_claims = settings.features.dra
        self.records = RecordBook(settings.mgpu, ledger.nodes)
        _feed(self.pods, self._put_pod, lambda gone: self._drop_pod(gone.uid))
        self.pods.track(self._unseen)
        guests = self.guests = GuestBook(settings)
        _feed(self.nodes, guests.put_node, lambda old: guests.drop_node(old.name))
        _feed(self.pods, guests.put_pod, lambda old: guests.drop_pod(old.uid))

    @property
    def synced(self) -> bool:
        """Whether every collection has been listed completely."""
        return all(informer.synced for informer in self._informers())

    async def wait_synced(self) -> None:
        """Returns when every collection has been listed completely; `run` has to be running."""
        for informer in self._informers():
            await informer.wait_synced()

    def keep_records(self) -> Steps[None]:
        """From now on, and until `give_back`, the ledger has the pods as they are booked, see RecordBook.

        Each is booked with what it says when it is come to, or when it changes before that.
        """
        self.records.keep(())
        pace = Pace(_KEPT_IN_A_STEP)
        for found in tuple(self.pods.values()):
            if pace.due(_OF_SHARES if found.shares else 1):
                yield
            if found.shares and self.pods.get(found.key) is found:
                self.records.as_booked(found)

    def assign(self, bound: Pod, cards: Mapping[str, tuple[int, ...]]) -> None:
        """Books cards for a pod that is bound without them."""
        self.records.assign(bound, cards)
        self._book_pod(bound)

    def latest(self, key: str) -> Pod | None:
        """The latest state that is known of a pod: what the watch shows, or what was read or answered since."""
        shown = self.pods.get(key)
        return None if shown is None else self._readings.latest(shown)

    def answered(self, pod: Pod, written: Json) -> Pod | None:
        """Takes in the pod that the API server answered a write of ours with, unless the watch has shown it by now.

        An answer that cannot be read is left to the watch, and is None.
        """
        shown = self.pods.get(pod.key)
        if shown is not None and is_state_of(shown, written):
            return shown
        try:
            found = self.project_pod(written)
        except GARBAGE:
            return None
        if self._readings.outdates(found, self.latest(found.key)):
            self._take_in(found, shown)
        return found

    def group(self, key: str) -> Group | None:
        """The PodGroup of this key as the watch shows it."""
        return self._groups_of(key).get(group_key.object_key(key))

    def found_group(self, key: str, found: Group | None, version: str) -> None:
        """Takes in a PodGroup that was read just now in this version, None for one that does not exist, before the watch shows it."""
        self._groups_of(key).correct(group_key.object_key(key), found, version)

    def _groups_of(self, key: str) -> Informer[Group]:
        return self.kubernetes_groups if group_key.is_kubernetes(key) else self.groups

    async def look_up(self, expected: Pod, read: Callable[[Pod], Awaitable[Pod | None]]) -> Pod | None:
        """Reads a pod anew, and takes in what was found before the watch shows it; None for one that does not exist.

        One that the watch never shows is kept until it has come past the read, see Unseen, or until `give_back`.
        Another pod of its name means that `expected` is gone. Where the watch has come further meanwhile its word stands.
        Raises what `read` raises.
        """
        before = self.pods.get(expected.key)
        found = await read(expected)
        shown = self.pods.get(expected.key)
        if shown is not before and (found is None or not self._readings.outdates(found, shown)):
            return found
        if found is None or found.uid != expected.uid:
            # The other one is left to the watch: who is booked without it would never be found to be gone.
            self._forget_pod(expected, shown)
        else:
            self._take_in(found, shown)
        return found

    def _take_in(self, found: Pod, shown: Pod | None) -> None:
        if shown is None or shown.uid != found.uid:
            self._unseen.put(found.uid, found.resource_version)
        self._readings.put(found)
        self._book_pod(found)

    def _forget_pod(self, gone: Pod, shown: Pod | None) -> None:
        self._drop_pod(gone.uid)
        if shown is not None and shown.uid == gone.uid:
            self._readings.put_gone(gone.uid)

    def count_overrun(self, pod: Pod, *, overrun: bool) -> bool:
        """Counts a deleted pod again that runs on, or no more. Returns whether that is new."""
        stages = self.ledger.stages
        if not (stages.count_again(pod.uid) if overrun else stages.count_no_more(pod.uid)):
            return False
        latest = self.latest(pod.key)
        self._book_pod(latest if latest is not None and latest.uid == pod.uid else pod)
        return True

    def give_back(self) -> None:
        """From now on the ledger has the pods as they are observed, many of them once it is settled: the time of leading is over.

        What was read and the watch does not show is nobody's to look after any more.
        """
        self._unseen.lose_all()
        self.ledger.forget_all()
        edited = [view for key in self.records.edited if (view := self.latest(key)) is not None]
        self.records.release()
        self.ledger.put_all(edited)

    async def settled(self) -> None:
        """Returns when every pod is booked by what was known at the call; a few milliseconds of work at a time.

        Whoever waits does the work: on a standby `run` does. Pods at the gate that changes have left behind since are not waited for,
        or somebody could go on for ever.
        """
        while not self.ledger.settled:
            await self.turns.finish(self.ledger.settle())
            if self.ledger.sums_settled:
                return

    async def sums_settled(self) -> None:
        """Returns when what queues use is right: nobody else comes to his turn before the caller goes on."""
        if not self.ledger.sums_settled:
            await self.turns.finish(self.ledger.settle_sums())

    async def catch_up(self) -> None:
        """Afterwards nothing that was written before the call is missing. Lists anew what is no more than a page, or does not come."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers():
                tasks.create_task(informer.catch_up(), name=f"catch up with {informer.resource}")
        await self.turns.finish(self.ledger.devices.breaks.end())

    def refreshing(self) -> list[str]:
        """The collections that have not caught up yet, or were not listed anew; they are still being tried when nobody waits any more."""
        return [str(informer.resource) for informer in self._informers() if informer.refreshing]

    async def run(self) -> None:
        """Follows the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers():
                tasks.create_task(informer.run(), name=f"informer {informer.resource}")
            tasks.create_task(self._class_grace.run(), name="grace of DeviceClasses")
            tasks.create_task(self._settle(), name="settle")
            tasks.create_task(self.end_breaks(), name="breaks")

    async def end_breaks(self) -> None:
        """Ends breaks after changes of what very many pods refer to, until cancelled: decisions have as much time as booking those takes.

        There are none before all is listed: nobody decides before that.
        """
        breaks, clock = self.ledger.devices.breaks, asyncio.get_running_loop().time
        await self.wait_synced()
        breaks.pace()
        while True:
            while breaks:
                since = clock()
                await self.settled()
                await asyncio.sleep(max(_BREAK_S, clock() - since))
                await self.turns.finish(breaks.end())
            await self._break_begun.wait()
            self._break_begun.clear()

    async def _settle(self) -> None:
        while True:
            while not self.ledger.settled:
                await self.settled()
            await self._left_behind.wait()
            self._left_behind.clear()

    def _informers(self) -> "Iterator[Informer[Any]]":
        if self._with_claims:
            yield from (self.device_classes, self.claims, self.templates)
        yield from (self.namespaces, self.nodes, self.queues, self.groups, self.kubernetes_groups, self.jobs)
        yield self.pods

    def _shown_pod(self, raw: Json) -> Pod:
        """The pod that the watch shows; what became of a write of ours is known by its answer as a rule."""
        return self._readings.known(raw) or self.project_pod(raw)

    def _put_pod(self, observed: Pod) -> None:
        self._unseen.drop(observed.uid)
        if self._readings.admit(observed):
            self._book_pod(observed)

    def _book_pod(self, observed: Pod) -> None:
        self.ledger.put_pod(self.records.as_booked(observed))

    def _drop_pod(self, uid: str) -> None:
        self._unseen.drop(uid)
        self._readings.drop(uid)
        self.records.drop(uid)
        self.ledger.drop_pod(uid)

    def _followed(
        self, client: ListWatch, kind: Kind[V], on_found: Callable[[bool], None] | None = None
    ) -> Informer[V]:
        """An informer whose objects the ledger takes in as they are."""
        informer = informer_of(client, kind, on_found=on_found, turns=self._listing)
        _feed(informer, partial(intake.put, self.ledger), partial(intake.drop, self.ledger))
        return informer


def _feed(informer: Informer[V], put: Callable[[V], None], drop: Callable[[V], None]) -> None:
    def handle(old: V | None, new: V | None) -> None:
        if new is not None:
            put(new)
        elif old is not None:
            drop(old)

    informer.subscribe(handle)
