"""What an API server makes of requests: permissions, admission as the chart sets it up, its own rules for pods.

No process, no network: plain JSON in memory, judged by the functions of `core.admission` that webhook and policies share. What
is particular to CEL and to the real API server is shown by the tests on the real one.
"""

from collections.abc import Mapping
from typing import Any, Final

from core import names, reasons
from core.admission import pods as pod_rules
from core.admission import protection
from core.admission.dispatch import creation_of, resource_of, review
from core.admission.request import UPDATE, AdmissionRequest, ClusterView, Context
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from core.objects import device_class, namespace, node, queue
from core.objects import raw as read
from core.objects.draft import Draft
from core.objects.pod_resources import extended
from core.settings import Settings
from core.violations import Findings
from tests.adversary import jsonpatch
from tests.builders.raw import Json, copied

HOME: Final = "ml"
"""The namespace of the tenant, and of all builders."""
TENANT: Final = f"system:serviceaccount:{HOME}:tenant"
ADMIN: Final = "admin"
CONTROLLER: Final = "system:serviceaccount:cardquota-system:cardquota-controller"

FORBIDDEN: Final = "Forbidden"
INVALID: Final = "Invalid"
AWAY: Final = "WebhookAway"
"""Nobody answered, and the entry's failurePolicy is Fail."""

KUBERNETES_GROUP: Final = "PodGroup of scheduling.k8s.io"
"""Told apart here by its kind: objects are kept by that."""
TENANTS_KINDS: Final = frozenset(
    {"Pod", "PodGroup", KUBERNETES_GROUP, "Job", "ResourceClaim", "ResourceClaimTemplate"}
)
"""What `edit` may write in a namespace, with what Volcano adds to it. No subresource of pods that changes them, no Binding."""
_SETTLED: Final = ("ResourceClaim", "ResourceClaimTemplate")
"""Of these nothing but the metadata can be written by those who make them."""
_KEPT: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_JUDGED: Final = ("Node", "Queue", "Namespace", "DeviceClass")


class RefusedError(Exception):
    """What the client is told instead: our codes, or what the API server says by itself."""

    def __init__(self, *codes: str) -> None:
        super().__init__(*codes)
        self.codes = codes


