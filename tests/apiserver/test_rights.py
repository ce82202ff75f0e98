"""The rights of both processes are those that they use: what they asked for in the main stories, compared with their roles."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import pytest

from core import reasons
from hack.controlplane import ControlPlane, audit, wait_for
from hack.controlplane.audit import AuditedRequest
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from hack.installation.rendering import of_kind
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import (
    binding,
    card_pod,
    in_group,
    pod,
    podgroup,
    queue,
    share_pod,
)
from tests.apiserver.test_binding import CARD_MIB, NOBODY
from tests.apiserver.trusting import CERTIFICATES, Kept

PROCESSES = ("cardquota-webhook", "cardquota-controller")
_WATCH_S = 90.0
"""A watch is in the audit log once it ends, after some seconds in which nothing happened."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb of one account on one resource; `name` where a role names the object, `namespace` where it is a Role's."""

    account: str
    verb: str
    resource: str
    namespace: str = ""
    name: str = ""

    def covers(self, used: "Right") -> bool:
        """Whether a request of that kind is granted by this."""
        same = (self.account, self.verb, self.resource) == (used.account, used.verb, used.resource)
        return same and self.namespace in ("", used.namespace) and self.name in ("", used.name)


UNUSED: Mapping[tuple[str, str, str], str] = {
    (
        "cardquota-controller",
        "patch",
        "customresourcedefinitions.apiextensions.k8s.io",
    ): "the definition of Queue is mended where the webhook was away: test_queue_definition",
    (
        "cardquota-controller",
        "patch",
        "events.events.k8s.io",
    ): "an event that repeats is counted up after minutes: test_client",
    (
        "cardquota-controller",
        "watch",
        "jobs.batch.volcano.sh",
    ): "Volcano's Jobs are not served here, so their list is all that is asked for: test_volcano_jobs",
}
"""What is granted and not asked for here, each with the reason and the test that needs it."""


@pytest.fixture(scope="module")
def begun(control_plane: ControlPlane) -> int:
    """Where the audit log stood before the installation: others may have been there under the same names."""
    return control_plane.audit_log.stat().st_size


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, begun: int) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


def granted(installation: Installation) -> set[Right]:
    """What the rendered roles and their bindings give to the two accounts."""
    rights: set[Right] = set()
    for kind in ("Role", "ClusterRole"):
        roles = of_kind(installation.objects, kind)
        for bound in of_kind(installation.objects, f"{kind}Binding").values():
            namespace = bound["metadata"].get("namespace", "") if kind == "Role" else ""
            for subject, rule in itertools.product(
                bound["subjects"], roles[bound["roleRef"]["name"]]["rules"]
            ):
                for group, resource, verb, name in itertools.product(
                    rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""])
                ):
                    what = ".".join(filter(None, (resource, group)))
                    rights.add(Right(subject["name"], verb, what, namespace, name))
    return rights


def right_of(request: AuditedRequest, prefix: str) -> Right:
    what = ".".join(filter(None, (request.resource, request.group)))
    return Right(request.user.removeprefix(prefix), request.verb, what, request.namespace, request.name)


def live_through_the_main_stories(cluster: Cluster, installation: Installation) -> None:
    """Cards, a gang, a pod with a PodGroup of its own, shares, claims, refusals, certificates, and a change of the leader."""
    card, name = cluster.add_card(), unique("q")
    path = cluster.create_queue(queue(name, f'{{"{card}": 3}}'))
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    cluster.create(podgroup("g", name, 2))
    cluster.create(*in_group("g", *[card_pod(f"g{number}", card, name) for number in range(2)]))
    cluster.create(podgroup("alone", name, 1))
    cluster.create(*in_group("alone", card_pod("one", card, name)))
    cluster.wait_running("g0", "g1", "one")
    cluster.wait_allocated(path, {card: 3})
    cluster.create(card_pod("waits", card, name))
    cluster.wait_said("waits", reasons.INSUFFICIENT_SCALAR_QUOTA)
    cluster.create(share_pod("share", 30, 1024, schedulerName=NOBODY))
    cluster.bind(binding("share", node)).expect(201)
    assert cluster.bind(binding("nobody", node)).status == HTTPStatus.NOT_FOUND
    cluster.try_create(pod("cpu", limits={"cpu": "1"})).expect(201)
    kept = Kept(cluster.plane, installation)
    kept.distrust()
    wait_for("all entries trust us again", lambda: b"" not in kept.trusted(), 30.0)
    kept.write(CERTIFICATES, {"tls.key": None})
    wait_for("the webhook's pair is whole again", lambda: "tls.key" in kept.data(CERTIFICATES), 60.0)
    installation.stop_controller(leader_index(cluster.plane, installation))
    leader_index(cluster.plane, installation)
    cluster.finish("one")
    wait_for("the next one runs", lambda: "waits" in cluster.running(), 60.0)


@pytest.mark.timeout(400)
def test_what_is_used_is_granted_and_what_is_granted_is_used(
    control_plane: ControlPlane, cluster: Cluster, installation: Installation, begun: int
) -> None:
    live_through_the_main_stories(cluster, installation)
    prefix, given = f"system:serviceaccount:{installation.namespace}:", granted(installation)
    assert {right.account for right in given} == set(PROCESSES)
    # What a namespace on its way out refuses is no matter of rights.
    wanted = {right for right in given if (right.account, right.verb, right.resource) not in UNUSED}

    def unused() -> set[Right]:
        return {right for right in wanted if not any(right.covers(each) for each in used)}

    def asked() -> bool:
        used.clear()
        requests = audit.read(control_plane.audit_log, begun)
        used.update(right_of(each, prefix) for each in requests if each.user.startswith(prefix))
        return not unused()

    used: set[Right] = set()
    try:
        wait_for("every right has been used", asked, _WATCH_S)
    finally:
        assert sorted(unused()) == [], "granted and never used"
    assert sorted(each for each in used if not any(right.covers(each) for right in given)) == []
    for account, verb, resource in UNUSED:
        assert any((r.account, r.verb, r.resource) == (account, verb, resource) for r in given), "not granted"
