"""What `kubectl apply` makes of a manifest and of the object that is there already."""

import json
from collections.abc import Mapping
from typing import Any

from core import names
from core.objects import raw as read

Raw = Mapping[str, Any]


def applied_over(manifest: Raw, live: Raw) -> dict[str, Any]:
    """The object afterwards: what stands in the manifest, and what others have written.

    What the manifest before had and this one has not is gone; where the object does not show that manifest, as one that was
    never applied, nothing goes.
    """
    merged = _merged(_before(live), manifest, live)
    metadata = dict(read.mapping(merged, "metadata"))
    # The API server drops fields that it does not know; of those it is here that the manifest's are read.
    shown = {names.LAST_APPLIED_ANNOTATION: json.dumps(manifest)}
    metadata["annotations"] = {**read.mapping(metadata, "annotations"), **shown}
    return {**merged, "metadata": metadata}


def _before(live: Raw) -> Raw:
    """The manifest that was applied last, if the object shows one that can be read."""
    try:
        found = json.loads(
            read.text(read.mapping(live, "metadata", "annotations"), names.LAST_APPLIED_ANNOTATION)
        )
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _merged(before: Raw, manifest: Raw, live: Raw) -> dict[str, Any]:
    """Mappings key by key, anything else as a whole."""
    result = {key: value for key, value in live.items() if key in manifest or key not in before}
    for key, value in manifest.items():
        old = live.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            was = before.get(key)
            result[key] = _merged(was if isinstance(was, dict) else {}, value, old)
        else:
            result[key] = value
    return result
