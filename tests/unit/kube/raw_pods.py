"""Pods as they go over the wire."""

from typing import Any


def pod(name: str, **extra: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "labels": {}},
        **extra,
    }
