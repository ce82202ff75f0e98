"""docs/rights.md, made from the roles that the chart renders: `python -m hack.pages.rights` writes it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hack.installation import rendering
from hack.toolchain import Reporter, Store

PAGE: Final = Path(__file__).parents[2] / "docs" / "rights.md"

_INTRODUCTION: Final = """\
# Rights

[中文](zh/rights.md)

What the chart lets its accounts do, with its default values. Whatever a process asks the API server for is held against this in
every run of the tests, and a right that nothing uses fails one. The page is made from what helm renders by
`python -m hack.pages.rights`; a test compares the two.

*Where* is `cluster` for a ClusterRole, `release` for a Role in the namespace of the release.
"""

_WHO: Final[Mapping[str, str]] = {
    "cardquota-webhook": "## The webhook\n\nIt reads what its verdicts look at, and writes nothing.\n",
    "cardquota-controller": (
        "## The controller\n\nThe leader lifts gates, mends records, writes Queue status, events and certificates. Of pods it"
        " changes what the gate and its records take, by patches.\n"
    ),
    "cardquota-uninstall": (
        "## `helm uninstall`\n\nThe Job that lets waiting pods go has these while it runs"
        " ([uninstall](../charts/cardquota/README.md#uninstall)).\n"
    ),
    "cardquota-test": "## `helm test`\n\nThe pod that runs [`cardquota verify`](commands.md#verify) has these while it runs.\n",
    "": (
        "## People who use queues\n\nBound to the groups in `queueReader.groups`, to nobody by default. With `edit` in a namespace"
        " it is what the [commands](commands.md#without-all-rights) need to answer a tenant.\n"
    ),
}
"""ServiceAccount -> its heading, in the order of the page; the empty one is of roles that values bind."""

_MORE: Final[Mapping[str, Mapping[str, Any]]] = {
    "`reservation.evictAfter` or `reservation.unfinishedAfter`": {"reservation": {"evictAfter": "1h"}},
}
"""Values that give more rights than the defaults, by their names."""


@dataclass(frozen=True, order=True, slots=True)
class Right:
    """One resource that an account may use; `names` is empty where it is all objects of the resource."""

    account: str
    role: str
    where: str
    resource: str
    names: str
    verbs: str

    def row(self) -> str:
        """The line of the table."""
        return f"| {self.where} | `{self.resource}` | {self.names} | {self.verbs} |"


def page(helm: Path) -> str:
    """The whole page. Raises `RenderError` where helm refuses the chart, KeyError for an account without a heading."""
    rights = _rights(helm, {})
    parts = [_INTRODUCTION]
    for account, heading in _WHO.items():
        own = [right for right in rights if right.account == account]
        parts.append(heading + "\n" + _table(own))
    unknown = {right.account for right in rights} - _WHO.keys()
    if unknown:
        raise KeyError(*sorted(unknown))
    parts.append("## With other values\n")
    parts += [_additions(name, set(rights), _rights(helm, values)) for name, values in _MORE.items()]
    parts.append(
        "`features.mgpu: false` and `features.dra: false` take away what only they need, `dra.queueCRD: leave` the definition of"
        " Queue, `controller.answers.enabled: false` the two reviews, and `uninstall.ungate: false` the Job with its rights.\n"
    )
    return "\n".join(parts)


def _additions(name: str, usual: set[Right], rights: Sequence[Right]) -> str:
    return f"With {name}:\n\n" + _table([right for right in rights if right not in usual])


def _table(rights: Sequence[Right]) -> str:
    return "\n".join(
        ["| where | resource | only | verbs |", "|---|---|---|---|", *(right.row() for right in rights), ""]
    )


def _rights(helm: Path, values: Mapping[str, Any]) -> list[Right]:
    things = rendering.render(helm, values, "cardquota-system", hooks=True)
    accounts = dict(_bindings(things))
    found = {
        right
        for kind in ("Role", "ClusterRole")
        for name, role in rendering.of_kind(things, kind).items()
        for right in _of_role(kind, name, role, accounts.get((kind, name), ""))
    }
    return sorted(found)


def _bindings(things: Sequence[rendering.Object]) -> Iterator[tuple[tuple[str, str], str]]:
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in rendering.of_kind(things, kind).values():
            reference = binding["roleRef"]
            for subject in binding["subjects"]:
                yield (reference["kind"], reference["name"]), str(subject["name"])


def _of_role(kind: str, name: str, role: rendering.Object, account: str) -> Iterator[Right]:
    where = "cluster" if kind == "ClusterRole" else "release"
    for rule in role["rules"]:
        only = ", ".join(f"`{each}`" for each in rule.get("resourceNames", ()))
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                full = f"{resource}.{group}" if group else resource
                yield Right(account, name, where, full, only, ", ".join(rule["verbs"]))


if __name__ == "__main__":
    PAGE.write_text(page(Store().ensure(["helm"], Reporter(print))["helm"]), "utf-8")
