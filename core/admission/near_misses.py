"""What a manifest probably means and does not say: keys that nobody reads, and cards without what has to go with them.

For people who look at manifests. The API server sends the webhook only what it can judge, and most of this is no more than a
guess.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from core import names, reasons, spelling
from core.cards import expression
from core.objects import raw as read
from core.objects.owner import controlling_owner
from core.objects.pod_resources import aggregate, extended
from core.queues.attribution import is_job
from core.settings import Settings
from core.violations import Hint, child, show
from core.workloads import KINDS, Kinds, kinds_with, pod_sets

_POD_KEYS: Final = (
    names.CARD_NAME_ANNOTATION,
    names.QUEUE_NAME_ANNOTATION,
    names.JOB_QUEUE_ANNOTATION,
    names.GROUP_NAME_ANNOTATION,
    *names.GANG_KEYS,
    names.MGPU_MULTIPLE_ANNOTATION,
    names.MGPU_POLICY_KEY,
    names.CROSSQUOTA_STRATEGY_ANNOTATION,
)
_QUEUE_KEYS: Final = (
    names.CARD_QUOTA_ANNOTATION,
    names.DRA_QUOTA_ANNOTATION,
    names.NAMESPACES_ANNOTATION,
    names.NAMESPACE_SELECTOR_ANNOTATION,
)
_GROUP_KEYS: Final = (names.CARD_REQUEST_ANNOTATION,)
_VOLCANO_JOBS_ONLY: Final = {names.JOB_QUEUE_ANNOTATION: names.QUEUE_NAME_ANNOTATION}
"""Keys that the pods of other owners have another one for."""
_NO_LABELS: Final = (
    names.CARD_NAME_ANNOTATION,
    names.QUEUE_NAME_ANNOTATION,
    *names.GANG_KEYS,
    *_QUEUE_KEYS,
    *_GROUP_KEYS,
)
"""What nobody else has as labels: Volcano writes the queue of its Jobs as one, nodes have the policy of their shares."""
_NAMESPACE_KEYS: Final = (names.QUEUE_NAME_ANNOTATION, names.DEFAULT_CARD_ANNOTATION)
_DOMAINS: Final = frozenset(key.partition("/")[0] for key in (*_POD_KEYS, *_QUEUE_KEYS, *_GROUP_KEYS))
_TOLD: Final = 20
_CLOSE: Final = 0.8

_POD: Final = ("", "Pod")
_QUEUE: Final = ("scheduling.volcano.sh", "Queue")
_JOB: Final = ("batch.volcano.sh", "Job")
_GROUP: Final = ("scheduling.volcano.sh", "PodGroup")
_NAMESPACE: Final = ("", "Namespace")
_READ: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    _QUEUE: _QUEUE_KEYS,
    _JOB: _GROUP_KEYS,
    _GROUP: _GROUP_KEYS,
    _NAMESPACE: _NAMESPACE_KEYS,
}
"""What is read on an object itself that is no pod."""
_QUEUE_SECTIONS: Final = (("capability",), ("deserved",), ("guarantee", "resource"))


def hints(group: str, kind: str, raw: Mapping[str, Any], settings: Settings) -> list[Hint]:
    """The near misses of one object, the first few."""
    what, kinds = (group, kind), kinds_with(settings.workloads)
    found = (
        *_keys(what, raw, kinds),
        *(_capability(raw) if what == _QUEUE else ()),
        *(hint for place, pod in _whole_pods(what, raw, kinds) for hint in _pod(place, pod, settings)),
    )
    return list(islice(dict.fromkeys(found), _TOLD))


def pods_of(
    group: str, kind: str, raw: Mapping[str, Any], kinds: Kinds = KINDS
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path prefix, pod or template) of every pod that the object is or describes."""
    if (group, kind) == _POD:
        yield "", raw
    elif (group, kind) in kinds:
        for made in pod_sets(group, kind, raw, nodes=0, kinds=kinds):
            # Of parts that stand in several places nobody could say which one is meant.
            if not made.moved:
                yield f"{made.path}.", made.template


