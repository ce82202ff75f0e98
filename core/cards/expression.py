"""Card names and the expressions `A|B` made of them: the grammar, and what a name alone gives away.

    expression = name *( "|" name )
    name       = product [ "/" share ]
    share      = "mps-" G "g*1/" R  |  "mig-" profile "-mixed"  |  ...

A product is a label value, since discovery takes it from a node label. The kinds of shares stand in `core.cards.shares`.
"""

import re
from collections import Counter
from collections.abc import Container
from fractions import Fraction
from functools import lru_cache
from typing import Final

from core.cards import shares
from core.violations import show

BAR: Final = "|"
MAX_ALTERNATIVES: Final = 16
MAX_LENGTH: Final = 4096
"""Characters; the longest names of 16 cards are far shorter. What is beyond either limit is not taken apart."""
_SHORT: Final = 256
"""Longest expression that is remembered once it was judged, so that odd ones cannot fill the memory."""

PREFERENCE_MAX: Final = 100
"""How much the node of the first alternative is preferred."""

_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_BLANK: Final = re.compile(r"\s")
_VISIBLE: Final = re.compile(r"[!-~]+")


def is_excessive(expression: str) -> bool:
    """Whether the expression is beyond the limits, so that nobody counts by it. Costs the same however long it is."""
    return len(expression) > MAX_LENGTH or expression.count(BAR) >= MAX_ALTERNATIVES


def split(expression: str) -> tuple[str, ...]:
    """The alternatives from left (preferred) to right, as they stand; none for an empty or an excessive expression."""
    return _remembered_split(expression) if len(expression) <= _SHORT else _split(expression)


def _split(expression: str) -> tuple[str, ...]:
    return () if is_excessive(expression) else every_alternative(expression)


_remembered_split = lru_cache(maxsize=4096)(_split)


def every_alternative(expression: str) -> tuple[str, ...]:
    """The alternatives of any expression, however many: for whoever judges the text."""
    return tuple(expression.split(BAR)) if expression else ()


def is_product(text: str) -> bool:
    """Whether the text can be the product of a card."""
    return _LABEL_VALUE.fullmatch(text) is not None


def is_share(name: str) -> bool:
    """Whether the name is that of a share of a kind that is known."""
    product, slash, share = name.partition("/")
    return bool(slash) and is_product(product) and shares.kind_of(share) is not None


def whole_card(name: str) -> str:
    """The card that a share is cut from: its product; a whole card itself."""
    return name.partition("/")[0]


def stands_for_share(resource: str) -> bool:
    """Whether a resource is that of a share of a card, by its name alone."""
    return shares.stands_for_share(resource)


def resources_by_name(name: str) -> frozenset[str]:
    """The resources that may stand for a share, as far as that follows from its name; none for every other name."""
    product, slash, share = name.partition("/")
    found = shares.kind_of(share) if slash and is_product(product) else None
    return frozenset() if found is None else found[0].resources(found[1])


def name_errors(name: str) -> list[str]:
    """What is wrong with one card name; empty when it may be used. A share of a kind not known yet may be used."""
    if not name:
        return ["has an empty card name"]
    if _BLANK.search(name):
        return [f"has white space in the card name {show(name)}, which can therefore never match"]
    if BAR in name:
        return [f"has a | in the card name {show(name)}, but one card must be named"]
    product, slash, share = name.partition("/")
    if not is_product(product):
        return [
            f"has the card name {show(name)}, whose product {show(product)} cannot be the value of a node label"
        ]
    if slash and not _VISIBLE.fullmatch(share):
        return [f"has the card name {show(name)}, whose part after the slash cannot be the name of a share"]
    meant = shares.misspelt(share)
    if meant is not None:
        return [f"has the card name {show(name)}; {meant.title} is written like {meant.like}"]
    return []


def expression_errors(expression: str) -> list[str]:
    """What is wrong with an expression; empty when it may be used."""
    return list(_remembered_errors(expression) if len(expression) <= _SHORT else _errors(expression))


def _errors(expression: str) -> list[str]:
    if is_excessive(expression):
        size = f"{expression.count(BAR) + 1:,} alternatives in {len(expression):,} characters"
        most = f"at most {MAX_ALTERNATIVES} alternatives in {MAX_LENGTH:,} characters are looked at"
        return [f"has {size}; {most}, name fewer cards"]
    alternatives = every_alternative(expression) or ("",)
    if not all(alternatives):
        return (
            ["has an empty alternative: | stands between two card names"]
            if BAR in expression
            else name_errors("")
        )
    counts = Counter(alternatives)
    errors = [error for name in counts for error in name_errors(name)]
    repeated = sorted(name for name, times in counts.items() if times > 1)
    return errors + [f"has the duplicate alternative {show(name)}" for name in repeated]


_remembered_errors = lru_cache(maxsize=4096)(_errors)
"""The pods of a cluster name the same few cards over and over."""


def reserved(expression: str) -> list[str]:
    """The alternatives that follow the grammar except that their kind of share is not known."""
    return [
        name
        for name in dict.fromkeys(every_alternative(expression))
        if "/" in name and not name_errors(name) and not is_share(name)
    ]


def preference(alternatives: tuple[str, ...], on_node: Container[str]) -> tuple[str, Fraction] | None:
    """The leftmost alternative that the node has, and how much the node is preferred for it; None when it has none.

    100 for the first alternative, half as much for each one further right, exact. Where there is no choice no node is
    preferred.
    """
    for position, card in enumerate(alternatives):
        if card in on_node:
            chosen = len(alternatives) > 1
            return card, Fraction(PREFERENCE_MAX, 2**position) if chosen else Fraction(0)
    return None