class ApiServer:
    """Objects by kind and key. `changed` is called with every object that is stored or gone (None)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.webhook_up = True
        self.policies = True
        """The chart's `policies.enabled`; without them the webhook judges all but deletions."""
        self.objects: dict[str, dict[str, Json]] = {}
        self.forced_off: list[Json] = []
        """Running pods that were taken off by force in a grace above `quota.maxFreeGrace`, which outlasts every history."""
        self._serial = 0
        self._view: ClusterView | None = None

    def changed(self, kind: str, old: Json | None, new: Json | None) -> None:
        """For those that watch."""

    # -- reading -------------------------------------------------------------------------------------------------

    def all(self, kind: str) -> list[Json]:
        return list(self.objects.get(kind, {}).values())

    def find(self, kind: str, name: str) -> Json | None:
        """An object of the tenant's namespace, or one that is in none."""
        stored = self.objects.get(kind, {})
        return stored.get(f"{HOME}/{name}") or stored.get(name)

    def get(self, kind: str, name: str) -> Json:
        found = self.find(kind, name)
        if found is None:
            raise RefusedError("NotFound")
        return found

    # -- writing -------------------------------------------------------------------------------------------------

    def create(self, raw: Mapping[str, Any], user: str = TENANT) -> Json:
        kind, new = raw["kind"], copied(dict(raw))
        self._authorize(user, kind)
        if key_of(new) in self.objects.get(kind, {}):
            raise RefusedError("AlreadyExists")
        if kind == "Pod":
            new = self._new_pod(new, user)
        else:
            self._judge_creation(new, user)
        new["metadata"] |= {"uid": f"{new['metadata']['name']}-{self._serial + 1}"}
        return self._store(kind, None, new)

    def update(self, raw: Mapping[str, Any], user: str = TENANT, subresource: str = "") -> Json:
        """Replaces an object, or with the subresource `status` what an update of that carries: status and metadata."""
        kind, new = raw["kind"], copied(dict(raw))
        self._authorize(user, kind, subresource)
        old = self.objects.get(kind, {}).get(key_of(new))
        if old is None:
            raise RefusedError("NotFound")
        for key in _KEPT:
            new["metadata"].pop(key, None)
            if key in old["metadata"]:
                new["metadata"][key] = old["metadata"][key]
        if kind == "Pod":
            other = "spec" if subresource else "status"
            new[other] = old[other]
            self._pod_update(old, new, user, subresource)
        elif kind in _SETTLED and (old["spec"], old.get("status")) != (new["spec"], new.get("status")):
            raise RefusedError(INVALID)
        return self._store(kind, old, new)

    def annotate(self, name: str, user: str = TENANT, kind: str = "Pod", /, **entries: str | None) -> Json:
        """A merge patch of annotations; None removes one."""
        return self._merge(self.get(kind, name), "annotations", entries, user)

    def label(self, name: str, user: str = TENANT, /, **entries: str | None) -> Json:
        return self._merge(self.get("Pod", name), "labels", entries, user)

    def annotate_by_status(self, name: str, user: str = TENANT, /, **entries: str | None) -> Json:
        return self._merge(self.get("Pod", name), "annotations", entries, user, "status")

    def change(self, kind: str, name: str, *path: str, value: Any, user: str = TENANT) -> Json:
        """Sets one field."""
        raw = copied(self.get(kind, name))
        target = raw
        for part in path[:-1]:
            target = target.setdefault(part, {})
        target[path[-1]] = value
        return self.update(raw, user)

    def delete(self, kind: str, name: str, user: str = TENANT, *, grace_s: int | None = None) -> None:
        """A pod on a node gets its grace, which a second deletion can only shorten; a claim in use stays; all else goes at once."""
        self._authorize(user, kind)
        raw = self.get(kind, name)
        if kind == "Pod" and raw["spec"].get("nodeName"):
            grace = raw["spec"].get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
            before = raw["metadata"].get("deletionGracePeriodSeconds")
            if grace == 0:
                self._authorize_force(user, raw)
                if (
                    raw["status"]["phase"] == "Running"
                    and _grace_s(raw) > self.settings.quota.max_free_grace_s
                ):
                    self.forced_off.append(copied(raw))
                self.gone(raw)
                return
            if before is None or grace < before:
                marks = {"deletionTimestamp": "2024-01-02T00:00:00Z", "deletionGracePeriodSeconds": grace}
                self._store(kind, raw, {**raw, "metadata": {**raw["metadata"], **marks}})
            return
        if kind == "ResourceClaim" and read.mapping(raw, "status", "allocation"):
            marks = {"deletionTimestamp": "2024-01-02T00:00:00Z"}
            self._store(kind, raw, {**raw, "metadata": {**raw["metadata"], **marks}})
            return
        self.gone(raw)

    def gone(self, raw: Mapping[str, Any]) -> None:
        """Takes an object out, whatever it was waited for."""
        old = self.objects[raw["kind"]].pop(key_of(raw))
        self._forget_view(raw["kind"])
        self.changed(raw["kind"], old, None)

    def put(self, raw: Mapping[str, Any]) -> Json:
        """Stores what the cluster itself writes: status, and what goes with it."""
        return self._store(raw["kind"], self.objects[raw["kind"]].get(key_of(raw)), copied(dict(raw)))

    def _merge(
        self,
        raw: Json,
        part: str,
        entries: Mapping[str, str | None],
        user: str,
        subresource: str = "",
    ) -> Json:
        new = copied(raw)
        merged = {**(new["metadata"].get(part) or {}), **entries}
        new["metadata"][part] = {key: value for key, value in merged.items() if value is not None}
        return self.update(new, user, subresource)

    def _store(self, kind: str, old: Json | None, new: Json) -> Json:
        self._serial += 1
        new["metadata"] |= {"resourceVersion": str(self._serial)}
        self.objects.setdefault(kind, {})[key_of(new)] = new
        self._forget_view(kind)
        self.changed(kind, old, new)
        return new

    # -- what is allowed -----------------------------------------------------------------------------------------

    def _authorize(self, user: str, kind: str, subresource: str = "") -> None:
        if user == TENANT and (subresource or kind not in TENANTS_KINDS):
            raise RefusedError(FORBIDDEN)

    def _authorize_force(self, user: str, raw: Json) -> None:
        """As the policy `cardquota-deletion` says, of pods that it knows for ours."""
        grace = _grace_s(raw)
        ended = raw["status"]["phase"] in ("Succeeded", "Failed")
        if (
            self.policies
            and user == TENANT
            and not ended
            and grace > self.settings.quota.max_free_grace_s
            and _ours(raw)
        ):
            raise RefusedError(FORBIDDEN)

    @property
    def context(self) -> Context:
        """What the webhook knows."""
        if self._view is None:
            self._view = self._looked_up()
        return Context(self._view, self.settings, frozenset({CONTROLLER}))

    def _judge_creation(self, new: Json, user: str) -> None:
        request = creation_of(new)
        if request is None or not self.webhook_up:
            return  # templates and PodGroups pass, quotas are not written here
        decision = review(request, self.context.view, self.settings, controllers=self.context.controllers)
        if decision.denial is not None:
            raise RefusedError(*_codes(decision.denial.violations))

    def _new_pod(self, raw: Json, user: str) -> Json:
        annotations, spec = raw["metadata"].get("annotations") or {}, raw["spec"]
        if self.webhook_up:
            request = _pod_request("CREATE", raw, {}, user)
            decision = review(request, self.context.view, self.settings, controllers=self.context.controllers)
            if decision.denial is not None:
                raise RefusedError(*_codes(decision.denial.violations))
            raw = jsonpatch.patched(raw, [each.as_json() for each in decision.patch])
            spec = raw["spec"]
        elif any(map(names.is_record, annotations)):
            raise RefusedError(reasons.RECORD_PROTECTED)
        elif may_ask(raw):
            raise RefusedError(AWAY)
        if spec.get("nodeName") and spec.get("schedulingGates"):
            raise RefusedError(INVALID)
        if names.MIRROR_POD_ANNOTATION in annotations and not spec.get("nodeName"):
            raise RefusedError(INVALID)
        return {**raw, "status": {"phase": "Pending"}}

    def _pod_update(self, old: Json, new: Json, user: str, subresource: str) -> None:
        self._immutable(old, new)
        request = _pod_request(UPDATE, new, old, user, subresource)
        found = [*protection.judge(request, self.context)]
        changes_card = _card(old) != _card(new)
        if not subresource and protection.gated(old) and changes_card and (may_ask(old) or may_ask(new)):
            if not self.webhook_up:
                raise RefusedError(AWAY)
            of_webhook = Findings()
            pod_rules.judge(request, self.context, of_webhook)
            found += of_webhook.violations
        if found:
            raise RefusedError(*_codes(found))

    @staticmethod
    def _immutable(old: Json, new: Json) -> None:
        """Gates may only go; while there are any, selectors may only grow. Whoever narrows otherwise is not of interest."""
        was, now = (
            [gate["name"] for gate in spec.get("schedulingGates") or []]
            for spec in (old["spec"], new["spec"])
        )
        free = {"schedulingGates", *({"nodeSelector", "affinity"} if was else ())}
        fixed_was, fixed_is = (
            {key: value for key, value in spec.items() if key not in free}
            for spec in (old["spec"], new["spec"])
        )
        if fixed_was != fixed_is or not {*now} <= {*was}:
            raise RefusedError(INVALID)

    def _forget_view(self, kind: str) -> None:
        if kind in _JUDGED:
            self._view = None

    def _looked_up(self) -> ClusterView:
        inventory, classes = Inventory({}), DeviceClasses()
        for raw in self.all("Node"):
            inventory.put(node.project(raw))
        for raw in self.all("DeviceClass"):
            classes.put(device_class.project(raw))
        queues = [queue.project(raw) for raw in self.all("Queue")]
        namespaces = [namespace.project(raw) for raw in self.all("Namespace")]
        return ClusterView(
            inventory=inventory,
            queues={each.name: each for each in queues},
            namespaces={each.name: each for each in namespaces},
            device_classes=frozenset(raw["metadata"]["name"] for raw in self.all("DeviceClass")),
            serving=classes,
        )


