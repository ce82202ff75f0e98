"""The installation of cardquota in a cluster: the settings in force there, and whether anybody leads."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cli.kinds import CONFIG_MAP, LEASE
from cli.state import State
from core import names
from core.objects import raw as read

NAME: Final = "cardquota"
"""Of the ConfigMap and of the Lease; the chart does not let it be changed."""

USAGE_NAME: Final = "cardquota-usage"
"""Of the ConfigMap with what was used over time."""

LABEL: Final = "app.kubernetes.io/name"
SELECTOR: Final = f"{LABEL}={NAME}"
USUAL_NAMESPACE: Final = "cardquota-system"
"""Where it is looked for by who may not list ConfigMaps, and may not read the role that says where it is."""

READER: Final = "cardquota-queue-reader"
"""The ClusterRole for people who use queues, and the Role of the same name where the installation is."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FILE: Final = "cardquota.yaml"


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation: where it is, and its settings file."""

    namespace: str
    settings: str

    @property
    def source(self) -> str:
        """How its settings are called in messages."""
        return f"ConfigMap {self.namespace}/{NAME}"


def found(state: State) -> list[Installation]:
    """Every installation whose settings are among the objects, by namespace."""
    return [
        Installation(read.text(metadata, "namespace"), read.text(read.mapping(raw, "data"), _FILE))
        for raw in sorted(state.complete.get(CONFIG_MAP, ()), key=namespace_of)
        if (metadata := read.mapping(raw, "metadata")) and is_settings(raw)
    ]


def home_of(state: State) -> str:
    """The namespace of the installation: where its settings are seen, or where they were looked for."""
    homes = found(state)
    return homes[0].namespace if homes else state.home or USUAL_NAMESPACE


def home_by(role: Mapping[str, Any]) -> str:
    """Where the installation is, by the ClusterRole of the chart; the usual namespace where an older chart's does not say so."""
    return read.text(read.mapping(role, "metadata", "annotations"), names.HOME_ANNOTATION) or USUAL_NAMESPACE


def lease_of(state: State) -> Mapping[str, Any] | None:
    """The Lease of the installation; None where there is none, or it may not be read."""
    return next(iter(state.complete.get(LEASE, ())), None)


def leader_of(state: State) -> str:
    """Who holds that Lease; empty where nobody knows."""
    lease = lease_of(state)
    return "" if lease is None else holder_of(lease)


def is_settings(raw: Mapping[str, Any]) -> bool:
    """Whether a ConfigMap holds the settings of an installation."""
    metadata = read.mapping(raw, "metadata")
    return (
        read.text(metadata, "name") == NAME
        and read.texts(metadata, "labels").get(LABEL) == NAME
        and _FILE in read.mapping(raw, "data")
    )


def is_usage(raw: Mapping[str, Any]) -> bool:
    """Whether a ConfigMap is that of usage over time."""
    metadata = read.mapping(raw, "metadata")
    named = read.text(metadata, "name") == USAGE_NAME
    return named and read.texts(metadata, "labels").get(LABEL) == NAME


def namespace_of(raw: Mapping[str, Any]) -> str:
    """Where an object is."""
    return read.text(read.mapping(raw, "metadata"), "namespace")


def holder_of(lease: Mapping[str, Any]) -> str:
    """Who holds a Lease."""
    return read.text(read.mapping(lease, "spec"), "holderIdentity")


def leaderless(lease: Mapping[str, Any] | None, now: datetime) -> str:
    """Why nobody leads by this Lease, None for one that does not exist; empty when somebody does."""
    if lease is None:
        return f"there is no Lease {NAME}"
    spec = read.mapping(lease, "spec")
    holder = holder_of(lease)
    if not holder:
        return f"Lease {NAME} is held by nobody"
    renewed = _EPOCH + timedelta(microseconds=read.timestamp(spec.get("renewTime")))
    since = now - renewed
    if since > timedelta(seconds=read.integer(spec, "leaseDurationSeconds")):
        return f"Lease {NAME} was last renewed by {holder} at {renewed:%Y-%m-%dT%H:%M:%SZ}"
    return ""
