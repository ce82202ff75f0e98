"""What a queue could never serve as it is written now: admitted, with a warning that says what is wrong."""

from dataclasses import replace
from typing import Any

import pytest

from core import names, reasons
from core.admission.request import NOTHING_LISTED, ClusterView
from core.cards.inventory import Inventory
from tests.builders import a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.core.admission.outlook import (
    CARD_PATH,
    QUEUE_PATH,
    TEAM,
    cluster,
    codes,
    hints,
)
from tests.unit.core.admission.samples import answer, creation, settings, update


class TestPods:
    @pytest.mark.parametrize(
        ("pod", "said"),
        [
            (a_pod().card("A").gpu(4), ""),
            (a_pod().card("A").gpu(5), '"A": 5 are more than the whole quota of queue team (4)'),
            (a_pod().card("A|B").gpu(4), ""),
            (a_pod().card("B|A").gpu(5), '"B|A": 5 are more than the whole quota of queue team (4)'),
            (a_pod().card("A").gpu(0), ""),
            (a_pod().card("A").request("nvidia.com/gpu", 5), '"A": 5 are more'),
            (a_pod().card("A").gpu(3).gpu(2, container="more"), '"A": 5 are more'),
            (
                a_pod().card("A/mig-1g-mixed").limit("nvidia.com/mig-1g", 1),
                'queue team has no quota for "A/mig-1g-mixed"',
            ),
            (
                a_pod().card("A/mig-1g-mixed|B/mig-1g-mixed").limit("nvidia.com/mig-1g", 1),
                'queue team has no quota for "A/mig-1g-mixed|B/mig-1g-mixed"',
            ),
            (a_pod().card("Unknown").gpu(1), 'queue team has no quota for "Unknown"'),
        ],
    )
    def test_more_than_the_whole_quota_can_never_be_lifted(self, pod: PodBuilder, said: str) -> None:
        found = hints(pod.in_queue("team").build(), cluster(TEAM))
        assert codes(found) == ([reasons.BEYOND_QUOTA] if said else [])
        for hint in found:
            assert hint.path == CARD_PATH
            assert hint.detail.startswith(said)

    @pytest.mark.parametrize(
        ("cards", "count", "most"),
        [
            ("A", 8, 0),
            ("A", 9, 8),
            ("A|B", 9, 0),
            ("A|B", 13, 12),
            ("C", 9, 0),
            ("A|C", 9, 8),
            ("A|P", 99, 0),
        ],
    )
    def test_one_pod_that_no_node_could_hold_is_pointed_out_instead(
        self, cards: str, count: int, most: int
    ) -> None:
        """However little the quota: more of it would not help. Of a card without nodes something else is said; a pool may bring any."""
        nodes = (a_node("n1").card("A", 8), a_node("n2").card("B", 12), a_node("n3").card("A", 4))
        pod = a_pod().card(cards).gpu(count).in_queue("team").build()
        pools = {"P": {"labels": {"pool": "p"}, "resource": "nvidia.com/gpu"}}
        view = cluster(TEAM.cards({"A": 4 if most else 99, "B": 99, "C": 99, "P": 99}))
        inventory = Inventory.of(settings(cards={"pools": pools}))
        for node in nodes:
            inventory.put(node.view())
        found = hints(pod, replace(view, inventory=inventory), cards={"pools": pools})
        assert codes(found) == ([reasons.BEYOND_NODES] if most else [])
        for hint in found:
            assert hint.path == CARD_PATH
            assert hint.detail.startswith(f'"{cards}": {count} are more than any node has ({most})')

    def test_what_is_in_use_plays_no_part(self) -> None:
        full = TEAM.allocated({"A": "4"})
        assert hints(a_pod().card("A").gpu(4).in_queue("team").build(), cluster(full)) == []

    @pytest.mark.parametrize("quota", ["", "{", '{"A": "4"}'])
    def test_a_queue_without_a_readable_quota_has_no_cards(self, quota: str) -> None:
        pod = a_pod().card("A").gpu(1).in_queue("team")
        assert codes(hints(pod.build(), cluster(a_queue("team").cards(quota)))) == [reasons.BEYOND_QUOTA]

    @pytest.mark.parametrize(
        "pod",
        [a_pod().card("A").gpu(1), a_pod().mgpu(core=50, memory=1024), a_pod().claim("c", template="t")],
        ids=["cards", "shares", "claims"],
    )
    def test_a_queue_that_does_not_exist_is_pointed_out(self, pod: PodBuilder) -> None:
        found = hints(pod.in_queue("taem").build(), cluster(TEAM))
        assert codes(found) == [reasons.QUEUE_NOT_FOUND]
        assert found[0].path == QUEUE_PATH
        assert found[0].detail.startswith('no queue has the name "taem" now')

    @pytest.mark.parametrize(
        "pod",
        [
            a_pod().limit("cpu", 1),
            a_pod().card(""),
            a_pod().card("A").gpu(9).mirror(),
            a_pod().card("A").gpu(9).scheduler("other"),
        ],
        ids=["cpu", "empty card", "mirror pod", "another scheduler"],
    )
    def test_a_pod_that_does_not_wait_at_the_gate_hears_nothing(self, pod: PodBuilder) -> None:
        for queue in ("missing", "team"):
            assert hints(pod.in_queue(queue).build(), cluster(TEAM), "system:node:n1") == []

    def test_without_gates_or_without_the_queues_nothing_is_said(self) -> None:
        pod = a_pod().card("A").gpu(9).in_queue("missing").build()
        assert hints(pod, NOTHING_LISTED) == []
        assert hints(pod, cluster(TEAM), features={"gates": False}) == []
        assert hints(pod, cluster(TEAM), features={"cards": False, "dra": False}) == []

    def test_without_the_nodes_what_the_names_tell_is_still_compared(self) -> None:
        view = ClusterView(queues=cluster(TEAM.cards({"A": 4, "A/mig-1g-mixed": 1})).queues)
        share = a_pod().card("A/mig-1g-mixed").limit("nvidia.com/mig-1g", 2)
        assert codes(hints(share.in_queue("team").build(), view)) == [reasons.BEYOND_QUOTA]
        assert hints(a_pod().card("A").gpu(9).in_queue("team").build(), view) == []
        assert codes(hints(a_pod().card("C").gpu(1).in_queue("team").build(), view)) == [reasons.BEYOND_QUOTA]

    def test_a_pod_that_is_refused_hears_only_of_that(self) -> None:
        decision = answer(creation(a_pod().card("A|").in_queue("missing").build()), cluster(TEAM))
        assert not decision.allowed
        assert decision.warnings == ()

    def test_a_card_that_changes_at_the_gate_is_compared_anew(self) -> None:
        old = a_pod().card("A").gpu(2).in_queue("team").gated()
        view = cluster(a_queue("team").cards({"A": 2, "B": 1}))
        assert answer(update(old.build(), old.annotation("x", "y").build()), view).warnings == ()
        (warning,) = answer(update(old.build(), old.card("B").build()), view).warnings
        assert "whole quota of queue team (1)" in warning


