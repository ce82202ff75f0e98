"""The card rules of a pod, and of every template that pods are made from.

All rules look at the object alone, and at what the nodes say about card names; none looks at quota or usage, so an
object that is refused would be refused at any other time as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from core import names, quantity, reasons
from core.cards import expression
from core.cards.inventory import Inventory
from core.cards.spelling import nearest
from core.objects import raw as read
from core.objects.pod_resources import aggregate
from core.settings import Settings
from core.violations import Findings, Hint, Violation, child, show

_EXAMPLES: Final = 3
_UNKNOWN_LISTED: Final = 8
"""Of more unknown cards nothing is said: an annotation has room for thousands, and each is compared with all known."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A pod or template under review. Without an inventory, only the settings and the names tell about cards."""

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    prefix: str
    inventory: Inventory
    complete: bool
    """Whether the inventory has seen all nodes, so that a card which is not in it is unknown."""

    @property
    def annotations(self) -> Mapping[str, Any]:
        return read.mapping(self.metadata, "annotations")

    def annotation_path(self, key: str) -> str:
        return child(f"{self.prefix}metadata.annotations", key)

    def amounts(self) -> dict[str, int]:
        """Resource -> thousandths of the whole pod; templates are not defaulted, so limits count before requests."""
        return aggregate(self.spec, "requests") | aggregate(self.spec, "limits")


def judge(
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    *,
    prefix: str,
    inventory: Inventory | None,
    settings: Settings,
    template: bool,
) -> Findings:
    """Everything that is wrong with the cards of a pod or template, and what is worth a hint.

    `inventory` None: the nodes are not known, and what needs them is left out. `prefix` stands before every path.
    """
    known = Inventory(settings.cards.resources) if inventory is None else inventory
    subject = _Subject(metadata, spec, prefix, known, complete=inventory is not None)
    findings = Findings(tuple(_records(subject)), tuple(_misprint(subject)))
    cards = subject.annotations.get(names.CARD_NAME_ANNOTATION)
    if not cards and (cards is None or isinstance(cards, str)):
        return findings + _unnamed(subject, settings.cards.pods_without_card_name)
    if not template:
        findings += Findings(tuple(_preset_node(subject)))
    errors = _grammar(subject, cards)
    if errors or not isinstance(cards, str):
        return findings + Findings(tuple(errors))
    alternatives = expression.every_alternative(cards)
    # Which resource is missing can only be said when all alternatives agree on one.
    violations = list(_different_resources(subject, cards)) or list(_missing_resource(subject, alternatives))
    findings += Findings(tuple(violations), tuple(_remarks(subject, cards)))
    return findings + _uncovered(subject, alternatives, settings.cards.pods_without_card_name)


def _records(subject: _Subject) -> Iterator[Violation]:
    if names.ASSIGNED_ANNOTATION in subject.annotations:
        path = subject.annotation_path(names.ASSIGNED_ANNOTATION)
        value = subject.annotations[names.ASSIGNED_ANNOTATION]
        yield Violation(
            reasons.RECORD_PROTECTED, path, "is written by the controller only", kind="Forbidden", value=value
        )


def _misprint(subject: _Subject) -> Iterator[Hint]:
    if names.CARD_NAME_MISPRINT in subject.annotations:
        path = subject.annotation_path(names.CARD_NAME_MISPRINT)
        yield Hint(
            reasons.CARD_NAME_MISSPELT,
            path,
            f"is never read; the card is named by {names.CARD_NAME_ANNOTATION}",
        )


def _preset_node(subject: _Subject) -> Iterator[Violation]:
    """A pod that has its node already cannot be held at a gate; a mirror pod only shows what runs anyway."""
    node = subject.spec.get("nodeName")
    if node and names.MIRROR_POD_ANNOTATION not in subject.annotations:
        detail = "a pod that names a card must be placed by the scheduler; use node affinity instead"
        yield Violation(
            reasons.NODE_NAME_PRESET, f"{subject.prefix}spec.nodeName", detail, kind="Forbidden", value=node
        )


def _grammar(subject: _Subject, cards: object) -> list[Violation]:
    path = subject.annotation_path(names.CARD_NAME_ANNOTATION)
    if not isinstance(cards, str):
        return [Violation(reasons.CARD_NAME_MALFORMED, path, "must be text", value=cards)]
    errors = expression.expression_errors(cards)
    return [Violation(reasons.CARD_NAME_MALFORMED, path, error, value=cards) for error in errors]


def _different_resources(subject: _Subject, cards: str) -> Iterator[Violation]:
    """Alternatives must be served by one resource: the pod asks for one, whichever card it gets.

    A whole card that is not known yet still differs from a share: discovery never counts shares as whole cards.
    """
    alternatives = expression.every_alternative(cards)
    served = {card: subject.inventory.resources_of(card) for card in alternatives}
    known = {card: resources for card, resources in served.items() if resources}
    shares = [card for card in known if expression.is_share(card)]
    unknown_whole = [card for card in alternatives if card not in known and "/" not in card]
    common = frozenset.intersection(*known.values()) if known else frozenset()
    if (not known or common) and not (shares and unknown_whole):
        return
    needs = [f"{card} needs {min(resources)}" for card, resources in known.items()]
    needs += [f"{card} is a whole card" for card in unknown_whole if shares]
    yield Violation(
        reasons.CARD_RESOURCES_DIFFER,
        subject.annotation_path(names.CARD_NAME_ANNOTATION),
        f"all alternatives must be served by the same resource, but {', '.join(needs)}",
        value=cards,
    )


