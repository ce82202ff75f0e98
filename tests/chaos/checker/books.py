"""What pods ask for and are charged with, and what queues allow: by the documents of cards and shares."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.chaos.checker import devices, terms
from tests.chaos.checker.history import World
from tests.chaos.checker.log import Object

_SUFFIXES = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_ENDED = ("Succeeded", "Failed")
_ROOT = "root"


@dataclass(frozen=True, slots=True)
class Share:
    """What one container asks of mGPU cards: hundredths, and MiB (None: whole cards)."""

    container: str
    core: int
    memory: int | None


def whole(quantity: str | int) -> int:
    """A whole number as the API server writes it back: 2000 becomes `2k`."""
    text = str(quantity)
    digits = text.rstrip("".join(_SUFFIXES))
    return int(digits) * _SUFFIXES.get(text[len(digits) :], 1)


def annotations(thing: Object) -> Mapping[str, str]:
    """The annotations of an object."""
    return thing.get("metadata", {}).get("annotations") or {}


def alternatives(pod: Object) -> list[str]:
    """The cards of which the pod takes any one, leftmost preferred; none for a pod that names none."""
    return [card.strip() for card in annotations(pod).get(terms.CARD_NAME, "").split("|") if card.strip()]


def asked(pod: Object, resource: str) -> int:
    """How much of a resource the containers ask for together."""
    limits = (_limits(container) for container in pod["spec"]["containers"])
    return sum(whole(each.get(resource, 0)) for each in limits)


def shares(pod: Object) -> list[Share]:
    """The containers that ask for mGPU."""
    found = []
    for container in pod["spec"]["containers"]:
        limits = _limits(container)
        if terms.CORE in limits:
            memory = limits.get(terms.MEMORY)
            found.append(
                Share(container["name"], whole(limits[terms.CORE]), None if memory is None else whole(memory))
            )
    return found


def _limits(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return (container.get("resources") or {}).get("limits") or {}


def is_ours(pod: Object) -> bool:
    """Whether the pod asks for something that is held at the gate."""
    return bool(alternatives(pod) or shares(pod) or claiming(pod))


def claiming(pod: Object) -> bool:
    """Whether the pod has claims."""
    return bool(pod["spec"].get("resourceClaims"))


def gated(pod: Object) -> bool:
    """Whether the pod waits at the gate."""
    return any(gate["name"] == terms.GATE for gate in pod["spec"].get("schedulingGates") or ())


def node_of(pod: Object) -> str:
    """The node that the pod is bound to."""
    return str(pod["spec"].get("nodeName") or "")


def ended(pod: Object) -> bool:
    """Whether the pod has come to its end, a good one or not."""
    return (pod.get("status") or {}).get("phase") in _ENDED


def terminating(pod: Object) -> bool:
    """Whether the pod was deleted and is still there."""
    return "deletionTimestamp" in pod["metadata"]


def holds(pod: Object) -> bool:
    """Whether the pod holds quota: past the gate, and neither at its end nor deleted."""
    return is_ours(pod) and not gated(pod) and not ended(pod) and not terminating(pod)


def unrecorded(pod: Object) -> bool:
    """Whether the pod asks for mGPU and nothing says which cards it has."""
    return any(terms.INDEX_OF + share.container not in annotations(pod) for share in shares(pod))


def charge(pod: Object, nodes: Mapping[str, Object]) -> Counter[str]:
    """What the pod's queue is charged with: by its record; without one by the card of its node, else by the leftmost."""
    charged: Counter[str] = Counter()
    cards = alternatives(pod)
    record = annotations(pod).get(terms.ASSIGNED)
    if record is not None:
        charged.update({card: int(count) for card, count in json.loads(record).items()})
    elif cards:
        own = product(nodes.get(node_of(pod)))
        charged[own if own in cards else cards[0]] += asked(pod, terms.GPU)
    for share in shares(pod):
        charged[terms.CORE] += share.core
        charged[terms.MEMORY] += share.memory or 0
    return charged


def product(node: Object | None) -> str:
    """The card of a node."""
    return str(((node or {}).get("metadata", {}).get("labels") or {}).get(terms.PRODUCT, ""))


def group_of(pod: Object, world: World) -> Object | None:
    """The PodGroup that the pod names, if it is there."""
    name, namespace = annotations(pod).get(terms.GROUP_NAME), pod["metadata"].get("namespace")
    if not name:
        return None
    found = (g["metadata"] for g in world.all("podgroups"))
    uid = next((m["uid"] for m in found if (m["name"], m.get("namespace")) == (name, namespace)), None)
    return world.objects["podgroups"][uid] if uid else None


def queue_of(pod: Object, world: World, default: str) -> str:
    """The queue that the pod is charged to, or would be."""
    record = annotations(pod).get(terms.CHARGED)
    if record:
        return record
    group = group_of(pod, world)
    named = group["spec"].get("queue") if group else annotations(pod).get(terms.QUEUE_NAME)
    return str(named or default)


def limits(queue: Object | None) -> dict[str, int]:
    """What a queue allows, by card, of mGPU by resource, and of devices by class."""
    if queue is None:
        return {}
    quota = json.loads(annotations(queue).get(terms.CARD_QUOTA) or "{}")
    capability = (queue.get("spec") or {}).get("capability") or {}
    own = {card: int(count) for card, count in quota.items()}
    shared = {key: whole(capability[key]) for key in (terms.CORE, terms.MEMORY) if key in capability}
    return own | shared | devices.limits(queue)


def chain(queue: str, queues: Mapping[str, Object]) -> list[str]:
    """The queue and those above it."""
    found = [queue]
    while parent := ((queues.get(found[-1]) or {}).get("spec") or {}).get("parent"):
        if parent in found or parent == _ROOT:
            break
        found.append(parent)
    return found


def usage(
    world: World, pods: Iterable[Object], default: str, nodes: Mapping[str, Object] | None = None
) -> dict[str, Counter[str]]:
    """What these pods are charged with, by queue, those below each queue included."""
    queues, nodes = world.named("queues"), world.named("nodes") if nodes is None else nodes
    found: dict[str, Counter[str]] = {}
    claims: dict[str, list[devices.Claims]] = {}
    for pod in pods:
        charged, claimed = charge(pod, nodes), devices.claims(pod, world)
        for queue in chain(queue_of(pod, world, default), queues):
            found.setdefault(queue, Counter()).update(charged)
            claims.setdefault(queue, []).append(claimed)
    for queue, many in claims.items():
        found[queue].update(devices.together(many))
    return found


def limited(queue: str, key: str, own: bool, allowed: Mapping[str, int]) -> int | None:
    """How much of a card, of a resource of mGPU or of a class a queue allows; None: it does not limit that.

    The pod's own queue has to list the card; one above, and one that says nothing of mGPU or the class, limits nothing.
    """
    if key in allowed:
        return allowed[key]
    return 0 if own and key not in (terms.CORE, terms.MEMORY) and not key.startswith(devices.PREFIX) else None
