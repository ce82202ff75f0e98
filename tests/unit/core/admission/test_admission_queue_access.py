"""Who may use a queue: refused where it cannot be read, and pods that name a queue which is closed to their namespace."""

from typing import Any

import pytest

from core import names, reasons
from core.admission.request import NOTHING_LISTED, ClusterView
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from core.namespace_patterns import MAX_ITEMS
from tests.builders import a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import NamespaceBuilder, PodBuilder, QueueBuilder
from tests.unit.core.admission.samples import annotated, answer, changed, codes, creation, settings, update

LISTED, SELECTOR = names.NAMESPACES_ANNOTATION, names.NAMESPACE_SELECTOR_ANNOTATION
QUEUE_PATH = f"metadata.annotations[{names.QUEUE_NAME_ANNOTATION}]"


class TestQueues:
    @pytest.mark.parametrize(
        ("annotation", "text"),
        [
            (LISTED, ""),
            (LISTED, "*"),
            (LISTED, "a, team-*,*-dev"),
            (SELECTOR, ""),
            (SELECTOR, "a in (b), !c"),
        ],
    )
    def test_what_can_be_read_is_admitted(self, annotation: str, text: str) -> None:
        """Also what admits nobody: a queue may be closed for a while."""
        decision = answer(creation(a_queue().annotation(annotation, text).build()))
        assert decision.allowed
        assert decision.warnings == ()

    @pytest.mark.parametrize(
        ("annotation", "text", "said"),
        [
            (LISTED, "Team-A", '"Team-A" can be the name of no namespace'),
            (LISTED, "a b", "commas between names"),
            (
                LISTED,
                ",".join(f"n{n}" for n in range(MAX_ITEMS + 1)),
                "write patterns, or a label selector instead",
            ),
            (LISTED, "env in (dev)", '"env in (dev)" can be'),
            (SELECTOR, "env in", "values in parentheses"),
            (SELECTOR, "größe", "is no label key"),
        ],
    )
    def test_what_cannot_be_read_is_refused_with_its_path_and_the_way_out(
        self, annotation: str, text: str, said: str
    ) -> None:
        decision = answer(creation(a_queue("team").annotation(annotation, text).build()))
        assert codes(decision) == [reasons.QUEUE_ACCESS_MALFORMED]
        assert decision.denial is not None
        first = f'Queue team is refused: metadata.annotations[{annotation}]: Invalid value: "'
        assert decision.denial.message.startswith(first)
        assert said in decision.denial.message
        assert len(decision.denial.message) < 1000
        assert (decision.denial.status, decision.denial.reason) == (400, "BadRequest")

    def test_everything_that_is_wrong_is_said_at_once(self) -> None:
        queue = a_queue().cards("{").used_by("a b", "x in").build()
        assert codes(answer(creation(queue))) == [
            reasons.CARD_QUOTA_MALFORMED,
            reasons.QUEUE_ACCESS_MALFORMED,
            reasons.QUEUE_ACCESS_MALFORMED,
        ]

    def test_what_is_stored_already_blocks_no_other_edit(self) -> None:
        stored = a_queue().used_by("a b", "x in").build()
        assert answer(update(stored, changed(stored, "spec", weight=2))).allowed
        assert answer(update(stored, annotated(stored, **{LISTED: "a"}))).allowed
        assert answer(update(stored, annotated(stored, **{LISTED: None, SELECTOR: None}))).allowed
        assert codes(answer(update(stored, annotated(stored, **{LISTED: "c d"})))) == [
            reasons.QUEUE_ACCESS_MALFORMED
        ]

    def test_it_does_not_hang_on_any_feature(self) -> None:
        off = settings(features={"cards": False, "dra": False})
        assert not answer(creation(a_queue().used_by("a b").build()), settings=off).allowed


def view(
    *queues: QueueBuilder, namespaces: tuple[NamespaceBuilder, ...] | None = (a_namespace("ml"),)
) -> ClusterView:
    inventory = Inventory({})
    inventory.put(a_node("n").card("A", 8).view())
    return ClusterView(
        inventory=inventory,
        queues={built.view().name: built.view() for built in queues},
        namespaces=None if namespaces is None else {built.view().name: built.view() for built in namespaces},
        serving=DeviceClasses(),
    )


