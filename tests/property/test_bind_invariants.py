"""Never over quota when gates are forced off and binds race lifts, with stale watches, lost binds and a standby."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from core import names
from core.admission.request import AdmissionRequest, Decision
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.account import NOTHING
from core.settings import Settings
from kube.lease import Term
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import SETTLED_S, binding

QUOTA = {"A": 1, "B": 1}
NODES = {"a1": "A", "a2": "A", "b1": "B"}
CHOICES = ("A", "B", "A|B", "B|A")


class Replica:
    """A controller: caches that lag behind what is stored, and the binding hook over them."""

    def __init__(self, stored: Mapping[str, PodBuilder], versions: Mapping[str, str], api: Pods) -> None:
        nodes = [a_node(name).card(card, 8).view() for name, card in NODES.items()]
        self.caches = caches(nodes, [view(stored[name], versions[name]) for name in stored])
        show(self.caches.queues, "q", a_queue("q").cards(QUOTA).view())
        self.hook = BindingHook(api, self.caches, Settings(), Metrics(CollectorRegistry()), self.ask)
        self.unseen: list[str] = []
        self.leader: Replica | None = None

    async def ask(self, request: AdmissionRequest) -> Decision:
        assert self.leader is not None
        return await self.leader.hook.review_here(request)


def view(pod: PodBuilder, version: str) -> Pod:
    return replace(pod.view(), resource_version=version)


def record_of(pod: PodBuilder) -> tuple[str, int] | None:
    text = pod.view().annotations.get(names.ASSIGNED_ANNOTATION)
    if text is None:
        return None
    ((card, count),) = json.loads(text).items()
    return card, count


class Cluster(RuleBasedStateMachine):
    """One queue whose quota stays as it is: what pods hold by their records, bound or lifted, never exceeds it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 0.0
        setattr(self.loop, "time", lambda: self.now)  # noqa: B010  not assignable for a type checker
        self.stored: dict[str, PodBuilder] = {}
        self.versions: dict[str, str] = {}
        self.api = Pods()
        self.under_way: list[tuple[str, str, dict[str, str]]] = []
        self.serial = 0
        self.start()

    def teardown(self) -> None:
        self.loop.close()

    def start(self) -> None:
        """A new leader and a standby that have listed everything, and know nothing else of binds that are under way."""
        self.replicas = [Replica(self.stored, self.versions, self.api) for _ in range(2)]
        leader, standby = self.replicas
        standby.leader = leader
        if self.under_way:
            self.loop.run_until_complete(leader.hook.inherit(Term(1, lambda: 0.0, 1.0, None), self.now))
        leader.hook.start(term())
        self.planner = Planner(leader.caches.ledger)
        leader.caches.ledger.wakeups.look_at("q")

    # -- what is stored ------------------------------------------------------------------------------------------

    def store(self, name: str, pod: PodBuilder | None) -> None:
        if pod is None:
            del self.stored[name]
            self.api.stored.pop(f"ml/{name}")
        else:
            self.stored[name] = pod
            self.versions[name] = str(int(self.versions.get(name, "0")) + 1)
            self.api.stored[f"ml/{name}"] = pod.build()
        for replica in self.replicas:
            replica.unseen.append(name)

    @rule(
        choices=st.lists(st.sampled_from(CHOICES), min_size=1, max_size=3),
        count=st.sampled_from((1, 1, 0)),
        held=st.booleans(),
        scheduler=st.sampled_from(("volcano", "volcano", "another")),
    )
    def create(self, choices: list[str], count: int, held: bool, scheduler: str) -> None:
        """At the gate, or, while the webhook is away, at none; for a scheduler that is ours or not."""
        for choice in choices:
            self.serial += 1
            pod = a_pod(f"p{self.serial}").gpu(count).card(choice).in_queue("q").scheduler(scheduler)
            self.store(f"p{self.serial}", pod.gated() if held else pod)

    @rule(data=st.data())
    def force_off(self, data: st.DataObject) -> None:
        """Somebody removes the gate."""
        gated = sorted(name for name, pod in self.stored.items() if pod.view().gated)
        if gated:
            name = data.draw(st.sampled_from(gated))
            self.store(name, self.stored[name].put("spec", "schedulingGates", value=[]))

    @rule(data=st.data(), how=st.sampled_from(("finish", "terminate", "vanish")))
    def end(self, data: st.DataObject, how: str) -> None:
        if self.stored:
            name = data.draw(st.sampled_from(sorted(self.stored)))
            pod = self.stored[name]
            ended = {"finish": pod.phase("Succeeded"), "terminate": pod.terminating()}
            self.store(name, ended.get(how))

    @rule(data=st.data(), index=st.sampled_from((0, 1)))
    def watch(self, data: st.DataObject, index: int) -> None:
        """A watch shows the first of what happened."""
        replica = self.replicas[index]
        if replica.unseen:
            self.show(replica, data.draw(st.integers(1, len(replica.unseen))))

    def show(self, replica: Replica, count: int) -> None:
        for name in replica.unseen[:count]:
            pod = self.stored.get(name)
            show(replica.caches.pods, f"ml/{name}", None if pod is None else view(pod, self.versions[name]))
        del replica.unseen[:count]

    # -- lifts and binds -----------------------------------------------------------------------------------------

    @rule()
    def quota_pass(self) -> None:
        """Lifts are stored at once, or refused since the pod has changed."""
        ledger = self.replicas[0].caches.ledger
        for queue in self.planner.order(ledger.wakeups.take_queues()):
            for decision in self.planner.decide(queue):
                if isinstance(decision, Lift):
                    self.lift(decision)

    def lift(self, lift: Lift) -> None:
        name = lift.pod.name
        pod = self.stored.get(name)
        if pod is None or self.versions[name] != lift.pod.resource_version:
            self.replicas[0].caches.ledger.forget(lift.pod.uid)
        else:
            self.store(name, pod.put("spec", "schedulingGates", value=[]).recorded(lift.records))

    @rule(
        data=st.data(), node=st.sampled_from(sorted(NODES)), index=st.sampled_from((0, 1)), wait=st.booleans()
    )
    def bind(self, data: st.DataObject, node: str, index: int, wait: bool) -> None:
        """Any scheduler binds any pod to any node, and asks any replica; what is granted is stored, or under way."""
        free = sorted(n for n, pod in self.stored.items() if not (pod.view().gated or pod.view().bound))
        if not free:
            return
        name = data.draw(st.sampled_from(free))
        request = binding(name, node=node)
        answer = self.loop.run_until_complete(self.replicas[index].hook.review(request))
        if answer.allowed:
            written: dict[str, Any] = answer.patch[0].value if answer.patch else {}
            if wait:
                self.under_way.append((name, node, written))
            else:
                self.settle_one(name, node, written, stored=True)

    @rule(data=st.data(), stored=st.booleans())
    def settle(self, data: st.DataObject, stored: bool) -> None:
        """A bind under way is stored, if the pod still lets it, or lost for good."""
        if self.under_way:
            index = data.draw(st.integers(0, len(self.under_way) - 1))
            self.settle_one(*self.under_way.pop(index), stored=stored)

    def settle_one(self, name: str, node: str, written: dict[str, str], *, stored: bool) -> None:
        pod = self.stored.get(name)
        if not stored or pod is None or pod.view().bound or pod.view().deleting or pod.view().terminal:
            return
        for key, value in written.items():
            pod = pod.annotation(key, value)
        self.store(name, pod.bound_to(node, phase="Pending"))

    @rule(data=st.data())
    def a_minute_passes(self, data: st.DataObject) -> None:
        """Nothing that was granted is under way any more, but the watches may not have shown it."""
        self.settle_binds(data)
        self.now += SETTLED_S + 1
        self.loop.run_until_complete(self.look_after_grants())

    async def look_after_grants(self) -> None:
        """The leader reads what became of them; a read takes no time here."""
        async with background(self.replicas[0].hook.run()):
            for _ in range(20):
                await asyncio.sleep(0)

    @rule(data=st.data())
    def another_leader(self, data: st.DataObject) -> None:
        """It waits until what its predecessor granted is stored or lost."""
        self.settle_all(data)
        self.start()

    @rule()
    def a_leader_dies(self) -> None:
        """Every watch has shown what is stored; what its predecessor granted besides may still be stored, or not."""
        for replica in self.replicas:
            self.show(replica, len(replica.unseen))
        self.start()

    def settle_all(self, data: st.DataObject) -> None:
        """Every bind is stored or lost, and every watch has shown the outcome."""
        self.settle_binds(data)
        for replica in self.replicas:
            self.show(replica, len(replica.unseen))

    def settle_binds(self, data: st.DataObject) -> None:
        for each in self.under_way:
            self.settle_one(*each, stored=data.draw(st.booleans()))
        self.under_way.clear()

    # -- what must hold ------------------------------------------------------------------------------------------

    @invariant()
    def never_over_quota(self) -> None:
        held = dict.fromkeys(QUOTA, 0)
        for pod in self.stored.values():
            record = record_of(pod)
            if record is not None and not (pod.view().deleting or pod.view().terminal):
                held[record[0]] += record[1]
        assert all(held[card] <= limit for card, limit in QUOTA.items()), held

    @invariant()
    def whoever_is_bound_has_the_record_of_its_real_card(self) -> None:
        for pod in self.stored.values():
            if pod.view().bound:
                record, card = record_of(pod), NODES[pod.view().node_name]
                assert record is not None
                assert record[0] == card or card not in pod.view().card_name.split("|")

    @invariant()
    def the_leader_holds_nothing_once_all_is_seen(self) -> None:
        """With nothing under way and everything seen, its books are those of the stored pods alone."""
        leader = self.replicas[0]
        if leader.unseen or self.under_way or leader.hook._grants or leader.hook._inheritance.open:
            return
        fresh = Replica(self.stored, self.versions, self.api)
        of_fresh, ours = (each.caches.ledger.accounts.get("q", NOTHING) for each in (fresh, leader))
        assert (ours.allocated, ours.reserved) == (of_fresh.allocated, of_fresh.reserved)


TestCluster = Cluster.TestCase
