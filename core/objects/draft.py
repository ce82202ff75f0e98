"""A pod, or the template of one, as somebody wrote it: what the rules of admission read, gathered in one walk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, Self

from core import names
from core.objects import raw as read
from core.objects.job import Job
from core.objects.pod import Owner, controlling_owner
from core.objects.pod_resources import aggregate

_NOTHING: Final[Mapping[str, Any]] = {}
_TEXT: Final = frozenset({str, NoneType})
_AMOUNT: Final = frozenset({str, int, float, NoneType})
_OBJECT: Final = (dict, NoneType)
_STRING: Final = (str, NoneType)
_CLAIM: Final = ("name", "resourceClaimName", "resourceClaimTemplateName")
_GATE: Final = ("name",)


@dataclass(slots=True)
class Draft:
    """What a pod to be says. A value of the wrong type counts as absent, and makes the draft not `typed`.

    `annotations` are as they stand, `texts` those that are not null. `prefix` is where it stands in the object under review: empty for
    a pod itself, else such as `spec.template.`. `scheduler` is the one that will get its pods, `namespace` theirs (empty for
    `default`), `job` the Volcano Job that will make them.
    """

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    annotations: Mapping[str, Any]
    texts: Mapping[str, str]
    containers: list[Any]
    inits: list[Any]
    typed: bool
    """Whether every field that a rule reads has its JSON type; null has every type, but as an item of a list."""
    mgpu: bool
    """Whether any container, init containers included, has an mGPU key in its limits or requests, whatever the value."""
    claims: bool
    prefix: str
    scheduler: str
    namespace: str
    job: Job | None
    _limits: dict[str, int] | None = field(default=None, repr=False)
    _requests: dict[str, int] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        raw: object,
        prefix: str = "",
        *,
        namespace: str = "",
        scheduler: str = names.DEFAULT_SCHEDULER,
        job: Job | None = None,
    ) -> Self:
        """A pod, or the template that stands at `prefix`; `scheduler` is for a spec that names none."""
        pod = raw if isinstance(raw, dict) else _NOTHING
        metadata, spec = pod.get("metadata"), pod.get("spec")
        typed = isinstance(raw, _OBJECT) and isinstance(spec, _OBJECT) and typed_metadata(metadata)
        metadata = metadata if isinstance(metadata, dict) else _NOTHING
        spec = spec if isinstance(spec, dict) else _NOTHING
        annotations = metadata.get("annotations")
        texts = annotations = annotations if isinstance(annotations, dict) else _NOTHING
        if None in annotations.values():
            texts = read.texts(annotations)
        if not typed:
            texts = annotations = read.texts(annotations)
        containers, inits = spec.get("containers"), spec.get("initContainers")
        claims, gates = spec.get("resourceClaims"), spec.get("schedulingGates")
        if claims is not None or gates is not None:
            typed = typed and _named(claims, _CLAIM) and _named(gates, _GATE)
        containers_typed, mgpu = _walked(containers)
        if inits is not None:
            inits_typed, mgpu_too = _walked(inits)
            containers_typed, mgpu = containers_typed and inits_typed, mgpu or mgpu_too
        node, chosen, overhead = spec.get("nodeName"), spec.get("schedulerName"), spec.get("overhead")
        if not (isinstance(node, _STRING) and isinstance(chosen, _STRING) and _amounts(overhead)):
            typed = False
        return cls(
            metadata,
            spec,
            annotations,
            texts,
            containers if isinstance(containers, list) else [],
            inits if isinstance(inits, list) else [],
            typed and containers_typed,
            mgpu,
            isinstance(claims, list) and bool(claims),
            prefix,
            chosen if isinstance(chosen, str) and chosen else scheduler,
            namespace,
            job,
        )

    @property
    def cards(self) -> str:
        """The expression of its cards; an empty one names none."""
        return self.texts.get(names.CARD_NAME_ANNOTATION, "")

    @property
    def limits(self) -> dict[str, int]:
        """Resource -> thousandths of the whole pod."""
        if self._limits is None:
            self._limits = aggregate(self.spec, "limits")
        return self._limits

    @property
    def requests(self) -> dict[str, int]:
        """The same of its requests; one that is missing equals the limit."""
        if self._requests is None:
            self._requests = aggregate(self.spec, "requests")
        return self._requests

    @property
    def owner(self) -> Owner | None:
        """The controlling owner."""
        return controlling_owner(self.metadata) if "ownerReferences" in self.metadata else None

    def drop(self, *keys: str) -> None:
        """Takes annotations for absent."""
        if not self.annotations.keys().isdisjoint(keys):
            self.annotations = {key: text for key, text in self.annotations.items() if key not in keys}
            self.texts = read.texts(self.annotations)

    def path_of(self, annotation: str) -> str:
        """The path of one of its annotations in the object under review."""
        return f"{self.prefix}metadata.annotations[{annotation}]"


def typed_metadata(metadata: object) -> bool:
    """Whether what rules read in the metadata of any object has its JSON type."""
    if not isinstance(metadata, dict):
        return metadata is None
    for key in ("annotations", "labels"):
        entries = metadata.get(key)
        if not (
            _TEXT.issuperset(map(type, entries.values())) if isinstance(entries, dict) else entries is None
        ):
            return False
    read_here = (metadata.get("name"), metadata.get("generateName"), metadata.get("namespace"))
    return _TEXT.issuperset(map(type, read_here))


def _named(listed: object, keys: tuple[str, ...]) -> bool:
    """Whether it is a list of objects, in which these fields are texts."""
    if not isinstance(listed, list):
        return listed is None
    for item in listed:
        if not isinstance(item, dict) or not _TEXT.issuperset(map(type, map(item.get, keys))):
            return False
    return True


def _walked(containers: object) -> tuple[bool, bool]:
    """Of a list of containers: whether it is typed, and whether any of them asks for mGPU."""
    if not isinstance(containers, list):
        return containers is None, False
    typed, mgpu = True, False
    for container in containers:
        if not isinstance(container, dict):
            typed = False
            continue
        resources = container.get("resources")
        own = (container.get("name"), container.get("restartPolicy"))
        typed = typed and isinstance(resources, _OBJECT) and _TEXT.issuperset(map(type, own))
        if isinstance(resources, dict):
            for amounts in (resources.get("limits"), resources.get("requests")):
                if isinstance(amounts, dict):
                    typed = typed and _AMOUNT.issuperset(map(type, amounts.values()))
                    mgpu = mgpu or names.MGPU_CORE in amounts or names.MGPU_MEMORY in amounts
                elif amounts is not None:
                    typed = False
    return typed, mgpu


def _amounts(listed: object) -> bool:
    return _AMOUNT.issuperset(map(type, listed.values())) if isinstance(listed, dict) else listed is None
