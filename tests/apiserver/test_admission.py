"""The installed webhook as users meet it: kubectl, the real API server, the real chart."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core import names
from hack.controlplane import ApiClient, ControlPlane, wait_for
from hack.controlplane.nodes import h200_node
from hack.install import Installation

H200 = "NVIDIA-H200"
NODE = "admission-h200"


@pytest.fixture(scope="module")
def card_node(control_plane: ControlPlane) -> Iterator[None]:
    """A node that makes the card known."""
    control_plane.add_nodes(h200_node(NODE))
    yield
    control_plane.api.delete(control_plane.api.path("v1", "Node", name=NODE)).expect()


@pytest.fixture(scope="class")
def installation(control_plane: ControlPlane, card_node: None) -> Iterator[Installation]:
    """The chart with its webhook and without a controller."""
    del card_node
    with Installation(control_plane, controller=0) as installed:
        _wait_until_nodes_are_seen(control_plane)
        yield installed


@pytest.fixture(scope="class")
def unguarded(control_plane: ControlPlane, card_node: None) -> Iterator[Installation]:
    """The chart without its policies: the webhook protects what they would."""
    del card_node
    values = {"policies": {"enabled": False}}
    with Installation(control_plane, values=values, controller=0) as installed:
        yield installed


def _wait_until_nodes_are_seen(plane: ControlPlane) -> None:
    """The webhook is ready before it has listed nodes, and leaves out until then what needs them."""
    probe = a_pod("default", "probe", {names.CARD_NAME_ANNOTATION: H200})
    path = plane.api.path_of(probe, collection=True)
    wait_for(
        "the webhook has seen the node",
        lambda: plane.api.request("POST", f"{path}?dryRun=All", probe).status == 400,
    )


def a_pod(
    namespace: str,
    name: str,
    annotations: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    resources = {"limits": dict(limits or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "c", "image": "none", "resources": resources}], **spec},
    }


def a_card_pod(namespace: str, name: str, card: str = H200, **more: Any) -> dict[str, Any]:
    return a_pod(namespace, name, {names.CARD_NAME_ANNOTATION: card}, {"nvidia.com/gpu": "1"}, **more)


def a_queue(name: str, quota: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": {names.CARD_QUOTA_ANNOTATION: quota}},
        "spec": {"weight": 1},
    }


def a_deployment(namespace: str, card: str) -> dict[str, Any]:
    pod = a_card_pod(namespace, "x", card)
    labels = {"app": "d"}
    template = {"metadata": {**pod["metadata"], "labels": labels}, "spec": pod["spec"]}
    del template["metadata"]["name"], template["metadata"]["namespace"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def gates(pod: Mapping[str, Any]) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


class Kubectl:
    """kubectl as the administrator, fed from a file."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder

    def create(self, thing: Mapping[str, Any], *flags: str, verb: str = "create") -> tuple[int, str, str]:
        """Exit status, standard output and standard error."""
        file = self._folder / "thing.json"
        file.write_text(json.dumps(thing), "utf-8")
        done = self._plane.kubectl(verb, "-f", str(file), *flags, check=False)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def kubectl(control_plane: ControlPlane, tmp_path: Path) -> Kubectl:
    return Kubectl(control_plane, tmp_path)


