"""What stands in a Lease, read and written as client-go does; whatever somebody else left there is taken without an error."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.names import OWN_PREFIX
from kube.client import Json
from kube.resources import LEASES
from kube.times import micro_time


def holder_of(lease: Json) -> str:
    """The identity of the holder; empty for a free lease."""
    return str(_spec(lease).get("holderIdentity") or "")


def transitions_of(lease: Json) -> int:
    """How often the lease was taken."""
    count = _spec(lease).get("leaseTransitions")
    return count if isinstance(count, int) else 0


def duration_of(lease: Json, otherwise: float) -> float:
    """For how many seconds after each renewal its holder leads."""
    duration = _spec(lease).get("leaseDurationSeconds")
    return float(duration) if isinstance(duration, int) and duration > 0 else otherwise


def annotations_of(lease: Json | None) -> Mapping[str, str]:
    """The annotations, none of a lease that does not exist."""
    annotations = lease["metadata"].get("annotations") if lease is not None else None
    return annotations if isinstance(annotations, dict) else {}


def version_of(lease: Json | None) -> str:
    """The resourceVersion; empty for a lease that does not exist."""
    return "" if lease is None else str(lease["metadata"].get("resourceVersion", ""))


def held(
    lease: Json | None,
    name: str,
    *,
    holder: str,
    epoch: int,
    annotations: Mapping[str, str],
    lease_s: float,
    now: datetime,
) -> Json:
    """The Lease after this one, held by `holder`, or by nobody; what others have put into it is kept.

    `annotations` are all that there are of ours.
    """
    metadata: Json = dict(lease["metadata"]) if lease is not None else {"name": name}
    metadata.pop("managedFields", None)
    kept = {key: value for key, value in annotations_of(lease).items() if not key.startswith(OWN_PREFIX)}
    metadata["annotations"] = kept | dict(annotations)
    time = micro_time(now)
    spec = dict(_spec(lease)) | {
        "holderIdentity": holder,
        "leaseDurationSeconds": math.ceil(lease_s),
        "renewTime": time,
        "leaseTransitions": epoch,
    }
    if holder and (lease is None or holder_of(lease) != holder):
        spec["acquireTime"] = time
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}


def _spec(lease: Json | None) -> Mapping[str, Any]:
    spec = lease.get("spec") if lease is not None else None
    return spec if isinstance(spec, dict) else {}
