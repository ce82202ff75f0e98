"""What else would help: another card, a gate taken away, a queue opened, made, or told to admit the namespace, a group made whole."""

from dataclasses import replace
from typing import Final

from core import names, reasons
from core.answers.quota import card_quota
from core.answers.remedy import Case, Found, Step
from core.answers.words import counted, listed
from core.cards.expression import is_excessive, split
from core.objects import Group, Pod, Queue, group, group_key, queue
from core.queues.access import problem_of
from core.queues.attribution import Source
from core.queues.ledger import Ledger
from core.queues.spelling import nearest as nearest_queue

_CARDS: Final = 8
_READ: Final = 120


def name_another_card(case: Case) -> Found | None:
    """A card of the queue's quota that the pod does not name and that some node could run it with, for all members that name the same."""
    if case.hold.behind is not None or not case.target.pod.card_name:
        return None
    ledger, pod = case.whatif.ledger, case.target.pod
    limits, asked = ledger.limits.get(case.target.queue), case.target.demand.card
    named, least = set(split(pod.card_name)), asked.milli if asked is not None else 0
    others = [] if limits is None else [card for card, milli in sorted(limits.cards.items()) if milli > 0]
    known = ledger.inventory
    served = [card for card in others if known.nodes_with(card) and known.could_hold(card, least)]
    for card in [card for card in served if card not in named][:_CARDS]:
        found = _renamed(case, pod, card)
        if found.hold is None and case.finds_a_node(found.change):
            return found
    return None


def correct_card(case: Case) -> Found | None:
    """A card with which some node could run the pod, for one that none has and that is spelt nearly so."""
    ledger, pod = case.whatif.ledger, case.obstacle.pod
    known = ledger.inventory
    if case.hold.why.code != reasons.GET_TASK_REQUEST_RESOURCE_FAILED or is_excessive(pod.card_name):
        return None
    if any(known.resources_of(card) for card in split(pod.card_name)):
        return None
    for near in (near for card in split(pod.card_name) if (near := known.nearest(card))):
        wanted = max((pod.limits.get(resource, 0) for resource in known.resources_of(near)), default=0)
        if known.could_hold(near, wanted):
            found = _renamed(case, pod, near)
            if case.finds_a_node(found.change):
                return found
    return None


def _renamed(case: Case, pod: Pod, card: str) -> Found:
    """The pod, and the waiting members of its group that name the same, with another card."""
    alike = [one for one in _members(case.whatif.ledger, pod) if one.card_name == pod.card_name]
    changed = (
        replace(one, annotations={**one.annotations, names.CARD_NAME_ANNOTATION: card})
        for one in map(case.changed, alike)
    )
    change = case.change.pod(*changed)
    rest = f", on all {counted(len(alike), 'pod')} of the group" if len(alike) > 1 else ""
    text = f"name {card} instead of {_short(pod.card_name)}: {names.CARD_NAME_ANNOTATION}={card}{rest}"
    step = Step("card", text, object=f"Pod {pod.key}", key=card)
    return Found((step,), change, case.outcome(change))


def _short(cards: str) -> str:
    """An expression as people want to read it again."""
    return cards if len(cards) <= _READ else f"{cards[:_READ]}..."


def correct_queue(case: Case) -> Found | None:
    """A queue that is there, for one that is not and that is spelt nearly so; where the pod or its PodGroup names it."""
    entry, ledger = case.obstacle, case.whatif.ledger
    if case.hold.why.code != reasons.QUEUE_NOT_FOUND:
        return None
    near = nearest_queue(entry.queue, entry.pod.namespace, ledger)
    source = ledger.queue_source(entry.pod)
    there = ledger.group_of(entry.pod)
    if not near:
        return None
    if source is Source.GROUP and there is not None and there.stored:
        where = there.title
        change = case.change.group(replace(there, queue=near))
    elif source is Source.ANNOTATION:
        where, key = f"Pod {entry.pod.key}", names.QUEUE_NAME_ANNOTATION
        alike = [one for one in _members(ledger, entry.pod) if one.annotations.get(key) == entry.queue]
        renamed = (
            replace(one, annotations={**one.annotations, key: near}) for one in map(case.changed, alike)
        )
        change = case.change.pod(*renamed)
    else:
        return None
    step = Step("queue", f"name queue {near} instead of {entry.queue} in {where}", object=where)
    return Found((step,), change, case.outcome(change))


def take_gates(case: Case) -> Found | None:
    """The gates of others gone from the pod, and from the waiting members of its group."""
    ledger = case.whatif.ledger
    obstacle = case.obstacle.pod
    members = map(case.changed, (obstacle, *_members(ledger, obstacle)))
    gated = {one.uid: one for one in members if ledger.stages.other_gates(one)}
    if case.hold.why.code not in (reasons.OTHER_GATES, reasons.GANG_INCOMPLETE) or not gated:
        return None
    gates = sorted({gate for one in gated.values() for gate in ledger.stages.other_gates(one)})
    change = case.change.pod(*(replace(one, gates=(names.GATE,)) for one in gated.values()))
    where = "" if len(gated) == 1 else f" of {counted(len(gated), 'pod')} of the group"
    text = f"whoever put them there takes away the gates {listed(gates)}{where}"
    pods = tuple(one.key for one in gated.values())
    step = Step("gate", text, object=f"Pod {obstacle.key}", pods=pods)
    return Found((step,), change, case.outcome(change))


