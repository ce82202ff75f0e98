"""The card rules of a pod, and of every template that pods are made from.

All rules look at the object alone, and at what the nodes say about card names; none looks at quota or usage, so an
object that is refused would be refused at any other time as well.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from core import names, quantity, reasons
from core.cards import expression
from core.cards.alarms import looks_like_accelerator
from core.cards.inventory import Inventory
from core.objects.draft import Draft
from core.violations import Findings, Hint, Violation, child, show

_NOTHING: Final[Mapping[str, Any]] = {}
_EXAMPLES: Final = 3
_UNKNOWN_LISTED: Final = 8
"""Of more unknown cards nothing is said: an annotation has room for thousands, and each is compared with all known."""


def judge(
    draft: Draft,
    *,
    inventory: Inventory,
    complete: bool,
    policy: str,
    found: Findings,
    is_device: Callable[[str], bool] = lambda _resource: False,
) -> Mapping[str, frozenset[str]]:
    """Adds everything that is wrong with the cards of a pod or template, and what is worth a hint.

    Returns the cards that it may get and the resources of each; none where it names no card, or none that could be.

    `complete`: the inventory has seen all nodes, so that a card which is not in it is unknown; otherwise only the settings and
    the names tell about cards. `policy` is the setting for pods that name no card. `is_device` tells of a resource whether a
    DeviceClass may serve it.
    """
    annotations = draft.annotations
    if names.ASSIGNED_ANNOTATION in annotations:
        path, value = draft.path_of(names.ASSIGNED_ANNOTATION), annotations[names.ASSIGNED_ANNOTATION]
        detail = "is written by the controller only"
        found.violations.append(Violation(reasons.RECORD_PROTECTED, path, detail, "Forbidden", value))
    if names.CARD_NAME_MISPRINT in annotations:
        path = draft.path_of(names.CARD_NAME_MISPRINT)
        detail = f"is never read; the card is named by {names.CARD_NAME_ANNOTATION}"
        found.hints.append(Hint(reasons.CARD_NAME_MISSPELT, path, detail))
    cards, served = draft.cards, dict[str, frozenset[str]]()
    if not cards:
        if not _unnamed(draft, inventory, policy, found) and (policy != "infer" or complete):
            _unnamed_and_unknown(draft, policy, is_device, found)
        return served
    if not draft.prefix and draft.spec.get("nodeName"):
        _preset_node(draft, found)
    path = f"{draft.prefix}metadata.annotations[{names.CARD_NAME_ANNOTATION}]"
    errors = expression.expression_errors(cards)
    if errors:
        found.violations += [
            Violation(reasons.CARD_NAME_MALFORMED, path, error, value=cards) for error in errors
        ]
        return served
    for card in expression.split(cards):
        served[card] = inventory.resources_of(card)
    # Which resource is missing can only be said when all alternatives agree on one.
    differ = len(served) > 1 and _different_resources(served, cards, path, found)
    if not differ and all(served.values()):
        _missing_resource(draft, served, found)
    if "/" in cards:
        for card in expression.reserved(cards):
            detail = f"{show(card)} is no kind of share that is known"
            found.hints.append(Hint(reasons.CARD_NAME_MALFORMED, path, detail))
    if complete and not all(served.values()):
        found.hints += unknown_cards(served, inventory, path)
    _uncovered(draft, served, inventory, policy, found)
    return served


def _preset_node(draft: Draft, found: Findings) -> None:
    """A pod that has its node already cannot be held at a gate; a mirror pod only shows what runs anyway."""
    node = draft.spec["nodeName"]
    if names.MIRROR_POD_ANNOTATION not in draft.annotations:
        detail = "a pod that names a card must be placed by the scheduler; use node affinity instead"
        path = f"{draft.prefix}spec.nodeName"
        found.violations.append(Violation(reasons.NODE_NAME_PRESET, path, detail, "Forbidden", node))


def _different_resources(
    served: Mapping[str, frozenset[str]], cards: str, path: str, found: Findings
) -> bool:
    """Alternatives must be served by one resource: the pod asks for one, whichever card it gets. Whether they are not.

    A whole card that is not known yet still differs from a share: discovery never counts shares as whole cards.
    """
    known = {card: resources for card, resources in served.items() if resources}
    shares = [card for card in known if expression.is_share(card)]
    unknown_whole = [card for card in served if card not in known and "/" not in card]
    common = frozenset.intersection(*known.values()) if known else frozenset()
    if (not known or common) and not (shares and unknown_whole):
        return False
    needs = [f"{card} needs {min(resources)}" for card, resources in known.items()]
    needs += [f"{card} is a whole card" for card in unknown_whole if shares]
    detail = f"all alternatives must be served by the same resource, but {', '.join(needs)}"
    found.violations.append(Violation(reasons.CARD_RESOURCES_DIFFER, path, detail, value=cards))
    return True


def _missing_resource(draft: Draft, served: Mapping[str, frozenset[str]], found: Findings) -> None:
    """When every alternative is known, the pod must ask for its resource: nothing adds it later.

    An amount that is no quantity is named instead; a template inside a custom resource may hold anything.
    """
    # Where every amount can be read, and there is nothing but containers, their sums have said what there is.
    present: Container[str] | None = draft.requests
    if not draft.readable:
        present = _present(draft, frozenset[str]().union(*served.values()), found)
    if present is None:
        return
    missing: dict[str, str] = {}
    for card, resources in served.items():
        for resource in resources:
            if resource in present:
                break
        else:
            missing[min(resources)] = card
    for resource, card in missing.items():
        detail = f"card {card} needs the resource {resource} in the limits of a container"
        path = f"{draft.prefix}spec.containers"
        found.violations.append(Violation(reasons.CARD_RESOURCE_MISSING, path, detail, "Required value"))


def _present(draft: Draft, wanted: frozenset[str], found: Findings) -> Container[str] | None:
    """Those of the resources that containers ask for; None where an amount of one is no quantity, which is told."""
    present, problems = set[str](), len(found.violations)
    for kind, listed in (("initContainers", draft.inits), ("containers", draft.containers)):
        for index, container in enumerate(listed):
            resources = container.get("resources") or _NOTHING
            for section in ("limits", "requests"):
                amounts = resources.get(section)
                if amounts and not wanted.isdisjoint(amounts):
                    present.update(amounts)
                    path = f"{draft.prefix}spec.{kind}[{index}].resources.{section}"
                    _unreadable(amounts, wanted, path, found)
    return present if len(found.violations) == problems else None


def _unreadable(amounts: Mapping[str, Any], wanted: frozenset[str], path: str, found: Findings) -> None:
    """The amounts of these resources that are no quantity."""
    for resource in sorted(wanted & amounts.keys()):
        try:
            quantity.milli(amounts[resource])
        except quantity.QuantityError as error:
            code, value = reasons.CARD_RESOURCE_MISSING, amounts[resource]
            found.violations.append(Violation(code, child(path, resource), str(error), value=value))


def unknown_cards(cards: Iterable[str], inventory: Inventory, path: str) -> Iterator[Hint]:
    """A hint for each card that no node carries now and that the settings do not name; the first few of them.

    The inventory must have seen all nodes. A share is never unknown: its resource follows from its name.
    """
    for card in islice((card for card in cards if not inventory.resources_of(card)), _UNKNOWN_LISTED):
        advice = partial(_did_you_mean, card, inventory)
        yield Hint(reasons.CARD_UNKNOWN, path, f"no node carries the card {show(card)} now", advice)


def _did_you_mean(card: str, inventory: Inventory) -> str:
    near = inventory.nearest(card)
    return f"; did you mean {near}?" if near else ""


def _unnamed(draft: Draft, inventory: Inventory, policy: str, found: Findings) -> bool:
    """A pod that asks for a card's resource without naming a card: no card quota counts it. Whether it asks for any."""
    asked = inventory.cards_among(draft.requests | draft.limits)
    if not asked:
        return False
    if policy == "infer":
        if len(asked) > 1:
            several = f"{', '.join(asked)} are asked for: one card can be inferred, not several"
            _uncounted(draft, "deny", several, found)
        elif not draft.prefix and draft.spec.get("nodeName"):
            # The gate holds it; one that has its node already, no gate can hold.
            _preset_node(draft, found)
        return True
    such_as = _such_as(asked[min(asked)])
    _uncounted(draft, policy, f"{', '.join(asked)} is asked for without a card name{such_as}", found)
    return True