def key_of(raw: Mapping[str, Any]) -> str:
    """`namespace/name`, or the name of what is in no namespace."""
    metadata = raw["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def may_ask(raw: Mapping[str, Any]) -> bool:
    """Whether the API server sends the pod, as the match conditions say."""
    draft = Draft.of(raw)
    return bool(draft.cards or draft.mgpu or draft.claims or extended(draft.requests))


def _grace_s(raw: Mapping[str, Any]) -> int:
    """What the kubelet gives the containers of a pod that goes now."""
    own = raw["spec"].get("terminationGracePeriodSeconds", 30)
    return int(raw["metadata"].get("deletionGracePeriodSeconds", own))


def _ours(raw: Mapping[str, Any]) -> bool:
    """Whether a forced deletion is judged: by label, by the record of a bind, or by what expressions see a pod to ask for."""
    draft = Draft.of(raw)
    return (
        names.MANAGED_LABEL in read.texts(raw, "metadata", "labels")
        or names.CHARGED_QUEUE_ANNOTATION in read.texts(raw, "metadata", "annotations")
        or bool(draft.cards or draft.mgpu or draft.claims)
    )


def _card(raw: Mapping[str, Any]) -> str | None:
    return read.texts(raw, "metadata", "annotations").get(names.CARD_NAME_ANNOTATION)


def _codes(violations: Any) -> list[str]:
    return sorted({violation.code for violation in violations})


def _pod_request(
    operation: str, new: Json, old: Mapping[str, Any], user: str, subresource: str = ""
) -> AdmissionRequest:
    return AdmissionRequest(
        uid="",
        group="",
        resource=resource_of("", "Pod"),
        kind="Pod",
        operation=operation,
        subresource=subresource,
        namespace=new["metadata"]["namespace"],
        name=new["metadata"]["name"],
        username=user,
        object=new,
        old_object=old,
    )
