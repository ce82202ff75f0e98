"""Who stands in for a pod: entries in the ledger for what a bind that may still be stored takes, and the pod is not booked with.

As a rule a pod is booked with what it has, or was granted. Two pods may have something else in the end: one whose bind takes
another card, or other claims, than it was lifted with, and that is back at the first ones should the bind fail; and one of which
nobody knows whether, and with what, a former leader has let it be bound.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from core import names
from core.cards.ask import assignment_of
from core.cards.assigned import recorded_share, render_assigned, share_milli
from core.cards.expression import is_excessive, split
from core.dra.record import Counted, read_counted, render_counted, unasked
from core.objects import Pod
from core.queues.demand import demand_of, shares_count
from core.queues.ledger import Ledger
from core.queues.usage import card_resources
from core.stage import Stage


class StandIns:
    """The stand-ins of each pod, by its UID. They are in the ledger until they are released, under UIDs that no pod has."""

    def __init__(self, ledger: Ledger, role: str) -> None:
        """`role` tells them from those that others hold for the same pod."""
        self._ledger = ledger
        self._role = role
        self._of: dict[str, tuple[Pod, ...]] = {}

    def hold(self, uid: str, stand_ins: Iterable[Pod]) -> None:
        """Charges these for a pod, in the place of those that were charged for it before."""
        self.release(uid)
        held = tuple(
            replace(each, uid=f"{uid}/{self._role}/{number}") for number, each in enumerate(stand_ins)
        )
        if held:
            self._of[uid] = held
            self._put(held)

    def release(self, uid: str) -> None:
        """Takes back what is charged for a pod. Unknown UIDs are fine."""
        for each in self._of.pop(uid, ()):
            self._ledger.forget(each.uid)

    def release_all(self) -> None:
        """Takes everything back. Many stay booked until the ledger is settled."""
        self._ledger.retract_all(each for held in self._of.values() for each in held)
        self._of.clear()

    @contextmanager
    def aside(self, uid: str) -> Iterator[None]:
        """The ledger without what is charged for a pod: of its own bind that is in nobody's way."""
        held = self._of.get(uid, ())
        for each in held:
            self._ledger.forget(each.uid)
        try:
            yield
        finally:
            self._put(held)

    def _put(self, held: Iterable[Pod]) -> None:
        for each in held:
            self._ledger.assume(each)


def before_the_bind(lifted: Pod, bound: Pod, ledger: Ledger) -> Iterator[Pod]:
    """What a lifted pod is back at should this bind of it fail, and is not booked with meanwhile: its card, its claims."""
    card = assignment_of(lifted)
    if card is not None and card != assignment_of(bound):
        yield _for_card(lifted, *card, ledger)
    claims = _given_up(lifted, bound)
    if claims:
        yield _for_claims(lifted, claims, ledger)


def of_any_bind(pod: Pod, ledger: Ledger) -> Iterator[Pod]:
    """All that some bind of a pod without a node may take, and that the pod is not booked with.

    Whoever was not lifted may get each of the cards that it names. Whom no scheduler binds that we know of is not booked at all,
    though the hook is asked about its bind as well.
    """
    entry, cards = ledger.entry(pod.uid), list(_cards(pod, ledger))
    if entry is None or entry.stage is not Stage.RESERVED:
        yield _unbooked(pod, cards[:1], ledger)
        cards = cards[1:]
    else:
        if not ledger.devices.all_counted(pod):
            yield _for_claims(pod, _maybe_asked(pod, ledger), ledger)
        booked = entry.demand.card.card if entry.demand.card is not None else ""
        cards = [each for each in cards if each[0] != booked]
    for card, count in (*cards, *_cards_of_shares(pod, ledger)):
        yield _for_card(pod, card, count, ledger)


def _cards(pod: Pod, ledger: Ledger) -> Iterator[tuple[str, int]]:
    """The cards that a bind may give a pod, and how many of each; none where they cannot be counted."""
    if not ledger.settings.features.cards or not pod.card_name or is_excessive(pod.card_name):
        return
    inventory, record = ledger.inventory, assignment_of(pod)
    asked = demand_of(pod, inventory, card_resources(inventory), ledger.settings).card
    count = record[1] if record is not None else (asked.milli // 1000 if asked is not None else 0)
    if count:
        yield from ((card, count) for card in split(pod.card_name))


def _cards_of_shares(pod: Pod, ledger: Ledger) -> Iterator[tuple[str, int]]:
    """The cards of which the node may show that the shares of a pod are parts. A record is of whole ones: a part is held as one."""
    if shares_count(pod, ledger.settings) and (recorded_share(pod) or ("", 0))[0] == "":
        count = -(-share_milli(pod) // 1000)
        yield from ((product, count) for product in ledger.inventory.shared_products())


def _given_up(lifted: Pod, bound: Pod) -> dict[str, Counted]:
    """The claims on record of a lifted pod in the place of which its bind has others, unless those cost as much."""
    before = read_counted(lifted.annotations.get(names.CLAIMS_ANNOTATION, "{}")) or {}
    after = read_counted(bound.annotations.get(names.CLAIMS_ANNOTATION, "{}")) or {}
    return {entry: counted for entry, counted in before.items() if not _covers(after.get(entry), counted)}


def _covers(after: Counted | None, before: Counted) -> bool:
    had = {} if after is None else after.amounts
    return all(amount <= had.get(key, 0) for key, amount in before.amounts.items())


def _for_card(pod: Pod, card: str, count: int, ledger: Ledger) -> Pod:
    """Holds a card, and nothing else."""
    kept = {names.CARD_NAME_ANNOTATION: card, names.ASSIGNED_ANNOTATION: render_assigned(card, count)}
    cards = card_resources(ledger.inventory)
    asks = {resource: amount for resource, amount in pod.requests.items() if resource in cards}
    alone = _no_member(pod, kept, ledger)
    return replace(alone, requests=asks, limits=asks, shares=(), claims=(), generated_claims={})


def _for_claims(pod: Pod, claims: Mapping[str, Counted], ledger: Ledger) -> Pod:
    """Holds claims as they were counted, and nothing else."""
    alone = _no_member(pod, {names.CLAIMS_ANNOTATION: render_counted(claims)}, ledger)
    entries = tuple(claim for claim in pod.claims if claim[0] in claims)
    return replace(alone, requests={}, limits={}, shares=(), claims=entries)


def _maybe_asked(pod: Pod, ledger: Ledger) -> dict[str, Counted]:
    """The claims of a bind that may never have been granted: others that share them have to be asked themselves."""
    return unasked(read_counted(ledger.devices.record(pod)) or {})


def _unbooked(pod: Pod, card: Iterable[tuple[str, int]], ledger: Ledger) -> Pod:
    """Holds everything that a pod asks for, with this card of those that it names."""
    kept = {names.CLAIMS_ANNOTATION: render_counted(_maybe_asked(pod, ledger))} if pod.claims else {}
    for each in card:
        kept |= {names.CARD_NAME_ANNOTATION: each[0], names.ASSIGNED_ANNOTATION: render_assigned(*each)}
    return _no_member(pod, kept, ledger)


def _no_member(pod: Pod, kept: Mapping[str, str], ledger: Ledger) -> Pod:
    """A copy that the queue of the pod has let in.

    Nothing is kept of what `Pod.group_key` and `Pod.pod_groups` go by: of such members a gang would seem whole that is not.
    """
    annotations = {**kept, names.CHARGED_QUEUE_ANNOTATION: ledger.attribution(pod).queue}
    return replace(pod, annotations=annotations, owner=None, gang=None, scheduling_group="")
