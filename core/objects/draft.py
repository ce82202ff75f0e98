"""A pod, or the template of one, as somebody wrote it: what the rules of admission read, gathered in one walk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, Self

from core import names
from core.objects import raw as read
from core.objects.job import Job
from core.objects.owner import Owner, controlling_owner
from core.objects.pod_resources import aggregate
from core.quantity import QuantityError, milli, milli_of_text

MOST_PARTS: Final = 10_000
"""How much of a pod is looked at: a container counts as five parts, an amount, a claim, a gate and an owner as one each."""
_CONTAINER: Final = 5
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
    cards: str
    """The expression of its cards; an empty one names none."""
    containers: list[Any]
    inits: list[Any]
    typed: bool
    """Whether every field that a rule reads has its JSON type, and all of them are looked at; null has every type, but as an
    item of a list."""
    parts: int
    """How much there is to be looked at, see `MOST_PARTS`; a pod with more is not taken apart any further."""
    readable: bool
    """Whether every amount of its containers is a quantity, as far as that was looked at: only of a pod without anything but containers."""
    mgpu: bool
    """Whether any container, init containers included, has an mGPU key in its limits or requests, whatever the value."""
    claims: bool
    limits: dict[str, int]
    """Resource -> thousandths of the whole pod. The API server defaults no templates, so these count before requests."""
    requests: dict[str, int]
    """The same of its requests; one that is missing equals the limit."""
    prefix: str
    scheduler: str
    namespace: str
    job: Job | None
    _owner: Owner | bool | None = field(default=False, repr=False)

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
        if not typed:
            texts = annotations = read.texts(annotations)
        elif None in annotations.values():
            texts = read.texts(annotations)
        listed, inits = spec.get("containers"), spec.get("initContainers")
        claims, gates = spec.get("resourceClaims"), spec.get("schedulingGates")
        parts = 0
        for some in (claims, gates, metadata.get("ownerReferences"), spec.get("overhead")):
            parts += len(some) if isinstance(some, list | dict) else 0
        containers = _Containers(parts, listed, inits)
        if containers.parts > MOST_PARTS:
            typed = False
        elif claims is not None or gates is not None:
            typed = typed and _named(claims, _CLAIM) and _named(gates, _GATE)
        if inits is not None or "overhead" in spec or "resources" in spec:
            typed = containers.share(spec) and typed
        node, chosen = spec.get("nodeName"), spec.get("schedulerName")
        return cls(
            metadata,
            spec,
            annotations,
            texts,
            texts.get(names.CARD_NAME_ANNOTATION, ""),
            listed if isinstance(listed, list) else [],
            inits if isinstance(inits, list) else [],
            typed and containers.typed and isinstance(node, _STRING) and isinstance(chosen, _STRING),
            containers.parts,
            containers.readable,
            containers.mgpu,
            isinstance(claims, list) and bool(claims),
            containers.limits,
            containers.requests,
            prefix,
            chosen if isinstance(chosen, str) and chosen else scheduler,
            namespace,
            job,
        )

    @property
    def owner(self) -> Owner | None:
        """The controlling owner."""
        if isinstance(self._owner, bool):
            self._owner = controlling_owner(self.metadata) if "ownerReferences" in self.metadata else None
        return self._owner

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


class _Containers:
    """What the containers of a pod say together, and the sums of their amounts, in one look at each of them."""

    __slots__ = ("limits", "mgpu", "parts", "readable", "requests", "typed")

    def __init__(self, parts: int, *lists: object) -> None:
        self.typed, self.readable, self.mgpu, self.parts = True, True, False, parts
        self.limits: dict[str, int] = {}
        self.requests: dict[str, int] = {}
        for listed in lists:
            if not isinstance(listed, list):
                self.typed = self.typed and listed is None
                continue
            self.parts += _CONTAINER * len(listed)
            for container in listed:
                if self.parts > MOST_PARTS:
                    break
                if not isinstance(container, dict):
                    self.typed = False
                    continue
                resources = container.get("resources")
                own = (container.get("name"), container.get("restartPolicy"))
                self.typed = (
                    self.typed and isinstance(resources, _OBJECT) and _TEXT.issuperset(map(type, own))
                )
                if isinstance(resources, dict):
                    self._add(resources)

    def share(self, spec: Mapping[str, Any]) -> bool:
        """What the containers share, or use one after the other, is not their sum. Returns whether the overhead is typed."""
        overhead, whole = spec.get("overhead"), read.mapping(spec, "resources")
        self.parts += len(read.mapping(whole, "limits")) + len(read.mapping(whole, "requests"))
        self.readable = False
        if self.parts <= MOST_PARTS:
            self.limits, self.requests = aggregate(spec, "limits"), aggregate(spec, "requests")
        return overhead is None or (
            isinstance(overhead, dict) and _AMOUNT.issuperset(map(type, overhead.values()))
        )

    def _add(self, resources: Mapping[str, Any]) -> None:
        asked: dict[str, int] = {}
        for kind, total in (("limits", self.limits), ("requests", self.requests)):
            amounts = resources.get(kind)
            if isinstance(amounts, dict):
                self.parts += len(amounts)
                if self.parts > MOST_PARTS:
                    break
                self.typed = self.typed and _AMOUNT.issuperset(map(type, amounts.values()))
                self.mgpu = self.mgpu or names.MGPU_CORE in amounts or names.MGPU_MEMORY in amounts
                for name, value in amounts.items():
                    try:
                        # A text that was read before costs no call.
                        asked[name] = milli_of_text(value) if isinstance(value, str) else milli(value)
                    except QuantityError:
                        self.readable = False
            elif amounts is not None:
                self.typed = False
            # A request that is missing equals the limit, as the API server defaults it.
            for name, thousandths in asked.items():
                if isinstance(name, str):
                    total[name] = total.get(name, 0) + thousandths
