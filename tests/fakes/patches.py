"""What an API server makes of a patch, as far as one is sent here."""

from typing import Any

Json = dict[str, Any]


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def applied(raw: Json, patch: list[Json]) -> bool:
    """Carries out RFC 6902 on an object; whether every operation could be."""
    for operation in patch:
        *parents, last = (
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        )
        try:
            target: Any = raw
            for token in parents:
                target = target[int(token)] if isinstance(target, list) else target[token]
            key: Any = last
            if isinstance(target, list):
                key = len(target) if last == "-" else int(last)
            if operation["op"] == "test":
                if target[key] != operation["value"]:
                    return False
            elif operation["op"] == "remove":
                del target[key]
            elif isinstance(target, list) and operation["op"] == "add":
                target.insert(key, operation["value"])
            else:
                target[key] = operation["value"]
        except (LookupError, ValueError):
            return False
    return True
