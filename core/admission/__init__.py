"""Admission: what the API server asks before it stores an object, answered by pure functions.

A verdict is about the object alone, never about present usage: what is malformed or can never mean anything is
refused, all of it in one message; what may become right later is admitted with a warning.
"""

from core.admission.dispatch import (
    CONSTANT,
    PATHS,
    RULES,
    Rule,
    answer,
    creation_of,
    judge,
    paths_of,
    resource_of,
    review,
    rules_of,
)
from core.admission.request import (
    NOTHING_LISTED,
    Add,
    AdmissionRequest,
    ClusterView,
    Context,
    Decision,
    Denial,
)

__all__ = [
    "CONSTANT",
    "NOTHING_LISTED",
    "PATHS",
    "RULES",
    "Add",
    "AdmissionRequest",
    "ClusterView",
    "Context",
    "Decision",
    "Denial",
    "Rule",
    "answer",
    "creation_of",
    "judge",
    "paths_of",
    "resource_of",
    "review",
    "rules_of",
]
