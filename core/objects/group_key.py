"""What tells PodGroups apart: there are Volcano's and those of Kubernetes itself, and one of each may have the same name."""

from typing import Final

_KUBERNETES: Final = "@scheduling.k8s.io"
_MARKS: Final = ("@", "|")
"""What the keys of PodGroups of Kubernetes and of gangs have, and no object's name. What a pod's annotation calls a PodGroup may
be any text."""


def volcano(namespace: str, name: str) -> str:
    """The key of a PodGroup of Volcano: `namespace/name`. Of a name that no object can have it is a key that nobody else has."""
    marked = any(mark in name for mark in _MARKS)
    return f"{namespace}//{name}/" if marked else f"{namespace}/{name}"


def kubernetes(namespace: str, name: str) -> str:
    """The key of a PodGroup of Kubernetes itself."""
    return f"{namespace}/{name}{_KUBERNETES}"


def is_kubernetes(key: str) -> bool:
    """Whether it is the key of a PodGroup of Kubernetes itself."""
    return key.endswith(_KUBERNETES)


def object_key(key: str) -> str:
    """`namespace/name` of the PodGroup of a key."""
    return key.removesuffix(_KUBERNETES)
