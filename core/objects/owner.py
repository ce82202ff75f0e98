"""The owner that controls an object."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Owner:
    """The controlling owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """The API group of its kind; empty for the core group."""
        return self.api_version.rpartition("/")[0]


def controlling_owner(metadata: Mapping[str, Any]) -> Owner | None:
    """The owner reference with `controller: true`."""
    references = metadata.get("ownerReferences")
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and reference.get("controller") is True:
            version, kind = reference.get("apiVersion"), reference.get("kind")
            name, uid = reference.get("name"), reference.get("uid")
            return Owner(
                api_version=version if isinstance(version, str) else "",
                kind=kind if isinstance(kind, str) else "",
                name=name if isinstance(name, str) else "",
                uid=uid if isinstance(uid, str) else "",
            )
    return None


def without_hash(owner: Owner | None, template_hash: str) -> str:
    """The owner's name without the hash of a pod template behind it; empty where it does not end in this one."""
    suffix = f"-{template_hash}"
    if owner is None or not template_hash or not owner.name.endswith(suffix):
        return ""
    return owner.name.removesuffix(suffix)