class TestWhichQueue:
    """By what the object says itself, in the order in which the scheduler goes by it."""

    CARD = a_pod().card("A").gpu(3)
    SMALL, LARGE = a_queue("small").cards({"A": 1}), a_queue("large").cards({"A": 9})

    @pytest.mark.parametrize(
        ("pod", "beyond"),
        [
            (CARD.in_queue("small"), True),
            (CARD.in_queue("large"), False),
            (CARD.annotation(names.JOB_QUEUE_ANNOTATION, "small").in_queue("large"), False),
            (
                CARD.annotation(names.JOB_QUEUE_ANNOTATION, "small")
                .in_queue("large")
                .owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1"),
                True,
            ),
            (CARD.in_queue("large").in_group("g"), False),
            (CARD.in_queue("small").in_group("g"), True),
        ],
    )
    def test_the_annotations_of_the_pod(self, pod: PodBuilder, beyond: bool) -> None:
        found = hints(pod.build(), cluster(self.SMALL, self.LARGE))
        assert codes(found) == ([reasons.BEYOND_QUOTA] if beyond else [])

    def test_the_namespace_where_the_view_has_it(self) -> None:
        small = [a_namespace("ml").in_queue("small")]
        views = [namespace.view() for namespace in small]
        assert hints(self.CARD.build(), cluster(self.SMALL)) == []
        assert codes(hints(self.CARD.build(), cluster(self.SMALL, namespaces=views))) == [
            reasons.BEYOND_QUOTA
        ]
        assert hints(self.CARD.in_queue("large").build(), cluster(self.LARGE, namespaces=views)) == []

    def test_the_podgroup_may_name_another_queue_than_the_namespace(self) -> None:
        views = [a_namespace("ml").in_queue("small").view()]
        assert hints(self.CARD.in_group("g").build(), cluster(self.SMALL, namespaces=views)) == []

    def test_the_default_queue_when_nobody_names_one(self) -> None:
        default = a_queue("default").cards({"A": 1})
        assert codes(hints(self.CARD.build(), cluster(default, namespaces=[]))) == [reasons.BEYOND_QUOTA]
        found = hints(self.CARD.build(), cluster(namespaces=[]))
        assert codes(found) == [reasons.QUEUE_NOT_FOUND]
        assert found[0].detail.startswith('no queue is named, and there is no "default" now')
        mine = hints(self.CARD.build(), cluster(self.SMALL, namespaces=[]), queue={"default": "small"})
        assert codes(mine) == [reasons.BEYOND_QUOTA]

    def test_shares_and_claims_do_not_wait_for_a_default_queue(self) -> None:
        """There is no quota for them then, and the controller lifts them."""
        for pod in (a_pod().mgpu(core=50, memory=1024), a_pod().claim("c", template="t")):
            assert hints(pod.build(), cluster(namespaces=[])) == []

    def test_a_pod_without_namespace_is_in_the_default_one(self) -> None:
        pod = self.CARD.build()
        del pod["metadata"]["namespace"]
        views = [a_namespace("default").in_queue("small").view()]
        assert codes(hints(pod, cluster(self.SMALL, namespaces=views))) == [reasons.BEYOND_QUOTA]


