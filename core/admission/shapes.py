"""Whether the fields that the rules read have the right JSON types.

The API server has checked the types of its own kinds before it asks a webhook, but custom resources are checked
against their schema only afterwards, and manifests from a file were checked by nobody. The rules behind this check
may rely on it. `null` is right everywhere but as a list item, since the API machinery reads it as absent.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from core import reasons
from core.violations import Violation, child

Violations = tuple[Violation, ...]

_REPORTED: Final = 21
"""One more than a message lists, so that it can say that there are more."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`holds` tells whether a value has the shape; `faults` names every place where it has not, `path` being its own.

    Two functions, since nearly every value has its shape, and then no path is needed.
    """

    holds: Callable[[object], bool]
    faults: Callable[[object, str], Iterator[Violation]]


def _wrong(value: object, path: str, wanted: str) -> Violation:
    return Violation(reasons.OBJECT_MALFORMED, path or "(the object)", f"must be {wanted}", value=value)


def _leaf(holds: Callable[[object], bool], wanted: str) -> Shape:
    def faults(value: object, path: str) -> Iterator[Violation]:
        if not holds(value):
            yield _wrong(value, path, wanted)

    return Shape(holds, faults)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_amount(value: object) -> bool:
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))


text: Final = _leaf(_is_text, "a string")
"""A string."""
amount: Final = _leaf(_is_amount, "a quantity, such as 4, 500m or 16Gi")
"""The JSON types that a resource quantity may have; whether it can be read is the rules' business."""


def entries(shape: Shape) -> Shape:
    """An object whose every value has the shape: annotations, labels, a resource list."""
    entry_holds = shape.holds

    def holds(value: object) -> bool:
        return value is None or (isinstance(value, dict) and all(map(entry_holds, value.values())))

    def faults(value: object, path: str) -> Iterator[Violation]:
        if isinstance(value, dict):
            for key, entry in value.items():
                yield from shape.faults(entry, child(path, key))
        elif value is not None:
            yield _wrong(value, path, "an object")

    return Shape(holds, faults)


def fields(**shapes: Shape) -> Shape:
    """An object whose named members have the shapes; other members are not looked at."""
    members = tuple((key, shape.holds) for key, shape in shapes.items())

    def holds(value: object) -> bool:
        if not isinstance(value, dict):
            return value is None
        for key, member_holds in members:  # noqa: SIM110 - a generator costs more than all that it would do here
            if not member_holds(value.get(key)):
                return False
        return True

    def faults(value: object, path: str) -> Iterator[Violation]:
        if isinstance(value, dict):
            for key, shape in shapes.items():
                yield from shape.faults(value.get(key), f"{path}.{key}" if path else key)
        elif value is not None:
            yield _wrong(value, path, "an object")

    return Shape(holds, faults)


def items(shape: Shape) -> Shape:
    """A list of objects of the shape."""
    item_holds = shape.holds

    def holds(value: object) -> bool:
        return value is None or (
            isinstance(value, list) and None not in value and all(map(item_holds, value))
        )

    def faults(value: object, path: str) -> Iterator[Violation]:
        if isinstance(value, list):
            for index, item in enumerate(value):
                place = f"{path}[{index}]"
                if item is None:
                    yield _wrong(item, place, "an object")
                yield from shape.faults(item, place)
        elif value is not None:
            yield _wrong(value, path, "a list")

    return Shape(holds, faults)


_METADATA: Final = fields(
    name=text, generateName=text, namespace=text, annotations=entries(text), labels=entries(text)
)
_CONTAINERS: Final = items(
    fields(
        name=text,
        restartPolicy=text,
        resources=fields(limits=entries(amount), requests=entries(amount)),
    )
)
_POD: Final = fields(
    metadata=_METADATA,
    spec=fields(
        nodeName=text,
        schedulerName=text,
        containers=_CONTAINERS,
        initContainers=_CONTAINERS,
        resourceClaims=items(fields(name=text, resourceClaimName=text, resourceClaimTemplateName=text)),
        schedulingGates=items(fields(name=text)),
        overhead=entries(amount),
    ),
)
_ANNOTATED: Final = fields(metadata=_METADATA)
_POD_GROUP: Final = fields(metadata=_METADATA, spec=fields(queue=text))
_TEMPLATED: Final = fields(metadata=_METADATA, spec=fields(template=_POD))
_CRON_JOB: Final = fields(metadata=_METADATA, spec=fields(jobTemplate=fields(spec=fields(template=_POD))))
_VOLCANO_JOB: Final = fields(
    metadata=_METADATA,
    spec=fields(queue=text, schedulerName=text, tasks=items(fields(name=text, template=_POD))),
)


def _check(shape: Shape, raw: Mapping[str, Any]) -> Violations:
    return () if shape.holds(raw) else tuple(islice(shape.faults(raw, ""), _REPORTED))


def pod(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in a v1 Pod."""
    return _check(_POD, raw)


def annotated(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in an object of which only the metadata is read."""
    return _check(_ANNOTATED, raw)


def pod_group(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in a PodGroup."""
    return _check(_POD_GROUP, raw)


def templated(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in an object with a pod template at `spec.template`."""
    return _check(_TEMPLATED, raw)


def cron_job(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in a batch CronJob."""
    return _check(_CRON_JOB, raw)


def volcano_job(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in a Volcano Job."""
    return _check(_VOLCANO_JOB, raw)
