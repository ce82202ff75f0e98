"""Whether the fields that the rules read have the right JSON types.

The API server has checked the types of its own kinds before it asks a webhook, but custom resources are checked
against their schema only afterwards, and manifests from a file were checked by nobody. Whoever reads an object for the rules
notices a wrong type (`core.objects.draft`); the shapes here then say where it is, and the rules are not asked. `null` is right everywhere but as a list item, since the API machinery reads it as absent.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import NoneType
from typing import Any, Final

from core import reasons
from core.admission import limits
from core.objects import raw as read
from core.objects.draft import MOST_PARTS, Draft, typed_metadata
from core.violations import Violation, child

Violations = tuple[Violation, ...]

_REPORTED: Final = 21
"""One more than a message lists, so that it can say that there are more."""


Faults = Callable[[object, str], Iterator[Violation]]
"""Names every place where a value (given with its own path) has not the shape."""


def _wrong(value: object, path: str, wanted: str) -> Violation:
    return Violation(reasons.OBJECT_MALFORMED, path or "(the object)", f"must be {wanted}", value=value)


_TEXT: Final = (str, NoneType)
_AMOUNT: Final = (str, int, float, NoneType)


def text(value: object, path: str) -> Iterator[Violation]:
    """A string."""
    if not isinstance(value, _TEXT):
        yield _wrong(value, path, "a string")


def texts(value: object, path: str) -> Iterator[Violation]:
    """An object of strings: annotations, labels."""
    return _entries(value, path, _TEXT, "a string")


def amounts(value: object, path: str) -> Iterator[Violation]:
    """A resource list, by the JSON types that a quantity may have; whether it can be read is the rules' business."""
    return _entries(value, path, _AMOUNT, "a quantity, such as 4, 500m or 16Gi")


def _entries(value: object, path: str, types: tuple[type, ...], wanted: str) -> Iterator[Violation]:
    if isinstance(value, dict):
        for key, entry in value.items():
            if type(entry) not in types:
                yield _wrong(entry, child(path, key), wanted)
    elif value is not None:
        yield _wrong(value, path, "an object")


def fields(**shapes: Faults) -> Faults:
    """An object whose named members have the shapes; other members are not looked at."""

    def faults(value: object, path: str) -> Iterator[Violation]:
        if isinstance(value, dict):
            for key, shape in shapes.items():
                yield from shape(value.get(key), f"{path}.{key}" if path else key)
        elif value is not None:
            yield _wrong(value, path, "an object")

    return faults


def items(shape: Faults) -> Faults:
    """A list of objects of the shape."""

    def faults(value: object, path: str) -> Iterator[Violation]:
        if isinstance(value, list):
            for index, item in enumerate(value):
                place = f"{path}[{index}]"
                if item is None:
                    yield _wrong(item, place, "an object")
                yield from shape(item, place)
        elif value is not None:
            yield _wrong(value, path, "a list")

    return faults


_METADATA: Final = fields(name=text, generateName=text, namespace=text, annotations=texts, labels=texts)
_CONTAINERS: Final = items(
    fields(
        name=text,
        restartPolicy=text,
        resources=fields(limits=amounts, requests=amounts),
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
        overhead=amounts,
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


def _check(shape: Faults, raw: Mapping[str, Any]) -> Violations:
    return tuple(islice(shape(raw, ""), _REPORTED))


def leads(raw: Mapping[str, Any], *path: str) -> bool:
    """Whether the metadata of an object are typed, and every step of the path is an object or nothing."""
    if not typed_metadata(raw.get("metadata")):
        return False
    below: Any = raw
    for key in path:
        below = below.get(key)
        if below is None:
            return True
        if not isinstance(below, dict):
            return False
    return True


def leads_to_tasks(job: Mapping[str, Any]) -> bool:
    """Whether everything around the templates of a Volcano Job is typed."""
    if not leads(job, "spec"):
        return False
    spec = read.mapping(job, "spec")
    tasks = spec.get("tasks")
    texts = [spec.get("queue"), spec.get("schedulerName")]
    if isinstance(tasks, list):
        if not {dict}.issuperset(map(type, tasks)):
            return False
        texts += [task.get("name") for task in tasks]
    return {str, NoneType}.issuperset(map(type, texts)) and isinstance(tasks, list | None)


def too_large(draft: Draft) -> Violations:
    """Of a pod or template with more than is looked at, that it is so."""
    return limits.parts(draft.parts, MOST_PARTS, f"{draft.prefix}spec")


def wrong(
    draft: Draft, raw: Mapping[str, Any], shape: Callable[[Mapping[str, Any]], Violations]
) -> Violations:
    """Why the draft of an object, or what leads to it there, is not typed; `shape` says what has the wrong type."""
    return too_large(draft) or shape(raw)


def pod(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in a v1 Pod."""
    return _check(_POD, raw)


def template(raw: Mapping[str, Any], path: str) -> Violations:
    """What has the wrong type in a pod template that stands at a path."""
    return tuple(islice(_POD(raw, path), _REPORTED))


def annotated(raw: Mapping[str, Any]) -> Violations:
    """What has the wrong type in an object of which only the metadata is read."""
    return () if leads(raw) else _check(_ANNOTATED, raw)


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
