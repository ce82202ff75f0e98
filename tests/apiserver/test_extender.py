"""A real kube-scheduler, configured as in the example, that asks cardquota over HTTPS which nodes fit a pod."""

import base64
import json
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from core import names, reasons
from core.extender.enqueue import ABSTAIN, PERMIT, REJECT
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node, mgpu_node, node
from hack.controlplane.ports import free_ports
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, samples, unique
from tests.apiserver.manifests import JOB_OUT_OF_REACH, pod, podgroup, queue, share_pod

EXAMPLE = Path(__file__).parents[2] / "examples" / "pods-without-gpu" / "kube-scheduler.yaml"
RECORDED = Path(__file__).parents[1] / "data" / "extender"
LIMIT = "volcano.sh/crossquota-cpu"

BY_NAME, BY_NODE = "extender-by-name", "extender-by-node"
STRICT, LENIENT = "extender-away-strict", "extender-away-lenient"
MOVED = "extender-moved"
"""It asks at the port that the first release answered at, and is sent on."""
SCHEDULERS = [BY_NAME, BY_NODE, MOVED]
PLAIN = "default-scheduler"
"""It asks nobody."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    values = {
        "crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"], "quotaResources": ["cpu", "memory"]},
        "schedulerNames": ["default-scheduler", *SCHEDULERS],
    }
    with Installation(control_plane, values=values) as installed:
        yield installed


@pytest.fixture(scope="module", autouse=True)
def schedulers(
    control_plane: ControlPlane, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Five schedulers: three that reach cardquota, and two for whom it is away."""
    authority = tmp_path_factory.mktemp("extender") / "ca.crt"
    authority.write_bytes(base64.b64decode(_ca_bundle(control_plane)))
    here, away = installation.kube_extender_url(0), f"https://localhost:{free_ports(1)[0]}"
    wanted: Mapping[str, tuple[str, dict[str, Any]]] = {
        BY_NAME: (here, {"ignorable": False}),
        BY_NODE: (here, {"nodeCacheCapable": False}),
        MOVED: (installation.controller_url(0), {"ignorable": False}),
        STRICT: (away, {"ignorable": False}),
        LENIENT: (away, {}),
    }
    for name, (address, changes) in wanted.items():
        config = _configuration(address, authority, installation.namespace, changes)
        control_plane.start_scheduler(config, name)


def _configuration(address: str, authority: Path, namespace: str, changes: Mapping[str, Any]) -> str:
    """The example, with another address for its Service, the authority and namespace as they are, and what the test changes."""
    config = yaml.safe_load(EXAMPLE.read_text("utf-8"))
    (extender,) = config["extenders"]
    service, slash, path = extender["urlPrefix"].removeprefix("https://").partition("/")
    service = service.removesuffix(":8443")
    assert service == extender["tlsConfig"]["serverName"]
    extender |= {"urlPrefix": address + slash + path, **changes}
    served = service.replace(".cardquota-system.", f".{namespace}.")
    extender["tlsConfig"] |= {"caFile": str(authority), "serverName": served}
    return yaml.safe_dump(config)


def _ca_bundle(plane: ControlPlane) -> str:
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cardquota-mutating"
    return str(plane.api.get(path).expect()["webhooks"][0]["clientConfig"]["caBundle"])