CLOSED = a_queue("q").cards({"A": 8}).used_by("web", "env=dev")
CARD = a_pod("p").gpu(1).card("A").in_queue("q")
VIEW = view(CLOSED)


def template(kind: str) -> tuple[dict[str, Any], str]:
    """A workload that makes such pods, and where their template stands."""
    inner: dict[str, Any] = {"template": CARD.template()}
    prefix, group = "spec.template.", "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    if kind == "CronJob":
        inner, prefix = {"jobTemplate": {"spec": inner}}, "spec.jobTemplate.spec.template."
    return (
        {"apiVersion": group, "kind": kind, "metadata": {"name": "w", "namespace": "ml"}, "spec": inner},
        prefix,
    )


class TestPods:
    def test_one_that_names_a_closed_queue_is_refused(self) -> None:
        decision = answer(creation(CARD.build()), VIEW)
        assert codes(decision) == [reasons.QUEUE_NOT_ALLOWED]
        assert decision.denial is not None
        assert decision.denial.message == (
            f'Pod ml/p is refused: {QUEUE_PATH}: Forbidden: "q": queue q is not open to namespace ml; name another '
            f"queue, or have {LISTED} or {SELECTOR} of the queue admit the namespace"
        )
        assert (decision.denial.status, decision.denial.reason) == (403, "Forbidden")

    @pytest.mark.parametrize(
        "pod",
        [
            a_pod().mgpu(core=30, memory=1024).in_queue("q"),
            a_pod().claim("dev", template="t").in_queue("q"),
            CARD.scheduler("another"),
        ],
    )
    def test_whatever_it_asks_for_and_whoever_schedules_it(self, pod: PodBuilder) -> None:
        assert codes(answer(creation(pod.build()), VIEW)) == [reasons.QUEUE_NOT_ALLOWED]

    def test_the_image_of_a_static_pod_runs_already_but_only_a_kubelet_makes_one(self) -> None:
        raw = CARD.mirror().gpu(1).build()
        assert codes(answer(creation(raw, "system:node:n1"), VIEW)) == []
        assert codes(answer(creation(raw), VIEW)) == [reasons.QUEUE_NOT_ALLOWED]

    @pytest.mark.parametrize(
        "kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"]
    )
    def test_so_is_a_template_of_such_pods(self, kind: str) -> None:
        raw, prefix = template(kind)
        decision = answer(creation(raw), VIEW)
        assert codes(decision) == [reasons.QUEUE_NOT_ALLOWED]
        assert decision.denial is not None
        assert f"{prefix}{QUEUE_PATH}: Forbidden" in decision.denial.message

    def test_a_stored_template_that_is_not_changed_is_not_judged(self) -> None:
        raw, _ = template("Deployment")
        assert answer(update(raw, changed(raw, "spec", replicas=3)), VIEW).allowed
        other = changed(raw, "spec", "template", "metadata", labels={"a": "b"})
        assert codes(answer(update(raw, other), VIEW)) == [reasons.QUEUE_NOT_ALLOWED]

    def test_a_volcano_job_is_refused_by_the_queue_of_the_job(self) -> None:
        """Told once, however many tasks it has; what a template says of the queue is not read then."""
        pod = a_pod().gpu(1).card("A")
        job = a_job("j").task("a", pod).task("b", pod)
        decision = answer(creation(job.in_queue("q").build()), VIEW)
        assert codes(decision) == [reasons.QUEUE_NOT_ALLOWED]
        assert decision.denial is not None
        assert 'spec.queue: Forbidden: "q"' in decision.denial.message
        views = view(CLOSED, a_queue("open").cards({"A": 8}))
        named = a_job("j").task("a", pod.in_queue("q"))
        assert answer(creation(named.in_queue("open").build()), views).allowed
        assert answer(creation(named.build()), views).allowed, "Volcano sends it to a queue of its choice"

    def test_a_pod_whose_card_name_changes_is_not_judged_again(self) -> None:
        """Its queue was closed to it while it waits: that blocks no other edit."""
        stored = CARD.gated().build()
        assert answer(update(stored, annotated(stored, **{names.CARD_NAME_ANNOTATION: "B"})), VIEW).allowed

    @pytest.mark.parametrize(
        ("queue", "namespace"),
        [
            (a_queue("q").used_by("web, ml"), a_namespace("ml")),
            (a_queue("q").used_by("web", "env=dev"), a_namespace("ml").label("env", "dev")),
            (a_queue("q").used_by("", f"{names.NAMESPACE_NAME_LABEL}=ml"), a_namespace("ml")),
            (a_queue("q"), a_namespace("ml")),
            (a_queue("other").used_by(""), a_namespace("ml")),
        ],
    )
    def test_one_that_is_admitted_is_let_through(
        self, queue: QueueBuilder, namespace: NamespaceBuilder
    ) -> None:
        assert answer(creation(CARD.build()), view(queue.cards({"A": 8}), namespaces=(namespace,))).allowed

    @pytest.mark.parametrize(
        "views",
        [NOTHING_LISTED, view(CLOSED, namespaces=None), view(CLOSED, namespaces=()), view(namespaces=None)],
        ids=["nothing", "no namespaces", "another namespace", "no queue"],
    )
    def test_without_both_objects_in_view_it_is_let_through_to_the_gate(self, views: ClusterView) -> None:
        decision = answer(creation(CARD.build()), views)
        assert decision.allowed

    @pytest.mark.parametrize(
        "pod",
        [
            CARD.in_group("g"),
            CARD.owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1"),
        ],
        ids=["PodGroup", "Volcano Job"],
    )
    def test_where_something_else_may_name_the_queue_the_gate_decides(self, pod: PodBuilder) -> None:
        assert answer(creation(pod.build()), VIEW).allowed

    @pytest.mark.parametrize(
        ("views", "access"),
        [
            (view(CLOSED, namespaces=(a_namespace("ml").in_queue("q"),)), "open"),
            (view(a_queue("default").cards({"A": 8})), "listed"),
        ],
        ids=["namespace", "default"],
    )
    def test_one_that_names_none_is_warned(self, views: ClusterView, access: str) -> None:
        pod = a_pod("p").gpu(1).card("A")
        decision = answer(creation(pod.build()), views, settings(queue={"access": access}))
        assert decision.allowed
        (warning,) = decision.warnings
        assert warning.startswith(f"{QUEUE_PATH}: queue ")
        assert "is not open to namespace ml; what is sent to it waits until it is" in warning

    def test_the_setting_closes_queues_that_do_not_say_it(self) -> None:
        views = view(a_queue("q").cards({"A": 8}))
        assert answer(creation(CARD.build()), views).allowed
        assert not answer(creation(CARD.build()), views, settings(queue={"access": "listed"})).allowed

    def test_a_pod_without_namespace_is_in_the_default_one(self) -> None:
        raw = changed(CARD.build(), "metadata", namespace=None)
        views = view(CLOSED.used_by("ml"), namespaces=(a_namespace("default"), a_namespace("ml")))
        assert codes(answer(creation(raw), views)) == [reasons.QUEUE_NOT_ALLOWED]
        allowed = view(CLOSED.used_by("default"), namespaces=(a_namespace("default"),))
        assert answer(creation(raw), allowed).allowed

    def test_it_is_said_beside_everything_else_that_is_wrong(self) -> None:
        pod = a_pod().card("A").in_queue("q").annotation(names.ASSIGNED_ANNOTATION, "{}")
        found = codes(answer(creation(pod.build()), VIEW))
        assert set(found) == {
            reasons.CARD_RESOURCE_MISSING,
            reasons.RECORD_PROTECTED,
            reasons.QUEUE_NOT_ALLOWED,
        }

    def test_a_pod_that_asks_for_nothing_of_ours_is_not_looked_at(self) -> None:
        assert answer(creation(a_pod().limit("cpu", 1).in_queue("q").build()), VIEW).allowed
        off = settings(features={"cards": False})
        assert answer(creation(CARD.build()), VIEW, off).allowed
