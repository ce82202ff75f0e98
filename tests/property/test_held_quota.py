"""Never over quota, and never kept from others, by what a tenant writes: gates, schedulers, graces, in whatever order."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core import names
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import GateSettings, Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import PodBuilder

SETTINGS = Settings(gates=GateSettings(wait_for_us=("after.us", names.VOLCANO_GATE)))
MAX_FREE_S = SETTINGS.quota.max_free_grace_s
GATES = ((), (), (), ("example.com/a",), ("after.us",), (names.VOLCANO_GATE,), ("example.com/a", "after.us"))
GRACES = (0, MAX_FREE_S, MAX_FREE_S + 1, 10**8)
KINDS = {
    "card": a_pod().gpu(1).card("A").in_queue("q"),
    "share": a_pod().mgpu("c", core=30, memory=1024).in_queue("q"),
    "claim": a_pod().claim("dev", template="each").in_queue("q"),
}
ROOM = 2
"""Pods of each kind that the queue has quota for."""
QUEUE = a_queue("q").cards({"A": 2}).shares(core=60).devices({"capability": {"gpu": {"count": 2}}})


class Tenant(RuleBasedStateMachine):
    """Pods as they are stored, a controller that sees every change at once, and schedulers that bind whatever they can."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = "card"
        self.pods: dict[str, PodBuilder] = {}
        self.views: dict[str, Pod] = {}
        self.serial = 0
        self.restart()

    @rule()
    def restart(self) -> None:
        """A controller that knows nothing but what it lists."""
        self.ledger = Ledger(SETTINGS)
        self.ledger.put_node(a_node("n").card("A", 99).mgpu(99, memory=16384).view())
        self.ledger.put_queue(QUEUE.view())
        self.ledger.devices.put_template(a_template("each").exactly("r", "gpu").view())
        for view in self.views.values():
            self.ledger.put_pod(view)
        self.planner = Planner(self.ledger)
        self.binder = Binder(self.ledger, guest_book((), (), SETTINGS), SETTINGS, lambda: None)
        self.ledger.wakeups.look_at("q")

    def store(self, pod: PodBuilder) -> None:
        self.serial += 1
        stored = pod.put("metadata", "resourceVersion", value=str(self.serial))
        view = stored.view()
        self.pods[view.uid], self.views[view.uid] = stored, view
        self.ledger.put_pod(view)

    def pick(self, data: st.DataObject, uids: list[str]) -> PodBuilder | None:
        return self.pods[data.draw(st.sampled_from(sorted(uids)))] if uids else None

    # -- what a tenant does --------------------------------------------------------------------------------------

    @initialize(kind=st.sampled_from(sorted(KINDS)))
    def ask_for(self, kind: str) -> None:
        """All pods of a run compete for the same."""
        self.kind = kind

    @rule(
        scheduler=st.sampled_from(("default-scheduler", "nobody")),
        gates=st.sampled_from(GATES),
        count=st.integers(1, 3),
        webhook=st.sampled_from((True, True, False)),
    )
    def create(self, scheduler: str, gates: tuple[str, ...], count: int, *, webhook: bool) -> None:
        """The webhook adds our gate for the schedulers that it knows, while it is there."""
        ours = [names.GATE] if webhook and scheduler in SETTINGS.scheduler_names else []
        for _ in range(count):
            pod = self.named(f"p{self.serial}").scheduler(scheduler)
            self.store(pod.put("spec", "schedulingGates", value=[{"name": gate} for gate in (*gates, *ours)]))

    def named(self, name: str) -> PodBuilder:
        return KINDS[self.kind].put("metadata", "name", value=name).uid(name)

    @rule(data=st.data())
    def remove_a_gate(self, data: st.DataObject) -> None:
        """Any but ours, which is protected."""
        pod = self.pick(data, [uid for uid, view in self.views.items() if set(view.gates) - {names.GATE}])
        if pod is not None:
            gates = pod.view().gates
            gone = data.draw(st.sampled_from([gate for gate in gates if gate != names.GATE]))
            left = [{"name": gate} for gate in gates if gate != gone]
            self.store(pod.put("spec", "schedulingGates", value=left))

    @rule(data=st.data(), grace_s=st.sampled_from(GRACES))
    def delete(self, data: st.DataObject, grace_s: int) -> None:
        """Without a node the pod is gone. A second deletion can only shorten the grace. Mostly it is about pods that run."""
        bound = [uid for uid, view in self.views.items() if view.bound]
        pod = self.pick(data, bound or list(self.pods))
        if pod is None:
            return
        view = pod.view()
        if not view.bound:
            self.gone(view.uid)
        elif not view.deleting or grace_s < view.grace_s:
            self.store(pod.terminating(grace_s=grace_s))

    def gone(self, uid: str) -> None:
        del self.pods[uid], self.views[uid]
        self.ledger.drop_pod(uid)

    # -- what the cluster does -----------------------------------------------------------------------------------

    @rule(data=st.data(), how=st.sampled_from(("Succeeded", "Failed", "gone")))
    def end(self, data: st.DataObject, how: str) -> None:
        """A kubelet ends a pod, or its containers end by themselves."""
        pod = self.pick(data, [uid for uid, view in self.views.items() if view.bound])
        if pod is not None and how == "gone":
            self.gone(pod.view().uid)
        elif pod is not None:
            self.store(pod.phase(how))

    @rule()
    def quota_pass(self) -> None:
        if self.ledger.wakeups.take_queues():
            self.lift_all()

    def lift_all(self) -> list[str]:
        lifts = [decision for decision in self.planner.decide("q") if isinstance(decision, Lift)]
        for lift in lifts:
            pod = self.pods[lift.pod.uid]
            left = [{"name": gate} for gate in lift.pod.gates if gate != names.GATE]
            self.store(pod.put("spec", "schedulingGates", value=left).recorded(lift.records))
        return [lift.pod.uid for lift in lifts]

    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        """Any scheduler binds any pod that has no gate left, if the hook lets it."""
        pod = self.pick(data, self.bindable())
        if pod is not None:
            self.ask_for_bind(pod)

    @rule(data=st.data())
    def bind_all(self, data: st.DataObject) -> None:
        """Whatever can start does, in any order."""
        self.quota_pass()
        for uid in data.draw(st.permutations(sorted(self.bindable()))):
            self.ask_for_bind(self.pods[uid])

    def bindable(self) -> list[str]:
        return [view.uid for view in self.views.values() if not (view.gates or view.bound or view.deleting)]

    def ask_for_bind(self, pod: PodBuilder) -> None:
        view = pod.view()
        records = {} if self.binder.certain(view, "n") else self.binder.decide(view, "n")
        if not isinstance(records, Refusal):
            self.store(pod.recorded(records).bound_to("n"))

    # -- what must hold ------------------------------------------------------------------------------------------

    @invariant()
    def what_runs_never_exceeds_the_quota(self) -> None:
        """But for pods in a grace that the administrator has found short enough."""
        running = [view for view in self.views.values() if view.bound and not view.terminal]
        assert sum(not (view.deleting and view.grace_s <= MAX_FREE_S) for view in running) <= ROOM

    @invariant()
    def whoever_was_let_in_is_held_back_by_no_gate_that_comes_first(self) -> None:
        """Volcano's own comes first here: none of these schedulers is Volcano's."""
        for view in self.views.values():
            assert names.CHARGED_QUEUE_ANNOTATION not in view.annotations or set(view.gates) <= {"after.us"}

    def teardown(self) -> None:
        """When all that runs, was let in or may be bound is gone, the rest keeps nothing from those that come first."""
        for uid, view in tuple(self.views.items()):
            let_in = view.bound or names.CHARGED_QUEUE_ANNOTATION in view.annotations
            if let_in or (not view.gates and view.scheduler_name != "nobody"):
                self.gone(uid)
        for number in range(ROOM + 1):
            self.store(self.named(f"honest-{number}").gated().priority(9))
        assert sum(uid.startswith("honest") for uid in self.lift_all()) == ROOM


TestTenant = Tenant.TestCase
