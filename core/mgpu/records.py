"""The result annotations: which cards each container got."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from core import names
from core.objects.pod import Pod

ASSUMED: Final = "true"

_LIST: Final = re.compile(r"[ \t]*[0-9]+[ \t]*(?:,[ \t]*[0-9]+[ \t]*)*", re.ASCII)
_DIGITS_MAX: Final = 9
_LENGTH_MAX: Final = 65_536


def key(container: str) -> str:
    """The annotation that holds the cards of the container of this name."""
    return f"{names.GPU_INDEX_PREFIX}{container}"


def is_result(annotation: str) -> bool:
    """Whether an annotation belongs to the record of a pod: an index of any container, or the marker."""
    return annotation == names.ASSUMED_ANNOTATION or annotation.startswith(names.GPU_INDEX_PREFIX)


def parse(text: str) -> tuple[int, ...] | None:
    """The card numbers, ascending, each once; None for a text that is no list of numbers.

    Blanks around the numbers are read, because a person may have mended the record; they are never written.
    """
    if len(text) > _LENGTH_MAX or not _LIST.fullmatch(text):
        return None
    entries = [entry.strip() for entry in text.split(",")]
    if any(len(entry) > _DIGITS_MAX for entry in entries):
        return None
    return tuple(sorted({int(entry) for entry in entries}))


def render(indexes: Iterable[int]) -> str:
    """Card numbers as they are written: ascending, joined by commas."""
    return ",".join(map(str, sorted(set(indexes))))


def annotations(indexes: Mapping[str, Iterable[int]]) -> dict[str, str]:
    """The complete record of a placement: one entry per container, and the marker that it is complete."""
    record = {key(container): render(cards) for container, cards in indexes.items()}
    return {**record, names.ASSUMED_ANNOTATION: ASSUMED}


def results(pod: Pod) -> dict[str, str]:
    """The record of the pod as it stands, readable or not, entries of other containers included."""
    return {key: text for key, text in pod.annotations.items() if is_result(key)}


def marked(pod: Pod) -> bool:
    """Whether the pod's record is marked as complete."""
    return pod.annotations.get(names.ASSUMED_ANNOTATION) == ASSUMED


def recorded(pod: Pod) -> dict[str, tuple[int, ...]]:
    """The readable records of the pod's asking containers, by container name."""
    record = {}
    for share in pod.shares:
        text = pod.annotations.get(key(share.name))
        cards = None if text is None else parse(text)
        if cards is not None:
            record[share.name] = cards
    return record
