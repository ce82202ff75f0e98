"""RFC 6902 as the API server applies it, as far as the controller's patches use it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.builders.raw import Json, copied


class PatchError(Exception):
    """A test that failed, or a path that is not there."""


def patched(raw: Mapping[str, Any], patch: Sequence[Mapping[str, Any]]) -> Json:
    """A copy of the object with the patch applied, all of it or none."""
    result: Json = copied(dict(raw))
    for operation in patch:
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        target: Any = result
        for part in parents:
            target = _member(target, part)
        match operation["op"]:
            case "test":
                if _member(target, last) != operation["value"]:
                    raise PatchError(f"{operation['path']} is another")
            case "remove":
                _member(target, last)
                del target[int(last) if isinstance(target, list) else last]
            case "add" if isinstance(target, list):
                target.insert(len(target) if last == "-" else int(last), copied(operation["value"]))
            case "add":
                target[last] = copied(operation["value"])
            case other:
                raise PatchError(f"{other} is not served here")
    return result


def _member(target: Any, part: str) -> Any:
    try:
        return target[int(part) if isinstance(target, list) else part]
    except (KeyError, IndexError, ValueError) as error:
        raise PatchError(f"{part} is not there") from error
