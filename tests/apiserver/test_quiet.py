"""What others do not notice of us, and what users read when they made a mistake."""

import json
from pathlib import Path

import pytest

from core import names
from hack.controlplane import wait_for
from hack.controlplane.nodes import gpu_node, mig_mps_node, node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, gates, samples, unique
from tests.apiserver.manifests import card_pod, deployment, pod, queue, share_pod

REQUESTS = "cardquota_admission_requests_total"


def requests(installation: Installation, **labels: str) -> float:
    """How many requests the webhook has answered so far."""
    return samples(installation.metrics("webhook"), REQUESTS, **labels)


def a_huge_pod() -> Object:
    """As many containers, variables and annotations as a large one has, none of them ours."""
    containers = [
        {
            "name": f"c{number}",
            "image": "none",
            "env": [{"name": f"E{index}", "value": "x" * 50} for index in range(50)],
            "resources": {"limits": {"cpu": "10m", "memory": "10Mi", "ephemeral-storage": "1Mi"}},
        }
        for number in range(100)
    ]
    notes = {f"example.com/note-{number}": "x" * 100 for number in range(1000)}
    return pod(
        "huge", annotations=notes, containers=containers, initContainers=[{**containers[0], "name": "i"}]
    )


class TestCpuPods:
    """Nothing of ours is asked for: the webhook is not called, the pods are stored as they are and run."""

    def test_their_whole_life_costs_the_webhook_no_request(
        self, cluster: Cluster, installation: Installation
    ) -> None:
        cluster.add_nodes(node(unique("cpu")))
        before = requests(installation)
        initial = [{"name": "i", "image": "none", "resources": {"limits": {"cpu": "1"}}}]
        cluster.create(pod("plain", limits={"cpu": "1"}), pod("init", initContainers=initial), a_huge_pod())
        cluster.create(deployment("d", pod("x", limits={"cpu": "1"}), 3))
        wait_for("six pods run", lambda: len(cluster.running()) == 6)
        for stored in cluster.pods().values():
            assert gates(stored) == []
            assert names.MANAGED_LABEL not in stored["metadata"].get("labels", {})
        note = {"metadata": {"annotations": {"example.com/note": "x"}, "labels": {"app": "x"}}}
        cluster.api.patch(cluster.path("plain"), note).expect()
        cluster.api.patch(f"{_deployment(cluster)}/scale", {"spec": {"replicas": 1}}).expect()
        cluster.api.delete(cluster.path("init")).expect()
        wait_for("three are left", lambda: len(cluster.running()) == 3)
        assert requests(installation) == before


def _deployment(cluster: Cluster) -> str:
    return f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/d"


class TestDeployments:
    """Pods with cards by way of a controller."""

    def test_scaling_sends_the_new_pods_and_nothing_else(
        self, cluster: Cluster, installation: Installation
    ) -> None:
        """The template is judged when it is made, by Deployment and by ReplicaSet, and never again."""
        card, name = unique("CARD"), unique("q")
        cluster.add_nodes(gpu_node(unique("node"), product=card, cards=8, memory_mib=143771))
        cluster.create_queue(queue(name, json.dumps({card: 4})))
        workloads = requests(installation, path="/validate/workloads")
        cluster.create(deployment("d", card_pod("x", card, name), 1))
        wait_for("one pod runs", lambda: len(cluster.running()) == 1)
        assert requests(installation, path="/validate/workloads") == workloads + 2
        before, pods = requests(installation), requests(installation, path="/mutate/pods")
        cluster.api.patch(f"{_deployment(cluster)}/scale", {"spec": {"replicas": 3}}).expect()
        wait_for("three pods run", lambda: len(cluster.running()) == 3)
        note = {"metadata": {"annotations": {"example.com/note": "x"}}}
        cluster.api.patch(_deployment(cluster), note).expect()
        cluster.api.patch(_deployment(cluster), {"spec": {"replicas": 0}}).expect()
        wait_for("all are gone", lambda: not cluster.pods())
        assert requests(installation, path="/mutate/pods") == pods + 2
        assert requests(installation) == before + 4

    def test_a_wrong_template_is_refused_where_it_is_applied(self, cluster: Cluster, tmp_path: Path) -> None:
        """Every mistake with its place in the Deployment; nothing of it is stored."""
        bad = deployment("d", pod("x", annotations={names.CARD_NAME_ANNOTATION: "A||B"}), 1)
        bad["spec"]["template"]["spec"]["containers"].append(
            share_pod("y", 120, 1024)["spec"]["containers"][0]
        )
        bad["spec"]["template"]["spec"]["containers"][1]["name"] = "second"
        start, *rest = refusal(cluster, bad, tmp_path).splitlines()
        assert start == (
            'Error from server (BadRequest): error when creating "thing.json": '
            'admission webhook "workloads.cardquota.io" denied the request: '
            f"Deployment {cluster.namespace}/d is refused: "
            "spec.template.metadata.annotations[volcano.sh/card.name]: "
            'Invalid value: "A||B": has an empty alternative: | stands between two card names;'
        )
        assert rest == [
            (
                "  spec.template.spec.containers[1].resources.limits[vke.volcengine.com/mgpu-core]: "
                'Invalid value: "120": container "second": vke.volcengine.com/mgpu-core above 100 must be a multiple '
                "of 100"
            )
        ]
        assert cluster.api.get(_deployment(cluster)).status == 404


