"""The claims of a pod: those that its specification names, and those that were made for it."""

from collections.abc import Mapping
from typing import Any

from core.objects import raw as read


def claims_of(spec: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """(entry name, claim name, template name) of `spec.resourceClaims`; one of the last two is empty."""
    return tuple(
        (
            read.text(entry, "name"),
            read.text(entry, "resourceClaimName"),
            read.text(entry, "resourceClaimTemplateName"),
        )
        for entry in read.sequence(spec, "resourceClaims")
        if isinstance(entry, dict)
    )


def implicit_claims(status: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """The claim that a scheduler has made for extended resources which a DeviceClass serves; known only at the bind."""
    name = read.text(read.mapping(status, "extendedResourceClaimStatus"), "resourceClaimName")
    return (("", name, ""),) if name else ()


def generated_claims(status: Mapping[str, Any]) -> dict[str, str | None]:
    """Entry name -> name of the generated claim, None where no claim was needed."""
    return {
        read.text(entry, "name"): read.text(entry, "resourceClaimName") or None
        for entry in read.sequence(status, "resourceClaimStatuses")
        if isinstance(entry, dict)
    }
