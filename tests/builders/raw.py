"""The part that all builders share: a JSON object that is never changed, only replaced."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

Json = dict[str, Any]


def changed(raw: Mapping[str, Any], path: tuple[str, ...], value: Any) -> Json:
    """A copy of `raw` with `value` at `path`; nothing of `raw` is changed."""
    key, rest = path[0], path[1:]
    return {**raw, key: changed(raw.get(key, {}), rest, value) if rest else value}


def copied(value: Any) -> Any:
    """A deep copy of JSON, so that a test that edits what it built disturbs no other."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Builder:
    """An object under construction. Every method returns a new builder, so a half-built object can be shared."""

    raw: Json

    def put(self, *path: str, value: Any) -> Self:
        """Any field, by its path: `put("spec", "hostname", value="h")`."""
        return type(self)(changed(self.raw, path, value))

    def add(self, *path: str, item: Any) -> Self:
        """One more item at the end of the list at `path`."""
        found: Any = self.raw
        for key in path:
            found = found.get(key, {}) if isinstance(found, dict) else {}
        return self.put(*path, value=[*(found or []), item])

    def annotation(self, key: str, value: str) -> Self:
        return self.put("metadata", "annotations", key, value=value)

    def label(self, key: str, value: str) -> Self:
        return self.put("metadata", "labels", key, value=value)

    def uid(self, uid: str) -> Self:
        return self.put("metadata", "uid", value=uid)

    def created(self, timestamp: str) -> Self:
        """An RFC 3339 text, such as `2024-01-01T00:00:05Z`."""
        return self.put("metadata", "creationTimestamp", value=timestamp)

    def terminating(self, *, grace_s: int | None = None, deadline: str = "2024-01-02T00:00:00Z") -> Self:
        """Being deleted; as the API server writes it where the grace is named."""
        built = self.put("metadata", "deletionTimestamp", value=deadline)
        return (
            built if grace_s is None else built.put("metadata", "deletionGracePeriodSeconds", value=grace_s)
        )

    def owned_by(self, kind: str, name: str, *, api_version: str = "apps/v1", uid: str = "") -> Self:
        """The controlling owner."""
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid or f"uid-{name}"}
        return self.put("metadata", "ownerReferences", value=[{**owner, "controller": True}])

    def build(self) -> Json:
        """The object as JSON, independent of the builder."""
        return dict(copied(self.raw))


def metadata(name: str, namespace: str | None = None) -> Json:
    uid = f"uid-{name}" if namespace is None else f"uid-{namespace}-{name}"
    result: Json = {"name": name, "uid": uid, "creationTimestamp": "2024-01-01T00:00:00Z"}
    return result if namespace is None else {**result, "namespace": namespace}