def _missing_resource(subject: _Subject, alternatives: tuple[str, ...]) -> Iterator[Violation]:
    """When every alternative is known, the pod must ask for its resource: nothing adds it later."""
    served = {card: subject.inventory.resources_of(card) for card in alternatives}
    if not all(served.values()):
        return
    asked = list(_asked(subject.spec))
    unreadable = list(_unreadable(subject, asked, frozenset.union(*served.values())))
    if unreadable:
        yield from unreadable
        return
    present = {resource for _, amounts in asked for resource in amounts}
    missing = {min(resources): card for card, resources in served.items() if resources.isdisjoint(present)}
    for resource, card in missing.items():
        yield Violation(
            reasons.CARD_RESOURCE_MISSING,
            f"{subject.prefix}spec.containers",
            f"card {card} needs the resource {resource} in the limits of a container",
            kind="Required value",
        )


_Place = tuple[str, int, str]


def _asked(spec: Mapping[str, Any]) -> Iterator[tuple[_Place, Mapping[str, Any]]]:
    """The limits and the requests of every container, with (list, index, section) as their place."""
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(read.sequence(spec, kind)):
            resources = read.mapping(container, "resources")
            for section in ("limits", "requests"):
                yield (kind, index, section), read.mapping(resources, section)


def _unreadable(
    subject: _Subject, asked: Iterable[tuple[_Place, Mapping[str, Any]]], resources: frozenset[str]
) -> Iterator[Violation]:
    """Amounts of the card's resource that are no quantity; a template inside a custom resource may hold anything."""
    for (kind, index, section), amounts in asked:
        for resource in sorted(resources & amounts.keys()):
            path = f"{subject.prefix}spec.{kind}[{index}].resources.{section}"
            yield from _quantity(amounts[resource], child(path, resource))


def _quantity(value: object, path: str) -> Iterator[Violation]:
    try:
        quantity.parse(value)
    except quantity.QuantityError as error:
        yield Violation(reasons.CARD_RESOURCE_MISSING, path, str(error), value=value)


def _remarks(subject: _Subject, cards: str) -> Iterator[Hint]:
    path = subject.annotation_path(names.CARD_NAME_ANNOTATION)
    for card in expression.reserved(cards):
        yield Hint(reasons.CARD_NAME_MALFORMED, path, f"{show(card)} is no kind of share that is known")
    if subject.complete:
        yield from unknown_cards(expression.every_alternative(cards), subject.inventory, path)


def unknown_cards(cards: Iterable[str], inventory: Inventory, path: str) -> Iterator[Hint]:
    """A hint for each card that no node carries now and that the settings do not name; the first few of them.

    The inventory must have seen all nodes. A share is never unknown: its resource follows from its name.
    """
    for card in islice((card for card in cards if not inventory.resources_of(card)), _UNKNOWN_LISTED):
        advice = partial(_did_you_mean, card, inventory)
        yield Hint(reasons.CARD_UNKNOWN, path, f"no node carries the card {show(card)} now", advice)


def _did_you_mean(card: str, inventory: Inventory) -> str:
    near = nearest(card, inventory)
    return f"; did you mean {near}?" if near else ""


def _unnamed(subject: _Subject, policy: str) -> Findings:
    """A pod that asks for a card's resource without naming a card: no card quota counts it."""
    found = _resources_of_cards(subject)
    if policy == "infer":
        if len(found) > 1:
            return _uncounted(
                subject, "deny", f"{', '.join(found)} are asked for: one card can be inferred, not several"
            )
        # The gate holds it; one that has its node already, no gate can hold.
        return Findings(tuple(_preset_node(subject)) if found and not subject.prefix else ())
    if not found:
        return Findings()
    such_as = _such_as(found[min(found)])
    return _uncounted(subject, policy, f"{', '.join(found)} is asked for without a card name{such_as}")


def _uncovered(subject: _Subject, alternatives: Iterable[str], policy: str) -> Findings:
    """Cards that a pod asks for beside the one that it names: one card is charged, so no card quota counts the others.

    All alternatives are served by one resource. While no named card is known, it may be any one of those that are asked for.
    """
    own = frozenset[str]().union(*(subject.inventory.resources_of(card) for card in alternatives))
    asked = _resources_of_cards(subject)
    beside = sorted(asked.keys() - own) if own else sorted(asked)[1:]
    if not beside:
        return Findings()
    detail = f"{', '.join(beside)} is asked for beside the card that is named, which does not cover it"
    # A second card cannot be inferred.
    return _uncounted(subject, "deny" if policy == "infer" else policy, detail)


def _resources_of_cards(subject: _Subject) -> dict[str, tuple[str, ...]]:
    """The resources that the pod asks for and that stand for cards, in order, with the cards that the nodes show for each."""
    asked = sorted(resource for resource, milli in subject.amounts().items() if milli > 0)
    found = {resource: subject.inventory.cards_of(resource) for resource in asked}
    return {
        resource: cards for resource, cards in found.items() if cards or expression.stands_for_share(resource)
    }


def _uncounted(subject: _Subject, policy: str, detail: str) -> Findings:
    """What is said of cards that no card quota counts; a mirror pod only shows what runs anyway."""
    if policy == "ignore" or names.MIRROR_POD_ANNOTATION in subject.annotations:
        return Findings()
    path = subject.annotation_path(names.CARD_NAME_ANNOTATION)
    if policy == "deny":
        violation = Violation(reasons.CARD_NAME_MISSING, path, detail, kind="Required value")
        return Findings((violation,))
    return Findings(hints=(Hint(reasons.CARD_NAME_MISSING, path, f"{detail}, so no card quota counts it"),))


def _such_as(cards: Iterable[str]) -> str:
    shown = list(cards)[:_EXAMPLES]
    return f" (such as {', '.join(shown)})" if shown else ""
