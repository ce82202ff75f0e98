"""Who may use a queue: lists and selectors against a plain reading of them, and the webhook against the gate."""

import random
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import label_selector, names, namespace_patterns, reasons
from core.admission.dispatch import review
from core.admission.request import ClusterView
from core.binding.binder import Binder
from core.cards.inventory import Inventory
from core.crossquota.book import guest_book
from core.objects import Namespace, Queue
from core.plan.decision import Hold
from core.plan.lift import Planner
from core.queues.access import access_of
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.core.admission.samples import creation

namespaces = st.from_regex(r"[ab]([-ab]{0,6}[ab])?", fullmatch=True)
patterns = st.from_regex(r"[ab*]([-ab*]{0,8}[ab*])?", fullmatch=True)


@given(st.lists(patterns, max_size=5), namespaces)
@example(["ab*b*ba"], "abba")
def test_a_list_means_what_its_items_mean_as_regular_expressions(items: list[str], name: str) -> None:
    found = namespace_patterns.parse(" ,".join(items)).match(name)
    assert found is any(re.fullmatch(item.replace("*", ".*"), name) for item in items)


@given(st.text(max_size=30) | st.text("ab,* -A", max_size=30))
def test_a_list_is_read_or_refused_in_words(text: str) -> None:
    with suppress(namespace_patterns.PatternError):
        namespace_patterns.parse(text).match("a")


keys = st.sampled_from(["env", "tier", "x.y/env"])
values = st.sampled_from(["dev", "prod", "", "7"])
labels = st.dictionaries(keys, values)
requirements = st.one_of(
    st.tuples(keys, st.sampled_from(["exists", "absent"]), st.just([""])),
    st.tuples(keys, st.sampled_from(["=", "==", "!="]), st.lists(values, min_size=1, max_size=1)),
    st.tuples(keys, st.sampled_from(["in", "notin"]), st.lists(values, min_size=1, max_size=3)),
)
Requirement = tuple[str, str, list[str]]
blanks = st.sampled_from(["", " ", "\t "])


def written(requirement: Requirement, blank: str) -> str:
    key, operator, listed = requirement
    match operator:
        case "exists":
            return f"{blank}{key}{blank}"
        case "absent":
            return f"!{blank}{key}"
        case "in" | "notin":
            # The empty value alone takes a comma to be seen.
            inner = f"{blank},".join(listed) or ","
            return f"{key} {operator}{blank}({inner}){blank}"
        case _:
            return f"{key}{blank}{operator}{blank}{listed[0]}"


def holds(requirement: Requirement, found: dict[str, str]) -> bool:
    key, operator, listed = requirement
    match operator:
        case "exists":
            return key in found
        case "absent":
            return key not in found
        case "in" | "=" | "==":
            return found.get(key) in listed
        case _:
            return found.get(key) not in listed


@given(st.lists(requirements, max_size=4), labels, blanks)
def test_a_selector_means_what_its_requirements_mean(
    wanted: list[Requirement], found: dict[str, str], blank: str
) -> None:
    text = ",".join(written(requirement, blank) for requirement in wanted)
    assert label_selector.parse(text).selects(found) is all(holds(each, found) for each in wanted)


@given(st.text(max_size=30) | st.text("ab,=!()<>in \t", max_size=30))
def test_a_selector_is_read_or_refused_in_words(text: str) -> None:
    with suppress(label_selector.SelectorError):
        label_selector.parse(text).selects({"a": "b"})


# -- the webhook and the gate ----------------------------------------------------------------------------------

lists = st.none() | st.sampled_from(["", "*", "a", "b", "a, b", "a*", "A", "a b"])
selectors = st.none() | st.sampled_from(["", "env", "!env", "env=dev", "env!=dev", "env in"])


