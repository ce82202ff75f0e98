"""Fluent builders of Kubernetes objects for every test: raw JSON by `build()`, the core's view by `view()`."""

from tests.builders.objects import (
    a_group,
    a_job,
    a_namespace,
    a_node,
    a_pod,
    a_queue,
    a_scheduling_group,
)

__all__ = ["a_group", "a_job", "a_namespace", "a_node", "a_pod", "a_queue", "a_scheduling_group"]
