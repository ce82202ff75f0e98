"""The controller over an API server in memory: its own core, which sees every change at once and writes what it decides."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from core.admission.request import AdmissionRequest
from core.binding.binder import Binder
from core.binding.review import grant, obstacle, target_of
from core.crossquota.book import guest_book
from core.display.figures import figures_of
from core.objects import (
    Pod,
    claim,
    device_class,
    group,
    job,
    namespace,
    node,
    pod,
    queue,
)
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.queues.queue_records import late_records
from core.refusal import Refusal
from core.settings import Settings
from core.steps import finish
from tests.adversary import jsonpatch
from tests.adversary.apiserver import CONTROLLER, KUBERNETES_GROUP, ApiServer, RefusedError, key_of
from tests.builders.raw import Json

_LISTED = (
    "Node",
    "DeviceClass",
    "Queue",
    "Namespace",
    "PodGroup",
    KUBERNETES_GROUP,
    "Job",
    "ResourceClaimTemplate",
    "ResourceClaim",
    "Pod",
)


class Led(ApiServer):
    """An API server with a controller that leads, until it is stopped."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.leads = True
        self.held: dict[str, Hold] = {}
        """Pods that wait, by name, as the last pass found them."""
        self.restart()

    def restart(self) -> None:
        """A controller that knows nothing but what it lists."""
        self.ledger = Ledger(self.settings)
        self.ledger.serve_groups(served=True)
        self.planner = Planner(self.ledger)
        guests = guest_book((), (), self.settings)
        self.binder = Binder(self.ledger, guests, self.settings, lambda: None)
        for kind in _LISTED:
            for raw in self.all(kind):
                self._see(kind, None, raw)

    def stop_controller(self) -> None:
        self.leads = False

    def start_controller(self) -> None:
        self.leads = True
        self.restart()

    def changed(self, kind: str, old: Json | None, new: Json | None) -> None:
        if self.leads:
            self._see(kind, old, new)

    def _see(self, kind: str, old: Json | None, new: Json | None) -> None:
        ledger, devices = self.ledger, self.ledger.devices
        if kind == "Pod":
            self._see_pod(old, new)
        elif new is not None:
            put: dict[str, Callable[[], None]] = {
                "Queue": lambda: ledger.put_queue(queue.project(new)),
                "Namespace": lambda: ledger.put_namespace(namespace.project(new)),
                "Node": lambda: ledger.put_node(node.project(new)),
                "DeviceClass": lambda: devices.put_class(device_class.project(new)),
                "PodGroup": lambda: ledger.put_group(group.project(new)),
                KUBERNETES_GROUP: lambda: ledger.put_group(group.project_kubernetes(new)),
                "Job": lambda: ledger.put_job(job.project(new)),
                "ResourceClaim": lambda: devices.put_claim(claim.project(new)),
                "ResourceClaimTemplate": lambda: devices.put_template(claim.project_template(new)),
            }
            put[kind]()
        elif old is not None:
            drop: dict[str, Callable[[str], None]] = {
                "PodGroup": ledger.drop_group,
                KUBERNETES_GROUP: lambda _: ledger.drop_group(group.project_kubernetes(old).key),
                "Job": ledger.drop_job,
                "ResourceClaim": devices.drop_claim,
                "ResourceClaimTemplate": devices.drop_template,
            }
            drop[kind](key_of(old))

    def _see_pod(self, old: Json | None, new: Json | None) -> None:
        before, after = (None if raw is None else pod.project(raw) for raw in (old, new))
        self.binder.observe(before, after)
        if after is not None:
            self.ledger.put_pod(after)
        elif before is not None:
            self.ledger.drop_pod(before.uid)

    def control(self) -> None:
        """What a leader does when things have changed: missing records, then passes until nobody more is let in."""
        if not self.leads:
            return
        finish(self.ledger.settle())
        for raw in self.all("Pod"):
            view = pod.project(raw)
            records = late_records(view, self.ledger)
            if records:
                self.annotate(view.name, CONTROLLER, **records)
        while self._lift():
            finish(self.ledger.settle())

    def _lift(self) -> bool:
        """One pass; whether it let anybody in."""
        lifted = False
        self.held.clear()
        for name in self.planner.order(list(self.ledger.accounts)):
            for decision in self.planner.decide(name):
                if isinstance(decision, Lift):
                    stored = self.objects["Pod"][decision.pod.key]
                    self.update(jsonpatch.patched(stored, decision.patch), CONTROLLER)
                    lifted = True
                else:
                    self.held[decision.pod.name] = decision
        return lifted

    def hooked(self, binding: Json, view: Pod, node_name: str) -> Mapping[str, Any]:
        """The annotations that the binding hook leaves of a Binding. Raises RefusedError."""
        request = AdmissionRequest(
            uid="",
            group="",
            resource="pods",
            kind="Binding",
            operation="CREATE",
            subresource="binding",
            namespace=view.namespace,
            name=view.name,
            object=binding,
        )
        target = target_of(request)
        finish(self.ledger.settle())
        records: Mapping[str, str] = {}
        if not self.binder.certain(view, node_name):
            problem = obstacle(target, view)
            if problem is not None:
                raise RefusedError(problem.code)
            answer = self.binder.decide(view, node_name)
            if isinstance(answer, Refusal):
                raise RefusedError(answer.code)
            records = answer
            self.binder.book(view, node_name, records)
        patch = grant(target, records).patch
        found: Mapping[str, Any] = patch[0].value if patch else binding["metadata"]["annotations"]
        return found

    def charged(self, name: str, key: str) -> int:
        """What the books have a queue allocated and reserved of something, in whole units."""
        return self.all_charged(name)[key]

    def all_charged(self, name: str) -> Counter[str]:
        """The same of everything."""
        finish(self.ledger.settle())
        figures = figures_of(self.ledger, name)
        charged = Counter(figures.allocated)
        charged.update(figures.reserved)
        return Counter({key: amount // 1000 for key, amount in charged.items()})
