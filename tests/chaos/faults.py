"""Does to the processes what the faults of a plan say, and says when."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from http import HTTPStatus
from typing import Any, Final

from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.install import Installation
from tests.apiserver.leaders import leading
from tests.apiserver.proxy import News, Proxy
from tests.chaos.checker import Disturbance, Terms
from tests.chaos.load import NAMESPACE
from tests.chaos.plan import Fault

API_SERVER, ETCD, SCHEDULER = "kube-apiserver", "etcd", "kube-scheduler"
_BLIND: Final = frozenset({"kill_api", "stop_api", "kill_etcd", "stop_etcd"})
ECHO_S: Final = 20.0
"""So long after a fault its effects are not over: watches are taken up again, and answers are waited for."""
UNKNOWN_TERM_S: Final = 15.0
"""So much longer after controllers were killed, once the Lease has been deleted: whoever starts without one waits for that long,
because he cannot know whether anybody still leads by it."""
_UNHEARD: Final = 0.6
_FREED: Final = 0.8
"""How often the Lease is freed and not deleted: then another one leads at once, beside whoever does not know yet."""
_READ_S: Final = 5.0
_LOSE_EVERY_S: Final = 0.3
_SLOW_S: Final = (0.2, 1.2)
_FLOW: Final = "chaos-throttle"
_REFUSAL: Final = "chaos-refuse"


class Faults:
    """The faults, each by its name: a context manager in which it lasts."""

    def __init__(self, plane: ControlPlane, installation: Installation, proxy: Proxy) -> None:
        self._plane = plane
        self._installation = installation
        self._proxy = proxy
        self.seen: list[Disturbance] = []
        self._lease_deleted = False

    def run(self, faults: tuple[Fault, ...], seconds: float, over: threading.Event) -> None:
        """Each in its time; what comes and goes slowly moves all that is after it, and nothing begins after so many seconds.

        What is begun is ended, whatever happens.
        """
        began = time.monotonic()
        late = 0.0
        marks = sorted(
            [(fault.at, number, True) for number, fault in enumerate(faults)]
            + [(fault.at + fault.length, number, False) for number, fault in enumerate(faults)]
        )
        with ExitStack() as all_:
            lasting: dict[int, ExitStack] = {}
            for at, number, begins in marks:
                if over.wait(max(0.0, began + late + at - time.monotonic())):
                    return
                if not begins and number in lasting:
                    lasting.pop(number).close()
                elif begins and time.monotonic() - began < seconds:
                    lasting[number] = all_.enter_context(ExitStack())
                    lasting[number].enter_context(self._lasting(faults[number]))
                late = max(late, time.monotonic() - began - at)

    @contextmanager
    def _lasting(self, fault: Fault) -> Iterator[None]:
        began = time.time()
        cause: Callable[[float], Any] = getattr(self, f"_{fault.kind}")
        try:
            with cause(fault.choice):
                yield
        finally:
            waits = self._lease_deleted and fault.kind.startswith("kill_")
            ended = time.time() + ECHO_S + (UNKNOWN_TERM_S if waits else 0.0)
            self.seen.append(Disturbance(began, ended, fault.kind, fault.kind in _BLIND))

    # -- ours ----------------------------------------------------------------------------------------------------

    def _leader(self, choice: float) -> ManagedProcess:
        """Who leads, by what it says itself; where nobody or everybody does, whoever was drawn."""
        places = [place for place in leading(self._installation) if self._controllers()[place].running]
        place = places[0] if len(places) == 1 else int(choice * len(self._controllers()))
        return self._controllers()[place]

    def _controllers(self) -> list[ManagedProcess]:
        return self._installation.controller_processes

    def _standby(self, choice: float) -> ManagedProcess:
        leader = self._leader(choice)
        return next(process for process in self._controllers() if process is not leader)

    def _kill_leader(self, choice: float) -> Any:
        return self._killed(self._leader(choice))

    def _kill_standby(self, choice: float) -> Any:
        return self._killed(self._standby(choice))

    def _kill_controllers(self, _: float) -> Any:
        return self._killed(*self._controllers())

    def _stop_leader(self, choice: float) -> Any:
        return _stopped(self._leader(choice))

    def _freeze_leader(self, choice: float) -> Any:
        """Longer than its Lease: another one leads when it wakes."""
        return _stopped(self._leader(choice))

    @contextmanager
    def _free_lease(self, choice: float) -> Iterator[None]:
        """Somebody writes into the Lease that nobody holds it, or deletes it: whoever leads goes on until it looks again.

        Most of the time whoever follows does not hear meanwhile of what the one before has written.
        """
        path = self._plane.api.path(
            "coordination.k8s.io/v1", "Lease", self._installation.namespace, Terms().lease
        )
        with self._losing("kept") if choice < _UNHEARD else nullcontext():
            if choice < _FREED:
                self._plane.api.patch(path, {"spec": {"holderIdentity": ""}}).expect()
            else:
                self._lease_deleted = True
                self._plane.api.delete(path).expect(HTTPStatus.OK, HTTPStatus.NOT_FOUND)
            yield

    def _stop_standby(self, choice: float) -> Any:
        return _stopped(self._standby(choice))

    def _kill_webhook(self, choice: float) -> Any:
        webhooks = self._installation.webhook_processes
        return self._killed(webhooks[int(choice * len(webhooks))])

    def _kill_webhooks(self, _: float) -> Any:
        return self._killed(*self._installation.webhook_processes)

    def _stop_webhook(self, choice: float) -> Any:
        webhooks = self._installation.webhook_processes
        return _stopped(webhooks[int(choice * len(webhooks))])

    @contextmanager
    def _killed(self, *processes: ManagedProcess) -> Iterator[None]:
        """Killed, called no more where another replica runs, and started again at the end."""
        for process in processes:
            self._installation.kill(process)
        try:
            yield
        finally:
            for process in processes:
                self._installation.start_again(process)

    # -- the control plane ---------------------------------------------------------------------------------------

    def _kill_api(self, _: float) -> Any:
        return self._away(API_SERVER)

    def _stop_api(self, _: float) -> Any:
        return _stopped(self._plane.processes[API_SERVER])

    def _kill_etcd(self, _: float) -> Any:
        return self._away(ETCD)

    def _stop_etcd(self, _: float) -> Any:
        return _stopped(self._plane.processes[ETCD])

    def _kill_scheduler(self, _: float) -> Any:
        return self._away(SCHEDULER)

    def _stop_scheduler(self, _: float) -> Any:
        return _stopped(self._plane.processes[SCHEDULER])

    @contextmanager
    def _away(self, name: str) -> Iterator[None]:
        self._plane.kill_process(name)
        try:
            yield
        finally:
            self._plane.start_process(name)
            if name == ETCD:
                # The API server takes a while to find its way back, and what a fault does next has to be done.
                wait_for("pods are read again", self._pods_are_read)

    def _pods_are_read(self) -> bool:
        try:
            answer = self._plane.api.request("GET", "/api/v1/pods?limit=1", timeout_s=_READ_S)
        except OSError:
            return False
        return answer.status == HTTPStatus.OK

    # -- between the controllers and the API server --------------------------------------------------------------

    @contextmanager
    def _blackhole(self, choice: float) -> Iterator[None]:
        """Connections die without a word; half the time new ones as well."""
        self._proxy.blackhole(new=choice < 0.5)
        try:
            yield
        finally:
            self._proxy.heal()

    def _lose_answers(self, choice: float) -> Any:
        """What is asked for is done, and nobody hears of it; half the time watches go on meanwhile."""
        return self._losing("lost" if choice < 0.5 else "passed")

    def _stale_reads(self, _: float) -> Any:
        """What the watches say is held back, and each answer on its way is lost."""
        return self._losing("kept")

    @contextmanager
    def _losing(self, news: News) -> Iterator[None]:
        """On whatever connections there are by then, over and over."""
        enough = threading.Event()

        def lose() -> None:
            self._proxy.drop_answers(news)
            while not enough.wait(_LOSE_EVERY_S):
                self._proxy.drop_answers(news)

        with ThreadPoolExecutor(1) as pool:
            losing = pool.submit(lose)
            try:
                yield
            finally:
                enough.set()
                losing.result()
                self._proxy.pass_news()

    @contextmanager
    def _slow(self, choice: float) -> Iterator[None]:
        least, most = _SLOW_S
        self._proxy.delay_s = least + choice * (most - least)
        try:
            yield
        finally:
            self._proxy.delay_s = 0.0

    def _throttle(self, _: float) -> Any:
        """The API server answers 429 to all that the controllers ask for."""
        account = {"namespace": self._installation.namespace, "name": "cardquota-controller"}
        everything = {
            "verbs": ["*"],
            "apiGroups": ["*"],
            "resources": ["*"],
            "namespaces": ["*"],
            "clusterScope": True,
        }
        level = {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 0,
                "limitResponse": {"type": "Reject"},
                "borrowingLimitPercent": 0,
            },
        }
        schema = {
            "priorityLevelConfiguration": {"name": _FLOW},
            "matchingPrecedence": 2,
            "rules": [
                {
                    "subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
                    "resourceRules": [everything],
                }
            ],
        }
        group = "flowcontrol.apiserver.k8s.io/v1"
        return self._in_place(
            {
                "apiVersion": group,
                "kind": "PriorityLevelConfiguration",
                "metadata": {"name": _FLOW},
                "spec": level,
            },
            {"apiVersion": group, "kind": "FlowSchema", "metadata": {"name": _FLOW}, "spec": schema},
        )

    def _refuse(self, _: float) -> Any:
        """Somebody's webhook that nobody serves: the API server answers 500 to each lift and each repair."""
        webhook = {
            "name": "refuse.chaos.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 1,
            "admissionReviewVersions": ["v1"],
        }
        return self._in_place(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": _REFUSAL},
                "webhooks": [webhook],
            }
        )

    @contextmanager
    def _in_place(self, *things: dict[str, Any]) -> Iterator[None]:
        """Meanwhile these objects are there."""
        api = self._plane.api
        for thing in things:
            api.create(thing).expect()
        try:
            yield
        finally:
            for thing in reversed(things):
                api.delete(api.path_of(thing)).expect(HTTPStatus.OK, HTTPStatus.NOT_FOUND)


@contextmanager
def _stopped(process: ManagedProcess) -> Iterator[None]:
    """SIGSTOP, and SIGCONT at the end."""
    pid = process.pid
    assert pid is not None, f"{process.name} does not run"
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