TEMPLATED = [
    ("apps/v1", "Deployment", ("template",)),
    ("apps/v1", "ReplicaSet", ("template",)),
    ("apps/v1", "StatefulSet", ("template",)),
    ("apps/v1", "DaemonSet", ("template",)),
    ("batch/v1", "Job", ("template",)),
    ("batch/v1", "CronJob", ("jobTemplate", "spec", "template")),
]


@pytest.mark.parametrize(("api_version", "kind", "path"), TEMPLATED)
def test_templates_hear_it_with_their_own_path(api_version: str, kind: str, path: tuple[str, ...]) -> None:
    """And not again while the template stays as it is, however often the object is scaled."""

    def workload(pod: PodBuilder, replicas: int = 1) -> dict[str, Any]:
        spec: dict[str, Any] = pod.template()
        for key in reversed(path):
            spec = {key: spec}
        metadata = {"name": "w", "namespace": "ml"}
        spec["replicas"] = replicas
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}

    prefix = ".".join(("spec", *path, ""))
    beyond, missing = a_pod().card("A").gpu(5).in_queue("team"), a_pod().card("A").gpu(1).in_queue("x")
    for pod, code, field in (
        (beyond, reasons.BEYOND_QUOTA, CARD_PATH),
        (missing, reasons.QUEUE_NOT_FOUND, QUEUE_PATH),
    ):
        (found,) = hints(workload(pod), cluster(TEAM))
        assert (found.code, found.path) == (code, prefix + field)
        assert answer(update(workload(pod), workload(pod, replicas=9)), cluster(TEAM)).warnings == ()
        assert answer(update(workload(a_pod()), workload(pod)), cluster(TEAM)).warnings


def test_a_namespace_of_the_request_counts_for_its_templates() -> None:
    raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ml"}}
    raw = {**raw, "spec": {"template": a_pod().card("A").gpu(5).template()}}
    view = cluster(TEAM, namespaces=[a_namespace("ml").in_queue("team").view()])
    assert codes(hints(raw, view)) == [reasons.BEYOND_QUOTA]