def _whole_pods(
    what: tuple[str, str], raw: Mapping[str, Any], kinds: Kinds
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Those of them to which nothing else adds what they lack."""
    return pods_of(*what, raw, kinds) if what not in kinds or not kinds[what].rest else iter(())


# -- keys --------------------------------------------------------------------------------------------------------


def _keys(what: tuple[str, str], raw: Mapping[str, Any], kinds: Kinds) -> Iterator[Hint]:
    """Annotations of the object, and of the pods that it describes."""
    pods = list(pods_of(*what, raw, kinds))
    if what != _POD:
        yield from _among(raw, "", _READ.get(what, ()), pods)
    for prefix, pod in pods:
        of_job = what == _JOB or is_job(controlling_owner(read.mapping(pod, "metadata")))
        read_here = [key for key in _POD_KEYS if of_job or key not in _VOLCANO_JOBS_ONLY]
        yield from _among(pod, prefix, read_here, [])


def _among(
    thing: Mapping[str, Any],
    prefix: str,
    read_here: Collection[str],
    pods: Collection[tuple[str, Mapping[str, Any]]],
) -> Iterator[Hint]:
    path = f"{prefix}metadata.annotations"
    annotations = read.mapping(thing, "metadata", "annotations")
    for key, _ in read.entries(thing, "metadata", "annotations"):
        if key in read_here or key == names.CARD_NAME_MISPRINT:
            continue
        if key in _POD_KEYS and pods and all(key in _annotations(pod) for _, pod in pods):
            continue
        detail = _elsewhere(key, pods) or _misspelt(key, read_here or _POD_KEYS)
        if detail:
            yield _unread(path, key, detail)
    for key, _ in read.entries(thing, "metadata", "labels"):
        if key in _NO_LABELS and key in read_here and key not in annotations:
            yield _unread(f"{prefix}metadata.labels", key, "is a label here, and read as an annotation only")


def _annotations(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return read.mapping(pod, "metadata", "annotations")


def _elsewhere(key: str, pods: Collection[tuple[str, Mapping[str, Any]]]) -> str:
    """Where a key is read that is none of this object; empty for one that is read nowhere. `pods` are those it describes."""
    templates = f"{next(iter(pods))[0]}metadata.annotations" if pods else ""
    if key in _VOLCANO_JOBS_ONLY:
        there = f" in {templates}" if templates else ""
        return f"is read on pods of Volcano Jobs only; did you mean {_VOLCANO_JOBS_ONLY[key]}{there}?"
    if key in _POD_KEYS:
        return f"is read on pods only: put it into {templates}" if pods else "is read on pods only"
    if key in _QUEUE_KEYS:
        return "is read on queues only"
    return "is read on PodGroups and Volcano Jobs only" if key in _GROUP_KEYS else ""


def _misspelt(key: str, known: Collection[str]) -> str:
    """Which key one of our domains probably stands for; empty for one of others."""
    near = _nearest(key, known) if key.partition("/")[0] in _DOMAINS else ""
    return f"is never read; did you mean {near}?" if near else ""


def _nearest(key: str, known: Collection[str]) -> str:
    """The known key that this one may stand for: the same but for its punctuation, or nearly the same."""
    domain = key.partition("/")[0]
    # The last one stays: of two that differ in their domain alone, the one of the same domain.
    names_of = {_name(one): one for one in sorted(known, key=lambda one: one.partition("/")[0] == domain)}
    return names_of.get(spelling.alike(_name(key), names_of, _CLOSE), "")


def _name(key: str) -> str:
    return key.partition("/")[2]


def _unread(path: str, key: str, detail: str) -> Hint:
    return Hint(reasons.KEY_UNREAD, child(path, key), detail)


def _capability(queue: Mapping[str, Any]) -> Iterator[Hint]:
    """Keys of resource lists that look like cards: no resource has capital letters or a bar."""
    for section in _QUEUE_SECTIONS:
        for key, _ in read.entries(queue, "spec", *section):
            if expression.is_share(key) or ("/" not in key and any(letter.isupper() for letter in key)):
                detail = f"is no resource; cards are limited by the annotation {names.CARD_QUOTA_ANNOTATION}"
                yield _unread(f"spec.{'.'.join(section)}", key, detail)


# -- pods --------------------------------------------------------------------------------------------------------


def _pod(prefix: str, pod: Mapping[str, Any], settings: Settings) -> Iterator[Hint]:
    """A card without a resource."""
    if not settings.features.cards:
        return
    spec = read.mapping(pod, "spec")
    card = read.texts(pod, "metadata", "annotations").get(names.CARD_NAME_ANNOTATION)
    if card and not extended(aggregate(spec, "requests")) and not _asks_zero(spec):
        detail = f"card {show(card)} needs its resource, such as nvidia.com/gpu, in the limits of a container"
        yield Hint(reasons.CARD_RESOURCE_MISSING, f"{prefix}spec.containers", detail)


def _asks_zero(spec: Mapping[str, Any]) -> bool:
    """Whether an extended resource is there with an amount of 0: somebody has thought of it."""
    return any("/" in resource for resource in aggregate(spec, "requests"))