def refusal(cluster: Cluster, thing: Object, folder: Path) -> str:
    """What `kubectl apply` says of an object that is refused; the name of the file is left out."""
    file = folder / "thing.json"
    file.write_text(json.dumps(thing), "utf-8")
    done = cluster.plane.kubectl("apply", f"--namespace={cluster.namespace}", "-f", str(file), check=False)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.replace(str(file), "thing.json")


class TestWordsOfARefusal:
    """The mistakes that everybody makes, as they look in a terminal: one line with object, field, value and remedy."""

    START = 'Error from server (BadRequest): error when creating "thing.json": admission webhook '

    def test_more_than_a_card_but_not_whole_cards(self, cluster: Cluster, tmp_path: Path) -> None:
        assert refusal(cluster, share_pod("notebook", 120, 1024), tmp_path) == (
            f'{self.START}"pods.cardquota.io" denied the request: Pod {cluster.namespace}/notebook is refused: '
            'spec.containers[0].resources.limits[vke.volcengine.com/mgpu-core]: Invalid value: "120": '
            'container "c": vke.volcengine.com/mgpu-core above 100 must be a multiple of 100\n'
        )

    @pytest.mark.parametrize(
        ("quota", "words"),
        [
            (
                '{"NVIDIA-H200": "3"}',
                (
                    'metadata.annotations[volcano.sh/card.quota][NVIDIA-H200]: Invalid value: "3": '
                    "must be an integer number of cards, written without quotes"
                ),
            ),
            (
                '{"NVIDIA-H200" 3}',
                (
                    'metadata.annotations[volcano.sh/card.quota]: Invalid value: "{\\"NVIDIA-H200\\" 3}": is not valid '
                    "JSON: Expecting ':' delimiter at character 16; write a JSON object, such as "
                    '{"NVIDIA-H200": 8}'
                ),
            ),
        ],
        ids=["quotes", "colon"],
    )
    def test_a_misspelt_quota(self, cluster: Cluster, tmp_path: Path, quota: str, words: str) -> None:
        assert refusal(cluster, queue("research", quota), tmp_path) == (
            f'{self.START}"queues.cardquota.io" denied the request: Queue research is refused: {words}\n'
        )

    def test_a_choice_between_different_resources(self, cluster: Cluster, tmp_path: Path) -> None:
        cluster.add_nodes(mig_mps_node(unique("a100")))
        both = "NVIDIA-A100-80GB|NVIDIA-A100-80GB/mps-80g*1/8"
        thing = card_pod("either", both, "q")
        wait_for("the webhook knows the node", lambda: cluster.try_create(thing, dryRun="All").status == 400)
        assert refusal(cluster, thing, tmp_path) == (
            f'{self.START}"pods.cardquota.io" denied the request: Pod {cluster.namespace}/either is refused: '
            f'metadata.annotations[volcano.sh/card.name]: Invalid value: "{both}": '
            "all alternatives must be served by the same resource, but NVIDIA-A100-80GB needs nvidia.com/gpu, "
            "NVIDIA-A100-80GB/mps-80g*1/8 needs nvidia.com/gpu.shared\n"
        )
