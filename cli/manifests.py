"""The Kubernetes objects in a document: itself, or the items of a List."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cli.documents import Document, Place, place_of

_NOTHING: Mapping[str, Any] = {}


class Found(NamedTuple):
    """One object with its API group and kind, or why what stands there is none."""

    place: Place
    raw: Mapping[str, Any] = _NOTHING
    group: str = ""
    kind: str = ""
    path: str = ""
    """The path of what the problem is about."""
    problem: str = ""


def objects(document: Document) -> Iterator[Found]:
    """Every object in the document, Lists of any kind unfolded, and every place where there should be one."""
    yield from _found(document.value, document.place)


def _found(value: object, place: Place) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield Found(place, problem="must be a Kubernetes object")
        return
    for key, example in (("apiVersion", "v1"), ("kind", "Pod")):
        if not isinstance(value.get(key), str) or not value[key]:
            yield Found(
                place_of(place, key), path=key, problem=f"{key} must be set, for instance to {example}"
            )
            return
    if value["kind"].endswith("List") and "items" in value:
        yield from _unfolded(value, place)
    else:
        yield Found(place, value, value["apiVersion"].rpartition("/")[0], value["kind"])


def _unfolded(outer: dict[str, Any], place: Place) -> Iterator[Found]:
    """The items of a list. Those of a typed one, such as a PodList, need not repeat apiVersion and kind."""
    items = outer["items"]
    if items is not None and not isinstance(items, list):
        yield Found(place_of(place, "items"), path="items", problem="items must be a list")
        return
    kind = outer["kind"].removesuffix("List")
    for index, item in enumerate(items or ()):
        if kind and isinstance(item, dict):
            item = {"apiVersion": outer["apiVersion"], "kind": kind, **item}  # noqa: PLW2901 - the item as it is meant
        yield from _found(item, place_of(place, "items", index))