@pytest.mark.usefixtures("installation")
class TestWithPolicies:
    """The chart as it comes."""

    def test_a_card_pod_is_stored_with_gate_and_label(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        stored = control_plane.api.create(a_card_pod(namespace, "a")).expect(201)
        assert gates(stored) == [names.GATE]
        assert stored["metadata"]["labels"] == {names.MANAGED_LABEL: "true"}

    def test_other_gates_and_labels_stay(self, control_plane: ControlPlane, namespace: str) -> None:
        pod = a_card_pod(namespace, "a", schedulingGates=[{"name": "example.com/x"}])
        pod["metadata"]["labels"] = {"app": "x"}
        stored = control_plane.api.create(pod).expect(201)
        assert gates(stored) == ["example.com/x", names.GATE]
        assert stored["metadata"]["labels"] == {"app": "x", names.MANAGED_LABEL: "true"}

    @pytest.mark.parametrize(
        "pod",
        [
            a_pod("", "plain"),
            a_pod("", "empty", {names.CARD_NAME_ANNOTATION: ""}),
            a_card_pod("", "foreign", schedulerName="somebody"),
        ],
        ids=lambda pod: pod["metadata"]["name"],
    )
    def test_a_pod_that_is_none_of_ours_is_stored_as_it_is(
        self, control_plane: ControlPlane, namespace: str, pod: dict[str, Any]
    ) -> None:
        own = {**pod, "metadata": {**pod["metadata"], "namespace": namespace}}
        stored = control_plane.api.create(own).expect(201)
        assert gates(stored) == []
        assert "labels" not in stored["metadata"]

    def test_a_refusal_names_file_object_field_and_fault_on_one_line(
        self, kubectl: Kubectl, namespace: str
    ) -> None:
        """With 422 the file's name would be missing; this is what 400 with its reason gives."""
        status, _, text = kubectl.create(a_card_pod(namespace, "bad", "A||B"))
        first = text.splitlines()[0]
        assert status == 1
        assert first.startswith("Error from server (BadRequest): error when creating ")
        assert 'admission webhook "pods.cardquota.io" denied the request: ' in first
        assert f"Pod {namespace}/bad is refused: metadata.annotations[{names.CARD_NAME_ANNOTATION}]" in first

    def test_every_fault_has_its_own_line(self, kubectl: Kubectl, namespace: str) -> None:
        limits = {names.MGPU_CORE: "120", names.MGPU_MEMORY: "100"}
        status, _, text = kubectl.create(a_pod(namespace, "bad", {names.CARD_NAME_ANNOTATION: "A|"}, limits))
        assert status == 1
        assert names.CARD_NAME_ANNOTATION in text.splitlines()[0]
        assert names.MGPU_CORE in text.splitlines()[1]

    def test_the_answer_carries_the_codes_of_the_catalogue(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        answer = control_plane.api.create(a_pod(namespace, "bad", {names.CARD_NAME_ANNOTATION: H200}))
        assert answer.status == 400
        assert answer.body["reason"] == "BadRequest"
        assert [cause["reason"] for cause in answer.body["details"]["causes"]] == ["CardResourceMissing"]

    def test_a_node_name_is_forbidden(self, control_plane: ControlPlane, namespace: str) -> None:
        answer = control_plane.api.create(a_card_pod(namespace, "bound", nodeName=NODE))
        assert (answer.status, answer.body["reason"]) == (403, "Forbidden")

    def test_an_unknown_card_is_warned_about_and_stored(self, kubectl: Kubectl, namespace: str) -> None:
        status, _, text = kubectl.create(a_card_pod(namespace, "odd", "NVIDIA-H2OO"))
        assert status == 0
        assert text.startswith("Warning: ")
        assert "NVIDIA-H2OO" in text
        assert "did you mean NVIDIA-H200?" in text

    def test_what_the_queue_could_never_serve_is_warned_about_and_stored(
        self, control_plane: ControlPlane, kubectl: Kubectl, namespace: str
    ) -> None:
        api = control_plane.api
        path = api.path_of(api.create(a_queue("tiny", '{"NVIDIA-H200": 0}')).expect(201))
        try:
            pod, missing = a_card_pod(namespace, "a"), a_card_pod(namespace, "b")
            pod["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION] = "tiny"
            missing["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION] = "nowhere"
            wait_for(
                "the webhook has seen the queue",
                lambda: "tiny has no quota" in kubectl.create(pod, "--dry-run=server")[2],
            )
            for thing, words in ((pod, "queue tiny has no quota for"), (missing, '"nowhere"')):
                status, _, text = kubectl.create(thing)
                assert status == 0
                assert text.startswith("Warning: ")
                assert words in text.splitlines()[0]
        finally:
            api.delete(path).expect()

    def test_a_dry_run_shows_the_gate_and_stores_nothing(
        self, control_plane: ControlPlane, kubectl: Kubectl, namespace: str
    ) -> None:
        status, shown, _ = kubectl.create(a_card_pod(namespace, "dry"), "--dry-run=server", "-o", "json")
        assert status == 0
        assert gates(json.loads(shown)) == [names.GATE]
        assert control_plane.api.get(control_plane.api.path("v1", "Pod", namespace, "dry")).status == 404

    def test_a_bad_template_is_refused_at_apply_and_a_scale_is_not(
        self, control_plane: ControlPlane, kubectl: Kubectl, namespace: str
    ) -> None:
        status, _, text = kubectl.create(a_deployment(namespace, "A||B"), verb="apply")
        assert status == 1
        assert "spec.template.metadata.annotations[volcano.sh/card.name]" in text
        stored = control_plane.api.create(a_deployment(namespace, H200)).expect(201)
        path = control_plane.api.path_of(stored)
        control_plane.api.patch(path, {"spec": {"replicas": 1}}).expect()
        annotations = {names.CARD_NAME_ANNOTATION: "A |B"}
        broken = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
        assert control_plane.api.patch(path, broken).status == 400

    def test_the_misspelt_quota_is_refused_in_readable_words(
        self, control_plane: ControlPlane, kubectl: Kubectl
    ) -> None:
        for quota, word in (('{"NVIDIA-H200": "3"}', "integer"), ('{"NVIDIA-H200": 3', "JSON")):
            status, _, text = kubectl.create(a_queue("misspelt", quota))
            assert status == 1
            assert "Queue misspelt is refused: " in text.splitlines()[0]
            assert word in text.splitlines()[0]
        stored = control_plane.api.create(a_queue("spelt", '{"NVIDIA-H200": 3}')).expect(201)
        control_plane.api.delete(control_plane.api.path_of(stored)).expect()

    def test_keys_of_ours_survive_a_scheduler_that_replaces_the_status(
        self, control_plane: ControlPlane
    ) -> None:
        api = control_plane.api
        path = api.path_of(api.create(a_queue("kept", '{"NVIDIA-H200": 3}')).expect(201))
        try:
            ours = {"status": {"allocated": {H200: "2"}}}
            api.patch(f"{path}/status", ours, fieldManager=names.FIELD_MANAGER).expect()
            for cpu in ("1", "2"):
                queue = {**api.get(path).expect(), "status": {"state": "Open", "allocated": {"cpu": cpu}}}
                stored = api.replace(queue, subresource="status").expect()
                assert stored["status"]["allocated"] == {"cpu": cpu, H200: "2"}
            gone = {**api.get(path).expect(), "status": {"state": "Open", "allocated": {}}}
            assert api.replace(gone, subresource="status").expect()["status"]["allocated"] == {H200: "2"}
            nothing = {"status": {"allocated": {H200: None}}}
            last = api.patch(f"{path}/status", nothing, fieldManager=names.FIELD_MANAGER).expect()
            assert H200 not in last["status"].get("allocated", {})
        finally:
            api.delete(path).expect()

    def test_a_card_name_may_change_while_gated_and_is_judged(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        path = control_plane.api.path_of(control_plane.api.create(a_card_pod(namespace, "a")).expect(201))
        for card, status in (("NVIDIA-H200|NVIDIA-H800", 200), ("A||B", 400)):
            patch = {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: card}}}
            assert control_plane.api.patch(path, patch).status == status

    def test_the_process_counts_what_it_answered(
        self, control_plane: ControlPlane, installation: Installation, namespace: str
    ) -> None:
        control_plane.api.create(a_card_pod(namespace, "counted")).expect(201)
        text = installation.metrics("webhook")
        wanted = 'cardquota_admission_requests_total{code="",path="/mutate/pods",verdict="patched"}'
        assert any(line.startswith(wanted) and float(line.split()[-1]) >= 1 for line in text.splitlines())
        assert 'code="500"' not in text


@pytest.mark.usefixtures("unguarded")
class TestWithoutPolicies:
    """`policies.enabled: false`: the webhook guards the gate and the records."""

    @pytest.fixture
    def tenant_client(self, control_plane: ControlPlane, tenant: Path) -> Iterator[ApiClient]:
        with closing(control_plane.client(tenant)) as client:
            yield client

    @pytest.fixture
    def waiting(self, control_plane: ControlPlane, namespace: str) -> str:
        """The path of a pod at the gate."""
        stored = control_plane.api.create(a_card_pod(namespace, "a")).expect(201)
        assert gates(stored) == [names.GATE]
        return control_plane.api.path_of(stored)

    def test_nobody_but_the_controller_lifts_the_gate(
        self, control_plane: ControlPlane, unguarded: Installation, tenant_client: ApiClient, waiting: str
    ) -> None:
        lift = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
        for client in (tenant_client, control_plane.api):
            answer = client.patch(waiting, lift, "json")
            assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
            assert names.GATE in answer.body["message"]
        account = control_plane.service_account_kubeconfig(unguarded.namespace, "cardquota-controller")
        with closing(control_plane.client(account)) as controller:
            assert gates(controller.patch(waiting, lift, "json").expect()) == []

    def test_records_are_not_written_by_way_of_pod_or_status(
        self, control_plane: ControlPlane, namespace: str, waiting: str
    ) -> None:
        for key in (names.ASSIGNED_ANNOTATION, names.ASSUMED_ANNOTATION, f"{names.GPU_INDEX_PREFIX}c"):
            patch = {"metadata": {"annotations": {key: "0"}}}
            for path in (waiting, f"{waiting}/status"):
                answer = control_plane.api.patch(path, patch)
                assert answer.status == 403, answer.body
                assert key in answer.body["message"]
            assert control_plane.api.create(a_pod(namespace, "forged", {key: "0"})).status == 403

    def test_everything_else_passes(self, tenant_client: ApiClient, waiting: str) -> None:
        patch = {"metadata": {"annotations": {"example.com/note": "x"}, "labels": {"app": "x"}}}
        tenant_client.patch(waiting, patch).expect()
        tenant_client.delete(waiting).expect()
