"""An object as people or programs write it, with other things in some places of it."""

import copy
from collections.abc import Sequence
from typing import Any, Final

from core import names
from tests.fuzz.choices import Choices

_EDITS_MOST: Final = 6
_DEPTH_MOST: Final = 12
_TIMES: Final = (2, 17, 300)

TEXTS: Final = (
    *("", " ", "\x00", "\n", "\ud7ff", "é" * 300, "x" * 5000, "0", "-1", "1.5", "1e400", "9" * 400, "nan"),
    *("A", "A|B", "A|", "|", "A|A", "A/mps-80g*1/8", "A/mig-1g-mixed", "gpu.example.com", "q", "ml", "root"),
    *(
        "{}",
        "[]",
        "null",
        "{",
        '{"A": 1}',
        '{"A": -1}',
        '{"A": 1, "A": 2}',
        '{"": 1}',
        '{"A": 1e3}',
        '{"A|B": 2}',
    ),
    *(
        '{"capability": {"gpu.example.com": {"count": 1}}}',
        "1,2",
        "1,,2",
        "a=b",
        "a in (b,c)",
        "a,b,*",
        "true",
    ),
    *("4", "500m", "16Gi", "1E", "9223372036854775808", "2026-01-02T03:04:05Z", "2026-13-02T03:04:05Z"),
    *("volcano", "default-scheduler", "Succeeded", "Running", "Always", "fifo", "Open", "Closed"),
)
KEYS: Final = (
    *(
        "",
        "metadata",
        "spec",
        "status",
        "name",
        "namespace",
        "uid",
        "annotations",
        "labels",
        "ownerReferences",
    ),
    *(
        "containers",
        "initContainers",
        "resources",
        "limits",
        "requests",
        "schedulingGates",
        "affinity",
        "nodeSelector",
    ),
    *(
        "nodeName",
        "template",
        "replicas",
        "tasks",
        "capability",
        "allocated",
        "dra",
        "resourceClaims",
        "deletionTimestamp",
    ),
    *(
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        names.MGPU_CORE,
        names.MGPU_MEMORY,
        "cpu",
        "memory",
        names.GATE,
    ),
    *(names.CARD_NAME_ANNOTATION, names.CARD_QUOTA_ANNOTATION, names.CARD_REQUEST_ANNOTATION),
    *(names.QUEUE_NAME_ANNOTATION, names.GROUP_NAME_ANNOTATION, names.DRA_QUOTA_ANNOTATION),
    *(
        names.MGPU_MULTIPLE_ANNOTATION,
        names.MGPU_POLICY_KEY,
        names.GANG_NAME_ANNOTATION,
        names.GANG_SIZE_ANNOTATION,
    ),
    *(
        names.ASSIGNED_ANNOTATION,
        names.CHARGED_QUEUE_ANNOTATION,
        names.GANG_ANNOTATION,
        names.GANG_OF_ANNOTATION,
    ),
    *(
        names.CLAIMS_ANNOTATION,
        names.NODE_ANNOTATION,
        names.SHARE_CARD_ANNOTATION,
        names.NOMINATED_ANNOTATION,
    ),
    *(names.NAMESPACES_ANNOTATION, names.NAMESPACE_SELECTOR_ANNOTATION, names.DEFAULT_CARD_ANNOTATION),
)
_SCALARS: Final = (None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 1.5, 1e308, -0.0)


def text_of(choices: Choices) -> str:
    """A text that somebody could write, one that nobody would, or whatever the bytes are."""
    if choices.below(2):
        return choices.of(TEXTS)
    return choices.some().decode("utf-8", "replace")


def value_of(choices: Choices, parts: Sequence[Any]) -> Any:
    """Any JSON value; `parts` are objects of which some may be taken whole."""
    match choices.below(5):
        case 0:
            return choices.of(_SCALARS)
        case 1 | 2:
            return text_of(choices)
        case 3:
            return choices.of(([], {}, [None], [{}], {"": None}, {"a": {}}, [[]]))
        case _:
            return copy.deepcopy(choices.of(parts))


def edited(choices: Choices, parts: Sequence[Any]) -> Any:
    """One of the parts, with up to six edits."""
    around: Any = {"": copy.deepcopy(choices.of(parts))}
    for _ in range(choices.below(_EDITS_MOST + 1)):
        holder, key = _place(choices, around)
        _edit(choices, holder, key, parts)
    return around[""]


def _place(choices: Choices, around: Any) -> tuple[Any, Any]:
    """A holder and the key or index of a member of it."""
    holder, key = around, ""
    for _ in range(_DEPTH_MOST):
        inner = holder[key]
        keys: Sequence[Any] = (
            list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        )
        step = choices.below(len(keys) + 1) if keys else 0
        if step == 0:
            break
        holder, key = inner, keys[step - 1]
    return holder, key


def _edit(choices: Choices, holder: Any, key: Any, parts: Sequence[Any]) -> None:
    value = holder[key]
    match choices.below(4):
        case 0:
            holder[key] = value_of(choices, parts)
        case 1 if isinstance(value, dict):
            value[choices.of(KEYS) if choices.below(2) else text_of(choices)] = value_of(choices, parts)
        case 1 if isinstance(value, list):
            value.append(value_of(choices, parts))
        case 2 if isinstance(value, list):
            value *= choices.of(_TIMES) if len(value) < choices.of(_TIMES) else 1
        case 3 if isinstance(holder, list) or key != "":
            del holder[key]
        case _:
            holder[key] = text_of(choices)