class Pool:
    """Nodes that only the pods of one test select."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._label = unique("pool")

    def add(self, *nodes: Object, annotations: Mapping[str, str] | None = None) -> None:
        for item in nodes:
            item["metadata"]["labels"][self._label] = ""
            item["metadata"]["annotations"] = dict(annotations or {})
        self._cluster.add_nodes(*nodes)

    def of(self, item: Object, scheduler: str) -> Object:
        return {
            **item,
            "spec": {**item["spec"], "nodeSelector": {self._label: ""}, "schedulerName": scheduler},
        }


def limited(name: str) -> Object:
    return gpu_node(name, product="NVIDIA-H200", cards=8, memory_mib=143771)


def place(cluster: Cluster, item: Object) -> str:
    """Create a pod and return its node once it runs there."""
    name = item["metadata"]["name"]
    cluster.create(item)
    wait_for(f"{name} runs", lambda: name in cluster.running())
    return str(cluster.pod(name)["spec"]["nodeName"])


def told(cluster: Cluster, name: str, scheduler: str, words: str) -> str:
    """Return what the scheduler says of a pod that it cannot place, once these words are in it."""

    def said() -> str:
        found = cluster.events(name, reporter=scheduler)
        return next((text for reason, text in found if reason == "FailedScheduling" and words in text), "")

    return wait_for(f"{scheduler} says {words!r} of {name}", said)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_pods_without_gpu_fill_gpu_nodes_up_to_their_quota_and_the_rest_waits(
    cluster: Cluster, scheduler: str
) -> None:
    pool, first, second = Pool(cluster), unique("gpu"), unique("gpu")
    pool.add(limited(first), limited(second), annotations={LIMIT: "4"})
    found = [place(cluster, pool.of(pod(f"p{n}", limits={"cpu": 2}), scheduler)) for n in range(4)]
    assert sorted(found) == sorted([first, first, second, second])

    cluster.create(pool.of(pod("rest", limits={"cpu": 2}), scheduler))
    text = told(cluster, "rest", scheduler, "cpu quota exceeded")
    assert "2 cpu quota exceeded: required 2, used 4, quota 4" in text
    assert "rest" not in cluster.running()

    gpu = pool.of(pod("gpu", limits={"cpu": 8, "nvidia.com/gpu": 1}), scheduler)
    assert place(cluster, gpu) in {first, second}, "GPU pods are never limited"

    cluster.api.delete(cluster.path("p0")).expect()
    wait_for("the place that came free is taken", lambda: "rest" in cluster.running())
    assert cluster.pod("rest")["spec"]["nodeName"] == found[0]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_has_no_room_on_gpu_nodes_goes_elsewhere(cluster: Cluster, scheduler: str) -> None:
    """By default full nodes are preferred, so the GPU node is filled first; a node without GPUs has no limit."""
    pool, gpu, cpu = Pool(cluster), unique("gpu"), unique("cpu")
    pool.add(limited(gpu), annotations={LIMIT: "2"})
    pool.add(node(cpu))
    assert place(cluster, pool.of(pod("fits", limits={"cpu": 2}), scheduler)) == gpu
    assert place(cluster, pool.of(pod("rest", limits={"cpu": 2}), scheduler)) == cpu


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_limit_is_followed_from_the_moment_it_is_written(cluster: Cluster, scheduler: str) -> None:
    pool, gpu = Pool(cluster), unique("gpu")
    pool.add(limited(gpu), annotations={LIMIT: "1"})
    cluster.create(pool.of(pod("p", limits={"cpu": 2}), scheduler))
    told(cluster, "p", scheduler, "required 2, used 0, quota 1")
    path = cluster.api.path("v1", "Node", name=gpu)
    cluster.api.patch(path, {"metadata": {"annotations": {LIMIT: "2"}}}).expect()
    wait_for("p runs", lambda: "p" in cluster.running())


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_mgpu_pods_are_packed_onto_one_node(cluster: Cluster, scheduler: str) -> None:
    pool, nodes = Pool(cluster), [unique("share"), unique("share"), unique("share")]
    pool.add(*(mgpu_node(name, cards=2, memory_mib=1024) for name in nodes))
    found = {place(cluster, pool.of(share_pod(f"s{n}", 40, 256), scheduler)) for n in range(4)}
    assert len(found) == 1, "four shares of 40 fit two cards"
    assert place(cluster, pool.of(share_pod("s4", 40, 256), scheduler)) not in found
    record = names.GPU_INDEX_PREFIX + "c"
    cards = sorted(cluster.pod(f"s{n}")["metadata"]["annotations"][record] for n in range(4))
    assert cards == ["0", "0", "1", "1"]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_mgpu_pods_keep_off_nodes_without_room(cluster: Cluster, scheduler: str) -> None:
    """In sum both nodes have enough: only the extender sees that no single card of the first does."""
    pool, full, free = Pool(cluster), unique("share"), unique("share")
    pool.add(mgpu_node(full, cards=2, memory_mib=1024))
    for name in ("a", "b"):
        assert place(cluster, pool.of(share_pod(name, 60, 256), scheduler)) == full
    pool.add(mgpu_node(free, cards=1, memory_mib=1024))
    assert place(cluster, pool.of(share_pod("c", 60, 256), scheduler)) == free


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_node_that_would_be_refused_at_bind_time_is_not_tried_at_all(
    cluster: Cluster, installation: Installation, scheduler: str
) -> None:
    """The plain scheduler likes the node with more CPU best, and stays with it although no card there has room.

    The pods ask for a port of their node, so they are not led to one: whether it is free the scheduler alone knows.
    """
    pool, liked, right = Pool(cluster), unique("share"), unique("share")
    pool.add(mgpu_node(liked, cards=2, memory_mib=1024))
    for name in ("a", "b"):
        assert place(cluster, pool.of(share_pod(name, 60, 256), scheduler)) == liked
    small = mgpu_node(right, cards=1, memory_mib=1024)
    small["status"]["allocatable"]["cpu"] = "2"
    pool.add(small)

    def asking(name: str, by: str) -> Object:
        item = pool.of(share_pod(name, 60, 256), by)
        container = item["spec"]["containers"][0]
        container["resources"]["limits"]["cpu"] = "1"
        container["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
        return item

    def refused() -> float:
        page = installation.metrics("controller")
        return samples(page, "cardquota_binds_total", verdict="denied", reason=reasons.MGPU_NO_ROOM)

    before = refused()
    cluster.create(asking("plain", PLAIN))
    wait_for("the plain scheduler has tried three times", lambda: refused() >= before + 3)
    assert f"(node {liked})" in told(cluster, "plain", PLAIN, f"[{reasons.MGPU_NO_ROOM}]")
    assert not cluster.pod("plain")["spec"].get("nodeName"), "although the other node has room"
    told_so = cluster.wait_said("plain", reasons.MGPU_NODE_FULL)
    assert f"node {liked} has no room for the pod" in told_so
    assert f"room is on {right}." in told_so
    cluster.api.delete(cluster.path("plain")).expect()

    before = refused()
    assert place(cluster, asking("led", scheduler)) == right
    assert refused() == before


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_pods_of_a_daemon_set_count_and_are_never_refused(cluster: Cluster, scheduler: str) -> None:
    pool, gpu = Pool(cluster), unique("gpu")
    pool.add(limited(gpu), annotations={LIMIT: "1"})
    labels = {"app": "agent"}
    item = pool.of(pod("agent", limits={"cpu": 2}), scheduler)
    template = {"metadata": {"labels": labels}, "spec": item["spec"]}
    daemons = {"selector": {"matchLabels": labels}, "template": template}
    cluster.create(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": daemons}
    )
    wait_for("the agent runs", lambda: len(cluster.running()) == 1)
    cluster.create(pool.of(pod("p", limits={"cpu": 1}), scheduler))
    told(cluster, "p", scheduler, "required 1, used 2, quota 1")


def test_while_nobody_answers_no_pod_is_placed_unless_the_scheduler_may_do_without(cluster: Cluster) -> None:
    pool, gpu = Pool(cluster), unique("gpu")
    pool.add(limited(gpu), annotations={LIMIT: "1"})
    cluster.create(pool.of(pod("strict", limits={"cpu": 2}), STRICT))
    told(cluster, "strict", STRICT, "connection refused")
    assert place(cluster, pool.of(pod("lenient", limits={"cpu": 2}), LENIENT)) == gpu
    assert "strict" not in cluster.running()


# -- what is said where it is written ---------------------------------------------------------------------------------


def test_a_limit_that_cannot_be_read_is_refused_and_the_node_can_still_be_written(cluster: Cluster) -> None:
    name = unique("gpu")
    cluster.add_nodes(limited(name))
    path = cluster.api.path("v1", "Node", name=name)
    refused = cluster.api.patch(path, {"metadata": {"annotations": {LIMIT: "many"}}})
    assert refused.status == 400
    assert f"metadata.annotations[{LIMIT}]: Invalid value" in refused.body["message"]
    created = limited(unique("gpu"))
    created["metadata"]["annotations"] = {"volcano.sh/crossquota-percentage-cpu": "50%"}
    assert cluster.api.create(created).status == 400
    cluster.api.patch(path, {"metadata": {"annotations": {LIMIT: "4"}, "labels": {"a": "b"}}}).expect()
    cluster.api.patch(path, {"metadata": {"annotations": {LIMIT: None}}}).expect()


def test_only_nodes_whose_limits_change_are_sent(cluster: Cluster, installation: Installation) -> None:
    def sent() -> float:
        page = installation.metrics("webhook")
        return samples(page, "cardquota_admission_requests_total", path="/validate/nodes")

    name, before = unique("gpu"), sent()
    created = limited(name)
    created["metadata"]["annotations"] = {LIMIT: "4"}
    cluster.add_nodes(created)
    assert sent() == before + 1
    path = cluster.api.path("v1", "Node", name=name)
    cluster.api.patch(path, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}).expect()
    assert sent() == before + 1, "neither this nor the kubelet's own writes"
    cluster.api.patch(path, {"metadata": {"annotations": {LIMIT: "5"}}}).expect()
    assert sent() == before + 2


def test_an_unknown_strategy_is_warned_about(cluster: Cluster) -> None:
    for text, warned in (("spread", True), ("least-allocated", False)):
        item = pod(text, annotations={names.CROSSQUOTA_STRATEGY_ANNOTATION: text}, schedulerName="nobody")
        done = cluster.plane.kubectl(
            "create", "-f", "-", f"--namespace={cluster.namespace}", stdin=json.dumps(item)
        )
        assert ("Warning: " in done.stderr) is warned
        assert ("most-allocated is used" in done.stderr) is warned


# -- the plain port ---------------------------------------------------------------------------------------------------


def test_nobody_votes_for_jobs_that_are_not_there(cluster: Cluster, installation: Installation) -> None:
    """The attack: a process on the pod network asks for made-up jobs, and would hold a queue's room by each that was let in."""
    card, name = cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 1})))
    real, other = (podgroup(each, name, 1) for each in ("real", "other"))
    for group in (real, other):
        group["metadata"]["annotations"] = {names.CARD_REQUEST_ANNOTATION: json.dumps({card: 1})}
        group["metadata"]["ownerReferences"] = [JOB_OUT_OF_REACH]
    (stored, second) = cluster.create(real, other)

    def vote(group: Object) -> int:
        status: int = asked_plainly(
            installation, "/volcano/jobEnqueueable", json.dumps({"job": {"PodGroup": group}}).encode()
        )["status"]
        return status

    made_up = {**stored, "metadata": {**stored["metadata"], "name": "made-up"}}
    former = {**stored, "metadata": {**stored["metadata"], "uid": "of-another-one"}}
    # Who was let in holds the only card; what is made up is not even judged.
    wait_for("both groups are in view", lambda: vote(stored) == PERMIT and vote(second) == REJECT)
    assert [vote(each) for each in (made_up, former)] == [ABSTAIN, ABSTAIN]
    path = cluster.api.path("scheduling.volcano.sh/v1beta1", "PodGroup", cluster.namespace, "real")
    cluster.api.delete(path).expect()
    wait_for("it is out of view", lambda: vote(stored) == ABSTAIN)
    assert [vote(each) for each in (made_up, former, second)] == [ABSTAIN, ABSTAIN, PERMIT]


def asked_plainly(installation: Installation, path: str, body: bytes) -> Any:
    """The answer at the port of Volcano's scheduler, which anybody gets who reaches it."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(
        urllib.request.Request(f"{installation.extender_url(0)}{path}", body), timeout=10
    ) as answer:
        return json.load(answer)


def test_volcano_is_answered_over_plain_http(installation: Installation) -> None:
    """The recorded question: one core, on a node where four are in use; that node has as many as it likes."""
    body = (RECORDED / "volcano-predicate.json").read_bytes()
    assert asked_plainly(installation, "/volcano/predicate", body) == {"status": "", "code": 0}
    metrics = installation.metrics("controller")
    path = {"path": "/volcano/predicate", "outcome": "answered"}
    assert samples(metrics, "cardquota_extender_requests_total", **path) >= 1
