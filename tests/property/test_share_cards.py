"""`mgpu.cardQuota`: whatever happens in whatever order, shares and whole cards together never pass the quota of their card."""

import json
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from core import names
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod, a_queue

CARDS = ("A10", "L20")
LABELS = (*CARDS, "")
NODES = ("m0", "m1", "m2")

MODES = st.fixed_dictionaries(
    {"leadTo": st.sampled_from(["nodes", "kind"]), "policy": st.sampled_from(["binpack", "spread"])}
)
QUOTAS = st.fixed_dictionaries({card: st.integers(0, 2) for card in CARDS})
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("gated"), st.integers(1, 99)),
        st.tuples(st.just("whole"), st.sampled_from(CARDS)),
        st.tuples(st.just("past the gate"), st.integers(1, 99)),
        st.tuples(st.just("pass"), st.none()),
        st.tuples(st.just("bind"), st.tuples(st.integers(0, 30), st.sampled_from(NODES))),
        st.tuples(st.just("end"), st.integers(0, 30)),
        st.tuples(st.just("label"), st.tuples(st.sampled_from(NODES), st.sampled_from(LABELS))),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=40,
)


class World:
    """What is stored, and the controller that looks at it."""

    def __init__(self, quota: dict[str, int], mode: dict[str, str], *, gangs: bool) -> None:
        self.settings = Settings.model_validate({"mgpu": {"cardQuota": True, **mode}})
        self.quota, self.gangs = quota, gangs
        self.labels = dict(zip(NODES, LABELS, strict=True))
        self.pods: dict[str, Pod] = {}
        self.made = 0
        self.start()

    def start(self) -> None:
        self.ledger = Ledger(self.settings)
        for name in NODES:
            self.put_node(name)
        for card in CARDS:
            self.ledger.put_node(a_node(f"whole-{card}").card(card, 8).view())
        self.ledger.put_queue(a_queue("q").cards(self.quota).view())
        for pod in self.pods.values():
            self.ledger.put_pod(pod)
        self.planner = Planner(self.ledger)
        guests = guest_book((), (), self.settings)
        self.binder = Binder(self.ledger, guests, self.settings, lambda: None)

    def put_node(self, name: str) -> None:
        node = a_node(name).mgpu(3, memory=16384).label(names.HOSTNAME_LABEL, name)
        node = node.allocatable("cpu", 99).allocatable("pods", 99)
        product = self.labels[name]
        self.ledger.put_node((node.product(product) if product else node).view())

    def put(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self.ledger.put_pod(pod)

    def create(self, kind: str, what: int | str) -> None:
        self.made += 1
        pod = a_pod(f"p{self.made:02}").in_queue("q").created(f"2024-01-01T00:00:{self.made:02}Z")
        if isinstance(what, str):
            pod = pod.gpu(1).card(what)
        else:
            pod = pod.mgpu(core=what, memory=256)
            pod = pod.in_gang("g", 2, owner="o") if self.gangs and self.made % 2 else pod
        self.put((pod if kind == "past the gate" else pod.gated()).view())

    def bind(self, number: int, node: str) -> None:
        free = [pod for pod in self.pods.values() if not pod.gated and not pod.bound]
        if not free:
            return
        pod = free[number % len(free)]
        if pod.card_name:
            node = f"whole-{pod.card_name}"
        node = pod.annotations.get(names.NODE_ANNOTATION, node)
        answer = self.binder.decide(pod, node)
        if not isinstance(answer, Refusal):
            bound = self.binder.book(pod, node, answer)
            self.put(bound)
            self.binder.observe(pod, bound)

    def happen(self, kind: str, what: object) -> None:
        match kind, what:
            case (("gated" | "past the gate" | "whole"), (int() | str() as asked)):
                self.create(kind, asked)
            case "pass", _:
                for _ in range(2):
                    for one in self.planner.decide("q"):
                        if isinstance(one, Lift):
                            self.put(one.lifted)
            case "bind", (int(number), str(node)):
                self.bind(number, node)
            case "end", int(number) if self.pods:
                pod = [*self.pods.values()][number % len(self.pods)]
                self.put(replace(pod, phase="Succeeded"))
                del self.pods[pod.uid]
            case "label", (str(node), str(product)):
                self.labels[node] = product
                self.put_node(node)
            case "restart", _:
                self.start()
            case _:
                assert kind == "end", "only an end finds nobody"
        finish(self.ledger.settle())

    def taken(self) -> Counter[str]:
        """What the stored pods have of each card by their records, in thousandths."""
        found = Counter[str]()
        for pod in self.pods.values():
            if not pod.gated:
                for card, count in json.loads(pod.annotations.get(names.SHARE_CARD_ANNOTATION, "{}")).items():
                    found[card] += count * 10
                for card, count in json.loads(pod.annotations.get(names.ASSIGNED_ANNOTATION, "{}")).items():
                    found[card] += count * 1000
        return found


@given(QUOTAS, MODES, st.booleans(), EVENTS)
@settings(max_examples=150)
def test_no_card_is_ever_used_beyond_its_quota(
    quota: dict[str, int], mode: dict[str, str], gangs: bool, events: list[tuple[str, object]]
) -> None:
    world = World(quota, mode, gangs=gangs)
    for kind, what in (*events, ("restart", None)):
        world.happen(kind, what)
        taken = world.taken()
        for card in CARDS:
            assert taken[card] <= quota[card] * 1000, (kind, what)
            assert world.ledger.used("q", card) == taken[card], (kind, what)