def mend_queue(case: Case) -> Found | None:
    """The queue made, opened, or told to admit the namespace."""
    entry = case.obstacle
    name, namespace = entry.queue, entry.pod.namespace
    found = case.change.queues.get(name) or case.whatif.ledger.queues.get(name)
    match case.hold.why.code:
        case reasons.QUEUE_NOT_FOUND if found is None:
            made = queue.project({"metadata": {"name": name}, "status": {"state": "Open"}})
            quota = _first_quota(case)
            made = made if quota is None else replace(made, card_quota=quota)
            text = f"create queue {name}" + (f" with the card quota {quota}" if quota else "")
            step = Step("create", text, object=f"Queue {name}")
        case reasons.QUEUE_NOT_OPEN if found is not None and name != names.ROOT_QUEUE:
            made = replace(found, state="Open")
            step = Step("open", f"open queue {name}, which is {found.state}", object=f"Queue {name}")
        case reasons.QUEUE_NOT_ALLOWED if found is not None:
            made = _admitting(found, namespace)
            text = f"have queue {name} admit namespace {namespace}: {names.NAMESPACES_ANNOTATION}={made.namespaces}"
            step = Step("admit", text, object=f"Queue {name}")
        case _:
            return None
    change = case.change.queue(made)
    return Found((step,), change, case.outcome(change))


def _first_quota(case: Case) -> str | None:
    """Enough for the pod beside those that are charged to the queue as if it were there: it may have been deleted under them."""
    entry = case.obstacle
    asked = entry.demand.card
    if asked is None:
        return None
    card = asked.alternatives[0]
    milli = case.whatif.ledger.used(entry.queue, card) + asked.milli
    return card_quota(queue.project({}), card, -(-milli // 1000))


def _admitting(found: Queue, namespace: str) -> Queue:
    """An annotation that cannot be read admits nobody; it is replaced."""
    listed_now = found.namespaces or ""
    if listed_now and problem_of(names.NAMESPACES_ANNOTATION, listed_now):
        listed_now = ""
    return replace(found, namespaces=f"{listed_now},{namespace}" if listed_now else namespace)


def mend_group(case: Case) -> Found | None:
    """The PodGroup made that a pod names, or its minimum brought down to the members that there are."""
    entry, ledger = case.obstacle, case.whatif.ledger
    pod = entry.pod
    there = ledger.group_of(pod)
    missing = ledger.missing_group(pod)
    if case.hold.why.code == reasons.POD_GROUP_NOT_FOUND and missing is not None:
        made = _new_group(pod, missing, entry.queue)
        step = Step("group", f"create {made.title}", object=made.title)
    elif case.hold.why.code == reasons.GANG_INCOMPLETE and there is not None:
        with case.whatif.made(case.change):
            progress = ledger.groups.progress(there)
            ready = sum(_may_start(ledger, one) for one in _members(ledger, pod))
        enough = progress.counted + ready
        if enough < 1:
            return None
        tasks = progress.minimum.tasks
        made = replace(there, min_member=enough, min_task_member={})
        lacking = max(progress.missing, sum(progress.missing_tasks.values())) - ready
        step = Step(
            "members",
            _smaller(there, enough, lacking, without_tasks=bool(tasks) and sum(tasks.values()) <= enough),
            object=there.title,
            amount=max(1, lacking) * 1000,
        )
    else:
        return None
    change = case.change.group(made)
    return Found((step,), change, case.outcome(change))


def _smaller(there: Group, enough: int, lacking: int, *, without_tasks: bool) -> str:
    """What is to be written so that a group needs no more members than there are, and why."""
    lacks = f", which lacks {counted(lacking, 'member')}" if lacking > 0 else ""
    if not there.stored:
        size = f"{names.GANG_SIZE_ANNOTATION} {enough} instead of {there.min_member}"
        return f"{size} in the pod template of {there.title}{lacks}; its pods have to be made anew for that"
    if there.kubernetes:
        size = f"{there.minimum_field} {enough} instead of {there.min_member}"
        return f"{size} in {there.title}{lacks}; it has to be made anew for that"
    parts = [f"minMember {enough} instead of {there.min_member}"] if enough != there.min_member else []
    parts += ["no minTaskMember"] if without_tasks else []
    return f"{' and '.join(parts)} in {there.title}{lacks}"


def _may_start(ledger: Ledger, pod: Pod) -> bool:
    entry = ledger.entry(pod.uid)
    return (
        entry is not None and entry.allowed and not (entry.demand.problem or ledger.stages.other_gates(pod))
    )


def _new_group(pod: Pod, key: str, queue_name: str) -> Group:
    name = group_key.object_key(key).partition("/")[2]
    metadata = {"namespace": pod.namespace, "name": name, "uid": f"group/{pod.key}"}
    if group_key.is_kubernetes(key):
        return group.project_kubernetes({"metadata": metadata})
    return group.project({"metadata": metadata, "spec": {"queue": queue_name, "minMember": 1}})


def _members(ledger: Ledger, pod: Pod) -> list[Pod]:
    """The waiting members of the pod's group, or the pod alone."""
    found = ledger.group_of(pod)
    if found is None:
        return [ledger.as_stored(pod.uid) or pod]
    return [
        ledger.as_stored(one.uid) or one for one in ledger.members(found) if one.gated and not one.deleting
    ]
