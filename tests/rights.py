"""Which rights the processes of installations have, and which of them they use: roles and audit log of a control plane."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from hack.controlplane import audit
from hack.controlplane.audit import AuditedRequest
from hack.install import Installation
from hack.installation.rendering import Object, of_kind

AGENT: Final = "cardquota"
"""How the processes' requests begin to call themselves; a test that borrows an account has another client."""
HERE: Final = "(release)"
"""Stands for the namespace of the installation, whichever that was."""


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

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.account}: {self.verb} {self.resource}{where} {self.name}".rstrip()


def granted(objects: Sequence[Object], namespace: str) -> set[Right]:
    """What the roles and bindings of a rendered chart give to its ServiceAccounts; people have theirs to look around."""
    rights: set[Right] = set()
    for kind in ("Role", "ClusterRole"):
        roles = of_kind(objects, kind)
        for bound in of_kind(objects, f"{kind}Binding").values():
            own = bound["metadata"].get("namespace", namespace) if kind == "Role" else ""
            for subject, rule in itertools.product(
                (each for each in bound["subjects"] if each["kind"] == "ServiceAccount"),
                roles[bound["roleRef"]["name"]]["rules"],
            ):
                for group, resource, verb, name in itertools.product(
                    rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""])
                ):
                    place = HERE if own == namespace else own
                    rights.add(Right(subject["name"], verb, _dotted(resource, group), place, name))
    return rights


def asked(requests: Iterable[AuditedRequest], namespace: str) -> list[tuple[Right, bool]]:
    """What the processes of an installation asked for, and whether that was forbidden to them."""
    prefix = f"system:serviceaccount:{namespace}:"
    return [
        (
            Right(
                each.user.removeprefix(prefix),
                each.verb,
                _dotted(each.resource, each.group),
                HERE if each.namespace == namespace else each.namespace,
                each.name,
            ),
            each.forbidden,
        )
        for each in requests
        if each.user.startswith(prefix) and each.user_agent.startswith(AGENT)
    ]


def _dotted(resource: str, group: str) -> str:
    return ".".join(filter(None, (resource, group)))


@dataclass
class Usage:
    """What one or many installations were given and did with it."""

    granted: set[Right] = field(default_factory=set)
    used: set[Right] = field(default_factory=set)
    """Of what was granted."""
    beyond: set[Right] = field(default_factory=set)
    """Asked for without being granted, whether it was forbidden or allowed by somebody else's role."""

    @classmethod
    def of(cls, installation: Installation) -> Self:
        """Read from the audit log, from the installation's begin on."""
        namespace = installation.namespace
        given = granted(installation.objects, namespace)
        requests = audit.read(
            installation.audit_log, installation.audited_from, of=f"system:serviceaccount:{namespace}:"
        )
        found = cls(granted=given)
        for right, forbidden in {*asked(requests, namespace)}:
            covering = {each for each in given if each.covers(right)}
            if not covering:
                found.beyond.add(right)
            elif not forbidden:
                # What is granted is forbidden all the same for the moment in which roles come or go.
                found.used |= covering
        return found

    @property
    def unused(self) -> set[Right]:
        return self.granted - self.used

    def add(self, other: "Usage") -> None:
        self.granted |= other.granted
        self.used |= other.used
        self.beyond |= other.beyond

    def packed(self) -> dict[str, list[list[str]]]:
        """As one test process tells another."""
        return {
            name: [[r.account, r.verb, r.resource, r.namespace, r.name] for r in sorted(rights)]
            for name, rights in (("granted", self.granted), ("used", self.used), ("beyond", self.beyond))
        }

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> Self:
        return cls(**{name: {Right(*parts) for parts in rights} for name, rights in packed.items()})
