"""The resources that cardquota reads or writes, and how each is addressed on the API server.

A table instead of discovery: the process needs a dozen kinds, their versions are part of what it was tested
against, and a start without discovery calls also works while an aggregated API is down.
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from core.objects import kinds


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the API: group ("" for the core group), version, plural, scope and kind."""

    group: str
    version: str
    plural: str
    namespaced: bool
    kind: str

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in objects of this resource."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """URL path of the collection, of one object, or of its subresource; every name is percent-encoded.

        Without a namespace the collection of a namespaced resource is that of all namespaces. Raises ValueError
        for addresses which the API does not have: a namespace for a cluster-scoped resource, one object of a
        namespaced resource without its namespace, a subresource without a name.
        """
        if namespace is not None and not self.namespaced:
            raise ValueError(f"{self} is cluster-scoped: no namespace {namespace!r}")
        if name is not None and self.namespaced and namespace is None:
            raise ValueError(f"{self} is namespaced: {name!r} needs a namespace")
        if subresource is not None and name is None:
            raise ValueError(f"{self}: subresource {subresource!r} needs a name")
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(_segment(subresource))
        return "/".join(parts)

    @property
    def discovery_path(self) -> str:
        """URL path at which the API server lists the resources of this group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _segment(text: str) -> str:
    """One path segment; an empty, `.` or `..` segment would address another object than the one named."""
    if text in {"", ".", ".."}:
        raise ValueError(f"not a name: {text!r}")
    return quote(text, safe="")


def of(kind: kinds.Kind[Any]) -> Resource:
    """The resource of a kind that decisions rest on, in its best version."""
    return Resource(kind.group, kind.versions[0], kind.resource, kind.namespaced, kind.kind)


PODS = of(kinds.POD)
NODES = of(kinds.NODE)
NAMESPACES = of(kinds.NAMESPACE)
QUEUES = of(kinds.QUEUE)
PODGROUPS = of(kinds.GROUP)
KUBERNETES_PODGROUPS = of(kinds.KUBERNETES_GROUP)
VOLCANO_JOBS = of(kinds.JOB)
DEVICE_CLASSES = of(kinds.DEVICE_CLASS)
RESOURCE_CLAIMS = of(kinds.CLAIM)
RESOURCE_CLAIM_TEMPLATES = of(kinds.CLAIM_TEMPLATE)

SECRETS = Resource("", "v1", "secrets", True, "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", True, "ConfigMap")
SERVICES = Resource("", "v1", "services", True, "Service")
EVENTS = Resource("events.k8s.io", "v1", "events", True, "Event")
DEPLOYMENTS = Resource("apps", "v1", "deployments", True, "Deployment")
LEASES = Resource("coordination.k8s.io", "v1", "leases", True, "Lease")

MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    False,
    "MutatingWebhookConfiguration",
)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    False,
    "ValidatingWebhookConfiguration",
)
ADMISSION_POLICIES = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    False,
    "ValidatingAdmissionPolicy",
)
ADMISSION_POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    False,
    "ValidatingAdmissionPolicyBinding",
)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", False, "ClusterRole")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", True, "RoleBinding")
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", False, "TokenReview")
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", False, "SubjectAccessReview"
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", False, "CustomResourceDefinition"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """Those of a namespace, of a label selector, of a field selector; what is None does not narrow."""

    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    @property
    def query(self) -> dict[str, str]:
        """The selectors, as a request names them; the namespace is part of its path."""
        given = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: value for key, value in given.items() if value}

    @classmethod
    def named(cls, name: str, namespace: str | None = None) -> "Scope":
        """The one object of this name."""
        return cls(namespace, field_selector=f"metadata.name={name}")


ALL: Final = Scope()