@dataclass(frozen=True)
class World:
    """Queues with their annotations, namespaces with label and queue, and one pod with all that may name its queue."""

    queues: dict[str, tuple[str | None, str | None]]
    homes: dict[str, tuple[dict[str, str], str]]
    namespace: str
    named: str
    group: str | None
    job: str | None
    scheduler: str
    asks: str
    access: str

    @property
    def gated(self) -> bool:
        """Whether the webhook would gate the pod."""
        return self.scheduler == "volcano" and self.asks != "nothing"

    def settings(self) -> Settings:
        return Settings.model_validate({"queue": {"access": self.access}})

    def pod(self) -> PodBuilder:
        pod = a_pod("p", namespace=self.namespace).scheduler(self.scheduler)
        pod = pod.gpu(1).card("A") if self.asks == "card" else pod
        pod = pod.mgpu(core=30, memory=1024) if self.asks == "share" else pod
        pod = pod.in_queue(self.named) if self.named else pod
        pod = pod.in_group("g") if self.group is not None else pod
        owner = {"api_version": "batch.volcano.sh/v1alpha1"}
        return pod.owned_by("Job", "j", **owner) if self.job is not None else pod

    def queue_views(self) -> list[Queue]:
        return [a_queue(name).cards({"A": 8}).used_by(*texts).view() for name, texts in self.queues.items()]

    def namespace_views(self) -> list[Namespace]:
        views = []
        for name, (labelled, queue) in self.homes.items():
            built = a_namespace(name).in_queue(queue) if queue else a_namespace(name)
            for key, value in labelled.items():
                built = built.label(key, value)
            views.append(built.view())
        return views

    def in_view(self) -> ClusterView:
        """What the webhook sees."""
        inventory = Inventory({})
        inventory.put(NODE)
        return ClusterView(
            inventory=inventory,
            queues={queue.name: queue for queue in self.queue_views()},
            namespaces={home.name: home for home in self.namespace_views()},
        )

    def ledger(self, order: random.Random | None = None) -> Ledger:
        """What the leader sees, in the order in which it came."""
        ledger = Ledger(self.settings())
        pod = (self.pod().gated() if self.gated else self.pod()).view()
        steps = [partial(ledger.put_node, NODE), partial(ledger.put_pod, pod)]
        steps += [partial(ledger.put_queue, queue) for queue in self.queue_views()]
        # Each queue says something else at first.
        steps += [partial(ledger.put_queue, a_queue(name).used_by("b").view()) for name in self.queues]
        steps += [partial(ledger.put_namespace, home) for home in self.namespace_views()]
        steps += [partial(ledger.put_namespace, a_namespace(name).view()) for name in self.homes]
        if self.group is not None:
            group = a_group("g", namespace=self.namespace).in_queue(self.group).view()
            steps.append(partial(ledger.put_group, group))
        if self.job is not None:
            job = a_job("j", namespace=self.namespace).uid("uid-j").in_queue(self.job).view()
            steps.append(partial(ledger.put_job, job))
        if order is not None:
            order.shuffle(steps)
        for step in steps:
            step()
        # The last word counts.
        for queue in self.queue_views():
            ledger.put_queue(queue)
        for home in self.namespace_views():
            ledger.put_namespace(home)
        finish(ledger.settle())
        return ledger


NODE = a_node("n").card("A", 8).mgpu(2, memory=8192).view()
names_of_queues = st.sampled_from(["", "q", "r"])
worlds = st.builds(
    World,
    queues=st.fixed_dictionaries({name: st.tuples(lists, selectors) for name in ("q", "r", "default")}),
    homes=st.dictionaries(
        st.sampled_from("ab"), st.tuples(st.dictionaries(st.just("env"), values), names_of_queues)
    ),
    namespace=st.sampled_from("ab"),
    named=st.sampled_from(["", "q", "r", "none"]),
    group=st.none() | names_of_queues,
    job=st.none() | names_of_queues,
    scheduler=st.sampled_from(["volcano", "another"]),
    asks=st.sampled_from(["card", "share", "nothing"]),
    access=st.sampled_from(["open", "listed"]),
)


@settings(max_examples=300)
@given(worlds)
def test_what_the_webhook_refuses_the_leader_holds_or_refuses_to_bind(world: World) -> None:
    denied = review(creation(world.pod().build()), world.in_view(), world.settings()).denial
    if denied is not None:
        assert [violation.code for violation in denied.violations] == [reasons.QUEUE_NOT_ALLOWED]
        assert refusal(world, world.ledger()) == reasons.QUEUE_NOT_ALLOWED


@settings(max_examples=300)
@given(worlds, st.randoms(use_true_random=False))
def test_a_pod_is_let_in_or_holds_something_only_where_its_queue_admits_its_namespace(
    world: World, order: random.Random
) -> None:
    """In whatever order the leader came to know of all."""
    ledger = world.ledger(order)
    pod = (world.pod().gated() if world.gated else world.pod()).view()
    queue = ledger.queues.get(ledger.attribution(pod).queue)
    if queue is None or not pod.asks:
        return
    said = access_of(queue)
    home = next((home for home in world.namespace_views() if home.name == world.namespace), None)
    labels = None if home is None else home.labels
    admitted = said.admits(world.namespace, labels) if said.stated else world.access == "open"
    held = {ledger.used(queue.name, key) for key in ("A", names.MGPU_CORE)}
    assert (refusal(world, ledger) == reasons.QUEUE_NOT_ALLOWED) is not admitted
    assert admitted or held == {0}


def refusal(world: World, ledger: Ledger) -> str:
    """What the pod is told at the gate, or at its bind where it never comes to a gate; empty where it is let in."""
    if world.gated:
        (decision,) = filter(None, Planner(ledger).run(list(ledger.accounts)))
        return decision.why.code if isinstance(decision, Hold) else ""
    pod = world.pod().view()
    binder = Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)
    answer = {} if binder.certain(pod, "n") else binder.decide(pod, "n")
    return answer.code if isinstance(answer, Refusal) else ""
