"""Which annotations of a pod anything is decided by: those are kept, and no others."""

from collections.abc import Mapping
from typing import Any, Final

from core import names
from core.objects import raw as read

_KEPT: Final = frozenset(
    {
        names.CARD_NAME_ANNOTATION,
        names.QUEUE_NAME_ANNOTATION,
        names.JOB_QUEUE_ANNOTATION,
        names.GROUP_NAME_ANNOTATION,
        names.TASK_SPEC_ANNOTATION,
        names.MGPU_POLICY_KEY,
        names.MGPU_MULTIPLE_ANNOTATION,
        names.ASSUMED_ANNOTATION,
        *names.GANG_KEYS,
    }
)
_KEPT_PREFIXES: Final = (*names.RECORD_PREFIXES, names.CROSSQUOTA_PREFIX)
"""Beside those: of all other records, and of what pods say of CrossQuota."""


def kept_annotations(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Those of a pod with this metadata that are texts."""
    found: Mapping[Any, Any] = read.part(metadata, "annotations")
    return {
        key: value
        for key, value in found.items()
        if isinstance(key, str)
        and (key in _KEPT or key.startswith(_KEPT_PREFIXES))
        and isinstance(value, str)
    }
