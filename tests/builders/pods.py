"""The builder of pods and of pod templates."""

import json
from collections.abc import Mapping
from typing import Self

from core import names
from core.objects import Pod, pod
from tests.builders.raw import Builder, Json

GPU = "nvidia.com/gpu"
Amount = int | str


class PodBuilder(Builder):
    """A pod; `main` is the container of everything that names none."""

    def container(
        self,
        name: str = "main",
        *,
        limits: Mapping[str, Amount] | None = None,
        requests: Mapping[str, Amount] | None = None,
    ) -> Self:
        """Adds the container, or lays the amounts over those of the container of that name."""
        return self._container("containers", name, limits, requests, {})

    def init_container(
        self,
        name: str,
        *,
        limits: Mapping[str, Amount] | None = None,
        requests: Mapping[str, Amount] | None = None,
        sidecar: bool = False,
    ) -> Self:
        """An init container; a sidecar is one that restarts always."""
        extra = {"restartPolicy": "Always"} if sidecar else {}
        return self._container("initContainers", name, limits, requests, extra)

    def _container(
        self,
        kind: str,
        name: str,
        limits: Mapping[str, Amount] | None,
        requests: Mapping[str, Amount] | None,
        extra: Json,
    ) -> Self:
        present: list[Json] = self.raw["spec"].get(kind, [])
        old = next((entry for entry in present if entry["name"] == name), None)
        before = (old or {}).get("resources", {})
        resources = {
            key: {**before.get(key, {}), **(more or {})}
            for key, more in (("limits", limits), ("requests", requests))
            if more or key in before
        }
        new = {"image": "busybox", **(old or {"name": name}), **extra}
        new |= {"resources": resources} if resources else {}
        entries = [new if entry["name"] == name else entry for entry in present]
        return self.put("spec", kind, value=entries if old is not None else [*present, new])

    def limit(self, resource: str, amount: Amount, *, container: str = "main") -> Self:
        return self.container(container, limits={resource: amount})

    def request(self, resource: str, amount: Amount, *, container: str = "main") -> Self:
        return self.container(container, requests={resource: amount})

    def gpu(self, count: Amount, *, container: str = "main") -> Self:
        """Whole NVIDIA GPUs."""
        return self.limit(GPU, count, container=container)

    def mgpu(
        self, container: str = "main", *, core: Amount | None = None, memory: Amount | None = None
    ) -> Self:
        """A share of cards; a key that is None stays absent. The container is added when it is new."""
        amounts = {names.MGPU_CORE: core, names.MGPU_MEMORY: memory}
        return self.container(
            container, limits={key: value for key, value in amounts.items() if value is not None}
        )

    def only(self, *containers: str) -> Self:
        """Drops all other containers, so that `a_pod().mgpu("c1", core=30).only("c1")` has one."""
        kept = [entry for entry in self.raw["spec"]["containers"] if entry["name"] in containers]
        return self.put("spec", "containers", value=kept)

    def cards_per_container(self, *counts: int) -> Self:
        return self.annotation(names.MGPU_MULTIPLE_ANNOTATION, ",".join(map(str, counts)))

    def led_to(self, node: str) -> Self:
        """Lifted, with room booked on this node."""
        return self.annotation(names.NODE_ANNOTATION, node)

    def nominated_for(self, node: str) -> Self:
        """Lifted, with room booked on this node, and free to go to others."""
        return self.annotation(names.NOMINATED_ANNOTATION, node)

    def host_port(self, port: int) -> Self:
        """With a port of the node, which not every node has free."""
        first, *others = self.raw["spec"]["containers"]
        return self.put("spec", "containers", value=[{**first, "ports": [{"hostPort": port}]}, *others])

    def mgpu_policy(self, policy: str) -> Self:
        return self.annotation(names.MGPU_POLICY_KEY, policy)

    def card(self, expression: str) -> Self:
        return self.annotation(names.CARD_NAME_ANNOTATION, expression)

    def assigned(self, record: Mapping[str, int] | str) -> Self:
        """The controller's record: a mapping, or the text as it stands."""
        text = record if isinstance(record, str) else json.dumps(dict(record))
        return self.annotation(names.ASSIGNED_ANNOTATION, text)

    def recorded(self, records: Mapping[str, str]) -> Self:
        """With the annotations of a lift."""
        built = self
        for key, text in records.items():
            built = built.annotation(key, text)
        return built

    def together(self, count: int) -> Self:
        """On record as one of so many that were let in together."""
        return self.annotation(names.GANG_ANNOTATION, str(count))

    def charged(self, queue: str) -> Self:
        """On record for a queue."""
        return self.annotation(names.CHARGED_QUEUE_ANNOTATION, queue)

    def in_queue(self, queue: str) -> Self:
        return self.annotation(names.QUEUE_NAME_ANNOTATION, queue)

    def in_group(self, group: str) -> Self:
        return self.annotation(names.GROUP_NAME_ANNOTATION, group)

    def in_scheduling_group(self, group: str) -> Self:
        """As a member of a PodGroup of Kubernetes itself."""
        return self.put("spec", "schedulingGroup", value={"podGroupName": group})

    def in_gang(self, name: str, size: int | str, *, owner: str = "") -> Self:
        """By its own annotations, as a pod of the Job `owner` where one is named."""
        pod = self.annotation(names.GANG_NAME_ANNOTATION, name).annotation(
            names.GANG_SIZE_ANNOTATION, str(size)
        )
        return pod.owned_by("Job", owner, api_version="batch/v1") if owner else pod

    def recorded_in_gang(self) -> Self:
        """On record as a member of the gang that it belongs to now."""
        key = self.put("spec", "schedulingGates", value=[{"name": names.GATE}]).view().group_key
        assert key
        return self.annotation(names.GANG_OF_ANNOTATION, key)

    def task(self, name: str) -> Self:
        return self.annotation(names.TASK_SPEC_ANNOTATION, name)

    def claim(self, entry: str, *, name: str = "", template: str = "") -> Self:
        """An entry of spec.resourceClaims, by the name of a claim or of a template."""
        reference = {"resourceClaimName": name} if name else {"resourceClaimTemplateName": template}
        return self.add("spec", "resourceClaims", item={"name": entry, **reference})

    def generated_claim(self, entry: str, claim: str) -> Self:
        """The status line that names the claim made from a template."""
        return self.add("status", "resourceClaimStatuses", item={"name": entry, "resourceClaimName": claim})

    def gated(self, *others: str) -> Self:
        """Our gate and label, as the webhook leaves them; other gates come first."""
        gates = [{"name": name} for name in (*others, names.GATE)]
        return self.put("spec", "schedulingGates", value=gates).label(names.MANAGED_LABEL, "true")

    def of_deployment(self, name: str, template_hash: str) -> Self:
        """A pod of the ReplicaSet that the Deployment has for one state of its template."""
        built = self.owned_by("ReplicaSet", f"{name}-{template_hash}")
        return built.label(names.TEMPLATE_HASH_LABEL, template_hash)

    def written_by(self, manager: str, time: str) -> Self:
        """One more entry of the writers that the API server notes."""
        return self.add("metadata", "managedFields", item={"manager": manager, "time": time})

    def bound_to(self, node: str, *, phase: str = "Running") -> Self:
        """On a node; without gates, and running unless another phase is named."""
        spec = {key: value for key, value in self.raw["spec"].items() if key != "schedulingGates"}
        return self.put("spec", value={**spec, "nodeName": node}).phase(phase)

    def phase(self, phase: str) -> Self:
        return self.put("status", "phase", value=phase)

    def condition(self, kind: str, status: str, since: str) -> Self:
        """A condition of its status, besides those that it has."""
        item = {"type": kind, "status": status, "lastTransitionTime": since}
        return self.add("status", "conditions", item=item)

    def started(self, container: str = "main") -> Self:
        """The kubelet has run the container."""
        return self.add("status", "containerStatuses", item={"name": container, "started": True})

    def scheduler(self, name: str) -> Self:
        return self.put("spec", "schedulerName", value=name)

    def priority(self, value: int) -> Self:
        return self.put("spec", "priority", value=value)

    def preempting_nobody(self) -> Self:
        """As admission writes it where the priority class says so."""
        return self.put("spec", "preemptionPolicy", value="Never")

    def selects(self, label: str, value: str) -> Self:
        """A node selector."""
        return self.put("spec", "nodeSelector", label, value=value)

    def needs_node(self, label: str, *values: str) -> Self:
        """One required node affinity term: label In values."""
        term = {"matchExpressions": [{"key": label, "operator": "In", "values": list(values)}]}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        return self.add("spec", "affinity", "nodeAffinity", required, "nodeSelectorTerms", item=term)

    def mirror(self) -> Self:
        """The API's image of a static pod."""
        return self.annotation(names.MIRROR_POD_ANNOTATION, "hash")

    def template(self) -> Json:
        """The pod template of a workload: labels, annotations and spec, no name."""
        built = self.build()
        kept = {key: value for key, value in built["metadata"].items() if key in ("labels", "annotations")}
        return {"metadata": kept, "spec": built["spec"]}

    def view(self) -> Pod:
        return pod.project(self.build())
