"""JSON patches applied to objects at hand."""

import copy
from typing import Any


def patched(stored: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The object after a JSON patch that adds and removes."""
    result = copy.deepcopy(stored)
    for operation in patch:
        *path, last = (
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        )
        place: Any = result
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if operation["op"] == "remove":
            del place[int(last) if isinstance(place, list) else last]
        elif operation["op"] == "add" and isinstance(place, list):
            place.insert(len(place) if last == "-" else int(last), operation["value"])
        elif operation["op"] == "add":
            place[last] = operation["value"]
    return result
