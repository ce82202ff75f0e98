"""What of a pod makes schedulers rule nodes out by things that are not followed here."""

from collections.abc import Mapping
from typing import Any, Final

from core.objects import raw as read
from core.objects.node_rules import REQUIRED

_ANYWHERE: Final = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "hostPath", "image", "name", "nfs", "projected", "secret"}
)
"""Volumes that are to be had on every node alike."""


def ruled_elsewhere(spec: Mapping[str, Any], affinity: Mapping[str, Any]) -> bool:
    """Whether it depends on other pods, on storage, on ports of the host or on devices which node will do."""
    return (
        any(read.mapping(affinity, kind).get(REQUIRED) for kind in ("podAffinity", "podAntiAffinity"))
        or any(_spreads(raw) for raw in read.sequence(spec, "topologySpreadConstraints"))
        or bool(read.sequence(spec, "resourceClaims"))
        or any(
            isinstance(raw, dict) and not raw.keys() <= _ANYWHERE for raw in read.sequence(spec, "volumes")
        )
        or any(
            isinstance(port, dict) and port.get("hostPort")
            for kind in ("containers", "initContainers")
            for container in read.sequence(spec, kind)
            for port in read.sequence(container, "ports")
        )
    )


def _spreads(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("whenUnsatisfiable") != "ScheduleAnyway"