def _unnamed_and_unknown(
    draft: Draft, policy: str, is_device: Callable[[str], bool], found: Findings
) -> None:
    """The same of resources that stand for cards by their names alone: no node shows which, or nodes are not known.

    That is a guess, and of a node without labels nobody could name the card, so nothing is refused for it.
    """
    amounts = draft.requests | draft.limits
    likely = sorted(one for one in amounts if amounts[one] > 0 and looks_like_accelerator(one))
    asked = [one for one in likely if one not in names.MGPU_RESOURCES and not is_device(one)]
    if asked and policy != "ignore":
        _uncounted(draft, "warn", f"{', '.join(asked)} is asked for without a card name", found)


def _uncovered(
    draft: Draft,
    served: Mapping[str, frozenset[str]],
    inventory: Inventory,
    policy: str,
    found: Findings,
) -> None:
    """Cards that a pod asks for beside the one that it names: one card is charged, so no card quota counts the others.

    All alternatives are served by one resource. While no named card is known, it may be any one of those that are asked for.
    """
    asked = inventory.cards_among(draft.requests | draft.limits)
    own = frozenset[str]().union(*served.values())
    beside = sorted(asked.keys() - own) if own else sorted(asked)[1:]
    if beside:
        detail = f"{', '.join(beside)} is asked for beside the card that is named, which does not cover it"
        # A second card cannot be inferred.
        _uncounted(draft, "deny" if policy == "infer" else policy, detail, found)


def _uncounted(draft: Draft, policy: str, detail: str, found: Findings) -> None:
    """What is said of cards that no card quota counts; a mirror pod only shows what runs anyway."""
    if policy == "ignore" or names.MIRROR_POD_ANNOTATION in draft.annotations:
        return
    path = draft.path_of(names.CARD_NAME_ANNOTATION)
    if policy == "deny":
        found.violations.append(Violation(reasons.CARD_NAME_MISSING, path, detail, "Required value"))
    else:
        text = f"{detail}, so no card quota counts it"
        found.hints.append(Hint(reasons.CARD_NAME_MISSING, path, text))


def _such_as(cards: Iterable[str]) -> str:
    shown = list(cards)[:_EXAMPLES]
    return f" (such as {', '.join(shown)})" if shown else ""
