"""Who may use a queue: the namespaces that its annotations admit, by name or by label; either one suffices.

An annotation that is there closes the queue to all whom it does not name. So one that is empty admits nobody, and nor does
one that cannot be read: it may have been stored without us.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from core import label_selector, names, namespace_patterns, reasons
from core.label_selector import Selector, SelectorError
from core.namespace_patterns import PatternError, Patterns
from core.objects import Queue
from core.refusal import Refusal

_KEPT: Final = 4096
"""Texts that are kept as they were read: queues are asked about with every pod."""

_Read = TypeVar("_Read", Patterns, Selector)


@dataclass(frozen=True, slots=True)
class Access:
    """What the annotations of a queue say.

    `named` and `selected` are None where they admit nobody. `problems` are the annotations that cannot be read, and why.
    """

    stated: bool
    named: Patterns | None = None
    selected: Selector | None = None
    problems: tuple[tuple[str, str], ...] = ()

    def admits(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether a namespace is admitted; without labels nobody knows those yet, and only its name counts."""
        if self.named is not None and self.named.match(namespace):
            return True
        return self.selected is not None and labels is not None and self.selected.selects(labels)


_UNSTATED: Final = Access(stated=False)


def access_of(queue: Queue) -> Access:
    """What a queue says about who may use it; never raises."""
    if queue.namespaces is None and queue.namespace_selector is None:
        return _UNSTATED
    return _access(queue.namespaces, queue.namespace_selector)


def problem_of(annotation: str, text: str) -> str:
    """Why the text of one of the two annotations cannot be read; empty when it can."""
    read = _pattern_list if annotation == names.NAMESPACES_ANNOTATION else _selector
    return read(text)[1]


def may_use(queue: Queue, namespace: str, labels: Mapping[str, str] | None, access: str) -> bool:
    """Whether pods of a namespace may use a queue. `access` is the setting, for queues that do not say it themselves."""
    said = access_of(queue)
    return said.admits(namespace, labels) if said.stated else access == "open"


def not_allowed(queue: str, namespace: str) -> Refusal:
    """What is said to a pod of a namespace that may not use the queue."""
    return Refusal(
        reasons.QUEUE_NOT_ALLOWED,
        f"Queue <{queue}> is not open to namespace <{namespace}>; "
        f"{names.NAMESPACES_ANNOTATION} or {names.NAMESPACE_SELECTOR_ANNOTATION} of the queue would have to admit it",
    )


@lru_cache(maxsize=_KEPT)
def _access(listed: str | None, selecting: str | None) -> Access:
    named, wrong_names = _pattern_list(listed or "")
    selected, wrong_selector = _selector(selecting or "")
    problems = (
        (names.NAMESPACES_ANNOTATION, wrong_names),
        (names.NAMESPACE_SELECTOR_ANNOTATION, wrong_selector),
    )
    return Access(True, named, selected, tuple(problem for problem in problems if problem[1]))


def _pattern_list(text: str) -> tuple[Patterns | None, str]:
    return _read(namespace_patterns.parse, text, PatternError)


def _selector(text: str) -> tuple[Selector | None, str]:
    """An empty selector would select everything; nobody opens a queue to all by writing nothing."""
    found, problem = _read(label_selector.parse, text, SelectorError)
    return (found if found is not None and found.requirements else None), problem


def _read(
    parse: Callable[[str], _Read], text: str, error: type[PatternError | SelectorError]
) -> tuple[_Read | None, str]:
    try:
        return parse(text), ""
    except error as wrong:
        return None, str(wrong)
